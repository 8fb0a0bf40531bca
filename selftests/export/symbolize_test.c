// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbolize_test.c - libshstk-symbolize: names of the test's own stack, also of one captured in a
 * signal handler, of inlined calls, and of a library loaded later. Prints KTAP.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shstk_symbolize.h"

#define DEPTH 64
#define NAMES 16

static uint64_t pcs[DEPTH];
static uint8_t marks[DEPTH];
static int depth;
static struct shstk_symbolizer *symbolizer;
static unsigned int number;
static bool failed;

static void point(bool ok, const char *fact)
{
	printf("%sok %u %s\n", ok ? "" : "not ", ++number, fact);
	failed |= !ok;
}

static __attribute__((noinline)) void innermost(void)
{
	const struct shstk_opts opts = { .size = sizeof(opts), .marks = marks };

	depth = shstk_capture(pcs, DEPTH, &opts, NULL);
}

static inline __attribute__((always_inline)) void inlined(void)
{
	innermost();
	__asm__ volatile("");
}

static __attribute__((noinline)) void outer(void)
{
	inlined();
	__asm__ volatile("");
}

static void on_signal(int signo)
{
	(void)signo;
	innermost();
	__asm__ volatile("");
}

/* Returns whether these names are among the functions of the stack, in this order. */
static bool stack_has(const char *const *wanted)
{
	struct shstk_name names[NAMES];

	for (int i = 0; i < depth; i++) {
		int nr =
			shstk_symbolize(symbolizer, pcs[i], marks[i], names, NAMES, sizeof(*names));

		for (int k = 0; k < nr && k < NAMES && *wanted; k++)
			wanted += !strcmp(names[k].function, *wanted);
	}
	return !*wanted;
}

static void test_names(void)
{
	static const char *const wanted[] = { "innermost", "inlined", "outer", "main", NULL };
	struct shstk_name names[2] = { { .size = 0 } };

	outer();
	point(stack_has(wanted), "names of a stack, with an inlined call");
	point(shstk_symbolize(symbolizer, pcs[1], marks[1], names, 2, sizeof(*names)) >= 1 &&
		      names[0].line && names[0].file && strstr(names[0].file, "symbolize_test.c") &&
		      !strcmp(names[0].module, "symbolize_test") && names[0].size == sizeof(*names),
	      "its file, line and module");
}

static void test_signal(void)
{
	static const char *const wanted[] = { "innermost", "on_signal", "raise", "main", NULL };
	static const char *const less[] = { "innermost", "on_signal", "main", NULL };

	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	point(stack_has(wanted) || stack_has(less), "names of a stack of a signal handler");
}

static void test_later(void)
{
	struct shstk_name name;
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);
	void *function = library ? dlsym(library, "debuginfod_begin") : NULL;

	if (!function) {
		printf("ok %u a library that was loaded later # SKIP no libdebuginfod\n", ++number);
		return;
	}
	point(shstk_symbolize(symbolizer, (uintptr_t)function, SHSTK_MARK_PC, &name, 1,
			      sizeof(name)) >= 1 &&
		      !strcmp(name.linkage, "debuginfod_begin") && !name.offset,
	      "a library that was loaded later");
}

static void test_bad(void)
{
	struct shstk_symbolizer *none;
	struct shstk_name name;

	point(shstk_symbolize(symbolizer, 8, 0, &name, 1, sizeof(name)) == 1 &&
		      !strcmp(name.function, "[0x8]"),
	      "an address of nothing");
	point(shstk_symbolize(symbolizer, pcs[0], 0, &name, 1, 8) == -EINVAL, "too small a struct");
	point(shstk_symbolizer_create(-1, &none) == -EINVAL &&
		      shstk_symbolizer_create(4999999, &none) < 0,
	      "no such process");
}

int main(void)
{
	printf("KTAP version 1\n1..7\n");
	if (shstk_symbolizer_create(0, &symbolizer)) {
		printf("Bail out! no symbolizer\n");
		return 1;
	}
	test_names();
	test_signal();
	test_later();
	test_bad();
	shstk_symbolizer_destroy(symbolizer);
	return failed;
}
