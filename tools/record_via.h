/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_via.h - who samples: the agent in the process, or the kernel's perf
 * events. These are better where their callchains are exact.
 */
#ifndef TOOLS_RECORD_VIA_H
#define TOOLS_RECORD_VIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum via {
	VIA_AUTO,
	VIA_AGENT,
	VIA_PERF,
};

/* shstk_perf.ko is loaded: callchains come from shadow stacks. */
bool via_module_loaded(void);

/* Does the process have a shadow stack? Or a negative errno. */
int via_has_shadow_stack(pid_t pid);

/* Will the command, started as we are, run with shadow stacks? */
bool via_will_have_shadow_stack(char *const command[]);

/**
 * struct via_chains - what the module did since it was loaded, in all programs
 * @exact: callchains from shadow stacks.
 * @other: callchains by frame pointers.
 */
struct via_chains {
	uint64_t exact;
	uint64_t other;
};

/* Both 0 if the module is not loaded. */
void via_read_chains(struct via_chains *ret);

#endif
