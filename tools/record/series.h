/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * series.h - a recording that is written as several profiles, one after another (--every).
 */
#ifndef TOOLS_RECORD_SERIES_H
#define TOOLS_RECORD_SERIES_H

#include "tools/record/backend.h"

/* Makes what the profiles of a recording share, before the first one is made. */
void series_prepare(struct recording *r);

/**
 * series_next() - write the profile and begin the next one
 * @r: the recording.
 *
 * The profile holds what was recorded since the previous one, or all so far if the back end is
 * cumulative. A child process writes it, so that recording goes on meanwhile. The recorder keeps
 * nothing of what is written: it needs memory for one part only.
 *
 * Return: 0 or -ENOMEM.
 */
int series_next(struct recording *r);

/* Makes a new profile and new symbols, and releases the old ones. Returns 0 or a negative errno. */
int series_renew(struct recording *r);

/*
 * Says in a profile without samples when it begins and which process it is of, and begins its file
 * that is written while samples are added.
 */
void series_begin(struct recording *r);

/*
 * Adds to a profile, which has all its samples, what was recorded, where, when and for how long, and
 * how much of it is in stacks that were guessed in part.
 */
void series_finish(struct recording *r);

/**
 * series_guessed() - get how much is in stacks with a guessed entry
 * @r: the recording, with all its samples.
 * @many: receives whether outputs warn of that and the last line tells: it is a hundredth or more,
 *	and not by a few samples.
 *
 * Return: the share of the values that are shown, in percent.
 */
double series_guessed(const struct recording *r, bool *many);

/* Hands a complete profile to what sends it, if it is to be sent. Returns false after a message. */
bool series_push(const struct recording *r);

/* Releases the names of kept files when the recording is over. */
void series_forget(struct recording *r);

/*
 * Waits for the writer of the previous profile, and names the files of the profile that is about to
 * be written. One that is written already is renamed. Returns 0 or a negative errno.
 */
int series_end(struct recording *r);

#endif
