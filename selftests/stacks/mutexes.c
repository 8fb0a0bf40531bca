// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mutexes.c - threads that wait, all with the name "worker". The first thread runs, or waits for
 * them.
 *
 *  mutexes equal                 five threads sleep in the same place, one elsewhere
 *  mutexes deadlock KIND         two wait for each other's mutexes, one for the first of these
 *  mutexes timed KIND            two wait for each other's mutexes, but would give up after an hour
 *  mutexes owner KIND            one waits for a mutex of the first thread, which runs
 *  mutexes self KIND             one waits for a mutex that it owns itself
 *  mutexes condition KIND        as owner, but in pthread_cond_wait()
 *  mutexes local KIND            one waits for a condition on its stack, the first thread has the mutex
 *  mutexes given-up KIND         one was refused a mutex, which the other one then gave back, as
 *                                it did not get that of the former in time
 *  mutexes futex                 one waits at a word that is no mutex but looks like one
 *
 * KIND is one or several, with + between them, of plain, recursive, checked, adaptive, robust, inherit
 * and shared; or it is rwlock, for read-write locks: all write, but the one that waits with "owner" and
 * the third one with "deadlock" read.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static pthread_mutex_t locks[2];
static pthread_rwlock_t rwlocks[2] = { PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER };
static bool rw;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static volatile unsigned long count;
static volatile int waits;
static struct timespec in_an_hour;
static volatile bool gave_up;

/* Looks like a mutex of glibc that the first thread has locked. */
static struct {
	int lock, count, owner, users, kind, rest[5];
} __attribute__((aligned(8))) no_mutex = { .lock = 2, .users = 1 };

static int set_one(const char *kind, pthread_mutexattr_t *attr)
{
	static const struct {
		const char *name;
		int type;
	} types[] = {
		{ "plain", PTHREAD_MUTEX_NORMAL },
		{ "recursive", PTHREAD_MUTEX_RECURSIVE },
		{ "checked", PTHREAD_MUTEX_ERRORCHECK },
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
		{ "adaptive", PTHREAD_MUTEX_ADAPTIVE_NP },
#endif
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(kind, types[i].name))
			return pthread_mutexattr_settype(attr, types[i].type);
	if (!strcmp(kind, "robust"))
		return pthread_mutexattr_setrobust(attr, PTHREAD_MUTEX_ROBUST);
	if (!strcmp(kind, "inherit"))
		return pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_INHERIT);
	if (!strcmp(kind, "shared"))
		return pthread_mutexattr_setpshared(attr, PTHREAD_PROCESS_SHARED);
	rw = !strcmp(kind, "rwlock");
	return rw ? 0 : EINVAL;
}

static int set_kind(char *kinds, pthread_mutexattr_t *attr)
{
	int err = 0;

	for (char *kind = strtok(kinds, "+"); kind && !err; kind = strtok(NULL, "+"))
		err = set_one(kind, attr);
	return err;
}

static noinline void lock(int i)
{
	if (rw)
		pthread_rwlock_wrlock(&rwlocks[i]);
	else if (in_an_hour.tv_sec)
		pthread_mutex_timedlock(&locks[i], &in_an_hour);
	else
		pthread_mutex_lock(&locks[i]);
	__asm__ volatile("");
}

static noinline void lock_to_read(int i)
{
	if (!rw) {
		lock(i);
		return;
	}
	pthread_rwlock_rdlock(&rwlocks[i]);
	__asm__ volatile("");
}

static void *sleeper(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	for (;;)
		pause();
	return arg;
}

static void *other_sleeper(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	for (;;)
		pause();
	return arg;
}

/* Takes the lock @arg first, then the other one. */
static void *crossing(void *arg)
{
	int first = arg == &locks[1];

	prctl(PR_SET_NAME, "worker");
	if (rw)
		pthread_rwlock_wrlock(&rwlocks[first]);
	else
		pthread_mutex_lock(&locks[first]);
	pthread_barrier_wait(&both);
	lock(!first);
	return NULL;
}

static void *waiter(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	lock_to_read(0);
	return arg;
}

static void *twice(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	lock(0);
	lock(0);
	return arg;
}

static void *waiter_for_condition(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	pthread_mutex_lock(&locks[0]);
	waits = 1;
	pthread_cond_wait(&condition, &locks[0]);
	return arg;
}

