// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spin32.c - as spin.c, in 32-bit code with frame pointers, and without a C library, of which there may be none
 *
 * The walk by rules is of 64-bit code, so the stacks of this program are those that the kernel finds.
 */
#define NOINLINE __attribute__((noinline, noclone))
#define CLOCK_GETTIME 265 /* system calls of 32-bit code */
#define EXIT 1
#define CLOCK_THREAD_CPUTIME_ID 3
#define HALF_A_SECOND 500000000 /* ns */

static volatile unsigned long turns;
static volatile int one = 1;

static int call_kernel(int number, int first, void *second)
{
	int ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(first), "c"(second) : "memory");
	return ret;
}

static int has_time(void)
{
	long now[2] = { 1, 0 }; /* seconds and nanoseconds */

	call_kernel(CLOCK_GETTIME, CLOCK_THREAD_CPUTIME_ID, now);
	return !now[0] && now[1] < HALF_A_SECOND;
}

static NOINLINE int innermost(void)
{
	/* So it has a frame record, which functions that call none may lack. */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	for (unsigned int i = 0; i < 100000; i++)
		turns++;
	return one;
}

static NOINLINE int middle(void)
{
	return innermost() + one;
}

static NOINLINE int outer(void)
{
	return middle() + one;
}

void _start(void)
{
	int sum = 0;

	while (has_time())
		sum += outer();
	call_kernel(EXIT, !sum, 0);
}
