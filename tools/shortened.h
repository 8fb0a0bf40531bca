/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shortened.h - files that are shortened while they are mapped here.
 *
 * What other programs have mapped is mapped here too, to read its unwind information. Who
 * writes to such a file may cut it off at any time, as cp(1) does with the one it writes
 * over: then its bytes are gone, and who touches them gets SIGBUS.
 */
#ifndef TOOLS_SHORTENED_H
#define TOOLS_SHORTENED_H

/*
 * From now on bytes that are gone are read as zeros. Unless the signal is ignored or handled
 * already.
 */
void shortened_survive(void);

/* What else is done about a SIGBUS of another cause, before it ends this process. */
void shortened_otherwise(void (*fn)(void));

#endif
