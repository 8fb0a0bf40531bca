/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/reason.h - why something failed, for the user.
 */
#ifndef TOOLS_REASON_H
#define TOOLS_REASON_H

#include <stdio.h>

/**
 * struct reason - why something failed
 * @text: one line, without line break.
 */
struct reason {
	char text[512];
};

/* Sets @why, as printf(3). */
#define because(why, ...) snprintf((why)->text, sizeof((why)->text), __VA_ARGS__)

#endif
