/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_module.h - the kernel module shstk_perf.ko, which makes the kernel's callchains from shadow
 * stacks and by unwind rules.
 */
#ifndef TOOLS_RECORD_PERF_MODULE_H
#define TOOLS_RECORD_PERF_MODULE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns whether the module is loaded. If it is, threads with shadow stacks have callchains from
 * them.
 */
bool module_loaded(void);

/**
 * struct module_chains - callchains in all programs since the module was loaded
 * @exact: callchains from shadow stacks, and complete callchains by unwind rules.
 * @other: callchains by frame pointers, and those that end too early.
 * @unread: the part of @other from threads whose shadow stack could not be read.
 */
struct module_chains {
	uint64_t exact;
	uint64_t other;
	uint64_t unread;
};

/* Reads the module's counts. All are 0 if the module is not loaded. */
void module_read_chains(struct module_chains *ret);

#endif