static void *waiter_for_local_condition(void *arg)
{
	pthread_cond_t here = PTHREAD_COND_INITIALIZER;

	prctl(PR_SET_NAME, "worker");
	pthread_mutex_lock(&locks[0]);
	waits = 1;
	pthread_cond_wait(&here, &locks[0]);
	return arg;
}

/* Returns whether a thread waits for a mutex that inherits priorities. */
static bool is_waited_for(const pthread_mutex_t *mutex)
{
	return *(const volatile unsigned int *)mutex & FUTEX_WAITERS;
}

/* Is refused the other mutex, or begins anew if the other thread has given up before that. */
static void *refused(void *arg)
{
	pthread_mutex_t *own = arg;

	prctl(PR_SET_NAME, "worker");
	for (;;) {
		gave_up = false;
		pthread_mutex_lock(own);
		pthread_barrier_wait(&both);
		while (!is_waited_for(own) && !gave_up)
			;
		lock(1);
		pthread_mutex_unlock(&locks[1]);
		pthread_mutex_unlock(own);
		pthread_barrier_wait(&both);
	}
	return NULL;
}

static noinline void give_up(void)
{
	struct timespec soon;

	pthread_mutex_lock(&locks[1]);
	pthread_barrier_wait(&both);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++;
	pthread_mutex_timedlock(&locks[0], &soon);
	gave_up = true;
	pthread_mutex_unlock(&locks[1]);
}

static noinline void after_that(void)
{
	pthread_barrier_wait(&both);
	__asm__ volatile("");
}

static void *impatient(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	for (;;) {
		give_up();
		after_that();
	}
	return arg;
}

static void *waiter_at_a_word(void *arg)
{
	prctl(PR_SET_NAME, "worker");
	for (;;)
		syscall(SYS_futex, &no_mutex.lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	return arg;
}

static void start(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, arg))
		exit(1);
}

static void *ready(void)
{
	write(1, "ready\n", 6);
	return NULL;
}

static noinline void run(void)
{
	ready();
	for (;;)
		count++;
}

static void cross(void)
{
	pthread_barrier_init(&both, NULL, 3);
	start(crossing, &locks[0]);
	start(crossing, &locks[1]);
	pthread_barrier_wait(&both);
	if (!in_an_hour.tv_sec)
		start(waiter, NULL);
	ready();
	sleeper(NULL);
}

static void own(void *(*function)(void *))
{
	if (rw)
		pthread_rwlock_wrlock(&rwlocks[0]);
	else
		pthread_mutex_lock(&locks[0]);
	start(function, NULL);
	run();
}

/* Takes the mutex once a thread waits for a condition. */
static void wait_for_a_condition(void *(*function)(void *))
{
	start(function, NULL);
	for (bool there = false; !there;) {
		pthread_mutex_lock(&locks[0]);
		there = waits;
		if (!there)
			pthread_mutex_unlock(&locks[0]);
	}
}

static void sleep_alike(void)
{
	for (int i = 0; i < 5; i++)
		start(sleeper, NULL);
	start(other_sleeper, NULL);
	run();
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;
	const char *mode = argc > 1 ? argv[1] : "";

	pthread_mutexattr_init(&attr);
	if (argc > 2 && set_kind(argv[2], &attr)) {
		puts("the C library has no such mutexes");
		return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_mutex_init(&locks[i], &attr);
	no_mutex.owner = getpid();
	if (!strcmp(mode, "timed")) {
		clock_gettime(CLOCK_REALTIME, &in_an_hour);
		in_an_hour.tv_sec += 3600;
	}
	if (!strcmp(mode, "equal"))
		sleep_alike();
	if (!strcmp(mode, "deadlock") || !strcmp(mode, "timed"))
		cross();
	if (!strcmp(mode, "owner"))
		own(waiter);
	if (!strcmp(mode, "condition")) {
		wait_for_a_condition(waiter_for_condition);
		pthread_cond_signal(&condition);
	}
	if (!strcmp(mode, "local"))
		wait_for_a_condition(waiter_for_local_condition);
	if (!strcmp(mode, "given-up")) {
		pthread_barrier_init(&both, NULL, 2);
		start(refused, &locks[0]);
		start(impatient, NULL);
	}
	if (!strcmp(mode, "self"))
		start(twice, NULL);
	if (!strcmp(mode, "futex"))
		start(waiter_at_a_word, NULL);
	run();
	return 1;
}
