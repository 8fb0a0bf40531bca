// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * late_test.c - tests that a thread which is given events, and has inherited some too, loses the
 * ones that it was given, and that one which can be given none is counted unless it has ended.
 *
 * Rings, clock, processes and threads are replaced. Opening events takes OPENING ns.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "tools/proc/tasks.h"
#include "tools/record/perf/late.h"
#include "tools/record/perf/perf_recording_private.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define OPENING 1000000
#define SECOND 1000000000
#define PID 100000000 /* no process has this number, or the next one */
#define TID 100000001

static uint64_t now;
static unsigned int added, dropped;
static bool listed, lives;
static int refusal; /* what opening events returns */

uint64_t now_ns(clockid_t clock)
{
	(void)clock;
	return now += 1000;
}

void sums_lost(const struct sums *s, const struct perf_rings *rings, struct perf_losses *ret)
{
	(void)s;
	(void)rings;
	*ret = (struct perf_losses){ 0 };
}

int perf_rings_add(struct perf_rings *rings, const struct perf_opts *opts, pid_t tid)
{
	(void)rings;
	(void)opts;
	now += OPENING;
	if (refusal)
		return refusal;
	added += tid == TID;
	return 0;
}

void perf_rings_drop(struct perf_rings *rings, pid_t tid)
{
	(void)rings;
	dropped += tid == TID;
}

bool perf_rings_began(const struct perf_rings *rings, pid_t tid)
{
	(void)rings;
	(void)tid;
	return false;
}

struct task *population_find_task(struct population *all, int tid)
{
	(void)all;
	(void)tid;
	return NULL;
}

struct task *population_task(struct population *all, int pid, int tid)
{
	static struct task task;

	(void)all;
	(void)pid;
	(void)tid;
	return &task;
}

DIR *tasks_open(pid_t pid)
{
	(void)pid;
	listed = false;
	return opendir("/");
}

pid_t tasks_next(DIR *dir)
{
	(void)dir;
	if (listed)
		return 0;
	listed = true;
	return TID;
}

int task_stat(pid_t pid, pid_t tid, struct task_stat *ret)
{
	(void)pid;
	(void)tid;
	*ret = (struct task_stat){ 0 };
	return lives ? 0 : -ESRCH;
}

FIXTURE(late)
{
	struct perf_recording recording;
	struct converter convert;
	struct process process;
	uint64_t looked; /* when the look began that found the thread, in ns */
};

/* A thread is found of which nothing was reported, and is given events. */
FIXTURE_SETUP(late)
{
	struct process *p = &self->process;

	now = SECOND;
	p->pid = PID;
	HASH_ADD_INT(self->convert.all.processes, pid, p);
	self->recording.convert = &self->convert;
	self->recording.scope.kind = SCOPE_GIVEN;
	self->recording.late.pause = 1;
	self->looked = now;
	ASSERT_EQ(late_find(&self->recording), 0);
	ASSERT_EQ(added, 1);
}

FIXTURE_TEARDOWN(late)
{
	HASH_CLEAR(hh, self->convert.all.processes);
}

static void report(struct perf_recording *d, uint64_t time)
{
	const struct perf_fork f = { .pid = PID, .tid = TID };

	d->convert->all.time = time;
	late_fork(d, &f);
}

TEST_F(late, what_was_reported_while_events_were_opened_was_inherited)
{
	report(&self->recording, self->looked + OPENING / 2);
	EXPECT_EQ(dropped, 1);
}

TEST_F(late, what_was_reported_after_that_was_inherited)
{
	report(&self->recording, now + OPENING);
	EXPECT_EQ(dropped, 1);
}

TEST_F(late, a_thread_with_the_same_number_later_is_another_one)
{
	report(&self->recording, now + 2ull * SECOND);
	EXPECT_EQ(dropped, 0);
}

static const struct {
	int refusal;
	bool lives;
	unsigned int counted;
} refusals[] = {
	{ -EMFILE, true, 1 },
	{ -EDQUOT, true, 1 },
	{ -EMFILE, false, 0 },
	{ -ESRCH, true, 0 },
};

#define NR_REFUSALS (sizeof(refusals) / sizeof(*refusals))

/* Looks for threads; returns how many are counted as refused. */
static size_t count_found(struct perf_recording *d)
{
	d->late = (struct late){ .pause = 1 };
	return late_find(d) ? SIZE_MAX : d->late.nr_refused;
}

/* Gives new rings to a thread that was not listed; returns how many are counted as refused. */
static size_t count_listed(struct perf_recording *d, struct process *p)
{
	struct task task = { .tid = TID, .process = p, .began = 1 };
	const struct perf_opts opts = { 0 };
	const pid_t other = PID;
	int ret;

	d->late = (struct late){ 0 };
	HASH_ADD_INT(d->convert->all.tasks, tid, &task);
	ret = late_listed(d, NULL, &opts, &other, 1, 2);
	HASH_CLEAR(hh, d->convert->all.tasks);
	return ret ? SIZE_MAX : d->late.nr_refused;
}

TEST_F(late, a_thread_that_can_be_given_none_is_counted_unless_it_has_ended)
{
	for (size_t i = 0; i < NR_REFUSALS; i++) {
		refusal = refusals[i].refusal;
		lives = refusals[i].lives;
		EXPECT_EQ(count_found(&self->recording), refusals[i].counted);
		EXPECT_EQ(count_listed(&self->recording, &self->process), refusals[i].counted);
	}
	refusal = 0;
	lives = false;
}

TEST_F(late, when_enough_were_given_events_that_is_the_reason_not_open_files)
{
	struct perf_recording *d = &self->recording;

	lives = true;
	added = 0;
	d->late = (struct late){ .pause = 1, .nr_added = LATE_MOST };
	EXPECT_EQ(late_find(d), 0);
	EXPECT_EQ(added, 0);
	EXPECT_EQ(d->late.nr_refused, 1);
	EXPECT_EQ(d->late.refused, -E2BIG);
	lives = false;
}

TEST_HARNESS_MAIN
