// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scope_test.c - tests that of many processes each thread is found once, and that others get their
 * turn meanwhile.
 *
 * /proc is replaced: process N has the threads N and N + 1, and another one from the second look on.
 * Processes and threads that are told are counted.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/record/perf/scope.h"

#include "kselftest_harness.h"

#define PROCESSES 10000
#define FIRST 1000000 /* number of the first process */
#define APART 4 /* the distance of two processes */
#define EARLY 2 /* threads that a process has at first */
#define LATER 3 /* and from the second look on */

static DIR *of_all; /* the folder of all processes, while it is open */
static int next_process; /* number of the next one in it */
static pid_t process; /* whose folder was opened last */
static int next_thread;
static unsigned int looks; /* into the first process */
static unsigned int processes, tasks, turns;
static struct process one; /* stands for all processes */
static pid_t last_met; /* process of the thread that was added last */

DIR *tasks_open(pid_t pid)
{
	DIR *dir = !pid || pid >= FIRST ? opendir("/") : NULL;

	errno = ESRCH;
	if (!pid)
		of_all = dir;
	process = pid;
	next_thread = 0;
	looks += pid == FIRST;
	return dir;
}

pid_t tasks_next(DIR *dir)
{
	if (dir == of_all)
		return next_process < PROCESSES ? FIRST + APART * next_process++ : 0;
	return next_thread < (looks > 1 ? LATER : EARLY) ? process + next_thread++ : 0;
}

bool tasks_single(pid_t pid)
{
	(void)pid;
	return false;
}

static bool files_fit;
static size_t counted; /* files beside events */

bool perf_rings_fit(const struct perf_opts *opts, size_t others)
{
	(void)opts;
	counted = others;
	return files_fit;
}

void perf_more_files(void)
{
}

bool task_field(pid_t pid, pid_t tid, const char *name, char *value, size_t size)
{
	(void)pid;
	(void)tid;
	(void)name;
	(void)value;
	(void)size;
	return false;
}

struct process *population_process(struct population *all, int pid)
{
	(void)all;
	(void)pid;
	processes++;
	return &one;
}

struct task *population_task(struct population *all, int pid, int tid)
{
	static struct task found = { .process = &one };

	(void)all;
	(void)tid;
	last_met = pid;
	tasks++;
	return &found;
}

struct task *population_find_task(struct population *all, int tid)
{
	(void)all;
	(void)tid;
	return NULL;
}

FIXTURE(scope)
{
	struct scope scope;
	pid_t pids[PROCESSES];
};

FIXTURE_SETUP(scope)
{
	for (int i = 0; i < PROCESSES; i++)
		self->pids[i] = FIRST + APART * i;
}

FIXTURE_TEARDOWN(scope)
{
}

TEST_F(scope, each_thread_is_a_target_once_also_one_that_began_meanwhile)
{
	struct perf_opts opts = { .pids = self->pids, .nr_pids = PROCESSES };
	pid_t *list;

	self->scope.kind = SCOPE_GIVEN;
	ASSERT_EQ(scope_targets(&self->scope, &opts, &list), 0);
	ASSERT_EQ(opts.nr_pids, PROCESSES * LATER);
	for (int i = 0; i < PROCESSES * LATER; i++)
		ASSERT_EQ(opts.pids[i], FIRST + APART * (i / LATER) + i % LATER);
	/* The third look found nothing new. */
	EXPECT_EQ(looks, 3);
	free(list);
}

TEST_F(scope, a_process_that_is_gone_has_no_thread)
{
	struct perf_opts opts = { .pids = self->pids, .nr_pids = 1 };
	pid_t *list;

	self->pids[0] = FIRST - 1;
	self->scope.kind = SCOPE_GIVEN;
	EXPECT_EQ(scope_targets(&self->scope, &opts, &list), -ESRCH);
	free(list);
}

static int count_turns(void *arg)
{
	const unsigned int *last = arg;

	return ++turns == *last ? -ENOMEM : 0;
}

TEST_F(scope, others_get_their_turn_after_each_process)
{
	struct population all = { 0 };
	unsigned int never = 0;

	self->scope.kind = SCOPE_ALL;
	ASSERT_EQ(scope_look_around(&self->scope, &all, count_turns, &never), 0);
	EXPECT_EQ(processes, PROCESSES);
	EXPECT_EQ(turns, processes);
	EXPECT_EQ(tasks, PROCESSES * EARLY);
}

TEST_F(scope, what_fails_meanwhile_ends_the_search)
{
	struct population all = { 0 };
	unsigned int last = 3;

	self->scope.kind = SCOPE_ALL;
	EXPECT_EQ(scope_look_around(&self->scope, &all, count_turns, &last), -ENOMEM);
	EXPECT_EQ(processes, last - 1);
}

