// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * frame.c - frames of unusual shapes: alloca(), variable-length arrays, over-aligned locals, very
 * large frames (stack probes), many arguments, tail calls, leaf functions that use the red zone,
 * calls that do not return at a function's end, and functions that are split into hot and cold
 * parts.
 */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static volatile long sink;

NOINLINE static long leaf(long a, long b)
{
	long room[6];

	for (int i = 0; i < 6; i++)
		room[i] = a * i + b;
	return room[a & 3] + room[b & 3];
}

NOINLINE static long dynamic(size_t n)
{
	char *p = alloca(n);
	char q[n / 2 + 1];

	memset(p, 1, n);
	memset(q, 2, sizeof(q));
	return leaf(p[n - 1], q[n / 2]);
}

NOINLINE static long aligned(long x)
{
	_Alignas(64) volatile long room[16];

	room[x & 7] = x;
	return leaf(room[x & 7], x);
}

NOINLINE static long aligned_dynamic(size_t n)
{
	_Alignas(128) volatile char room[256];
	char *p = alloca(n);

	room[n & 127] = 3;
	memset(p, room[n & 127], n);
	return leaf(p[0], n) + dynamic(n);
}

NOINLINE static long large(long x)
{
	volatile char room[70000];

	room[x & 0xffff] = x;
	return leaf(room[x & 0xffff], x) + aligned(x);
}

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h, long i,
			  long j)
{
	return leaf(a + g, j) + b + c + d + e + f + h + i;
}

NOINLINE static long tail(long n)
{
	if (n > 3)
		return leaf(n, n + 1);
	return aligned(n);
}

__attribute__((cold, noinline)) static void rare(const char *what)
{
	sink += strlen(what);
}

NOINLINE static long split(long n)
{
	if (__builtin_expect(n == 5, 0)) {
		rare("five");
		sink += leaf(n, 2);
	}
	return n + sink;
}

__attribute__((noinline, noreturn)) static void finish(int code)
{
	exit(code);
}

/* Makes a call whose return address lies behind the end of the function. */
NOINLINE static void last(int code)
{
	sink++;
	finish(code);
}

#ifdef __aarch64__
/*
 * A function without a frame. It keeps its return address in another register while it calls a
 * function that leaves this register alone, and its unwind information says so. rawmemchr() of
 * glibc 2.41 does this.
 */
long kept_elsewhere(long n);
asm(".text\n"
    ".type keeps_x15, %function\n"
    "keeps_x15:\n"
    "	.cfi_startproc\n"
    "	add x0, x0, #1\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size keeps_x15, . - keeps_x15\n"
    ".globl kept_elsewhere\n"
    ".type kept_elsewhere, %function\n"
    "kept_elsewhere:\n"
    "	.cfi_startproc\n"
    "	mov x15, x30\n"
    "	.cfi_register x30, x15\n"
    "	bl keeps_x15\n"
    "	add x0, x0, #2\n"
    "	ret x15\n"
    "	.cfi_endproc\n"
    ".size kept_elsewhere, . - kept_elsewhere\n");
#else
static long kept_elsewhere(long n)
{
	return n;
}
#endif

int main(int argc, char **argv)
{
	(void)argv;
	for (long n = 0; n < 9; n++)
		sink += kept_elsewhere(n);
	for (size_t n = 1; n < 200; n = n * 5 + 1)
		sink += dynamic(n) + aligned_dynamic(n);
	sink += large(77) + aligned(3);
	sink += many(1, 2, 3, 4, 5, 6, 7, 8, 9, argc);
	for (long n = 0; n < 7; n++)
		sink += tail(n) + split(n);
	printf("%ld\n", (long)sink);
	last(0);
}
