// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crowd.c - processes that come and go, and threads that sleep nearly all the time.
 *
 *   crowd PROCESSES RATE THREADS
 *
 * So many processes are there at a time, and RATE of them a second end and are replaced; 0: they
 * stay. THREADS are in a process of their own. Each of them works once in its life or, if it has no
 * end, once in 100 seconds: for one part of the time in one() and for three parts in three(). So 5000
 * threads take a tenth of a CPU. All end with the process that started them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PART_NS 500000 /* of work */
#define PAUSE_S 100 /* between two times of work */
#define STACK (64 << 10) /* bytes of a thread's stack */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { ns / 1000000000, ns % 1000000000 };

	while (nanosleep(&left, &left))
		;
}

static void spin(uint64_t ns)
{
	volatile unsigned int n = 0;

	for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
		for (int i = 0; i < 1000; i++)
			n++;
}

static __attribute__((noinline)) void one(void)
{
	spin(PART_NS);
	__asm__ volatile("");
}

static __attribute__((noinline)) void three(void)
{
	spin(3 * PART_NS);
	__asm__ volatile("");
}

static void work(void)
{
	one();
	three();
}

/* Works again and again, at a time of its own. */
static void *stay(void *arg)
{
	sleep_ns((uintptr_t)arg % (PAUSE_S * 1000) * 1000000);
	for (;;) {
		work();
		sleep_ns(PAUSE_S * 1000000000ull);
	}
	return NULL;
}

/* Lives for some time, or for ever. */
static void live(uint64_t ns, unsigned int nr)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!ns)
		stay((void *)(uintptr_t)(nr * 200));
	work();
	sleep_ns(ns);
	_exit(0);
}

static int start_process(uint64_t ns, unsigned int nr)
{
	pid_t pid = fork();

	if (!pid)
		live(ns, nr);
	if (pid < 0)
		perror("crowd: fork");
	return pid;
}

static void start_threads(unsigned int nr)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (unsigned int i = 0; i < nr && !err; i++)
		err = pthread_create(&thread, &attr, stay, (void *)(uintptr_t)(i * 20));
	if (err) {
		fprintf(stderr, "crowd: no more threads: error %d\n", err);
		_exit(1);
	}
	for (;;)
		pause();
}

/* Keeps the number of processes, and ends when one of them can't be started or fails. */
static void replace(uint64_t ns, unsigned int rate)
{
	unsigned int nr = 0;
	int status;

	for (;;) {
		if (rate)
			sleep_ns(1000000000 / rate);
		else
			pause();
		while (waitpid(-1, &status, WNOHANG) > 0)
			if (status)
				return;
		if (rate && start_process(ns, nr++) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	unsigned int processes, rate, threads;
	uint64_t ns;
	pid_t pid;

	if (argc != 4)
		return 2;
	processes = atoi(argv[1]);
	rate = atoi(argv[2]);
	threads = atoi(argv[3]);
	ns = rate ? processes * 1000000000ull / rate : 0;
	pid = threads ? fork() : 1;
	if (!pid)
		start_threads(threads);
	if (pid < 0)
		return 1;
	for (unsigned int i = 0; !rate && i < processes; i++)
		if (start_process(0, i) < 0)
			return 1;
	printf("ready\n");
	fflush(stdout);
	replace(ns, rate);
	return 1;
}
