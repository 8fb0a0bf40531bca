/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CALLS_H
#define CALLS_H

/* Each calls itself until there are @depth frames of it: small ones, ones with 400 bytes
 * of locals, and ones above which Go is called. The innermost one works for a while.
 */
int c_small(int depth, int n);
int c_large(int depth, int n);
int c_below(int depth, int n);

/* Nanoseconds of a signal that arrives with @depth frames of C on the stack: the least of
 * @rounds rounds.
 */
double c_signals(int depth, int rounds);

#endif
