// SPDX-License-Identifier: GPL-2.0-or-later
/* faults.c - touches as many pages as its argument says, each once, and yields the CPU as often. */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096ul

static volatile char *pages;

static __attribute__((noinline)) void touch_pages(unsigned long nr)
{
	for (unsigned long i = 0; i < nr; i++)
		pages[i * PAGE] = 1;
}

static __attribute__((noinline)) void wait_often(unsigned long nr)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	for (unsigned long i = 0; i < nr; i++)
		nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	unsigned long nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

	pages = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || madvise((void *)pages, nr * PAGE, MADV_NOHUGEPAGE))
		return 2;
	touch_pages(nr);
	wait_often(nr);
	return 0;
}
