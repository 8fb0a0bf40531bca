// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fcontext_test.c - coroutines like those of Boost.Context. It is linked with a library that
 * exports the functions, and a second time with its own copy, which nothing can interpose.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/inject/preload/ssp.h"

struct transfer {
	void *from;
	void *data;
};

struct transfer jump_fcontext(void *to, void *data);
struct transfer ontop_fcontext(void *to, void *data, struct transfer (*fn)(struct transfer));
void *make_fcontext(void *sp, size_t size, void (*func)(struct transfer));

#define STACK 65536

static int visited;

static __attribute__((noinline)) struct transfer pass(void *to, int depth, void *data)
{
	struct transfer t;

	visited++;
	t = depth ? pass(to, depth - 1, data) : jump_fcontext(to, data);
	__asm__ volatile("" : : : "memory");
	return t;
}

static void counter(struct transfer t)
{
	for (intptr_t i = 1;; i++)
		t = pass(t.from, 5, (void *)(i + (intptr_t)t.data));
}

static struct transfer on_top(struct transfer t)
{
	t.data = (void *)((intptr_t)t.data * 2);
	return t;
}

static unsigned int count;

static void ok(int good, const char *what)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++count, what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct transfer a, b;
	int good = 1;

	printf("TAP version 13\n");
	if (argc == 2 && !strcmp(argv[1], "on"))
		ok(read_ssp() != 0, "shadow stack is on");
	a.from = make_fcontext((char *)malloc(STACK) + STACK, STACK, counter);
	b.from = make_fcontext((char *)malloc(STACK) + STACK, STACK, counter);
	for (intptr_t i = 1; i <= 50; i++) {
		a = pass(a.from, 3, (void *)1000);
		b = pass(b.from, 9, (void *)2000);
		good &= (intptr_t)a.data == 1000 + i && (intptr_t)b.data == 2000 + i;
	}
	ok(good, "two coroutines, 50 switches each");
	a = ontop_fcontext(a.from, (void *)100, on_top);
	ok((intptr_t)a.data == 251, "a call on top of a suspended coroutine");
	a.from = make_fcontext((char *)malloc(STACK) + STACK, STACK, counter);
	a = jump_fcontext(a.from, (void *)5);
	ok((intptr_t)a.data == 6, "a third coroutine");
	printf("1..%u\n", count);
	return 0;
}
