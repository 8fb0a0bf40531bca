// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * users_test.c - tests as whom the broker counts users when it becomes known that their ids are another user's,
 * and how often it looks at what users hold. Prints KTAP.
 *
 * The test has the broker's own functions. The linker replaces those that ask the kernel, the clock, and the
 * reading of further ids.
 */
#include "tools/broker/broker.c"

#include "kselftest.h"

#define FURTHER 100000u /* the first of further ids */
#define USER 1000u /* whose they become */
#define OTHER 2000u
#define SET 1000000 /* the sets of users are no descriptors: nothing is closed */

uint64_t __wrap_now_ns(clockid_t clock);
int __wrap_held_create(void);
int __wrap_held_open(int set);
int __wrap_held_count(int file, struct held *ret);
int __wrap_subordinate_renew(struct subordinate *s);
int __wrap_bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key,
			  const void *value);
const struct bpf_loaded *__wrap_walker_loaded(const struct walker *w);

static struct broker b;
static uint64_t now;
static unsigned int looks; /* at what a user holds */
static bool holds; /* users hold events */

static struct shstk_rules_range ranges[] = { { FURTHER, 65536, USER } };
static size_t nr_ranges; /* what the broker reads */

uint64_t __wrap_now_ns(clockid_t clock)
{
	(void)clock;
	return now;
}

int __wrap_held_create(void)
{
	return SET;
}

int __wrap_held_open(int set)
{
	looks += set == SET;
	return SET;
}

int __wrap_held_count(int file, struct held *ret)
{
	(void)file;
	ret->nr = holds;
	return 0;
}

int __wrap_subordinate_renew(struct subordinate *s)
{
	s->ranges = ranges;
	s->nr = nr_ranges;
	return 0;
}

int __wrap_bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key,
			  const void *value)
{
	(void)l, (void)map, (void)key, (void)value;
	return 0;
}

const struct bpf_loaded *__wrap_walker_loaded(const struct walker *w)
{
	(void)w;
	return NULL;
}

/* Begins with no users. @known: it is known whose the further ids are. */
static void begin(bool known)
{
	memset(&b, 0, sizeof(b));
	nr_ranges = known;
	holds = true;
	looks = 0;
	now += 10 * HELD_NS;
}

/* Adds users by further ids from number @first on, @most at most. Returns for how many there was room. */
static unsigned int add_further(unsigned int first, unsigned int most)
{
	unsigned int nr = 0;

	while (nr < most && find_user(&b, FURTHER + first + nr))
		nr++;
	return nr;
}

static void test_change(void)
{
	begin(false);
	add_further(0, MAX_IDS);
	nr_ranges = 1;
	ksft_test_result(
		!add_further(MAX_IDS, 1) && !find_user(&b, USER) && find_user(&b, OTHER),
		"ids count as another user's as soon as that is known, those that were there, too\n");
	nr_ranges = 0;
	ksft_test_result(add_further(MAX_IDS, 1), "and no longer when it is taken back\n");
}

static void test_looks(void)
{
	unsigned int before;

	begin(true);
	find_user(&b, OTHER);
	add_further(0, MAX_IDS);
	before = looks;
	for (int i = 0; i < 1000; i++)
		add_further(MAX_IDS, 1);
	ksft_test_result(
		!before && looks == MAX_IDS,
		"who has all ids that one may have makes the broker look at these, once: %u\n",
		looks);
	now += HELD_NS;
	add_further(MAX_IDS, 1);
	ksft_test_result(looks == 2 * MAX_IDS, "and again a second later: %u\n", looks);
	now += HELD_NS;
	holds = false;
	ksft_test_result(add_further(MAX_IDS, 1) && b.nr_users == 2 && find_user(&b, OTHER),
			 "those who hold nothing make room, and others stay\n");
}

static void test_full(void)
{
	begin(false);
	for (uid_t uid = 1; b.nr_users < MAX_USERS; uid++)
		find_user(&b, uid);
	for (int i = 0; i < 1000; i++)
		add_further(0, 1);
	ksft_test_result(looks == MAX_USERS, "a full table is looked through once: %u\n", looks);
	now += HELD_NS;
	holds = false;
	b.users[7].child = 1;
	ksft_test_result(add_further(0, 1) && b.nr_users == 2 && b.users[0].uid == 8,
			 "and makes room by all who hold nothing and are not answered now\n");
}

/* Has leases given to ids from number @first on, one each. Returns to how many. */
static unsigned int take_leases(struct leases *l, unsigned int first)
{
	const union broker_packet packet = { .request = { .kind = BROKER_LEASE } };
	const struct subordinate ids = { .ranges = ranges, .nr = nr_ranges };
	struct broker_reply reply;
	unsigned int nr = 0;
	int fd;

	while ((fd = leases_answer(l, &ids, FURTHER + first + nr, &packet, &reply)) >= 0)
		nr++;
	return nr;
}

static void test_leases(void)
{
	struct leases l = { .walker = (void *)&b };
	unsigned int first;

	nr_ranges = 1;
	first = take_leases(&l, 0);
	ksft_test_result(first > 1 && first < LEASES && !take_leases(&l, 100),
			 "all further ids of a user have one share of leases: %u\n", first);
	nr_ranges = 0;
	ksft_test_result(take_leases(&l, 100), "each has its own where they are nobody's\n");
	nr_ranges = 1;
	ksft_test_result(!take_leases(&l, 200),
			 "and the leases of all of them count when they are a user's again\n");
}

int main(void)
{
	ksft_print_header();
	ksft_set_plan(10);
	test_change();
	test_looks();
	test_full();
	test_leases();
	ksft_finished();
}
