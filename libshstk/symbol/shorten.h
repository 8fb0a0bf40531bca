/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* shorten.h - C++ names without what nobody reads. */
#ifndef SHSTK_SYMBOL_SHORTEN_H
#define SHSTK_SYMBOL_SHORTEN_H

#include <stddef.h>

struct shstk_pool;

/*
 * Returns a readable C++ name without default arguments of the standard library's templates:
 * "std::vector<std::string>". NULL when memory runs out.
 */
const char *shstk_shorten(struct shstk_pool *pool, const char *name, size_t len);

#endif
