// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compare_agent.c - is preloaded into programs with shadow stacks (compare.c), and takes each sample
 * by hardware and by software at the same moment.
 *
 * A timer of the process sends a signal. Its handler captures the stack from the shadow stack and
 * then by unwinding, and notes where these differ in the file that it shares with compare.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "shstk.h"

#define SIGNAL (SIGRTMAX - 3)

static struct compare_shared *shared;
static atomic_flag busy = ATOMIC_FLAG_INIT; /* a thread uses the stacks below */
static struct compare_stack hardware, software;

/* Captures the stack of @context from @sources. Returns the source that it is from. */
static int take(struct compare_stack *s, const void *context, uint32_t sources)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.flags = SHSTK_CHECK_STACK,
		.sources = sources,
		.marks = s->marks,
	};
	int n = shstk_capture_context(context, s->pcs, COMPARE_DEPTH, &opts, &info);

	s->nr = n < 0 ? 0 : n;
	s->end = info.end;
	s->end_pc = info.end_pc;
	return info.source;
}

/* The entries of the hardware are never guesses, so marks are not compared. */
static bool begins_alike(void)
{
	return !memcmp(hardware.pcs, software.pcs, hardware.nr * sizeof(*hardware.pcs));
}

/*
 * Returns whether the software's stack has all frames of the hardware's and more outside of them.
 * The hardware does not know frames that were called before its shadow stack was switched on.
 */
static bool is_older(void)
{
	return hardware.end == SHSTK_END_COMPLETE && software.end == SHSTK_END_COMPLETE &&
	       software.nr > hardware.nr && begins_alike();
}

static void note_older(void)
{
	atomic_fetch_add(&shared->later, 1);
	if (hardware.nr == 1)
		atomic_fetch_add(&shared->begun, 1);
}

static void note(void)
{
	uint32_t i = atomic_fetch_add(&shared->differ, 1);
	struct compare_difference *d = &shared->list[i];
	ssize_t n = 1;
	int fd;

	if (i >= COMPARE_MOST)
		return;
	d->pid = getpid();
	d->hardware = hardware;
	d->software = software;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0 && d->size < COMPARE_MAPS) {
		n = read(fd, d->maps + d->size, COMPARE_MAPS - d->size);
		d->size += n > 0 ? n : 0;
	}
	if (fd >= 0)
		close(fd);
	atomic_store(&d->whole, true);
}

static void sample(const void *context)
{
	if (take(&hardware, context, 0) != SHSTK_SOURCE_HARDWARE) {
		atomic_fetch_add(&shared->unchecked, 1);
		return;
	}
	take(&software, context, SHSTK_USE_MEMO | SHSTK_USE_WALK);
	if (hardware.nr == software.nr && hardware.end == software.end && begins_alike())
		atomic_fetch_add(&shared->same, 1);
	else if (is_older())
		note_older();
	else
		note();
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)sig;
	(void)info;
	if (!atomic_flag_test_and_set(&busy)) {
		sample(context);
		atomic_flag_clear(&busy);
	}
	errno = saved;
}

/* Starts the timer. A child that was forked has none of its own before. */
static void start(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL };
	struct itimerspec each = {
		.it_interval.tv_nsec = shared->period,
		.it_value.tv_nsec = shared->period,
	};
	timer_t timer;

	if (!timer_create(shared->wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &event,
			  &timer))
		timer_settime(timer, 0, &each, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	const char *path = getenv(COMPARE_FILE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *mem;

	if (fd < 0)
		return;
	mem = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mem == MAP_FAILED || shstk_thread_init())
		return;
	shared = mem;
	sigaction(SIGNAL, &action, NULL);
	pthread_atfork(NULL, NULL, start);
	start();
}
