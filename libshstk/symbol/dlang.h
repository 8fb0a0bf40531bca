/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* dlang.h - readable names of D functions. */
#ifndef SHSTK_SYMBOL_DLANG_H
#define SHSTK_SYMBOL_DLANG_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether @name is the mangled name of a D function. */
bool shstk_is_dlang(const char *name);

/**
 * shstk_dlang() - write a mangled D name as its source has it
 * @name: the name as linkers see it.
 * @text: receives the readable name, not ended by a zero.
 * @max: bytes in @text.
 * @len: receives how many bytes were written.
 *
 * Time and memory are bounded for any name.
 *
 * Return: whether @name is a name of D.
 */
bool shstk_dlang(const char *name, char *text, size_t max, size_t *len);

#endif
