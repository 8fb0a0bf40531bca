// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocate.c - allocates in the ways that the heap benchmark is to see beside real programs.
 *
 * allocate small TIMES	allocates a small block TIMES times, and frees the one that was allocated 1000
 *			blocks before
 * allocate realloc TIMES	lets arrays grow, by TIMES calls of realloc() in all
 * allocate threads TIMES	does what "small" does in eight threads, TIMES times in all
 *
 * Each allocation is some ten calls deep, at one of 256 places below main(): its way down is chosen
 * between four functions, by bits of a number that only depends on how many came before.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define KEPT 1000 /* blocks that a thread has at a time */
#define LEVELS 8 /* bits that choose the way down, two for each call */
#define LARGEST 200 /* elements of an array that grows */

#define NOINLINE __attribute__((noinline))

typedef void *maker(void *block, size_t size);

static void *one(unsigned int way, unsigned int level, maker *make, void *block, size_t size);

/* Each of these functions is another place in the stack. */
#define STEP(name)                                                                                 \
	static NOINLINE void *name(unsigned int way, unsigned int level, maker *make, void *block, \
				   size_t size)                                                    \
	{                                                                                          \
		void *made = one(way, level, make, block, size);                                   \
                                                                                                   \
		__asm__ volatile("" : "+r"(made)); /* so that this is a call, not a jump */        \
		return made;                                                                       \
	}

STEP(first)
STEP(second)
STEP(third)
STEP(fourth)

static NOINLINE void *one(unsigned int way, unsigned int level, maker *make, void *block,
			  size_t size)
{
	static void *(*const steps[])(unsigned int, unsigned int, maker *, void *,
				      size_t) = { first, second, third, fourth };
	void *made;

	if (level == LEVELS)
		made = make(block, size);
	else
		made = steps[way >> level & 3](way, level + 2, make, block, size);
	__asm__ volatile("" : "+r"(made));
	return made;
}

static NOINLINE void *by_malloc(void *block, size_t size)
{
	(void)block;
	return malloc(size);
}

static NOINLINE void *by_realloc(void *block, size_t size)
{
	return realloc(block, size);
}

/* Returns the next number of a fixed row. */
static unsigned int next(unsigned int *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8;
}

static void small(unsigned long times, unsigned int seed)
{
	char *kept[KEPT] = { NULL };

	while (times--) {
		unsigned int n = next(&seed);
		char **at = &kept[times % KEPT];

		free(*at);
		*at = one(n, 0, by_malloc, NULL, 16 + n % 200);
		if (*at)
			**at = 1;
	}
	for (unsigned int i = 0; i < KEPT; i++)
		free(kept[i]);
}

static void grow(unsigned long times)
{
	unsigned int seed = 1, way = next(&seed);
	uint64_t *array = NULL;

	for (unsigned long n = 1; times--; n++) {
		uint64_t *more = one(way, 0, by_realloc, array, n * sizeof(*array));

		if (!more)
			break;
		array = more;
		array[n - 1] = n;
		if (n < LARGEST)
			continue;
		free(array);
		array = NULL;
		n = 0;
		way = next(&seed);
	}
	free(array);
}

static unsigned long each;

static void *in_thread(void *number)
{
	small(each, (unsigned int)(uintptr_t)number);
	return NULL;
}

static int in_threads(unsigned long times)
{
	pthread_t threads[THREADS];

	each = times / THREADS;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, in_thread, (void *)i))
			return 1;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long times = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (times && !strcmp(argv[1], "threads"))
		return in_threads(times);
	if (times && !strcmp(argv[1], "small"))
		small(times, 0);
	else if (times && !strcmp(argv[1], "realloc"))
		grow(times);
	else
		return fprintf(stderr, "usage: allocate small|realloc|threads TIMES\n"), 2;
	return 0;
}
