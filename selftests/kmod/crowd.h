/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crowd.h - restless processes on shadow stacks, for tests of races
 *
 * Each kind of process does one thing over and over: it exits, forks, executes itself, loses its
 * stack, is stormed by signals, and so on. What it has done is counted in shared memory, which also
 * names a process to look at while it happens.
 */
#ifndef CROWD_H
#define CROWD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "linux/shstk.h"

enum crowd_kind {
	CROWD_SPIN,
	CROWD_SLEEP,
	CROWD_EXIT,
	CROWD_FORK,
	CROWD_EXEC,
	CROWD_THREADS,
	CROWD_SWITCH,
	CROWD_UNMAP,
	CROWD_SIGNALS,
	CROWD_VIOLATE,
	CROWD_CONTROL,
	CROWD_KINDS,
};

static const char *const crowd_names[] = {
	"spin",
	"sleep",
	"exit",
	"fork",
	"exec",
	"threads that come and go",
	"switch between stacks",
	"unmap the stack in use",
	"signals",
	"violate",
	"random control calls",
};

#define CROWD_SLOTS 8

/* With a share, all processes work in the first part of each such time. */
#define CROWD_TURN 10000000 /* ns; must divide a second */

/*
 * The descriptor of the memory of crowd_start(). It is mapped shared, and is at the same descriptor
 * after exec.
 */
#define CROWD_FD 100

struct crowd {
	volatile unsigned long done[CROWD_KINDS];
	volatile pid_t victim[CROWD_SLOTS];
	volatile unsigned long ssp[CROWD_SLOTS];
	volatile unsigned long share; /* percent of the time to work; 0: all */
	volatile bool without; /* some kinds run without shadow stacks */
};

static struct crowd *crowd;

#define crowd_noinline __attribute__((noinline, noclone))
#define crowd_inline static inline __attribute__((always_inline))

crowd_inline unsigned long crowd_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void crowd_init(void)
{
	int fd = syscall(SYS_memfd_create, "crowd", 0);

	if (fd != CROWD_FD) {
		dup2(fd, CROWD_FD);
		close(fd);
	}
	if (ftruncate(CROWD_FD, sizeof(*crowd)))
		exit(1);
	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED, CROWD_FD, 0);
	if (crowd == MAP_FAILED)
		exit(1);
}

crowd_inline void crowd_did(int kind)
{
	__atomic_fetch_add(&crowd->done[kind], 1, __ATOMIC_RELAXED);
}

crowd_inline void __attribute__((noreturn)) crowd_exit(int code)
{
	for (;;)
		ss_syscall(__NR_exit_group, code, 0, 0, 0, 0);
}

crowd_inline void crowd_nap(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	ss_syscall(__NR_nanosleep, (unsigned long)&ts, 0, 0, 0, 0);
}

/* Rests between two pieces of work. No signal interrupts the rest. */
crowd_inline void crowd_rest(void)
{
	unsigned long all = ~0UL, old;
	struct timespec ts;
	long at;

	if (!crowd->share)
		return;
	ss_syscall(__NR_clock_gettime, CLOCK_MONOTONIC, (unsigned long)&ts, 0, 0, 0);
	at = ts.tv_nsec % CROWD_TURN;
	if (at < CROWD_TURN / 100 * (long)crowd->share)
		return;
	ss_syscall(__NR_rt_sigprocmask, SIG_SETMASK, (unsigned long)&all, (unsigned long)&old,
		   sizeof(all), 0);
	crowd_nap((CROWD_TURN - at) / 1000 + 1);
	ss_syscall(__NR_rt_sigprocmask, SIG_SETMASK, (unsigned long)&old, 0, sizeof(old), 0);
}

/* Calls @leaf after @n nested calls. */
static crowd_noinline long crowd_descend(int n, long (*leaf)(int), int slot)
{
	long r;

	if (n)
		r = crowd_descend(n - 1, leaf, slot);
	else
		r = leaf(slot);
	asm volatile("" : "+r"(r));
	return r;
}

crowd_inline void crowd_show(int slot)
{
	crowd->ssp[slot] = ss_pointer();
	crowd->victim[slot] = ss_syscall(__NR_getpid, 0, 0, 0, 0, 0);
}

static crowd_noinline long crowd_busy(int slot)
{
	unsigned long x = 0;

	crowd_rest();
	crowd_show(slot);
	for (int i = 0; i < 20000; i++)
		asm volatile("" : "+r"(x));
	return x;
}

