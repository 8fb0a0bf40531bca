// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * changes.c - CPU time in a function that the same three lead to, in all that a process may become:
 * in a thread, in a child, in a program that was executed, in a library that was loaded late, below
 * code that was made at run time, while another thread changes mappings as fast as it can, and in the
 * handler of a signal that came at the first instruction of a function.
 *
 *	changes LIBRARY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/bpf/three_calls.h"

#define SECONDS 0.3

static NOINLINE int outer(void)
{
	const double end = used() + SECONDS;
	int sum = 0;

	while (used() < end)
		sum += middle();
	return sum;
}

static NOINLINE void *in_thread(void *arg)
{
	one += outer() < 0;
	return arg;
}

static NOINLINE int in_child(void)
{
	return outer() + one;
}

static NOINLINE int in_program(void)
{
	return outer() + one;
}

/* Code with a frame record that calls what its argument points to. */
static NOINLINE int in_made_code(void)
{
#ifdef __x86_64__
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3, /* push, mov, call *rdi, pop, ret */
	};
#else
	static const unsigned int code[] = {
		0xa9bf7bfd, 0x910003fd, 0xd63f0000, /* stp x29, x30; mov x29, sp; blr x0 */
		0xa8c17bfd, 0xd65f03c0, /* ldp; ret */
	};
#endif
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*made)(int (*fn)(void));

	if (page == MAP_FAILED)
		return -1;
	memcpy(page, code, sizeof(code));
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return -1;
	made = (int (*)(int (*)(void)))page;
	return made(outer) + one;
}

static int in_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*pass)(int (*fn)(void)) = NULL;

	if (library)
		pass = (int (*)(int (*)(void)))dlsym(library, "in_late_library");
	if (!pass) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	return pass(outer) + one;
}

/*
 * Changes mappings, which moves those beside them in the kernel's tree. None of them has code, so
 * that no event tells of it.
 */
static void *flood(void *arg)
{
	const volatile bool *stop = arg;

	while (!*stop) {
		char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pages == MAP_FAILED)
			continue;
		mprotect(pages + 4096, 4096, PROT_READ);
		munmap(pages, 3 * 4096);
	}
	return NULL;
}

static NOINLINE int in_flood(void)
{
	volatile bool stop = false;
	pthread_t thread;
	int ret;

	if (pthread_create(&thread, NULL, flood, (void *)&stop))
		return -1;
	ret = outer();
	stop = true;
	return pthread_join(thread, NULL) ? -1 : ret;
}

/* The byte before this function is one of another. */
int illegal(void);
__asm__(".text\n"
	".type before_illegal, %function\n"
	"before_illegal:\n"
	"	nop\n"
	".size before_illegal, . - before_illegal\n"
	".globl illegal\n"
	".type illegal, %function\n"
	"illegal:\n"
	"	.cfi_startproc\n"
#ifdef __x86_64__
	"	ud2\n"
#else
	"	.inst 0\n"
#endif
	"	.cfi_endproc\n"
	".size illegal, . - illegal\n");

static NOINLINE void in_handler(int signo)
{
	one += signo;
	_exit(outer() < 0);
}

static NOINLINE int in_illegal(void)
{
	return signal(SIGILL, in_handler) == SIG_ERR ? -1 : illegal() + one;
}

static int start_child(char **argv, int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid && fn)
		_exit(fn() < 0);
	if (!pid) {
		execl("/proc/self/exe", *argv, "again", (char *)NULL);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : -1;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "again"))
		return in_program() < 0;
	if (pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL))
		return 1;
	return start_child(argv, in_child) || start_child(argv, NULL) || in_library(argv[1]) < 0 ||
	       in_made_code() < 0 || in_flood() < 0 || start_child(argv, in_illegal);
}