/* Sets who is asked for, and that events of the CPUs may be opened. */
static void ask_for(struct scope *s, pid_t *pids, size_t nr)
{
	*s = (struct scope){ .kind = SCOPE_GIVEN, .may_widen = true, .pids = pids, .nr_pids = nr };
	files_fit = true;
	one.ours = false;
}

TEST_F(scope, too_many_processes_have_the_events_of_the_cpus)
{
	struct perf_opts opts = { .pids = self->pids, .nr_pids = PROCESSES };
	pid_t *list;

	ask_for(&self->scope, self->pids, PROCESSES);
	ASSERT_EQ(scope_targets(&self->scope, &opts, &list), 0);
	EXPECT_EQ(self->scope.kind, SCOPE_OURS);
	EXPECT_EQ(opts.nr_pids, 0);
	EXPECT_EQ(list, NULL);
	EXPECT_EQ(looks, 0);
}

TEST_F(scope, so_have_threads_for_whose_events_there_are_not_enough_files)
{
	struct perf_opts opts = { .pids = self->pids, .nr_pids = 3 };
	pid_t *list;

	ask_for(&self->scope, self->pids, 3);
	/* Each has a file by which its end is seen. */
	self->scope.nr_ends = 2;
	ASSERT_EQ(scope_targets(&self->scope, &opts, &list), 0);
	EXPECT_EQ(counted, 2);
	EXPECT_EQ(self->scope.kind, SCOPE_GIVEN);
	free(list);
	opts = (struct perf_opts){ .pids = self->pids, .nr_pids = 3 };
	files_fit = false;
	ASSERT_EQ(scope_targets(&self->scope, &opts, &list), 0);
	EXPECT_EQ(self->scope.kind, SCOPE_OURS);
	EXPECT_EQ(opts.nr_pids, 0);
	free(list);
}

TEST_F(scope, they_have_their_own_where_those_are_not_permitted)
{
	struct perf_opts opts = { .pids = self->pids, .nr_pids = 3 };
	pid_t *list;

	ask_for(&self->scope, self->pids, 3);
	self->scope.may_widen = files_fit = false;
	ASSERT_EQ(scope_targets(&self->scope, &opts, &list), 0);
	EXPECT_EQ(self->scope.kind, SCOPE_GIVEN);
	EXPECT_NE(opts.nr_pids, 0);
	free(list);
}

/* What is read meanwhile: a record of a process that is not met yet, and one of another process. */
static int take_early(void *arg)
{
	struct scope *s = arg;
	struct population all = { 0 };
	const struct perf_record ours = { .pid = FIRST + APART, .tid = FIRST + APART + 1 };
	const struct perf_record other = { .pid = FIRST + 1, .tid = FIRST + 1 };
	const struct perf_record reaped = { .pid = FIRST + APART, .tid = -1 };

	one.ours = false;
	if (scope_has(s, &all, &other) || scope_has(s, &all, &reaped))
		return -EEXIST;
	turns++;
	return scope_has(s, &all, &ours) && one.ours && last_met == ours.pid ? 0 : -ENOENT;
}

TEST_F(scope, a_record_of_a_process_that_is_not_met_yet_is_wanted)
{
	const struct perf_record ours = { .pid = FIRST + APART, .tid = FIRST + APART + 1 };
	struct population all = { 0 };

	/* The last one is met first, so that its record would come too early otherwise. */
	self->pids[0] = FIRST + 2 * APART;
	self->pids[2] = FIRST;
	ask_for(&self->scope, self->pids, 3);
	self->scope.kind = SCOPE_OURS;
	EXPECT_EQ(scope_look_around(&self->scope, &all, take_early, &self->scope), 0);
	EXPECT_EQ(turns, 2);
	EXPECT_TRUE(one.ours);
	/* Later it is wanted only if it is known. */
	EXPECT_FALSE(scope_has(&self->scope, &all, &ours));
}

#define FEW_FILES 64
#define MANY (2 * FEW_FILES)

/* Has @nr files be open at most. Returns false if that is not possible. */
static bool limit_files(rlim_t nr)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	limit.rlim_cur = nr;
	return !setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(scope, the_ends_of_many_processes_are_seen_by_few_files)
{
	struct perf_record_opts opts = { .rings = { .pids = self->pids, .nr_pids = MANY } };
	pid_t child = fork();
	int left;

	if (!child) {
		pause();
		_exit(0);
	}
	ASSERT_GT(child, 0);
	for (int i = 0; i < MANY; i++)
		self->pids[i] = getpid();
	self->pids[0] = self->pids[MANY - 1] = child;
	ASSERT_TRUE(limit_files(FEW_FILES));
	ASSERT_EQ(scope_init(&self->scope, &opts), 0);
	left = dup(STDERR_FILENO);
	EXPECT_GE(left, 0);
	EXPECT_EQ(scope_alive(&self->scope), MANY);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(scope_alive(&self->scope), MANY - 2);
	close(left);
	scope_deinit(&self->scope);
}

TEST_HARNESS_MAIN
