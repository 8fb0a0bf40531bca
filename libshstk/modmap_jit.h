/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* modmap_jit.h - code made at run time whose unwind information was registered. */
#ifndef SHSTK_MODMAP_JIT_H
#define SHSTK_MODMAP_JIT_H

#include "module.h"

/**
 * struct modmap_jit - the registered unwind information
 * @n: number of slots that were ever used; 0 as long as nothing was registered.
 */
struct modmap_jit {
	unsigned int n;
};

extern struct modmap_jit modmap_jit __attribute__((visibility("hidden")));

struct module *modmap_jit_search(uint64_t pc);

/* Returns the registered module that describes @pc, or NULL. */
static inline struct module *modmap_jit_find(uint64_t pc)
{
	return unlikely(load_relaxed(&modmap_jit.n)) ? modmap_jit_search(pc) : NULL;
}

/* Adds the registered modules to @stats. */
void modmap_jit_stats(struct shstk_stats *stats);

#endif
