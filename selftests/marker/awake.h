/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awake.h - lets a test place markers at any time; see awake.c.
 */
#ifndef SELFTESTS_MARKER_AWAKE_H
#define SELFTESTS_MARKER_AWAKE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Allows the calling thread's next capture to place a marker. */
void stay_awake(void);

#ifdef __cplusplus
}
#endif

#endif
