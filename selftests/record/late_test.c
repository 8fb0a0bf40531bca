// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * late_test.c - tests that a thread which is given events, and has inherited some too, loses the
 * ones that it was given.
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
static bool listed;

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
	added += tid == TID;
	now += OPENING;
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
	(void)ret;
	return -ESRCH;
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

TEST_HARNESS_MAIN
