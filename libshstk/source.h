/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.h - what sources ask of capture.c, which knows them all.
 */
#ifndef SHSTK_SOURCE_H
#define SHSTK_SOURCE_H

#include "thread.h"

/*
 * The capture in @t->call, after enter_alone(), which the memo could not repeat, or which is
 * nothing for markers: ask who comes after that source. @learn: marker_learn() is to see what
 * that comes to. Return the number of entries.
 */
int source_after_memo(uint64_t *pcs, struct thread *t);
int source_after_marker(uint64_t *pcs, struct thread *t, bool learn);

#endif
