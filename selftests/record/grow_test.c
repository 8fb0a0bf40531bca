// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * grow_test.c - tests that the ring of a CPU grows where it fills, while events write to it: each
 * record is handed out once, those of a CPU in the order of time, or counted as lost.
 *
 * The events are page faults of this program, of which each is a sample and the kernel counts all. So
 * what must come is known, whatever else the machine does.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tools/perf/rings.c"

#include "kselftest_harness.h"

#define FIRST 65536
#define LARGEST 262144 /* with the first ones no more than ordinary users may lock */
#define PAGES 64
#define MOST_LOOKS 100 /* until then a ring that is filled each time must have grown */
#define MOST_FAULTS 100000 /* until then a ring must have filled */

uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/*
 * What was handed out. The order is that of each CPU: a CPU that stands still for a while, as those of
 * a virtual machine do, writes a record so late that others were handed out that are younger.
 */
struct taken {
	uint64_t samples;
	uint64_t times[PERF_MAX_CPUS]; /* of the last record of each CPU */
	bool ordered;
};

static int take(void *arg, const struct perf_record *record)
{
	struct taken *taken = arg;

	taken->samples += record->type == PERF_RECORD_SAMPLE;
	taken->ordered &= record->time >= taken->times[record->cpu];
	taken->times[record->cpu] = record->time;
	return 0;
}

/* Makes page faults. */
static void fault(uint8_t *pages)
{
	for (long i = 0; i < PAGES; i++)
		((volatile uint8_t *)pages)[i * sysconf(_SC_PAGESIZE)] = 1;
	madvise(pages, PAGES * sysconf(_SC_PAGESIZE), MADV_DONTNEED);
}

/* Returns how many bytes are in the fullest ring, and which CPU's it is in @at. */
static uint64_t fullest(const struct perf_rings *r, size_t *at)
{
	uint64_t most = 0;

	*at = 0;
	for (size_t i = 0; i < r->nr_rings; i++) {
		const struct cpu_ring *ring = &r->rings[i];
		uint64_t n = ring->page ?
				     __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) -
					     ring->page->data_tail :
				     0;

		if (n <= most)
			continue;
		most = n;
		*at = i;
	}
	return most;
}

FIXTURE(grow)
{
	struct perf_rings *rings;
	uint8_t *pages;
	struct taken taken;
	struct perf_losses lost;
	cpu_set_t cpus; /* those of the program; the test runs on one of them */
};

FIXTURE_SETUP(grow)
{
	static const struct ring_sizes sizes = { FIRST, LARGEST };
	static const struct loan none = { .broker = -1, .token = -1 };
	const size_t size = PAGES * sysconf(_SC_PAGESIZE);
	const pid_t self_pid = getpid();
	const struct perf_opts opts = {
		.main = perf_event_find("page-faults"),
		.count = 1,
		.max_stack = 2,
		.cgroup = -1,
		.pids = &self_pid,
		.nr_pids = 1,
	};
	struct cpu_ring larger = { .cpu = sched_getcpu() };
	struct reason why;
	cpu_set_t one;
	int err;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_getaffinity(0, sizeof(self->cpus), &self->cpus) ||
	    sched_setaffinity(0, sizeof(one), &one))
		SKIP(return, "threads cannot be kept on one CPU here");
	self->taken.ordered = true;
	self->pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(self->pages, MAP_FAILED);
	/* Otherwise one fault may stand for many pages. */
	madvise(self->pages, size, MADV_NOHUGEPAGE);
	err = open_rings(&opts, &sizes, &none, &self->rings, &why);
	if (err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOBUFS)
		SKIP(return, "%s", why.text);
	ASSERT_EQ(err, 0);
	err = open_own_ring(&larger, LARGEST);
	if (err == -ENOBUFS)
		SKIP(return, "no larger ring is permitted beside those that others have");
	ASSERT_EQ(err, 0);
	unmap_ring(&larger);
	if (!perf_rings_lost(self->rings, &self->lost))
		SKIP(return, "this kernel does not count what is lost");
}

FIXTURE_TEARDOWN(grow)
{
	perf_rings_close(self->rings);
}

/* Makes faults until more than @bytes are in a ring. Returns which one, or -1 if none fills. */
static ssize_t fill(const struct perf_rings *r, uint8_t *pages, uint64_t bytes)
{
	size_t at;

	for (long i = 0; i < MOST_FAULTS; i += PAGES) {
		if (fullest(r, &at) > bytes)
			return at;
		fault(pages);
	}
	return -1;
}

