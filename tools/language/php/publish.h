/* SPDX-License-Identifier: GPL-2.0-or-later */
/* publish.h - where PHP makes a frame the innermost one. */
#ifndef TOOLS_LANGUAGE_PHP_PUBLISH_H
#define TOOLS_LANGUAGE_PHP_PUBLISH_H

#include "tools/language/language.h"

/**
 * php_find_publishing() - find where a frame may be the innermost one before it has its caller
 * @m: the file.
 * @start: address of its code.
 * @size: bytes of it.
 * @current: address of the variable that has the address of the innermost frame.
 * @offset: offset of this variable in the structure that it is part of.
 * @ret: receives the places; @ret->run_start and @ret->cold_start are known.
 *
 * A generator's frame becomes the innermost one first and gets its caller then. No symbol tells of all functions that
 * do so. But they store the frame's address in that variable, some instructions before. In the functions that run
 * frames, these have their callers already.
 */
void php_find_publishing(const struct language_module *m, uint64_t start, uint64_t size,
			 uint64_t current, uint32_t offset, struct language_found *ret);

#endif