static crowd_noinline long crowd_spin(int slot)
{
	for (;;) {
		crowd_busy(slot);
		crowd_did(CROWD_SPIN);
	}
	return 0;
}

static crowd_noinline long crowd_sleep(int slot)
{
	for (;;) {
		crowd_show(slot);
		crowd_nap(500);
		crowd_did(CROWD_SLEEP);
	}
	return 0;
}

/* Runs @run in children of a single-threaded process that has no shadow stack itself. */
static void __attribute__((noreturn)) crowd_fork_to(void (*run)(int), int slot, int kind)
{
	for (;;) {
		pid_t pid;

		crowd_rest();
		pid = fork();
		if (!pid)
			run(slot);
		if (pid > 0) {
			waitpid(pid, NULL, 0);
			crowd_did(kind);
		}
	}
}

/* The frame that turns the shadow stack on must not return. */
#define CROWD_ON(...)                                        \
	do {                                                 \
		if (!crowd->without && ss_enable(SS_ENABLE)) \
			_exit(1);                            \
		__VA_ARGS__;                                 \
		crowd_exit(0);                               \
	} while (0)

static void crowd_exits(int slot)
{
	CROWD_ON(crowd_descend(30, crowd_busy, slot));
}

static crowd_noinline long crowd_forks(int slot)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			crowd_busy(slot);
			crowd_exit(0);
		}
		waitpid(pid, NULL, 0);
		crowd_did(CROWD_FORK);
	}
	return 0;
}

static crowd_noinline long crowd_execs(int slot)
{
	static char name[] = "crowd", digit[2];
	char *argv[] = { name, digit, NULL }, *envp[] = { NULL };

	digit[0] = '0' + slot;
	crowd_busy(slot);
	crowd_did(CROWD_EXEC);
	execve("/proc/self/exe", argv, envp);
	return 0;
}

/* Must be called first in main(): in an executed crowd process it does the work of its kind. */
static inline void crowd_main(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[0], "crowd"))
		return;
	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED, CROWD_FD, 0);
	if (crowd == MAP_FAILED)
		_exit(1);
	CROWD_ON(crowd_descend(20, crowd_execs, argv[1][0] - '0'));
}

static void *crowd_thread(void *slot)
{
	crowd_descend(10, crowd_busy, (long)slot);
	return NULL;
}

