// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit_test.c - code made at run time that keeps a frame pointer, and then other code in its
 * place that does not: what a thread with markers has noted of the first is not believed of
 * the second, although its call returns to the same address. The first is met by markers also if another
 * word of the loader happens to be the number of loads. Prints KTAP.
 */
#include <stdbool.h>
#include <stdio.h>

#include "jit.h"
#include "modmap.h"
#include "shstk_marker.h"

#define MAX 256
#define NOINLINE __attribute__((noinline, noclone))

typedef int (*jit_fn)(int (*callback)(void));

/*
 * The unwind information of jit_fp, and code without a frame pointer whose call ends at the same
 * offset.
 */
#ifdef __x86_64__
static const uint8_t jit_fp_cfi[] = { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 };
#define NO_FP jit_other
#define NO_FP_CFI jit_other_cfi
#else
static const uint8_t jit_fp_cfi[] = { 0x44, 0x0e, 16, 0x9d, 2, 0x9e, 1, 0x44, 0x0d, 29 };
#define NO_FP jit_plain
#define NO_FP_CFI jit_plain_cfi
#endif

static bool equal, met;

/* Captures by a marker (after the first call, which places it) and by the memo. */
static NOINLINE int callback(void)
{
	static const struct shstk_opts memo = { .size = sizeof(memo),
						.sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };
	static uint64_t pcs[2][MAX];
	struct shstk_info info = { .size = sizeof(info) };
	volatile int n = 0, m = 0, i;

	for (i = 0; i < 3; i++)
		n = shstk_marker_capture(pcs[0], MAX, &info);
	met = info.source == SHSTK_SOURCE_MARKER;
	m = shstk_capture(pcs[1], MAX, &memo, NULL);
	/* All entries but 0 must be equal: that one is the place of the call in this function. */
	equal = n == m && n > 3 && !memcmp(pcs[0] + 1, pcs[1] + 1, (n - 1) * sizeof(pcs[0][0]));
	return n;
}

static NOINLINE int enter(jit_fn fn)
{
	volatile int r = fn(callback);

	return r;
}

static bool is_right(jit_fn fn, const void *code, size_t size, const void *cfi, size_t cfi_size)
{
	char *page = (char *)((uintptr_t)fn & ~4095ul);
	uint8_t section[256];

	if (mprotect(page, 65536, PROT_READ | PROT_WRITE))
		return false;
	memcpy((void *)fn, code, size);
	__builtin___clear_cache(page, page + 65536);
	if (mprotect(page, 65536, PROT_READ | PROT_EXEC))
		return false;
	jit_frames(section, (const void *)fn, size, cfi, cfi_size);
	if (shstk_register_frame(section))
		return false;
	enter(fn);
	shstk_deregister_frame(section);
	printf("# met a marker: %d\n", met);
	return equal;
}

/* Adds a word to those that may be the number of loads. */
static void add_counter(void)
{
	static uint64_t word;

	modmap_watch.counter[2] = &word;
	modmap_watch.n = 3;
	modmap_loads_saw(modmap_loads());
}

int main(void)
{
	jit_fn fn = (jit_fn)jit_make(jit_fp, sizeof(jit_fp), 256);
	bool first, second, third;

	printf("TAP version 13\n");
	if (!fn || shstk_marker_restart()) {
		printf("1..0 # SKIP %s\n",
		       fn ? shstk_marker_name(shstk_marker_status()) : "no memory to execute");
		return 4;
	}
	printf("1..3\n");
	first = is_right(fn, jit_fp, sizeof(jit_fp), jit_fp_cfi, sizeof(jit_fp_cfi)) && met;
	printf("%sok 1 code with a frame pointer, by a marker\n", first ? "" : "not ");
	second = is_right(fn, NO_FP, sizeof(NO_FP), NO_FP_CFI, sizeof(NO_FP_CFI));
	printf("%sok 2 other code in its place, without one\n", second ? "" : "not ");
	add_counter();
	third = is_right(fn, jit_fp, sizeof(jit_fp), jit_fp_cfi, sizeof(jit_fp_cfi)) && met;
	printf("%sok 3 the first one again, with three counters of loads\n", third ? "" : "not ");
	return !(first && second && third);
}
