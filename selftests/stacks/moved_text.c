// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * moved_text.c - a program that puts a copy of its code, in anonymous memory, in the place of the
 * mapping of its file, as programs do to have their code on huge pages. With "told", the kernel
 * reports this as a mapping, because the protection changes at the new place. Then the program
 * works, for as many ms as the second argument says, or for ever if it is 0.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static volatile unsigned long count;

static noinline void inner(long ms)
{
	write(1, "ready\n", 6);
	while (!ms || clock() < ms * (CLOCKS_PER_SEC / 1000))
		for (int i = 0; i < 1000000; i++)
			count++;
}

static noinline void middle(long ms)
{
	inner(ms);
	count = 0;
}

static noinline void outer(long ms)
{
	middle(ms);
	count = 1;
}

static int find_text(uintptr_t *start, uintptr_t *end)
{
	char line[4200], prot[8];
	FILE *in = fopen("/proc/self/maps", "re");
	uintptr_t here = (uintptr_t)find_text;
	int found = 0;

	while (in && !found && fgets(line, sizeof(line), in))
		found = sscanf(line, "%lx-%lx %7s", start, end, prot) == 3 && here >= *start &&
			here < *end;
	if (in)
		fclose(in);
	return found ? 0 : -1;
}

static int move_text(int told)
{
	const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
	uintptr_t start, end;
	size_t size;
	void *p;

	if (find_text(&start, &end))
		return -1;
	size = end - start;
	p = mmap(NULL, size, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -1;
	memcpy(p, (void *)start, size);
	if (!told && mprotect(p, size, PROT_READ | PROT_EXEC))
		return -1;
	p = mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start);
	if (p == MAP_FAILED)
		return -1;
	return told ? mprotect(p, size, PROT_READ | PROT_EXEC) : 0;
}

int main(int argc, char **argv)
{
	if (argc != 3 || move_text(!strcmp(argv[1], "told"))) {
		puts("the code can not be moved here");
		return 1;
	}
	outer(atol(argv[2]));
	return 0;
}
