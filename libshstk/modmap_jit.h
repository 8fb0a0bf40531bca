/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * modmap_jit.h - code made at run time whose unwind information was registered.
 */
#ifndef SHSTK_MODMAP_JIT_H
#define SHSTK_MODMAP_JIT_H

#include "module.h"

/**
 * struct modmap_jit - all that is registered now
 * @n: slots ever used; 0 as long as nothing was registered.
 */
struct modmap_jit {
	unsigned int n;
};

extern struct modmap_jit modmap_jit __attribute__((visibility("hidden")));

struct module *modmap_jit_search(uint64_t pc);

/* The module that was registered and describes @pc, or NULL. */
static inline struct module *modmap_jit_find(uint64_t pc)
{
	return unlikely(load_relaxed(&modmap_jit.n)) ? modmap_jit_search(pc) : NULL;
}

/* Add to @stats what is registered. */
void modmap_jit_stats(struct shstk_stats *stats);

#endif
