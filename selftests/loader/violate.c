// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * violate.c - changes a return address on its stack, once for each call of wrong(). With an
 * argument it does nothing. Prints "survived" if the wrong return is not prevented.
 */
#include <stdio.h>
#include <stdlib.h>

static void escaped(void)
{
	puts("survived");
	fflush(stdout);
	exit(0);
}

static __attribute__((noinline)) void wrong(void)
{
	void **frame = __builtin_frame_address(0);

	frame[1] = (void *)escaped;
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 0;
	wrong();
	return 1;
}
