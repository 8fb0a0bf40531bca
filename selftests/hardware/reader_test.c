// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reader_test.c - the reader of shadow stacks on ordinary memory: every length and
 * alignment, with and without tokens, against a copy word by word. Neither the
 * word behind the stack nor one behind the array may be touched.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"
#include "shadow_reader.h"
#include "kselftest.h"

#define WORDS 1200
#define CANARY 0x5a5a5a5a5a5a5a5aull

static uint64_t *stack_end; /* behind it nothing is mapped */
static uint64_t out[WORDS + 16] __attribute__((aligned(64)));
static uint64_t want[WORDS];
static uint8_t marks[WORDS];

/* The address behind the last word that can be read. */
static uint64_t *make_stack(void)
{
	size_t page = sysconf(_SC_PAGESIZE), size = 4 * page;
	uint8_t *p =
		mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + size, page, PROT_NONE))
		return NULL;
	return (uint64_t *)(p + size);
}

/* What marks a signal frame at @at. */
static uint64_t signal_token(const uint64_t *at)
{
#ifdef __x86_64__
	return (uintptr_t)at | 1ull << 63;
#elif defined(__riscv)
	return (uintptr_t)(at + 1);
#else
	return (uintptr_t)at & ~4095ull;
#endif
}

/* @n return addresses, and signal frames at @tokens places. */
static void fill(unsigned int n, unsigned int tokens)
{
	uint64_t *at = stack_end - n;

	for (unsigned int i = 0; i < n; i++)
		at[i] = (uintptr_t)fill + 4 * (rand() % 100000);
	/* The outermost word is a return address always. */
	for (; tokens && n > 1; tokens--) {
		unsigned int i = rand() % (n - 1);

		at[i] = signal_token(at + i);
	}
}

static unsigned int expect(unsigned int n, unsigned int max)
{
	const uint64_t *at = stack_end - n;
	unsigned int k = 0;

	for (unsigned int i = 0; i < n && k < max; i++)
		if (native_entry(at[i], (uintptr_t)(at + i)) == SHADOW_RETURN_ADDRESS)
			want[k++] = at[i];
	return k;
}

static bool same(unsigned int n, unsigned int max, unsigned int shift, bool marked)
{
	struct hw_trace t = { .pcs = out + shift, .max = max };
	unsigned int k = expect(n, max);

	for (unsigned int i = 0; i < WORDS + 16; i++)
		out[i] = CANARY;
	t.marks = marked ? marks : NULL;
	hw_copy(&t, (uintptr_t)(stack_end - n), (uintptr_t)stack_end);
	if (t.n == k && !memcmp(out + shift, want, k * sizeof(*want)) &&
	    (!shift || out[shift - 1] == CANARY) && out[shift + max] == CANARY)
		return true;
	ksft_print_msg("%u words to %u, at %u: %u entries, not %u\n", n, max, shift, t.n, k);
	return false;
}

static bool all_lengths(unsigned int tokens, bool marked)
{
	for (unsigned int n = 0; n <= 1100; n += n < 140 ? 1 : 31)
		for (unsigned int shift = 0; shift < 5; shift++) {
			fill(n, tokens);
			if (!same(n, n ? n : 1, shift, marked) ||
			    !same(n, n / 2 + 1, shift, marked))
				return false;
		}
	return true;
}

/* What is read of @n words of which none is special, and @at @v. */
static unsigned int read_with(unsigned int n, unsigned int at, uint64_t v)
{
	struct hw_trace t = { .pcs = out, .max = WORDS, .marks = marks };

	fill(n, 0);
	stack_end[(long)at - (long)n] = v;
	hw_copy(&t, (uintptr_t)(stack_end - n), (uintptr_t)stack_end);
	return t.n;
}

/*
 * Unused words end the chain wherever they are, as where two shadow stacks adjoin or
 * a context is younger than its stack; what is no user address is left out and marked.
 */
static bool words_that_are_no_entries(void)
{
	static const uint64_t unused[] = { 0, 1, 4095 };
	static const uint64_t foreign[] = { 0xffffffff81000000, 1ull << 60, ~0ull };
	static const unsigned int len[] = { 2, 5, 20, 40, 511, 512, 513, 1000 };

	for (unsigned int l = 0; l < 8; l++)
		for (unsigned int k = 0; k < 3; k++)
			for (unsigned int at = 0; at < len[l]; at += 1 + at / 3) {
				unsigned int n = read_with(len[l], at, unused[k]);

				if (n != at) {
					ksft_print_msg("%u entries, not %u\n", n, at);
					return false;
				}
				n = read_with(len[l], at, foreign[k]);
				if (n != len[l] - 1 || (at < n && !(marks[at] & SHSTK_MARK_GAP)) ||
				    (at && marks[at - 1])) {
					ksft_print_msg("%u of %u, not at %u\n", n, len[l], at);
					return false;
				}
			}
	return true;
}

/* Addresses whose lower half is that of the stack itself, as those of its tokens, are entries. */
static bool addresses_like_tokens(void)
{
	for (unsigned int n = 4; n < 80; n++)
		for (unsigned int at = 0; at < n; at++) {
			uint64_t v = (uint32_t)(uintptr_t)(stack_end - 1) | 0x1234ull << 32;

			if (read_with(n, at, v) != n || out[at] != v || marks[at]) {
				ksft_print_msg("not %u of %u\n", at, n);
				return false;
			}
		}
	return true;
}

/* Those that can't be put in are gaps. */
static bool many_signals(void)
{
	struct hw_trace t = { .pcs = out, .max = WORDS, .marks = marks };
	unsigned int n = 100, gaps = 0;

	fill(n, 0);
	for (unsigned int i = 1; i < 40; i += 2)
		stack_end[(long)i - (long)n] = signal_token(stack_end - n + i);
	hw_copy(&t, (uintptr_t)(stack_end - n), (uintptr_t)stack_end);
	for (unsigned int i = 0; i < t.n; i++)
		gaps += !!(marks[i] & SHSTK_MARK_GAP);
	return t.n == 80 && t.nsignals == HW_SIGNALS && gaps == 20 - HW_SIGNALS;
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(7);
	stack_end = make_stack();
	if (!stack_end)
		ksft_exit_fail_msg("no memory\n");
	srand(1);
	ksft_test_result(all_lengths(0, false), "return addresses only\n");
	ksft_test_result(all_lengths(1, false), "one signal frame\n");
	ksft_test_result(all_lengths(7, false), "several signal frames\n");
	ksft_test_result(all_lengths(2, true), "with marks\n");
	ksft_test_result(words_that_are_no_entries(), "unused and foreign words\n");
	ksft_test_result(addresses_like_tokens(),
			 "addresses that look like tokens in their lower half\n");
	ksft_test_result(many_signals(), "more signal frames than there is room for\n");
	ksft_finished();
}
