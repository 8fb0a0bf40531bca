/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* debuginfod.h - debug files from servers. */
#ifndef SHSTK_SYMBOL_DEBUGINFOD_H
#define SHSTK_SYMBOL_DEBUGINFOD_H

#include <stddef.h>

/*
 * Fetches the debug file with that build id from the servers, unchecked. Returns a descriptor or a
 * negative errno.
 */
int shstk_debuginfod_open(const void *build_id, size_t size);

#endif
