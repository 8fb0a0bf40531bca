/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shortened.h - survive files that are shortened while they are mapped here.
 *
 * Files that other programs have mapped are mapped here, too, to read their unwind information.
 * Somebody may shorten such a file at any time; cp(1) does this with a file that it replaces. The
 * bytes behind the new end are gone, and an access to them raises SIGBUS.
 */
#ifndef TOOLS_SHORTENED_H
#define TOOLS_SHORTENED_H

/*
 * Makes bytes that are gone read as zeros from now on. Does nothing if SIGBUS is already ignored or
 * handled.
 */
void shortened_survive(void);

/* Sets a function that is called on a SIGBUS of another cause, before it ends this process. */
void shortened_otherwise(void (*fn)(void));

#endif
