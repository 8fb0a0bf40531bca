/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.h - what sources ask of capture.c, which knows them all.
 */
#ifndef SHSTK_SOURCE_H
#define SHSTK_SOURCE_H

#include "thread.h"

/*
 * A source that cannot serve @t->call goes on here. enter_outermost() began the capture; these
 * functions end it, and return the number of entries. @learn: marker_learn() is to see them.
 */
int source_after_memo(uint64_t *pcs, struct thread *t);
int source_after_marker(uint64_t *pcs, struct thread *t, bool learn);

#endif
