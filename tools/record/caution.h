/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caution.h - what a profile does not hold, or not exactly: said at once, and in every
 * output (shstk_profile_caution()).
 */
#ifndef TOOLS_RECORD_CAUTION_H
#define TOOLS_RECORD_CAUTION_H

#include "tools/record/backend.h"

/**
 * caution() - print a line as complain() does, and keep it in the profile
 * @r: the recording. A line that it printed for an earlier profile is not printed again.
 * @fmt: as printf(3), without the newline.
 */
void caution(struct recording *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same of a line that tells how what is there was made, or is shown: a comment. */
void remark(struct recording *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The recording is over. */
void cautions_forget(struct recording *r);

#endif
