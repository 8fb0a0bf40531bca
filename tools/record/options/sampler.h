/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler.h - who takes the samples: the agent in the process, or the kernel's perf events. Perf
 * events come with callchains, which are exact where there are shadow stacks or unwind rules, or
 * with copies of stacks.
 */
#ifndef TOOLS_RECORD_OPTIONS_SAMPLER_H
#define TOOLS_RECORD_OPTIONS_SAMPLER_H

enum via {
	VIA_AUTO,
	VIA_AGENT,
	VIA_PERF,
	VIA_COPIES,
	VIA_RULES, /* as VIA_PERF, and the recorder makes sure that there are unwind rules */
};

struct backend;
struct record_opts;

/**
 * sampler_choose() - decide who records
 * @o: the options. @o->via becomes the choice, @o->why its reason.
 * @ret: receives the back end.
 */
void sampler_choose(struct record_opts *o, const struct backend **ret);

#endif
