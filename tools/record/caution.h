/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caution.h - warnings about what a profile does not hold, or holds only roughly. They are printed
 * at once and are part of every output (shstk_profile_caution()).
 */
#ifndef TOOLS_RECORD_CAUTION_H
#define TOOLS_RECORD_CAUTION_H

#include "tools/record/backend.h"

/**
 * caution() - print a line as complain() does, and keep it in the profile
 * @r: the recording. A line that was printed for an earlier profile is kept, but not printed again.
 * @fmt: a format as of printf(3), without the newline.
 */
void caution(struct recording *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Prints and keeps a line as caution() does, but as a comment: it tells how the profile was made or
 * is shown.
 */
void remark(struct recording *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Releases the list of printed lines when the recording is over. */
void cautions_forget(struct recording *r);

#endif
