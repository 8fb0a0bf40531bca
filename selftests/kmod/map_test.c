// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * map_test.c - tests what map_shadow_stack() writes for each flag; it is the same on every
 * architecture except the value of a token
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "linux/shstk.h"

static const struct variant {
	const char *name;
	unsigned long size;
	unsigned long flags;
	unsigned int token; /* words below the end given by size; 0: none */
} variants[] = {
	{ "no flags: all zero", 0x3000, 0, 0 },
	{ "token alone: in the last word", 0x3000, SHADOW_STACK_SET_TOKEN, 1 },
	{ "marker alone: all zero", 0x3000, SHADOW_STACK_SET_MARKER, 0 },
	{ "both: token in the last but one, zero above", 0x3000,
	  SHADOW_STACK_SET_TOKEN | SHADOW_STACK_SET_MARKER, 2 },
	{ "both, one word more than a page", 0x1008,
	  SHADOW_STACK_SET_TOKEN | SHADOW_STACK_SET_MARKER, 2 },
	{ "both, three words less than a page", 0xfe8,
	  SHADOW_STACK_SET_TOKEN | SHADOW_STACK_SET_MARKER, 2 },
	{ "both, the smallest size", 0x10, SHADOW_STACK_SET_TOKEN | SHADOW_STACK_SET_MARKER, 2 },
};

static void check(const struct variant *v)
{
	unsigned long page = getpagesize(), size, token;
	unsigned long addr = ss_map(0, v->size, v->flags), at;
	bool right = true;

	size = (v->size + page - 1) & ~(page - 1);
	if (addr > -4096UL) {
		ksft_test_result_fail("%s: %s\n", v->name, strerror(-addr));
		return;
	}
	token = v->token ? addr + v->size - 8 * v->token : 0;
	for (at = addr; at < addr + size; at += 8) {
		uint64_t word = *(volatile uint64_t *)at;
		uint64_t expect = at == token ? ss_token(at) : 0;

		if (word == expect)
			continue;
		right = false;
		ksft_print_msg("word at %#lx of %#lx is %#lx, expected %#lx\n", at - addr, v->size,
			       (long)word, (long)expect);
	}
	munmap((void *)addr, size);
	ksft_test_result(right, "%s\n", v->name);
}

/* Calls functions on the new stack. The end marker is not touched. */
static __attribute__((noinline, noclone)) long sum(long n)
{
	long r = n ? sum(n - 1) + n : 0;

	asm volatile("" : "+r"(r));
	return r;
}

static void __attribute__((noreturn, noinline)) switch_stacks(void)
{
	unsigned long top, old, error = 1;

	if (!ss_enable(SS_ENABLE)) {
		top = ss_map(0, 0x4000, SHADOW_STACK_SET_TOKEN | SHADOW_STACK_SET_MARKER) + 0x4000;
		old = ss_switch(top - 16);
		error = 2;
		if (ss_pointer() == top - 8 && sum(100) == 5050 && !*(volatile uint64_t *)(top - 8))
			error = 0;
		ss_switch(old);
		if (sum(10) != 55)
			error = 3;
	}
	for (;;)
		ss_syscall(__NR_exit_group, error, 0, 0, 0, 0);
}

int main(void)
{
	int status;

	need_shadow_stacks();
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(variants) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		check(&variants[i]);

	fflush(NULL);
	if (!fork())
		switch_stacks();
	wait(&status);
	ksft_test_result(!status, "a stack with a marker can be switched to and from: %#x\n",
			 status);
	ksft_finished();
}
