/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rescue.h - what is left of a profile whose writer was killed. See series.c.
 */
#ifndef TOOLS_RECORD_RESCUE_H
#define TOOLS_RECORD_RESCUE_H

struct shstk_left;

/**
 * enum rescued - what is left of the file that has a profile's samples
 * @RESCUED_NOTHING: there is no such file.
 * @RESCUED_SAMPLES: the samples, without the end of the file.
 * @RESCUED_WHOLE: all of it: what wrote the profile had finished the file.
 */
enum rescued {
	RESCUED_NOTHING,
	RESCUED_SAMPLES,
	RESCUED_WHOLE,
};

/**
 * rescue() - give the file that keeps a profile its name, if the process that was to finish it did
 *	not
 * @left: the file.
 * @path: receives where it is: at its name or, if it cannot get that, where it was; NULL for
 *	RESCUED_NOTHING. It is a member of @left.
 */
enum rescued rescue(const struct shstk_left *left, const char **path);

#endif
