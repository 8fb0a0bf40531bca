// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context.c - coroutines by makecontext() and swapcontext(), with stacks on the heap and in a
 * mapping. One is started from another, and one has a uc_link to return to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

static ucontext_t ground, a, b;
static volatile int sum;

__attribute__((noinline)) static void hop(int n, ucontext_t *from, ucontext_t *to)
{
	volatile char room[48] = { 0 };

	if (n)
		hop(n - 1, from, to);
	else
		swapcontext(from, to);
	sum += room[n] + 1;
}

static void run_b(int x)
{
	sum += x;
	hop(3, &b, &a);
	hop(1, &b, &ground);
}

static void run_a(int x, int y)
{
	sum += x * y;
	hop(2, &a, &b);
	hop(2, &a, &ground);
}

int main(void)
{
	char *heap = malloc(65536);
	char *mapped =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&a);
	a.uc_stack.ss_sp = heap;
	a.uc_stack.ss_size = 65536;
	a.uc_link = &ground;
	makecontext(&a, (void (*)(void))run_a, 2, 3, 5);
	getcontext(&b);
	b.uc_stack.ss_sp = mapped;
	b.uc_stack.ss_size = 65536;
	b.uc_link = NULL;
	makecontext(&b, (void (*)(void))run_b, 1, 7);
	hop(2, &ground, &a);
	hop(0, &ground, &b);
	hop(1, &ground, &a);
	printf("%d\n", sum);
	return 0;
}
