// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * flood.c - processes that work, and change what they have mapped as code all the time.
 *
 *   flood nothing|mappings|files PROCESSES FOLDER
 *
 * The CPU time is in a function that three others lead to. Between two turns of it each process changes
 * nothing, or maps the program as code a hundred times and unmaps that, or goes on in a copy of the program
 * that it just made in the folder, up to FILES. Prints a line when all processes are there, and at the end of
 * standard input, which ends them, how many mappings they made.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define AT_ONCE 100
#define FILES 2000 /* of each process */
#define TURNS 200000

extern const char __ehdr_start[];

static _Atomic unsigned long *made;
static volatile int one = 1;
static char *in_copy;

/* It uses nothing but its stack, so that it runs in a copy, too. */
static NOINLINE int innermost(int from)
{
	for (volatile int i = from; i < TURNS; i++)
		;
	return from;
}

static NOINLINE int middle(int (*function)(int))
{
	return function(one) + one;
}

static NOINLINE int outer(int (*function)(int))
{
	return middle(function) + one;
}

static void *map_code(int file, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	if (at == MAP_FAILED)
		_exit(1);
	atomic_fetch_add(made, 1);
	return at;
}

static void change_mappings(int program)
{
	void *at[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		at[i] = map_code(program, 1);
	for (int i = 0; i < AT_ONCE; i++)
		munmap(at[i], 1);
}

/* Makes the next copy, and returns the function in it. */
static int (*next_copy(int program, const char *folder))(int)
{
	static int nr;
	char path[256];
	struct stat st;
	int file;

	snprintf(path, sizeof(path), "%s/%d.%d", folder, getpid(), nr++ % FILES);
	file = open(path, O_RDWR | O_CREAT, 0700);
	if (file < 0 || fstat(program, &st) || lseek(program, 0, SEEK_SET) ||
	    sendfile(file, program, NULL, (size_t)st.st_size) != st.st_size)
		_exit(1);
	if (in_copy)
		munmap(in_copy, (size_t)st.st_size);
	in_copy = map_code(file, (size_t)st.st_size);
	close(file);
	return (int (*)(int))(uintptr_t)(in_copy + ((const char *)innermost - __ehdr_start));
}

static NOINLINE void flood(int program, char way, const char *folder)
{
	for (;;) {
		if (way == 'm')
			change_mappings(program);
		outer(way == 'f' ? next_copy(program, folder) : innermost);
	}
}

int main(int argc, char **argv)
{
	const int nr = argc > 3 ? atoi(argv[2]) : 0;
	pid_t child;
	char c;

	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return 1;
	setpgid(0, 0);
	for (int i = 0; i < nr; i++) {
		child = fork();
		if (child < 0) {
			perror("fork");
			kill(0, SIGKILL);
		}
		if (!child)
			flood(open("/proc/self/exe", O_RDONLY), *argv[1], argv[3]);
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	printf("%lu\n", atomic_load(made));
	fflush(stdout);
	kill(0, SIGKILL);
	return 0;
}
