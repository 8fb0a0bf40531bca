// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * long_names_test.c - names of C++ that are too long to be kept: what tells remains, and a name that
 * stands for an astronomic length is not read for long. Prints KTAP.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbol/demangle.h"
#include "symbol/pool.h"

#define SECONDS 2 /* of CPU time per name; a name takes some ms at most */

static unsigned int number;
static bool failed;

static void point(bool ok, const char *fact, const char *got)
{
	printf("%sok %u %s%s%.200s\n", ok ? "" : "not ", ++number, fact, ok ? "" : ": ",
	       ok || !got ? "" : got);
	failed |= !ok;
}

/* Writes the mangled reference to the substitution of that number. */
static char *put_reference(char *p, unsigned int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	*p++ = 'S';
	if (n > 36)
		*p++ = digits[(n - 1) / 36];
	if (n)
		*p++ = digits[(n - 1) % 36];
	*p++ = '_';
	return p;
}

/*
 * Writes the type P<P<..>, P<..>>, in which @depth of P are in each other, behind one other
 * substitution: the readable name has more than 5 * 2^@depth bytes. Returns the end.
 */
static char *put_deep_type(char *p, unsigned int depth)
{
	p = stpcpy(p, "1PI");
	for (unsigned int i = 1; i < depth; i++) {
		p = put_reference(p, 1);
		*p++ = 'I';
	}
	p = stpcpy(p, "iiE");
	for (unsigned int i = 1; i < depth; i++) {
		p = put_reference(p, 1 + i);
		*p++ = 'E';
	}
	*p = '\0';
	return p;
}

/* Returns the readable name of a function whose mangled name has a deep type in the middle. */
static const char *demangled(struct shstk_pool *pool, const char *before, unsigned int depth,
			     const char *behind)
{
	char name[2000];

	stpcpy(put_deep_type(stpcpy(name, before), depth), behind);
	return shstk_demangle(pool, name, false);
}

/* What stands before and behind the type, and the readable name. */
static const char *const names[][3] = {
	{ "_Z4findI", "Evv", "void find<P<..> >()" },
	{ "_ZN3MapI", "E4findEi", "Map<P<..> >::find(int)" },
	{ "_ZN3MapI", "EltEi", "Map<P<..> >::operator<(int)" },
	{ "_ZN3MapI", "ElsEi", "Map<P<..> >::operator<<(int)" },
	{ "_ZN3MapI", "EssEi", "Map<P<..> >::operator<=>(int)" },
	{ "_ZN3MapI", "EgeEi", "Map<P<..> >::operator>=(int)" },
	{ "_ZN3MapI", "EptEv", "Map<P<..> >::operator->()" },
	{ "_ZN3MapI", "EclIiEEvv", "void Map<P<..> >::operator()<int>()" },
	{ "_ZN3MapI", "E4findIcEEvv", "void Map<P<..> >::find<char>()" },
	{ "_Z4findI", "XgtLi3ELi2EEEvv", "void find<P<..>, ((3)>(2))>()" },
};

static void check_names(struct shstk_pool *pool)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *got = demangled(pool, names[i][0], 13, names[i][1]);

		point(got && !strcmp(got, names[i][2]), names[i][2], got);
	}
}

static void check_whole(struct shstk_pool *pool)
{
	const char *got = demangled(pool, "_Z4findI", 9, "Evv");

	point(got && strlen(got) > 5 << 9 && !strstr(got, ".."), "a name that can be kept is whole",
	      got);
}

static void check_astronomic(struct shstk_pool *pool)
{
	clock_t began = clock();
	const char *got = demangled(pool, "_Z4findI", 120, "Evv");

	point(got && !strncmp(got, "_Z4findI", 8), "a name without a bound stays mangled", got);
	point(clock() - began < SECONDS * CLOCKS_PER_SEC, "... and is not read for long", NULL);
}

int main(void)
{
	struct shstk_pool pool;

	printf("TAP version 13\n1..%zu\n", sizeof(names) / sizeof(*names) + 3);
	shstk_pool_init(&pool);
	check_names(&pool);
	check_whole(&pool);
	check_astronomic(&pool);
	shstk_pool_deinit(&pool);
	return failed;
}
