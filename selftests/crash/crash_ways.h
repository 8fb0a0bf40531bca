/* SPDX-License-Identifier: GPL-2.0-or-later */
/* crash_ways.h - ways in which crasher.c ends that need the C library, or two stacks. */
#ifndef SELFTESTS_CRASH_WAYS_H
#define SELFTESTS_CRASH_WAYS_H

#include <stdbool.h>

/* Ends in a way, in the function of that name or one of those below it. Returns false: not known. */
bool crash_in_way(const char *name);

#endif
