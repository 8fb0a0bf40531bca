// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * neighbour.c - a recorded program writes to the memory of all recorded programs, to hurt another one.
 *
 * It is recorded by `shstk record --heap`, and runs itself as the other program, whose stacks are all
 * different: each has a record. This one changes, in each record that is being written, what says where
 * its marks go. The other program has few addresses, and marks at a wrong place end it. The status is
 * that of the other program: 0, or 128 and the number of the signal that ended it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/inject/heap/region.h"

#define NOINLINE __attribute__((noinline, noclone))
#define MOST (32ul << 20) /* bytes of the other program's region */
#define ADDRESSES (8 * MOST) /* that it has in all */
#define PATHS 14 /* a stack for each number of so many bits */
#define STARTS 10 /* programs that are hurt, one after the other */

static void *blocks[1 << PATHS];

static NOINLINE void allocate(unsigned int path)
{
	blocks[path] = malloc(16);
}

static NOINLINE void go_left(unsigned int path, int left);
static NOINLINE void go_right(unsigned int path, int left);

/* Makes the next step of the path. Each of its callers has a frame of its own. */
static inline __attribute__((always_inline)) void go_on(unsigned int path, int left)
{
	if (!left)
		allocate(path);
	else if (path >> (left - 1) & 1)
		go_right(path, left - 1);
	else
		go_left(path, left - 1);
}

static NOINLINE void go_right(unsigned int path, int left)
{
	go_on(path, left);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void go_left(unsigned int path, int left)
{
	go_on(path, left);
	__asm__ volatile("" ::: "memory");
}

static int be_victim(void)
{
	for (unsigned int path = 0; path < 1 << PATHS; path++)
		go_left(path, PATHS);
	return 0;
}

static pid_t start_victim(void)
{
	const struct rlimit limit = { ADDRESSES, ADDRESSES };
	pid_t pid = fork();

	if (pid)
		return pid;
	setrlimit(RLIMIT_AS, &limit);
	execl("/proc/self/exe", "neighbour", "victim", NULL);
	_exit(10);
}

static int open_shared(void)
{
	const char *env = getenv(REC_ENV);
	char path[64];

	if (!env || sscanf(env, "%63s", path) != 1)
		return -1;
	return open(path, O_RDWR | O_CLOEXEC);
}

static void *map(int fd, uint64_t at)
{
	void *p = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);

	if (p != MAP_FAILED)
		return p;
	perror("mmap");
	exit(11);
}

/* Changes the record that begins where the region is used up to, and those before it. */
static void change_frames(struct heap_image *image)
{
	const uint64_t used = atomic_load_explicit(&image->used, memory_order_relaxed);
	char *end = (char *)image + used;

	for (int unit = -6; unit <= 1 && used > 65536; unit++)
		*(volatile uint32_t *)(end + unit * (int)HEAP_UNIT +
				       offsetof(struct heap_trace, frames)) = 0xfffffff8;
}

/* Writes to the memory of the program as long as it runs. Returns its status. */
static int hurt(pid_t pid, struct heap_image *image)
{
	int status;

	while (!waitpid(pid, &status, WNOHANG))
		for (int i = 0; i < 10000; i++)
			change_frames(image);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	int fd, status = 0;

	(void)argv;
	if (argc > 1)
		return be_victim();
	fd = open_shared();
	if (fd < 0)
		return 12;
	for (int i = 1; i <= STARTS && !status; i++) {
		/* A program has a region of its own between fork and exec, too. */
		struct heap_image *image = map(fd, HEAP_FIRST + 2 * i * HEAP_REGION);

		status = hurt(start_victim(), image);
		munmap(image, MOST);
	}
	return status;
}
