/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parts.h - a recording in several profiles, one after the other (--every).
 */
#ifndef TOOLS_RECORD_PARTS_H
#define TOOLS_RECORD_PARTS_H

#include "tools/record/backend.h"

/**
 * parts_next() - write what was recorded since the last time, or all so far, and begin anew
 * @r: the recording.
 *
 * A child process writes, so that recording goes on meanwhile. Nothing is kept of
 * what is written: memory is that of one part.
 *
 * Return: 0 or -ENOMEM.
 */
int parts_next(struct recording *r);

/*
 * Begins another profile with other symbols, and releases those before. Returns 0 or a
 * negative errno.
 */
int parts_renew(struct recording *r);

/* The profile has all its samples: adds what was recorded, and for how long. */
void parts_finish(struct recording *r);

/* The recording is over. */
void parts_forget(struct recording *r);

/* The last part is about to be written: names its files. Returns as parts_next(). */
int parts_end(struct recording *r);

#endif
