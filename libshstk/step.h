/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * step.h - steps from a frame of any kind and any process to its caller.
 *
 * The unwinder knows nothing about its own process: memory, modules and code come
 * from a view. Captures of the process's own threads step out of ordinary frames by
 * frame.h, and come here for the others.
 */
#ifndef SHSTK_STEP_H
#define SHSTK_STEP_H

#include "cursor.h"

/*
 * Steps to the caller. Returns 0; STEP_COMPLETE if this is the outermost frame; or a
 * negative enum shstk_end. *@mark receives the marks of the frame that is left, to
 * which the step may add SHSTK_MARK_SIGNAL.
 */
int cursor_step(const struct view *v, struct cursor *c, uint8_t *mark);

#endif
