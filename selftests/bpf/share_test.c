// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * share_test.c - tests that no user can take all the room for files that the BPF walk knows, nor for
 * their tables. Prints KTAP.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/bpf/serve_tables.h"

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

/* Makes as many files known through the user as there is room for. Returns their number. */
static unsigned int take_all(struct served *s, uid_t uid)
{
	struct served_user *user = serve_user(s, uid);
	unsigned int nr = 0;

	while (serve_has_room(s, user)) {
		serve_charge(s, user);
		nr++;
	}
	return nr;
}

/* Makes tables for the user as long as that is permitted. Returns their bytes. */
static uint64_t take_bytes(struct served *s, uid_t uid, uint64_t each)
{
	struct served_user *user = serve_user(s, uid);
	const uint64_t before = s->bytes;

	while (serve_has_bytes(s, user, each))
		;
	return s->bytes - before;
}

/* Tests the limit of all tables' bytes. */
static void test_bytes(void)
{
	struct served *s = calloc(1, sizeof(*s));
	uint64_t first, second;

	if (!s)
		exit(1);
	s->most_bytes = 1000 * WALK_BLOCK;
	first = take_bytes(s, 1000, 1);
	verdict(first > 0 && first <= (s->most_bytes - first) / 2 + WALK_BLOCK,
		"a user's tables have no more bytes than half as many as are left");
	second = take_bytes(s, 1001, 3 * WALK_BLOCK + 1);
	verdict(second > 0 && second <= first && !take_bytes(s, 1000, 1),
		"another user's tables find room, and the first one's none");
	verdict(!take_bytes(s, 1002, s->most_bytes) && s->bytes == first + second,
		"a table that is too large counts for nothing");
	free(s);
}

/* Tests that the further ids of a user have no room of their own. */
static void test_further_ids(void)
{
	struct shstk_rules_range ranges[] = { { 100000, 65536, 1000 }, { 200000, 65536, 1001 } };
	struct served *s = calloc(1, sizeof(*s));
	unsigned int first, nr_users;

	if (!s)
		exit(1);
	s->subordinate.ranges = ranges;
	s->subordinate.nr = 2;
	first = take_all(s, 1000);
	nr_users = s->nr_users;
	verdict(first > 0 && !take_all(s, 100000) && !take_all(s, 165535) &&
			s->nr_users == nr_users,
		"a user's further ids get no more than the user");
	verdict(take_all(s, 200000) > 0 && !take_all(s, 1001), "and use up the user's room");
	free(s);
}

/* Tests that what was counted before a file of further ids was changed counts as that file says. */
static void test_change(void)
{
	struct shstk_rules_range ranges[] = { { 100000, 65536, 1000 } };
	struct served *s = calloc(1, sizeof(*s));
	unsigned int first;

	if (!s)
		exit(1);
	s->most_bytes = 1000 * WALK_BLOCK;
	s->subordinate.ranges = ranges;
	first = take_all(s, 100000);
	take_bytes(s, 100000, 1);
	s->subordinate.nr = 1;
	verdict(first > 0 && !take_all(s, 1000) && !take_bytes(s, 1000, 1) &&
			!take_all(s, 100001) && take_all(s, 200000) && take_bytes(s, 200000, 1),
		"what an id used up counts as the user's, whose id it has become");
	s->subordinate.nr = 0;
	verdict(take_all(s, 1000) && take_bytes(s, 1000, 1), "and no longer when it is taken back");
	free(s);
}

int main(void)
{
	struct served *s = calloc(1, sizeof(*s));
	unsigned int first, second, before;
	bool good;

	if (!s)
		return 1;
	puts("KTAP version 1\n1..12");
	first = take_all(s, 1000);
	verdict(first > 0 && first <= (WALK_FILES - first) / 2 + 1,
		"a user has no more files than half as many as are left");
	second = take_all(s, 1001);
	verdict(second > 0 && second <= first && second <= (WALK_FILES - s->known) / 2 + 1,
		"nor has the next one");
	verdict(!take_all(s, 1000) && !take_all(s, 1001),
		"who took all that there was gets no more");
	good = true;
	for (uid_t uid = 2000; uid < 2008; uid++)
		good &= take_all(s, uid) > 0;
	verdict(good && s->known < WALK_FILES && serve_has_room(s, serve_user(s, 3000)),
		"after eight more users of that kind another one has room");
	before = s->nr_users;
	for (uid_t uid = 10000; uid < 10000 + 2 * SERVE_USERS; uid++)
		serve_user(s, uid);
	verdict(before < SERVE_USERS && s->nr_users == SERVE_USERS &&
			serve_user(s, 99998) == serve_user(s, 99999) &&
			serve_user(s, 1000)->files == first,
		"users beyond those who are counted apart share a place");
	free(s);
	test_bytes();
	test_further_ids();
	test_change();
	return !!failed;
}
