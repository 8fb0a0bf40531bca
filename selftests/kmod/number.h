/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * number.h - reads a number that the kernel has in a file, such as a counter in sysfs.
 */
#ifndef KMOD_NUMBER_H
#define KMOD_NUMBER_H

#include <stdio.h>

/* Returns the number, or -1 if there is no such file or no number in it. */
static inline long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

#endif
