// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * own_allocator.c - a program with a malloc() of its own, like one that is linked with an
 * allocator. It is built so that other objects can see the function, and so that they cannot.
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

/* With "forks" a child allocates too. */
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
