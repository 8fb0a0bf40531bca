/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * via.h - who samples: the agent in the process, or the kernel's perf events, with
 * callchains, which are exact where there are shadow stacks or unwind rules, or with
 * copies of stacks.
 */
#ifndef TOOLS_RECORD_OPTIONS_VIA_H
#define TOOLS_RECORD_OPTIONS_VIA_H

enum via {
	VIA_AUTO,
	VIA_AGENT,
	VIA_PERF,
	VIA_COPIES,
	VIA_RULES, /* as VIA_PERF, and it is seen to that there are unwind rules */
};

struct backend;
struct record_opts;

/**
 * via_choose() - decide who records
 * @o: what was asked for; @o->via becomes what was chosen, @o->why the reason.
 * @ret: receives it.
 */
void via_choose(struct record_opts *o, const struct backend **ret);

#endif
