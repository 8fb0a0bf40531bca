/* SPDX-License-Identifier: GPL-2.0-or-later */
/* versus.h - two builds of libshstk.so as sources; see versus.c. */
#ifndef BENCH_VERSUS_H
#define BENCH_VERSUS_H

#include "source.h"

#define VERSUS_SOURCES 4

extern const struct source versus_sources[VERSUS_SOURCES];

/* Loads two builds of the library. Returns false, with a message, if that is not possible. */
bool versus_load(const char *old_path, const char *new_path);
bool versus_loaded(void);

#endif
