/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper.h - makes sure that the kernel has unwind rules while somebody records: by the daemon or,
 * if none runs, by a process of the recorder that does the same.
 */
#ifndef TOOLS_RULES_HELPER_H
#define TOOLS_RULES_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct rules_state - what the kernel has
 * @tables: number of tables.
 * @served: the daemon or a helper waits for files without a table.
 * @may_load: the caller may load tables.
 */
struct rules_state {
	uint64_t tables;
	bool served;
	bool may_load;
};

/* Reads the state. All members are 0 if no shstk_perf.ko with unwind rules is loaded. */
void rules_read_state(struct rules_state *ret);

/**
 * rules_helper_start() - start a process that loads the tables of all programs that run, and then
 * of files that walks meet
 *
 * The function returns when the programs that run have their tables. The tables stay in the kernel
 * after the process has ended. It must be called before anything is open that a child must not
 * have.
 *
 * Return: the process, which ends when this process ends; or a negative errno.
 */
pid_t rules_helper_start(void);

/* Ends the process @pid, which is from rules_helper_start(). Does nothing if @pid is below 1. */
void rules_helper_end(pid_t pid);

#endif
