// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * steady.c - a program that runs as long as its input is open. Each byte that it reads is an order;
 * it prints a line once the order is done.
 *
 *   +  allocate some blocks, in each of several functions and threads, and keep them
 *   -  free all that is kept
 *   ~  allocate and free a lot, and change what is kept by realloc(); its second argument says how
 *      much, in multiples of what '+' does
 *   r  allocate some blocks in a deep recursion, and keep them
 *   f  let a child do so, whose allocations do not count
 *   x  execute this program again, which answers
 *   s  begin to count
 *   t  begin a thread that waits
 *   c  install a filter of system calls that forbids those of the kernel's probes
 *
 * The line has the bytes and blocks that were allocated since the last 's' and are in use, by the
 * program's own count.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 4096
#define THREADS 3
#define TIMES 40
#define DEPTH 1200 /* calls of a deep recursion: more than a profile keeps, and a copy has them */

static struct {
	void *at;
	size_t size;
	int counted; /* was allocated since counting began */
} kept[KEPT];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t nr, blocks, bytes;
static int churned = 50;

static void count(int i, int sign)
{
	blocks += sign;
	bytes += sign * kept[i].size;
}

static __attribute__((noinline)) void keep(void *at, size_t size)
{
	pthread_mutex_lock(&lock);
	if (!at || nr == KEPT)
		abort();
	kept[nr].at = at;
	kept[nr].size = size;
	kept[nr].counted = 1;
	count(nr++, 1);
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void by_malloc(int i)
{
	keep(malloc(100 + i), 100 + i);
}

__attribute__((noinline)) void by_calloc(int i)
{
	keep(calloc(1 + i, 16), 16 * (1 + i));
}

__attribute__((noinline)) void by_posix_memalign(int i)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, 300 + i))
		abort();
	keep(p, 300 + i);
}

__attribute__((noinline)) void by_aligned_alloc(int i)
{
	keep(aligned_alloc(64, 64 * (1 + i)), 64 * (1 + i));
}

__attribute__((noinline)) void by_recursion(int depth)
{
	if (depth)
		by_recursion(depth - 1);
	else
		by_malloc(0);
}

static void *allocate(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		by_malloc(i);
		by_calloc(i);
		by_posix_memalign(i);
		by_aligned_alloc(i);
	}
	return arg;
}

/*
 * Uses sizes that other threads use as well, so that addresses change from one thread to another.
 */
static void *churn(void *arg)
{
	for (int i = 0; i < churned * TIMES; i++) {
		void *p = malloc(100 + i % TIMES), *q = realloc(NULL, 64);

		q = realloc(q, 3000);
		free(p);
		free(q);
		free(NULL);
	}
	return arg;
}

/* Blocks from before counting began count from now on, as realloc() makes other blocks of them. */
__attribute__((noinline)) void by_realloc(void)
{
	for (size_t i = 0; i < nr; i += 3) {
		if (kept[i].counted)
			count(i, -1);
		kept[i].size += 5000;
		kept[i].at = realloc(kept[i].at, kept[i].size);
		kept[i].counted = 1;
		count(i, 1);
	}
}

static void in_threads(void *(*fn)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fn, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void drop_all(void)
{
	while (nr) {
		nr--;
		free(kept[nr].at);
		if (kept[nr].counted)
			count(nr, -1);
	}
}

static void start_counting(void)
{
	for (size_t i = 0; i < nr; i++)
		kept[i].counted = 0;
	blocks = bytes = 0;
}

/* It uses no stream, which would allocate. */
static void answer(void)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%zu %zu\n", bytes, blocks);

	if (write(1, line, n) != n)
		abort();
}

static void work(void)
{
	by_realloc();
	in_threads(churn);
}

static void in_child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		work();
		drop_all();
		in_threads(allocate);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		abort();
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void begin_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, waits, NULL))
		abort();
}

/*
 * Forbids the calls by which, on x86, a probed function returns (uretprobe()) and may be entered
 * (uprobe()).
 */
static void filter_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 335, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 336, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		abort();
}

static void obey(char order, char **argv)
{
	switch (order) {
	case '+':
		in_threads(allocate);
		break;
	case '~':
		work();
		break;
	case '-':
		drop_all();
		break;
	case 'r':
		for (int i = 0; i < TIMES; i++)
			by_recursion(DEPTH + i);
		break;
	case 'f':
		in_child();
		break;
	case 'x':
		execv("/proc/self/exe", argv);
		abort();
	case 's':
		start_counting();
		break;
	case 't':
		begin_thread();
		break;
	case 'c':
		filter_calls();
		break;
	}
}

int main(int argc, char **argv)
{
	char order;

	if (argc < 2)
		return 2;
	if (argc > 2)
		churned = atoi(argv[2]);
	answer();
	while (read(0, &order, 1) == 1) {
		obey(order, argv);
		answer();
	}
	return 0;
}
