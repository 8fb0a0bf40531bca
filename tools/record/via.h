/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * via.h - who samples: the agent in the process, or the kernel's perf events, with
 * callchains, which are exact where there are shadow stacks or unwind rules, or with
 * copies of stacks.
 */
#ifndef TOOLS_RECORD_VIA_H
#define TOOLS_RECORD_VIA_H

#include <stdbool.h>
#include <stdint.h>

enum via {
	VIA_AUTO,
	VIA_AGENT,
	VIA_PERF,
	VIA_COPIES,
	VIA_RULES, /* as VIA_PERF, and it is seen to that there are unwind rules */
};

/* shstk_perf.ko is loaded: callchains come from shadow stacks, where there are any. */
bool via_module_loaded(void);

struct backend;
struct record_opts;

/**
 * via_choose() - decide who records
 * @o: what was asked for; @o->via becomes what was chosen, @o->why the reason.
 * @ret: receives it.
 */
void via_choose(struct record_opts *o, const struct backend **ret);

/**
 * struct via_chains - what the module did since it was loaded, in all programs
 * @exact: callchains from shadow stacks, or whole by unwind rules.
 * @other: callchains by frame pointers, or that end too early.
 */
struct via_chains {
	uint64_t exact;
	uint64_t other;
};

/* Both 0 if the module is not loaded. */
void via_read_chains(struct via_chains *ret);

#endif
