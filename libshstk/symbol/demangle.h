/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* demangle.h - readable names of functions. */
#ifndef SHSTK_SYMBOL_DEMANGLE_H
#define SHSTK_SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include <stdint.h>

struct shstk_pool;

/*
 * Returns the readable form of a linker symbol, or the symbol itself if it is not mangled. C++
 * names are shortened unless @full. NULL when memory runs out.
 */
const char *shstk_demangle(struct shstk_pool *pool, const char *linkage, bool full);
/* Returns whether a name begins like a mangled one of C++, Rust or D. */
bool shstk_is_mangled(const char *name);

/*
 * Returns what stands for a name where there is none: "[module+0x12]", "[vdso+0x12]" for a module
 * "[vdso]", "[0x12]" for no module. NULL when memory runs out.
 */
const char *shstk_place_name(struct shstk_pool *pool, const char *module, uint64_t addr);

#endif