#define READ(ALL) perf_rings_read(self->rings, ALL, take, &self->taken)

/* Stops the events, takes what is left, and checks that each fault came once or was lost. */
#define CHECK_ALL()                                                            \
	do {                                                                   \
		uint64_t whole = 0;                                            \
		perf_rings_stop(self->rings);                                  \
		EXPECT_EQ(READ(true), 0);                                      \
		EXPECT_TRUE(perf_rings_total(self->rings, PERF_MAIN, &whole)); \
		EXPECT_TRUE(perf_rings_lost(self->rings, &self->lost));        \
		EXPECT_GT(whole, 0);                                           \
		EXPECT_EQ(self->taken.samples + self->lost.all, whole);        \
		EXPECT_TRUE(self->taken.ordered);                              \
	} while (0)

TEST_F(grow, a_ring_that_was_filled_to_a_quarter_grows_and_loses_nothing)
{
	ssize_t at = fill(self->rings, self->pages, FIRST / 2);

	ASSERT_GE(at, 0);
	ASSERT_EQ(READ(false), 0);
	EXPECT_EQ(self->rings->rings[at].size, LARGEST);
	EXPECT_NE(self->rings->old[at].page, NULL);
	/* More than the first ring has room for. */
	ASSERT_GE(fill(self->rings, self->pages, FIRST), 0);
	CHECK_ALL();
	EXPECT_EQ(self->lost.all, 0);
}

TEST_F(grow, a_ring_with_little_in_it_stays)
{
	ASSERT_GE(fill(self->rings, self->pages, 0), 0);
	ASSERT_EQ(READ(false), 0);
	for (size_t i = 0; i < self->rings->nr_rings; i++)
		EXPECT_EQ(self->rings->old[i].page, NULL);
	EXPECT_EQ(perf_rings_memory(self->rings), self->rings->nr_rings * FIRST);
	CHECK_ALL();
}

TEST_F(grow, what_was_replaced_is_closed_when_its_time_is_over_and_it_is_empty)
{
	ssize_t at = fill(self->rings, self->pages, FIRST / 2);
	uint64_t memory;

	ASSERT_GE(at, 0);
	ASSERT_EQ(READ(false), 0);
	ASSERT_NE(self->rings->old[at].page, NULL);
	self->rings->old[at].until = UINT64_MAX;
	memory = perf_rings_memory(self->rings);
	/* This program may not run for longer than it is kept. */
	self->rings->old[at].until = UINT64_MAX;
	/* The last of its records is handed out by the next look. */
	ASSERT_EQ(READ(false), 0);
	EXPECT_NE(self->rings->old[at].page, NULL);
	self->rings->old[at].until = self->rings->looked;
	ASSERT_EQ(READ(false), 0);
	EXPECT_EQ(self->rings->old[at].page, NULL);
	EXPECT_EQ(perf_rings_memory(self->rings), memory - FIRST);
	CHECK_ALL();
}

static atomic_bool enough;

static void *keep_faulting(void *pages)
{
	while (!enough)
		fault(pages);
	return NULL;
}

TEST_F(grow, events_that_write_meanwhile_go_on_without_a_gap)
{
	bool grew = false;
	pthread_t thread;

	/* It has inherited the events, and runs on other CPUs too, if there are any. */
	ASSERT_EQ(pthread_create(&thread, NULL, keep_faulting, self->pages), 0);
	pthread_setaffinity_np(thread, sizeof(self->cpus), &self->cpus);
	for (int looks = 0; looks < MOST_LOOKS && !grew; looks++) {
		size_t at;

		ASSERT_EQ(READ(false), 0);
		for (size_t i = 0; i < self->rings->nr_rings; i++)
			grew |= self->rings->rings[i].size > FIRST;
		while (!grew && fullest(self->rings, &at) <= FIRST / GROW_PART)
			sched_yield();
	}
	EXPECT_TRUE(grew);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(READ(false), 0);
	/* Else the end of the thread were a record, too, which may be lost. */
	perf_rings_stop(self->rings);
	enough = true;
	pthread_join(thread, NULL);
	CHECK_ALL();
}

TEST_HARNESS_MAIN
