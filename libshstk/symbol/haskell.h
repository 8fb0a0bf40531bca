/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* haskell.h - readable names of functions that GHC compiled. */
#ifndef SHSTK_SYMBOL_HASKELL_H
#define SHSTK_SYMBOL_HASKELL_H

#include <stdbool.h>
#include <stddef.h>

struct shstk_pool;

/*
 * Returns whether a symbol belongs to GHC's runtime, as code that GHC compiled has or needs some of them:
 * such a file may have names of Haskell. Names themselves do not tell, as "Foo_bar_info" may be C's.
 */
bool shstk_is_haskell_runtime(const char *name);

/**
 * shstk_haskell() - write a symbol of a Haskell function as its source has the name
 * @name: the symbol, "base_GHCziBase_map_info".
 * @text: receives module and name, "GHC.Base.map", not ended by a zero.
 * @max: bytes in @text.
 * @len: receives how many bytes were written.
 *
 * Time and memory are bounded for any name.
 *
 * Return: whether @name is a function's symbol of Haskell.
 */
bool shstk_haskell(const char *name, char *text, size_t max, size_t *len);

/*
 * Returns the readable name of a symbol of a file in which names of Haskell may be; NULL if it is none of
 * these, or memory runs out.
 */
const char *shstk_haskell_name(struct shstk_pool *pool, const char *name);

#endif
