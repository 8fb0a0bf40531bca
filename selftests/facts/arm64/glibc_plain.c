// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * glibc_plain.c - a program, and a library, that are not marked as made for GCS
 *
 * glibc_test.c starts the program, which prints the status that it runs with, and loads the
 * library.
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
