// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dlang_test.c - readable names of D, and names that were made to stand for gigabytes of text or
 * take hours to read. Prints KTAP.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "symbol/demangle.h"
#include "symbol/pool.h"

#define SECONDS 2 /* of CPU time per name; a name takes less than 1 ms */

static unsigned int number;
static bool failed;

static void point(bool ok, const char *fact, const char *name)
{
	printf("%sok %u %s%s%s\n", ok ? "" : "not ", ++number, fact, name ? ": " : "",
	       name ? name : "");
	failed |= !ok;
}

/* Mangled names, of programs and of the language's definition, and the readable name of each. */
static const char *const names[][2] = {
	{ "_Dmain", "D main" },
	{ "_D3foo3barFiZv", "foo.bar(int)" },
	{ "_D6object6Object8opEqualsMxFC6ObjectZb", "object.Object.opEquals(Object) const" },
	{ "_D3foo3Bar6__vtblZ", "vtable for foo.Bar" },
	{ "_D3foo3Bar7__ClassZ", "ClassInfo for foo.Bar" },
	{ "_D3foo3Bar6__initZ", "initializer for foo.Bar" },
	{ "_D3foo12__ModuleInfoZ", "ModuleInfo for foo" },
	{ "_D3foo3Bar6__ctorMFiZCQuQs", "foo.Bar.this(int)" },
	{ "_D3foo3Bar6__dtorMFZv", "foo.Bar.~this()" },
	{ "_D3foo3Bar10__postblitMFZv", "foo.Bar.this(this)" },
	{ "_D8demangle4testFHiPAxcZv", "demangle.test(const(creal)[]*[int])" },
	{ "_D1a1bFDxFZaDFNfZiPUiZvZv",
	  "a.b(char() delegate const, int() @safe delegate, extern(C) void(int) function)" },
	{ "_D8demangle9__T4testZ4testFZv", "demangle.test!().test()" },
	{ "_D8demangle13__T4testVii5Z4testFZv", "demangle.test!(5).test()" },
	{ "_D8demangle22__T4testVAyaa3_616263Z4testFZv", "demangle.test!(\"abc\").test()" },
	{ "_D1a4__S11bFKiJaLAbYv", "a.b(ref int, out char, lazy bool[], ...)" },
	/* These are no mangled names, and stay as they are. */
	{ "_D3fo", "_D3fo" },
	{ "_D1aFi", "_D1aFi" },
	{ "_D1aFQaZv", "_D1aFQaZv" },
	{ "_D9", "_D9" },
	{ "_Display", "_Display" },
};

static void check_names(struct shstk_pool *pool)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *got = shstk_demangle(pool, names[i][0], false);

		point(got && !strcmp(got, names[i][1]), names[i][0], got);
	}
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void check_bound(struct shstk_pool *pool, const char *fact, const char *name)
{
	double began = cpu_seconds();
	const char *got = shstk_demangle(pool, name, false);

	point(got && strlen(got) < SHSTK_TEXT_MAX && cpu_seconds() - began < SECONDS, fact, NULL);
}

/* Returns @before, @times times @text, and @after as one malloc'd string. */
static char *repeated(const char *before, const char *text, unsigned int times, const char *after)
{
	char *name = malloc(strlen(before) + times * strlen(text) + strlen(after) + 1);
	char *to;

	if (!name)
		exit(2);
	to = stpcpy(name, before);
	while (times--)
		to = stpcpy(to, text);
	strcpy(to, after);
	return name;
}

static void check_repeated(struct shstk_pool *pool, const char *fact, const char *before,
			   const char *text, unsigned int times, const char *after)
{
	char *name = repeated(before, text, times, after);

	check_bound(pool, fact, name);
	free(name);
}

/* Checks templates within each other, each with a length in front of it. */
static void check_nested(struct shstk_pool *pool)
{
	char name[8000] = "1a", more[8000];

	for (int i = 0; i < 40; i++) {
		snprintf(more, sizeof(more), "__T1aS%zu%.7000sZ", strlen(name), name);
		snprintf(name, sizeof(name), "%zu%.7900s", strlen(more), more);
	}
	snprintf(more, sizeof(more), "_D%.7900si", name);
	check_bound(pool, "lengths that may be read in many ways, in 40 levels, are bounded", more);
}

int main(void)
{
	struct shstk_pool pool;

	shstk_pool_init(&pool);
	printf("KTAP version 1\n");
	check_names(&pool);
	check_repeated(&pool, "references each to two before are bounded", "_D1aFHAvAv", "HQgQi",
		       40, "Zv");
	check_repeated(&pool, "functions that may be types are bounded", "_D1aF", "S1aF", 60,
		       "iZv");
	check_repeated(&pool, "functions of a structure are bounded", "_D1aF", "S1aMFP", 1300,
		       "iZv");
	check_repeated(&pool, "arrays of arrays do not use up the stack", "_D1aF", "A", 8000,
		       "iZv");
	check_repeated(&pool, "symbols without a name are bounded", "_D1aFS", "0", 8000, "1aZv");
	check_nested(&pool);
	shstk_pool_deinit(&pool);
	printf("1..%u\n", number);
	return failed;
}
