// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * faults.c - touches as many pages as its argument says, each once, and sleeps as often. It prints
 * what the kernel counted of both, as a short sleep on a busy machine may be over before the
 * thread has left the CPU, which is then no switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static struct rusage used(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		exit(3);
	return usage;
}

static long switches(const struct rusage *usage)
{
	return usage->ru_nvcsw + usage->ru_nivcsw;
}

int main(int argc, char **argv)
{
	unsigned long nr = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	struct rusage start, touched, waited;

	pages = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || madvise((void *)pages, nr * PAGE, MADV_NOHUGEPAGE))
		return 2;
	start = used();
	touch_pages(nr);
	touched = used();
	wait_often(nr);
	waited = used();
	printf("%ld faults, %ld switches\n", touched.ru_minflt - start.ru_minflt,
	       switches(&waited) - switches(&touched));
	return 0;
}
