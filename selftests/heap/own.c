// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * own.c - a program that brings a malloc(), as one does that is linked with an
 * allocator.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static _Alignas(16) uint8_t memory[1 << 20];
static size_t used;

void *malloc(size_t size)
{
	void *p = memory + used;

	size = (size + 15) & ~(size_t)15;
	if (size > sizeof(memory) - used)
		return NULL;
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

int main(void)
{
	void *p = malloc(100);

	puts(p ? "ran" : "no memory");
	free(p);
	return 0;
}
