// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * glibc_plain.c - a program, and a library, not marked as made for GCS
 *
 * What glibc_test.c starts and loads: says which status it runs with.
 */
#include <stdio.h>

#include "arch.h"

int main(void)
{
	unsigned long bits = 0;

	if (ss_status(&bits))
		return 99;
	printf("status %lx answer 0\n", bits);
	return 0;
}
