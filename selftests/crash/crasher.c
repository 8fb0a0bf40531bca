// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crasher.c - ends in the way that its argument says, in a function of that name. Two other threads
 * wait meanwhile. A second argument is the size of memory in MiB that it has used.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FN __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory")

static volatile int zero;
static char *volatile nowhere;

FN static void null(void)
{
	*nowhere = 1;
	KEEP;
}

/* Another access, so that the compiler keeps both functions. */
FN static void guard(void)
{
	volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[16] = 1;
	KEEP;
}

FN static int overflow(volatile char *above)
{
	volatile char here[4000];

	here[0] = above ? *above : 1;
	return overflow(here) + here[0];
}

FN static void overflows(void)
{
	overflow(NULL);
}

FN static void jump(void)
{
	void (*volatile fn)(void) = (void (*)(void))(uintptr_t)16;

	fn();
	KEEP;
}

/* Writes over its own return address. */
FN static void smash(void)
{
	volatile uintptr_t *frame = __builtin_frame_address(0);

	frame[1] = 0x1000;
	KEEP;
}

FN static void divide(void)
{
	zero = 7 / zero;
	KEEP;
}

FN static void undefined(void)
{
	__builtin_trap();
}

FN static void aborts(void)
{
	abort();
}

FN static void on_signal(int signo)
{
	*nowhere = (char)signo;
	KEEP;
}

FN static void handler(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	KEEP;
}

FN static void truncated(void)
{
	FILE *file = tmpfile();
	volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);

	zero = page[0];
	KEEP;
}

FN static void child(void)
{
	int pid = vfork();

	if (!pid) {
		*nowhere = 1;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *crash_in_thread(void *arg)
{
	prctl(PR_SET_NAME, "worker \033[31m;/..");
	null();
	return arg;
}

FN static void thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, crash_in_thread, NULL);
	pthread_join(t, NULL);
}

static void *overflow_in_thread(void *arg)
{
	overflow(arg);
	return NULL;
}

FN static void thread_overflow(void)
{
	pthread_t t;

	pthread_create(&t, NULL, overflow_in_thread, NULL);
	pthread_join(t, NULL);
}

/* A child that shares this memory crashes, and then the parent does. */
FN static void child_and_parent(void)
{
	child();
	null();
}

FN static void stop(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static const struct {
	const char *name;
	void (*crash)(void);
} ways[] = {
	{ "null", null },
	{ "guard", guard },
	{ "overflow", overflows },
	{ "jump", jump },
	{ "smash", smash },
	{ "divide", divide },
	{ "undefined", undefined },
	{ "aborts", aborts },
	{ "handler", handler },
	{ "truncated", truncated },
	{ "child", child },
	{ "thread", thread },
	{ "thread-overflow", thread_overflow },
	{ "child-and-parent", child_and_parent },
	{ "stop", stop },
};

/* Maps a file of 4 GiB, which is one hole. */
static void map_large_file(void)
{
	const size_t size = 1ul << 32;
	FILE *file = tmpfile();

	if (!file || ftruncate(fileno(file), size) ||
	    mmap(NULL, size, PROT_READ, MAP_SHARED, fileno(file), 0) == MAP_FAILED)
		exit(77);
}

FN static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	size_t size = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0;
	pthread_t t;

	if (size) {
		volatile char *memory = malloc(size);

		for (size_t i = 0; i < size; i += 4096)
			memory[i] = 1;
	}
	if (getenv("CRASHER_REMOVES_ITSELF"))
		unlink(argv[0]);
	if (getenv("CRASHER_MAPS_4_GIB"))
		map_large_file();
	for (int i = 0; i < 2; i++)
		pthread_create(&t, NULL, waits, NULL);
	usleep(20000); /* they wait, nearly always; the test does not need it */
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (argc > 1 && !strcmp(argv[1], ways[i].name))
			ways[i].crash();
	return 0;
}
