// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wakers.c - a thread that waits for another thread and for timers, and knows how long at most.
 *
 * The first thread reads in waits_for_thread() from a pipe into which the thread "the-waker"
 * writes, and sleeps in waits_for_timer(). Prints the ID of the other thread, and an upper bound of
 * the time for which the first thread waited for it: from before each read to after the write.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 40
#define PAUSE 5000000 /* ns */

static int to_waker[2], to_waiter[2];

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void pause_ns(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

/* Writes one byte for each byte that it reads, and keeps the time after the write. */
static void *wake(void *arg)
{
	uint64_t *written = arg;
	char byte;

	for (int i = 0; i < ROUNDS && read(to_waker[0], &byte, 1) == 1; i++) {
		pause_ns(PAUSE);
		if (write(to_waiter[1], &byte, 1) != 1)
			return arg;
		written[i] = now();
	}
	return NULL;
}

static __attribute__((noinline)) int waits_for_thread(void)
{
	char byte;
	int ret = read(to_waiter[0], &byte, 1) == 1;

	__asm__ volatile("");
	return ret;
}

static __attribute__((noinline)) void waits_for_timer(void)
{
	pause_ns(PAUSE);
	__asm__ volatile("");
}

int main(void)
{
	uint64_t written[ROUNDS] = { 0 }, began[ROUNDS], sum = 0;
	pthread_t id;
	void *failed;
	char byte = 0;

	if (pipe(to_waker) || pipe(to_waiter) || pthread_create(&id, NULL, wake, written) ||
	    pthread_setname_np(id, "the-waker"))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		began[i] = now();
		if (write(to_waker[1], &byte, 1) != 1 || !waits_for_thread())
			return 1;
		waits_for_timer();
	}
	if (pthread_join(id, &failed) || failed)
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		sum += written[i] - began[i];
	printf("%.9f %d\n", sum / 1e9, ROUNDS);
	return 0;
}
