/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awake.h - see awake.c.
 */
#ifndef SELFTESTS_MARKER_AWAKE_H
#define SELFTESTS_MARKER_AWAKE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's next capture may place one. */
void stay_awake(void);

#ifdef __cplusplus
}
#endif

#endif
