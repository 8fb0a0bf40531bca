/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awake.h - see awake.c.
 */
#ifndef SELFTESTS_MARKER_AWAKE_H
#define SELFTESTS_MARKER_AWAKE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's captures were not dear so far, and it owes none. For the next one. */
void stay_awake(void);

#ifdef __cplusplus
}
#endif

#endif
