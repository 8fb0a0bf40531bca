/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * step.h - step from a frame to its caller, whoever's frame it is.
 *
 * The unwinder knows nothing of its own process: memory, modules and code come
 * from a view. Captures of own threads leave ordinary frames by frame.h, and come
 * here for the rest.
 */
#ifndef SHSTK_STEP_H
#define SHSTK_STEP_H

#include "cursor.h"

/*
 * Step to the caller. 0: done; STEP_COMPLETE: this is the outermost frame;
 * negative: -enum shstk_end. May add SHSTK_MARK_SIGNAL to the frame that is
 * left: its marks are returned in *mark.
 */
int cursor_step(const struct view *v, struct cursor *c, uint8_t *mark);

#endif
