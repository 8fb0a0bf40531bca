// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tries_test.c - tests when files are tried again whose table could not be made. Prints KTAP.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bpf/tries.h"

#define NOW 1000000000ull

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

static struct walk_file file(uint64_t ino)
{
	return (struct walk_file){ .ino = ino, .sec = 1 };
}

static struct tries *make(void)
{
	struct tries *t = calloc(1, sizeof(*t));

	if (!t)
		exit(1);
	return t;
}

/* Has the file tried in vain now. */
static void fail(struct tries *t, uint64_t ino, uint64_t now)
{
	const struct walk_file f = file(ino);

	tries_failed(t, &f, NULL, now);
}

/* Returns the inode number of the file that may be tried now, or 0. */
static uint64_t take(struct tries *t, uint64_t now)
{
	const struct tried *tried = tries_take(t, now);

	return tried ? tried->file.ino : 0;
}

static void test_times(void)
{
	struct tries *t = make();
	uint64_t now = NOW, wait = TRIES_FIRST;
	bool good = true;

	verdict(tries_wait(t, NOW) == -1 && !take(t, NOW), "nothing is tried at first");
	fail(t, 7, NOW);
	verdict(tries_wait(t, NOW) == (int)(TRIES_FIRST / 1000000) &&
			!take(t, NOW + TRIES_FIRST - 1) && take(t, NOW + TRIES_FIRST) == 7,
		"a file is tried again after its time");
	verdict(!take(t, UINT64_MAX - 1) && tries_wait(t, NOW) == -1, "once");
	for (int i = 0; i < 20; i++) {
		now += wait;
		wait = wait * 2 < TRIES_LONGEST ? wait * 2 : TRIES_LONGEST;
		fail(t, 7, now);
		good &= !take(t, now + wait - 1) && take(t, now + wait) == 7;
	}
	verdict(good, "then each time after twice as long, up to a limit");
	free(t);
}

static void test_done(void)
{
	const struct walk_file f = file(7);
	struct tries *t = make();

	fail(t, 7, NOW);
	fail(t, 8, NOW + 1);
	tries_done(t, &f);
	verdict(take(t, NOW + TRIES_FIRST + 1) == 8 && !take(t, NOW + TRIES_FIRST + 1),
		"a file that has its table is not tried again");
	fail(t, 7, NOW);
	verdict(take(t, NOW + TRIES_FIRST) == 7, "and begins anew");
	free(t);
}

static void test_full(void)
{
	struct tries *t = make();
	unsigned int nr = 0;

	for (unsigned int i = 0; i < TRIES_FILES; i++)
		fail(t, 1 + i, NOW + i);
	fail(t, 1, NOW);
	fail(t, 5000, NOW);
	while (take(t, NOW + TRIES_FIRST + TRIES_FILES))
		nr++;
	verdict(nr == TRIES_FILES,
		"a file without a place takes that of the file that is tried last");
	fail(t, 6000, NOW);
	verdict(take(t, NOW + TRIES_FIRST) == 6000, "or of one that nobody tried again");
	free(t);
}

int main(void)
{
	puts("KTAP version 1\n1..8");
	test_times();
	test_done();
	test_full();
	return !!failed;
}
