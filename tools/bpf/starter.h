/* SPDX-License-Identifier: GPL-2.0-or-later */
/* starter.h - the program that started the one that serves, and for which it runs. */
#ifndef TOOLS_BPF_STARTER_H
#define TOOLS_BPF_STARTER_H

#include "tools/reason.h"
#include "tools/rules/daemon.h"

/**
 * starter_watch() - watch for the end of the starter
 * @who: the starter.
 * @stop: receives a descriptor that becomes readable when the starter has ended, or wants no more; -1
 *	if there is no starter.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int starter_watch(const struct rules_starter *who, int *stop, struct reason *why);

/* Sends a message to the starter, if it wants any. @fmt is a format as of printf(3). */
void starter_tell(const struct rules_starter *who, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
