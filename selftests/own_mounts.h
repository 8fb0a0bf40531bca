/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * own_mounts.h - mounts that only this process and its children see. They go with these. Needs _GNU_SOURCE.
 */
#ifndef SELFTESTS_OWN_MOUNTS_H
#define SELFTESTS_OWN_MOUNTS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>

/* What is mounted from now on only this process and its children see. Returns false if that is impossible: see errno. */
static inline bool own_mounts(void)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* They see a file in the place of another one, which there has to be. Returns false likewise. */
static inline bool own_file(const char *path, const char *place)
{
	return own_mounts() && !mount(path, place, NULL, MS_BIND, NULL);
}

#endif
