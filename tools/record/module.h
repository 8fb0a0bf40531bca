/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * module.h - shstk_perf.ko, which takes the kernel's callchains from shadow stacks and by
 * unwind rules.
 */
#ifndef TOOLS_RECORD_MODULE_H
#define TOOLS_RECORD_MODULE_H

#include <stdbool.h>
#include <stdint.h>

/* Is it loaded? Then callchains come from shadow stacks, where there are any. */
bool module_loaded(void);

/**
 * struct module_chains - what it did since it was loaded, in all programs
 * @exact: callchains from shadow stacks, or whole by unwind rules.
 * @other: callchains by frame pointers, or that end too early.
 * @unread: of these, those of threads that have a shadow stack, which could not be read.
 */
struct module_chains {
	uint64_t exact;
	uint64_t other;
	uint64_t unread;
};

/* All 0 if it is not loaded. */
void module_read_chains(struct module_chains *ret);

#endif
