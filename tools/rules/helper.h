/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper.h - unwind rules in the kernel for as long as somebody records: by the daemon,
 * or, where none runs, by a process of the recorder's own that does the same.
 */
#ifndef TOOLS_RULES_HELPER_H
#define TOOLS_RULES_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct rules_state - what the kernel has
 * @tables: number of tables.
 * @served: somebody waits for files without one: the daemon, or a helper.
 * @may_load: the caller may load tables.
 */
struct rules_state {
	uint64_t tables;
	bool served;
	bool may_load;
};

/* All 0 if no shstk_perf.ko is loaded that knows rules. */
void rules_read_state(struct rules_state *ret);

/**
 * rules_helper_start() - load the tables of all that runs, and then of what is met
 *
 * Returns when what runs has its tables; these stay in the end. To be called before
 * anything is open that a child may not have.
 *
 * Return: the process that does it, which ends with this one; or a negative errno.
 */
pid_t rules_helper_start(void);

/* @pid: of rules_helper_start(), or anything below 1. */
void rules_helper_end(pid_t pid);

#endif
