// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * subordinate_test.c - tests which ids count as another user by files as /etc/subuid, also by such
 * that nobody would write. Prints KTAP.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kselftest.h"
#include "tools/rules/subordinate.h"

#define PASSWD                            \
	"root:x:0:0:root:/root:/bin/sh\n" \
	"broken line\n"                   \
	"alice:x:1000:1000::/:/bin/sh\n"  \
	"bob:x:1001:1001::/:/bin/sh\n"    \
	"alice:x:1002:1002::/:/bin/sh\n"

#define NAME_OF_256                                                        \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static char folder[] = "/tmp/subordinate-XXXXXX";
static char subuid[64], passwd[64];

static void write_file(const char *path, const char *text, size_t size)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(text, 1, size, f) != size || fclose(f))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
}

/* Reads a file with these lines. */
static struct subordinate ids_of(const char *lines)
{
	struct subordinate s = { 0 };

	write_file(subuid, lines, strlen(lines));
	if (subordinate_read(subuid, passwd, &s))
		ksft_exit_fail_msg("cannot read: %s\n", lines);
	return s;
}

/* Returns whether by these lines there are @nr ranges, and @uid counts as @user. */
static bool counts(const char *lines, size_t nr, uid_t uid, uid_t user)
{
	struct subordinate s = ids_of(lines);
	uid_t got = subordinate_user(&s, uid);
	bool good = s.nr == nr && got == user;

	if (!good)
		ksft_print_msg("%s: %zu ranges, %u counts as %u\n", lines, s.nr, uid, got);
	free(s.ranges);
	return good;
}

static void test_users(void)
{
	ksft_test_result(counts("alice:100000:65536\n", 1, 100000, 1000) &&
				 counts("alice:100000:65536\n", 1, 165535, 1000) &&
				 counts("alice:100000:65536\n", 1, 165536, 165536) &&
				 counts("alice:100000:65536\n", 1, 99999, 99999),
			 "the ids of a range count as the user, and no others\n");
	ksft_test_result(counts("bob:300:2\nalice:100:2\nbob:200:2", 3, 101, 1000) &&
				 counts("bob:300:2\nalice:100:2\nbob:200:2", 3, 201, 1001) &&
				 counts("bob:300:2\nalice:100:2\nbob:200:2", 3, 300, 1001),
			 "in any order, the last line without an end\n");
	ksft_test_result(counts("1005:100:10\n", 1, 105, 1005), "a user may be a number\n");
	ksft_test_result(counts("carol:900:10\ncarol:500:10\n", 2, 505, 900) &&
				 counts("carol:900:10\ncarol:500:10\n", 2, 905, 900),
			 "ids of a user who is not known count as one\n");
	ksft_test_result(counts("root:100:10\nroot:200:10\n0:300:10\n", 3, 105, 100) &&
				 counts("root:100:10\nroot:200:10\n", 2, 209, 200) &&
				 counts("0:300:10\n", 1, 305, 300),
			 "those of root count as the first of them, and none as root\n");
	ksft_test_result(subordinate_user(NULL, 7) == 7, "without a list each is itself\n");
}

static void test_containers(void)
{
	const char *many = "root:100000:65536000\n", *some = "root:100000:65537\n";
	const char *all = "root:1:4294967294\n", *more = "alice:1:1\nroot:2:4294967293\nbob:9:1\n";
	const char *both = "alice:100000:10\nroot:100005:65541\n";

	ksft_test_result(counts(many, 1000, 100000, 100000) && counts(many, 1000, 165535, 100000) &&
				 counts(many, 1000, 165536, 165536) &&
				 counts(many, 1000, 65635999, 65570464) &&
				 counts(many, 1000, 65636000, 65636000) &&
				 counts(some, 2, 165536, 165536),
			 "each 65536 ids of root's count as one\n");
	ksft_test_result(counts(both, 3, 100009, 1000) && counts(both, 3, 100010, 100010) &&
				 counts(both, 3, 165540, 100010) && counts(both, 3, 165541, 165541),
			 "as far as they are no other user's\n");
	ksft_test_result(counts(all, 65536, 1, 1) && counts(all, 65536, 65536, 1) &&
				 counts(all, 65536, 65537, 65537) &&
				 counts(more, 32769, 65538, 2) &&
				 counts(more, 32769, 131074, 131074),
			 "or more ids, if there are too many for that\n");
	ksft_test_result(counts("containers:100000:131072\n", 2, 165537, 165536) &&
				 counts("container:100000:131072\n", 1, 165537, 100000),
			 "ids of podman's for containers are root's\n");
}

