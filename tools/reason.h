/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reason.h - the reason of a failure, to be shown to the user. */
#ifndef TOOLS_REASON_H
#define TOOLS_REASON_H

#include <stdio.h>

/**
 * struct reason - the reason of a failure
 * @text: one line, without a line break.
 */
struct reason {
	char text[512];
};

/* Sets @why to a text that is formatted as by printf(3). */
#define because(why, ...) snprintf((why)->text, sizeof((why)->text), __VA_ARGS__)

#endif
