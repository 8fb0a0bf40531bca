// SPDX-License-Identifier: GPL-2.0-or-later
/* static_test.c - a statically linked program. */
#include <stdio.h>

int main(void)
{
	puts("static");
	return 0;
}
