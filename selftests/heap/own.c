// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * own.c - a program that brings a malloc(), as one does that is linked with an
 * allocator. Built so that others see that function, and so that none does.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM (1 << 20)

static uint8_t *memory;
static size_t used;

void *malloc(size_t size)
{
	void *p;

	if (!memory) {
		memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
		madvise(memory, ROOM, MADV_NOHUGEPAGE);
	}
	size = (size + 15) & ~(size_t)15;
	if (memory == MAP_FAILED || size > ROOM - used)
		return NULL;
	p = memory + used;
	used += size;
	return p;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t nr, size_t size)
{
	return malloc(nr * size);
}

void *realloc(void *p, size_t size)
{
	void *q = malloc(size);

	if (p && q)
		memmove(q, p, size);
	return q;
}

/* "forks": in a child too. */
int main(int argc, char **argv)
{
	pid_t pid = argc > 1 && !strcmp(argv[1], "forks") ? fork() : 0;
	void *p = malloc(100);

	if (pid > 0)
		waitpid(pid, NULL, 0);
	puts(p ? "ran" : "no memory");
	free(p);
	return 0;
}
