// SPDX-License-Identifier: GPL-2.0-or-later
/* allocate.c - allocates a known number of blocks, then waits for a file if it is given a name. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR 5
#define WAIT_MS 100000
#define TICK_MS 10

static void *volatile kept;

static __attribute__((noinline)) void job(size_t size)
{
	char *block = malloc(size);

	memset(block, 1, size);
	kept = block;
}

int main(int argc, char **argv)
{
	for (int i = 1; i <= NR; i++)
		job(1000 * i);
	for (int ms = 0; argc > 1 && access(argv[1], F_OK) && ms < WAIT_MS; ms += TICK_MS)
		usleep(TICK_MS * 1000);
	return 0;
}
