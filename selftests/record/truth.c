// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * truth.c - a program that knows its own shares.
 *
 *	truth free|PHASE ROUNDS
 *
 * Each round takes about a tick of the kernel and works for 4/5 of it, in four functions. In phase:
 * the first two functions run and end between two ticks, the others later; PHASE is where in the
 * tick this begins, in percent. Free: rounds begin anywhere. At the end, the CPU time of each
 * function, by the thread's clock, is written to descriptor 99. Before the rounds, the program
 * works for some ticks without a pause.
 *
 * It also tells whether this machine can sample such a program. The measure is a perf event on the
 * thread's own clock, which no tick delays: "missed" is the CPU time for which its signals did not
 * come. And a virtual machine that is kept from running counts this time as CPU time of whoever
 * ran: "stalled" is the time of calls that took far longer than their work.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t used[4], stalled;
static uint64_t steps_per_us;

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void spin(uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		__asm__ volatile("" : "+r"(i));
}

static void calibrate(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t start = now(CLOCK_THREAD_CPUTIME_ID), took;

		spin(1000000);
		took = now(CLOCK_THREAD_CPUTIME_ID) - start;
		if (took < best)
			best = took;
	}
	steps_per_us = 1000000000 / (best ? best : 1);
}

/*
 * Works for @ns, several ticks long. A recorder that first sees a thread at a tick sees it here,
 * whatever the phase of what follows.
 */
static void be_seen(uint64_t ns)
{
	uint64_t start = now(CLOCK_THREAD_CPUTIME_ID);

	while (now(CLOCK_THREAD_CPUTIME_ID) - start < ns)
		spin(1000);
}

static void count(int i, uint64_t ns, uint64_t took)
{
	used[i] += took;
	/* Four times plus a millisecond: a slow CPU and a handled signal are no stall. */
	if (took > 4 * ns + 1000000)
		stalled += took - ns;
}

#define SHARE(name, i)                                              \
	__attribute__((noinline)) static void name(uint64_t ns)     \
	{                                                           \
		uint64_t start = now(CLOCK_THREAD_CPUTIME_ID);      \
                                                                    \
		spin(ns *steps_per_us / 1000);                      \
		count(i, ns, now(CLOCK_THREAD_CPUTIME_ID) - start); \
	}

SHARE(share_a, 0)
SHARE(share_b, 1)
SHARE(share_c, 2)
SHARE(share_d, 3)

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000),
			       .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static volatile sig_atomic_t signals;

static void on_signal(int signo)
{
	(void)signo;
	signals = signals + 1;
}

/* Opens the event. If there is no such event, none of its signals come. */
static void open_event(uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = getpid() };
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 && !sigaction(SIGRTMIN, &act, NULL) && !fcntl(fd, F_SETOWN_EX, &owner) &&
	    !fcntl(fd, F_SETSIG, SIGRTMIN) && !fcntl(fd, F_SETFL, O_RDWR | O_ASYNC))
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void tell(uint64_t period)
{
	FILE *out = fdopen(99, "a");
	double all = 0;

	if (!out)
		exit(2);
	for (int i = 0; i < 4; i++) {
		fprintf(out, "share_%c %.6f\n", 'a' + i, (double)used[i] / 1e9);
		all += (double)used[i] / 1e9;
	}
	fprintf(out, "stalled %.6f\n", (double)stalled / 1e9);
	fprintf(out, "missed %.6f\n", all - (double)signals * (double)period / 1e9);
	fclose(out);
}

int main(int argc, char **argv)
{
	struct timespec res;
	uint64_t tick, at, period = 5000000;

	if (argc != 3 || clock_getres(CLOCK_MONOTONIC_COARSE, &res))
		return 2;
	tick = (uint64_t)res.tv_sec * 1000000000 + (uint64_t)res.tv_nsec;
	calibrate();
	be_seen(4 * (period + tick));
	open_event(period);
	for (long i = atol(argv[2]); i > 0; i--) {
		uint64_t phase = !strcmp(argv[1], "free") ? (uint64_t)random() % tick :
							    tick * (uint64_t)atoi(argv[1]) / 100;

		at = now(CLOCK_MONOTONIC);
		at += tick - at % tick + phase;
		sleep_until(at);
		share_a(tick * 30 / 100);
		share_b(tick * 10 / 100);
		sleep_until(at + tick * 75 / 100);
		share_c(tick * 24 / 100);
		share_d(tick * 16 / 100);
	}
	tell(period);
	return 0;
}
