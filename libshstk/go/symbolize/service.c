// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * service.c - a thread that looks up addresses for other threads; see service.h.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "service.h"

#define PLACES 64
#define STACK (1 << 20)

#define MILLISECOND 1000000ull
#define SECOND (1000 * MILLISECOND)
#define LOOK (200 * MILLISECOND) /* how often a waiting caller checks the thread */
#define STILL (3 * SECOND) /* the wait ends when the thread used no CPU time for so long */
#define LONGEST (30 * SECOND) /* the longest wait */

/*
 * The states of a place: FREE -> TAKEN -> ASKED -> ANSWERED -> FREE. ASKED -> LEFT -> FREE if
 * nobody waits for the answer any more.
 */
enum { FREE, TAKEN, ASKED, ANSWERED, LEFT };

struct service_slot {
	uint32_t state;
	uintptr_t pc;
	const void *answer;
};

static struct {
	service_look_up *look_up;
	pid_t pid; /* the process of the thread; 0: not started */
	clockid_t clock; /* the clock of the thread's CPU time */
	uint32_t asked; /* number of questions; the thread sleeps on this word */
	uint32_t still; /* 1: the thread makes no progress */
	struct service_slot places[PLACES];
} service;

static void futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = { ns / SECOND, ns % SECOND };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns ? &t : NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool change(struct service_slot *p, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&p->state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static uint32_t state_of(const struct service_slot *p)
{
	return __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
}

static void set_free(struct service_slot *p)
{
	__atomic_store_n(&p->state, FREE, __ATOMIC_RELEASE);
}

/*
 * Sets or clears service.still. It is set before a place is left, and cleared after the place was
 * answered. If both happen at once, the one that comes second clears it, so it does not stay set.
 */
static void set_still(uint32_t to)
{
	__atomic_store_n(&service.still, to, __ATOMIC_SEQ_CST);
}

/* ---- The thread ---- */

/* Answers the question in a place, if there is one. */
static void answer(struct service_slot *p)
{
	if (change(p, LEFT, FREE) || state_of(p) != ASKED)
		return;
	p->answer = service.look_up(p->pc);
	if (change(p, ASKED, ANSWERED))
		futex_wake(&p->state);
	else
		set_free(p);
	set_still(0);
}

static void *serve(void *unused)
{
	uint32_t asked;
	int i;

	pthread_setname_np(pthread_self(), "shstk-symbolize");
	for (;;) {
		asked = __atomic_load_n(&service.asked, __ATOMIC_ACQUIRE);
		for (i = 0; i < PLACES; i++)
			answer(&service.places[i]);
		futex_wait(&service.asked, asked, 0);
	}
	return unused;
}

/*
 * Starts the thread with all signals blocked, because Go's signals are not for a thread that Go
 * does not know.
 */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		err = pthread_getcpuclockid(thread, &service.clock);
	return -err;
}

int service_start(service_look_up *look_up)
{
	int err;

	service.look_up = look_up;
	err = start_thread();
	if (!err)
		__atomic_store_n(&service.pid, getpid(), __ATOMIC_RELEASE);
	return err;
}

/* ---- The threads that ask ---- */

static uint64_t time_of(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* Waits for the answer in @p. Returns false if it takes too long. */
static bool wait_for(struct service_slot *p)
{
	uint64_t start = time_of(CLOCK_MONOTONIC), moved = start, used = 0, now, cpu;

	while (state_of(p) == ASKED) {
		futex_wait(&p->state, ASKED, LOOK);
		now = time_of(CLOCK_MONOTONIC);
		cpu = time_of(service.clock);
		if (cpu != used)
			moved = now;
		used = cpu;
		if (now - moved > STILL || now - start > LONGEST)
			return state_of(p) != ASKED;
	}
	return true;
}

/* Takes a free place. Returns NULL if none becomes free in time. */
static struct service_slot *take_place(void)
{
	const struct timespec a_while = { .tv_nsec = MILLISECOND };
	uint64_t start = time_of(CLOCK_MONOTONIC);
	int i;

	for (;;) {
		for (i = 0; i < PLACES; i++)
			if (change(&service.places[i], FREE, TAKEN))
				return &service.places[i];
		if (time_of(CLOCK_MONOTONIC) - start > STILL)
			return NULL;
		nanosleep(&a_while, NULL);
	}
}

const void *service_ask(uintptr_t pc)
{
	const void *found;
	struct service_slot *p;

	if (__atomic_load_n(&service.pid, __ATOMIC_ACQUIRE) != getpid() ||
	    __atomic_load_n(&service.still, __ATOMIC_RELAXED))
		return NULL;
	p = take_place();
	if (!p)
		return NULL;
	p->pc = pc;
	__atomic_store_n(&p->state, ASKED, __ATOMIC_RELEASE);
	__atomic_fetch_add(&service.asked, 1, __ATOMIC_ACQ_REL);
	futex_wake(&service.asked);
	if (!wait_for(p)) {
		set_still(1);
		if (change(p, ASKED, LEFT))
			return NULL;
		set_still(0);
	}
	found = p->answer;
	set_free(p);
	return found;
}
