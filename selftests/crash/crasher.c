// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crasher.c - ends in the way that its argument says, in a function of that name. Two other threads
 * wait meanwhile. A second argument is the size of memory in MiB that it has used.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash_ways.h"

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

/*
 * A thread crashes whose stack lies in one mapping with memory that cannot be read: behind the end of a
 * file. glibc 2.42 and later may place a guard between two threads' stacks in this way.
 */
FN static void thread_before_guard(void)
{
	const size_t size = 1 << 17;
	FILE *file = tmpfile();
	pthread_attr_t attr;
	pthread_t t;
	void *stack;

	if (!file || ftruncate(fileno(file), size))
		exit(77);
	stack = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
	if (stack == MAP_FAILED || pthread_attr_init(&attr) ||
	    pthread_attr_setstack(&attr, stack, size) ||
	    pthread_create(&t, &attr, crash_in_thread, NULL))
		exit(77);
	pthread_join(t, NULL);
}

/* A child that shares this memory crashes, and then the parent does. */
FN static void child_and_parent(void)
{
	child();
	null();
}

/* Waits until a thread of this process is in a state, as /proc has it. */
static void await_state(int tid, char wanted)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (state != wanted) {
		FILE *in = fopen(path, "r");

		if (!in || fscanf(in, "%*d (%*[^)]) %c", &state) != 1)
			exit(77);
		fclose(in);
		usleep(1000);
	}
}

/* A process that crashed stands, as it does while the kernel has its core file read. */
static void stand(int signo)
{
	(void)signo;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		_exit(77);
	for (;;)
		pause();
}

static void stand_when_crashed(void)
{
	static char other_stack[65536];
	const stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	struct sigaction act = { .sa_handler = stand, .sa_flags = SA_ONSTACK };

	if (sigaltstack(&stack, NULL) || sigaction(SIGSEGV, &act, NULL))
		exit(77);
}

static void *crash_alone(void *arg)
{
	if (getenv("CRASHER_STANDS"))
		stand_when_crashed();
	await_state(getpid(), 'Z'); /* the first thread has ended */
	null();
	return arg;
}

/*
 * The first thread ends, and another one crashes. Its stack is at the same address in each process
 * whose addresses are not random.
 */
FN static void first_ends(void)
{
	static char stack[256 << 10] __attribute__((aligned(4096)));
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack, sizeof(stack)) ||
	    pthread_create(&t, &attr, crash_alone, NULL))
		exit(77);
	/* pthread_exit() wants a library that guests do not have. */
	syscall(SYS_exit, 0);
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
	{ "thread-before-guard", thread_before_guard },
	{ "child-and-parent", child_and_parent },
	{ "first-ends", first_ends },
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

/*
 * Has 10 GiB of memory, without taking that much: what is only read are zeros that many pages share. The
 * kernel's core file would have all of it.
 */
static void use_10_gib(void)
{
	const size_t size = 10ul << 30, step = 2ul << 20;
	const volatile char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		exit(77);
	for (size_t i = 0; i < size; i += step)
		(void)memory[i];
}

/*
 * Maps the same page of a file, so many times. The file has a short name: above 4 MiB of names the kernel
 * says nothing of a process's files.
 */
static void map_pieces(long number)
{
	const int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);

	while (number-- > 0)
		if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 4096) == MAP_FAILED)
			exit(77);
	close(fd);
}

/* Opens a new copy of this program that no folder has any more. Its name is short, as above. */
static int open_removed(void)
{
	char path[] = "/tmp/XXXXXX", buf[65536];
	const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(path);
	ssize_t n;

	if (from < 0 || to < 0)
		exit(77);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, n) != n)
			exit(77);
	close(from);
	unlink(path);
	return to;
}

/*
 * Maps a removed file as code: its first page, and behind it another page so many times. All of them are to
 * be in the core file, as nothing else has them.
 */
static void map_removed_pieces(long number)
{
	const int fd = open_removed(), filter = open("/proc/self/coredump_filter", O_WRONLY);
	char *at = mmap(NULL, (number + 1) << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || write(filter, "0x37", 4) != 4)
		exit(77);
	for (long i = 0; i <= number; i++)
		if (mmap(at + (i << 12), 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			 i ? 4096 : 0) == MAP_FAILED)
			exit(77);
	close(filter);
	close(fd);
}

FN static void *waits(void *arg)
{
	*(volatile int *)arg = (int)syscall(SYS_gettid);
	for (;;)
		pause();
	return arg;
}

/* Begins two threads, and waits until both wait. */
static void begin_others(void)
{
	static volatile int tids[2];
	pthread_t t;

	for (int i = 0; i < 2; i++)
		pthread_create(&t, NULL, waits, (void *)&tids[i]);
	for (int i = 0; i < 2; i++) {
		while (!tids[i])
			usleep(1000);
		await_state(tids[i], 'S');
	}
}

int main(int argc, char **argv)
{
	size_t size = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0;

	if (size) {
		volatile char *memory = malloc(size);

		for (size_t i = 0; i < size; i += 4096)
			memory[i] = 1;
	}
	if (getenv("CRASHER_REMOVES_ITSELF"))
		unlink(argv[0]);
	if (getenv("CRASHER_MAPS_4_GIB"))
		map_large_file();
	if (getenv("CRASHER_USES_10_GIB"))
		use_10_gib();
	if (getenv("CRASHER_MAPS_PIECES"))
		map_pieces(atol(getenv("CRASHER_MAPS_PIECES")));
	if (getenv("CRASHER_MAPS_REMOVED"))
		map_removed_pieces(atol(getenv("CRASHER_MAPS_REMOVED")));
	begin_others();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (argc > 1 && !strcmp(argv[1], ways[i].name))
			ways[i].crash();
	if (argc > 1)
		crash_in_way(argv[1]);
	return 0;
}
