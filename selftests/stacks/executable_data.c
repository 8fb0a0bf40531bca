// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * executable_data.c - a program that changes the protection of a page. With "data", its data, which
 * share a page of the file with the code, become executable. With "code", the last page of its code
 * gets another protection than the rest.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static volatile int data = 5;
extern char etext[];

#ifdef ROOM
/* This room is never executed; it only moves the other code out of the last page of the code. */
static __attribute__((used, section(".text.room"))) const char room[ROOM] = { 1 };
#endif

static noinline void inner(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		data++;
}

static noinline void middle(void)
{
	inner();
	__asm__ volatile("");
}

static noinline void outer(void)
{
	middle();
	__asm__ volatile("");
}

static int protect(const void *at, int prot)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);

	return mprotect((void *)((uintptr_t)at & -page), page, prot);
}

int main(int argc, char **argv)
{
	int err;

	if (argc == 2 && !strcmp(argv[1], "data"))
		err = protect((const void *)&data, PROT_READ | PROT_WRITE | PROT_EXEC);
	else if (argc == 2 && !strcmp(argv[1], "code"))
		err = protect(etext - 1, PROT_READ | PROT_WRITE | PROT_EXEC);
	else
		return 2;
	if (err) {
		perror("mprotect");
		return 1;
	}
	outer();
	return 0;
}
