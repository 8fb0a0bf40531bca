// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * witness.c - is preloaded into a program that perf records, and writes down the stack at moments
 * that perf can be made to sample, too
 *
 * The program's calls of umask() and gettimeofday() come here. Each of them writes down what
 * libshstk reads in the process, and then touches a fresh page at a known address. perf records
 * that event with its callchain and that address. This object keeps frame pointers, so that it does
 * not cut a chain.
 *
 * SIGPROF, which a BPF program sends when it takes a sample, is answered with what libshstk reads
 * at the interrupted instruction.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "shstk.h"
#include "witness.h"

static char *pages;
static int file = -1;
static unsigned int number;

static void write_down(struct testimony *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	t->time = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
	if (write(file, t, sizeof(*t)) != sizeof(*t))
		_exit(99);
}

static void on_sample(int sig, siginfo_t *info, void *context)
{
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.sources = SHSTK_USE_HARDWARE,
	};
	struct testimony t = { 0 };
	int nr;

	(void)sig;
	(void)info;
	nr = shstk_capture_context(context, t.pc, WITNESS_DEPTH, &opts, NULL);
	t.nr = nr < 0 ? 0 : nr;
	write_down(&t);
}

static __attribute__((constructor)) void start(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_sample,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};
	const char *path = getenv("WITNESS");

	if (!path)
		return;
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	pages = mmap((void *)WITNESS_PAGES, WITNESS_MAX * WITNESS_STEP, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (file < 0 || pages != (char *)WITNESS_PAGES)
		_exit(99);
	madvise(pages, WITNESS_MAX * WITNESS_STEP, MADV_NOHUGEPAGE);
	sigaction(SIGPROF, &sa, NULL);
}

/*
 * Leaves out its own entry of the trace, because the place of the capture is not that of the touch.
 */
static __attribute__((noinline)) void testify(void)
{
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.sources = SHSTK_USE_HARDWARE,
		.skip = 1,
	};
	struct testimony t = { 0 };
	int nr;

	if (file < 0 || number == WITNESS_MAX)
		return;
	nr = shstk_capture(t.pc, WITNESS_DEPTH, &opts, NULL);
	t.nr = nr < 0 ? 0 : nr;
	t.addr = (uint64_t)pages + WITNESS_STEP * number++;
	write_down(&t);
	*(volatile char *)t.addr = 1;
}

mode_t umask(mode_t mask)
{
	static mode_t (*real)(mode_t);

	if (!real)
		real = (mode_t(*)(mode_t))dlsym(RTLD_NEXT, "umask");
	testify();
	return real(mask);
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	static int (*real)(struct timeval *, void *);

	if (!real)
		real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
	testify();
	return real(tv, tz);
}
