/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * registered.h - code made at run time whose unwind information was registered.
 */
#ifndef SHSTK_REGISTERED_H
#define SHSTK_REGISTERED_H

#include "module.h"

/**
 * struct registered - all that is registered now
 * @n: slots ever used; 0 as long as nothing was registered.
 */
struct registered {
	unsigned int n;
};

extern struct registered registered __attribute__((visibility("hidden")));

struct module *registered_find(uint64_t pc);

/* The module that was registered and describes @pc, or NULL. */
static inline struct module *registered_module(uint64_t pc)
{
	return unlikely(load_relaxed(&registered.n)) ? registered_find(pc) : NULL;
}

void registered_stats(struct shstk_stats *stats);

#endif