static crowd_noinline long crowd_threads(int slot)
{
	for (;;) {
		pthread_t thread[3];

		for (int i = 0; i < 3; i++)
			if (pthread_create(&thread[i], NULL, crowd_thread, (void *)(long)slot))
				_exit(1);
		for (int i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		crowd_did(CROWD_THREADS);
	}
	return 0;
}

/* Switches to a stack of its own, calls functions there, and unmaps it, again and again. */
static crowd_noinline long crowd_switch(int slot)
{
	for (;;) {
		unsigned long base = ss_map(0, 0x4000, SS_SET_TOKEN), old;

		if (base > -4096UL)
			_exit(1);
		old = ss_switch(base + 0x4000 - 8);
		crowd_descend(10, crowd_busy, slot);
		ss_switch(old);
		ss_syscall(__NR_munmap, base, 0x4000, 0, 0, 0);
		crowd_did(CROWD_SWITCH);
	}
	return 0;
}

/* Takes the shadow stack away from a thread that neither calls nor returns. */
static void *crowd_unmapper(void *slot)
{
	unsigned long at;

	while (!(at = crowd->ssp[(long)slot]))
		crowd_nap(10);
	crowd_nap(300);
	ss_syscall(__NR_munmap, at & ~0xfffUL, 0x1000, 0, 0, 0);
	crowd_nap(300);
	crowd_exit(0);
	return NULL;
}

static void crowd_unmap(int slot)
{
	unsigned long x = 0;
	pthread_t thread;

	crowd->ssp[slot] = 0;
	if (pthread_create(&thread, NULL, crowd_unmapper, (void *)(long)slot) ||
	    ss_enable(SS_ENABLE))
		_exit(1);
	crowd_show(slot);
	for (;;)
		asm volatile("" : "+r"(x));
}

static void crowd_handler(int sig)
{
	(void)sig;
	crowd_did(CROWD_SIGNALS);
}

static crowd_noinline long crowd_signals(int slot)
{
	static const struct itimerval often = { { 0, 100 }, { 0, 100 } };

	setitimer(ITIMER_REAL, &often, NULL);
	for (;;) {
		crowd_busy(slot);
		kill(getpid(), SIGUSR1);
	}
	return 0;
}

static crowd_noinline long crowd_return_wrong(void)
{
	return ss_enable(SS_ENABLE);
}

static void crowd_violate(int slot)
{
	crowd_show(slot);
	crowd_exit(crowd_return_wrong());
}

/*
 * Makes control calls with random arguments. All is in one frame, because any call may turn the
 * shadow stack on or off. A call may kill the process.
 */
static void crowd_control(int slot)
{
	static const unsigned long sizes[] = {
		0,    1,     7,		8,	   15,	 16,	  17,	4095,	4096,
		4097, 65536, 1UL << 30, 1UL << 46, -1UL, -4096UL, -8UL, 0x1008, 0xff8,
	};
	struct timespec ts = { 0 };
	uint64_t rng;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	rng = (ts.tv_nsec + 1) * 0x9e3779b97f4a7c15ULL | 1;
	for (int i = 0; i < 60; i++) {
		unsigned long r = crowd_random(&rng), a = crowd_random(&rng);
		unsigned long b = crowd_random(&rng), out = 0;
		unsigned long arg = a & 1 ? (unsigned long)&out : a & 2 ? a >> 60 : a & 4 ? 0 : a;
		unsigned long extra = b & 7 ? 0 : b >> (b & 63);
		long ret;

		switch (r % 8) {
		case 0:
			ss_syscall(__NR_prctl, PR_GET_SHADOW_STACK_STATUS, arg, extra, 0, 0);
			break;
		case 1:
		case 2:
			ss_syscall(__NR_prctl, PR_SET_SHADOW_STACK_STATUS, a & 8 ? a >> 62 : arg,
				   extra, 0, 0);
			break;
		case 3:
			ss_syscall(__NR_prctl, PR_LOCK_SHADOW_STACK_STATUS, a & 0xf0 ? 0 : arg,
				   extra, 0, 0);
			break;
#ifdef __x86_64__
		case 4:
			ss_syscall(__NR_arch_prctl, 0x5000 + (b & 7), a & 8 ? a >> 62 : arg, 0, 0,
				   0);
			break;
#endif
		default:
			ret = ss_syscall(__NR_map_shadow_stack,
					 b & 3 ? 0 :
					 b & 4 ? a & ~0xfffUL :
						 a,
					 sizes[(a >> 8) % (sizeof(sizes) / sizeof(*sizes))],
					 r >> 62 | (b & 0x700 ? 0 : b), 0, 0);
			if (ret > 0 && (b & 0x1000))
				ss_syscall(__NR_munmap, ret, 0x1000, 0, 0, 0);
			if (ret > 0 && !(b & 0x6000))
				ss_syscall(__NR_mprotect, ret, 0x1000, b >> 61, 0, 0);
			break;
		}
		if (!(i & 15))
			crowd_show(slot);
	}
	crowd_exit(0);
}

static void __attribute__((noreturn)) crowd_run(enum crowd_kind kind, int slot)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Leaves CPU time for the processes that look at this one. */
	setpriority(PRIO_PROCESS, 0, 10);
	signal(SIGALRM, crowd_handler);
	signal(SIGUSR1, crowd_handler);
	switch (kind) {
	case CROWD_SPIN:
		CROWD_ON(crowd_descend(40, crowd_spin, slot));
	case CROWD_SLEEP:
		CROWD_ON(crowd_descend(40, crowd_sleep, slot));
	case CROWD_EXIT:
		crowd_fork_to(crowd_exits, slot, kind);
	case CROWD_FORK:
		CROWD_ON(crowd_descend(10, crowd_forks, slot));
	case CROWD_EXEC:
		CROWD_ON(crowd_descend(20, crowd_execs, slot));
	case CROWD_THREADS:
		CROWD_ON(crowd_descend(10, crowd_threads, slot));
	case CROWD_SWITCH:
		CROWD_ON(crowd_descend(10, crowd_switch, slot));
	case CROWD_UNMAP:
		crowd_fork_to(crowd_unmap, slot, kind);
	case CROWD_SIGNALS:
		CROWD_ON(crowd_descend(20, crowd_signals, slot));
	case CROWD_VIOLATE:
		crowd_fork_to(crowd_violate, slot, kind);
	default:
		crowd_fork_to(crowd_control, slot, CROWD_CONTROL);
	}
	_exit(1);
}

static pid_t crowd_start(enum crowd_kind kind, int slot)
{
	pid_t pid;

	crowd->victim[slot] = 0;
	pid = fork();
	if (!pid)
		crowd_run(kind, slot);
	return pid;
}

static void crowd_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline double crowd_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

#endif
