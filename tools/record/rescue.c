// SPDX-License-Identifier: GPL-2.0-or-later
/* rescue.c - what is left of a profile whose writer was killed. See rescue.h. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "libshstk/symbol/target.h"
#include "tools/record/rescue.h"

enum rescued rescue(const struct shstk_left *left, const char **path)
{
	*path = NULL;
	if (!left->hidden || !left->name)
		return RESCUED_NOTHING;
	if (!rename(left->hidden, left->name)) {
		*path = left->name;
		return RESCUED_SAMPLES;
	}
	if (!access(left->hidden, F_OK)) {
		*path = left->hidden;
		return RESCUED_SAMPLES;
	}
	if (access(left->name, F_OK))
		return RESCUED_NOTHING;
	*path = left->name;
	return RESCUED_WHOLE;
}