static void test_overlaps(void)
{
	const char *both = "bob:150:100\nalice:100:100\n", *same = "bob:100:10\nalice:100:20\n";

	ksft_test_result(counts(both, 2, 149, 1000) && counts(both, 2, 199, 1000) &&
				 counts(both, 2, 200, 1001) && counts(both, 2, 249, 1001),
			 "an id of two users counts as the one whose range begins first\n");
	ksft_test_result(counts(same, 2, 109, 1001) && counts(same, 2, 110, 1000),
			 "or whose line is first\n");
	ksft_test_result(counts("alice:100:100\nbob:120:10\n", 1, 125, 1000),
			 "a range within another one adds nothing\n");
}

static void test_mistakes(void)
{
	static const char *const bad[] = {
		"",
		"\n\n\n",
		"alice",
		"alice:",
		"alice:100",
		"alice:100:",
		"alice::10",
		":100:10",
		"alice:0:10",
		"alice:100:0",
		"alice:-1:10",
		"alice:100:-10",
		"alice: 100:10",
		"alice:0x10:10",
		"alice:100:10:10",
		"alice:4294967295:1",
		"alice:4294967294:2",
		"alice:4294967296:1",
		"alice:18446744073709551716:1",
		"alice:100:4294967296",
		"alice:100:18446744073709551617",
		"# alice:100:10#",
		"#alice:100:10",
		"# alice:100:110",
		NAME_OF_256 NAME_OF_256 ":100:10",
	};
	size_t good = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *text = NULL;

		good += counts(bad[i], 0, 105, 105);
		if (asprintf(&text, "%s\nbob:200:10\n", bad[i]) > 0)
			good += counts(text, 1, 205, 1001);
		free(text);
	}
	ksft_test_result(good == 2 * sizeof(bad) / sizeof(*bad),
			 "a line with a mistake is skipped, and it alone: %zu\n", good);
	ksft_test_result(counts("alice:1:4294967294\n", 1, 4294967294, 1000) &&
				 counts("alice:4294967294:1\n", 1, 4294967294, 1000),
			 "the greatest id there is may be in a range\n");
	ksft_test_result(counts(NAME_OF_256 ":100:10\n", 1, 105, 100), "a name may be long\n");
}

static void test_bytes(void)
{
	static const char zero[] = "ali\0ce:100:10\nbob:200:10\n";
	struct subordinate s = { 0 };

	write_file(subuid, zero, sizeof(zero) - 1);
	ksft_test_result(!subordinate_read(subuid, passwd, &s) && s.nr == 1 &&
				 subordinate_user(&s, 205) == 1001,
			 "a byte of 0 is a mistake in its line\n");
	free(s.ranges);
}

/* Reads a file with more lines than the module takes ranges, each of two ids. */
static void test_many(void)
{
	const unsigned int lines = SHSTK_RULES_MAX_RANGES + 1000;
	struct subordinate s = { 0 };
	FILE *f = fopen(subuid, "we");

	for (unsigned int i = 0; f && i < lines; i++)
		fprintf(f, "%s:%u:2\n", i % 2 ? "alice" : "bob", 10000 + 2 * (lines - i));
	if (!f || fclose(f))
		ksft_exit_fail_msg("%s: %s\n", subuid, strerror(errno));
	ksft_test_result(!subordinate_read(subuid, passwd, &s) && s.nr == SHSTK_RULES_MAX_RANGES &&
				 subordinate_user(&s, 10000 + 2 * lines + 1) == 1001 &&
				 subordinate_user(&s, 10000 + 2 * lines - 1) == 1000,
			 "of too many lines the first ones are taken: %zu\n", s.nr);
	free(s.ranges);
}

static void test_files(void)
{
	struct subordinate s = { 0 };

	unlink(subuid);
	ksft_test_result(!subordinate_read(subuid, passwd, &s) && !s.nr && !s.ranges,
			 "no file is an empty one\n");
	mkfifo(subuid, 0600);
	ksft_test_result(subordinate_read(subuid, passwd, &s) == -EINVAL && !s.ranges,
			 "a pipe in its place is EINVAL, and not waited for\n");
	unlink(subuid);
	unlink(passwd);
	ksft_test_result(counts("alice:100:10\nalice:200:10\n1005:300:10\n", 3, 205, 100) &&
				 counts("1005:300:10\n", 1, 305, 1005),
			 "without names of users, each name is a user\n");
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(21);
	if (!mkdtemp(folder))
		ksft_exit_fail_msg("%s: %s\n", folder, strerror(errno));
	snprintf(subuid, sizeof(subuid), "%s/subuid", folder);
	snprintf(passwd, sizeof(passwd), "%s/passwd", folder);
	write_file(passwd, PASSWD, strlen(PASSWD));
	test_users();
	test_containers();
	test_overlaps();
	test_mistakes();
	test_bytes();
	test_many();
	test_files();
	unlink(subuid);
	rmdir(folder);
	ksft_finished();
}
