// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scope.c - keeps which processes and threads are recorded, and finds those that exist already.
 * See scope.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/record/perf/scope.h"

#define MAX_TARGETS 65536
#define MANY_THREADS 8192 /* so many have no events of their own, if that is possible */
#define MAX_ROUNDS 16 /* passes over all processes while they make new threads */

/*
 * Returns how many of @nr processes have a file that shows their end: half of the files that may be open are
 * for events, and poll() takes no more than all.
 */
static size_t files_for_ends(size_t nr)
{
	struct rlimit limit;

	perf_more_files();
	return getrlimit(RLIMIT_NOFILE, &limit) || nr <= limit.rlim_cur / 2 ? nr :
									      limit.rlim_cur / 2;
}

int scope_init(struct scope *s, const struct perf_record_opts *opts)
{
	const pid_t *pids = opts->rings.pids;
	size_t nr = opts->rings.nr_pids;

	*s = (struct scope){
		.kind = opts->tree ? SCOPE_OURS :
			nr	   ? SCOPE_GIVEN :
				     SCOPE_ALL,
		.awaited = opts->tree ? *pids : 0,
		.threads = opts->threads,
		.may_widen = opts->may_widen,
		.pids = calloc(nr + 1, sizeof(*s->pids)),
		.ends = calloc(nr + 1, sizeof(*s->ends)),
	};
	if (!s->pids || !s->ends)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		s->pids[i] = pids[i];
	s->nr_pids = nr;
	s->nr_given = opts->given ? opts->given : nr;
	s->nr_ends = files_for_ends(s->nr_given);
	for (size_t i = 0; i < s->nr_given; i++) {
		s->ends[i].fd = i < s->nr_ends ? syscall(SYS_pidfd_open, pids[i], 0) : -1;
		s->ends[i].events = POLLIN;
	}
	return 0;
}

void scope_deinit(struct scope *s)
{
	for (size_t i = 0; i < s->nr_given; i++)
		if (s->ends[i].fd >= 0)
			close(s->ends[i].fd);
	free(s->pids);
	free(s->ends);
	free(s->expected);
}

/* ---- The targets of events ---- */

/* Threads by their numbers, of which there may be tens of thousands. */
struct thread_list {
	pid_t *tids;
	size_t nr, max;
};

static int append(struct thread_list *list, pid_t tid)
{
	const size_t max = list->max ? 2 * list->max : 64;
	pid_t *more;

	if (list->nr == list->max) {
		more = reallocarray(list->tids, max, sizeof(*more));
		if (!more)
			return -ENOMEM;
		list->tids = more;
		list->max = max;
	}
	list->tids[list->nr++] = tid;
	return 0;
}

/* Adds the threads of a process, known or not. Returns 0 or -ENOMEM. */
static int add_tasks(struct thread_list *list, pid_t pid)
{
	DIR *dir;
	int ret = 0;
	pid_t tid;

	if (tasks_single(pid))
		return append(list, pid);
	dir = tasks_open(pid);
	while (dir && !ret && list->nr < 2 * MAX_TARGETS && (tid = tasks_next(dir)))
		ret = append(list, tid);
	if (dir)
		closedir(dir);
	return ret;
}

static int by_number(const void *a, const void *b)
{
	const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the list, and removes what is in it twice. */
static void remove_known(struct thread_list *list)
{
	size_t nr = 0;

	if (list->nr)
		qsort(list->tids, list->nr, sizeof(*list->tids), by_number);
	for (size_t i = 0; i < list->nr; i++)
		if (!nr || list->tids[i] != list->tids[nr - 1])
			list->tids[nr++] = list->tids[i];
	list->nr = nr < MAX_TARGETS ? nr : MAX_TARGETS;
}

/*
 * Lists the threads of all processes, again and again until there are no new ones. Returns 0,
 * -ENOMEM or -ESRCH.
 */
static int list_threads(const pid_t *pids, size_t nr_pids, struct thread_list *list)
{
	size_t before;
	int round = 0;

	do {
		before = list->nr;
		for (size_t i = 0; i < nr_pids; i++)
			if (add_tasks(list, pids[i]))
				return -ENOMEM;
		remove_known(list);
	} while (list->nr != before && ++round < MAX_ROUNDS);
	return list->nr ? 0 : -ESRCH;
}

/* Has events of the CPUs be opened if there are too many targets. */
static void widen_if_many(struct scope *s, struct perf_opts *opts)
{
	if (!s->may_widen || (opts->nr_pids < MANY_THREADS && perf_rings_fit(opts, s->nr_ends)))
		return;
	s->kind = SCOPE_OURS;
	opts->nr_pids = 0;
}

int scope_targets(struct scope *s, struct perf_opts *opts, pid_t **ret)
{
	struct thread_list list = { 0 };
	int err;

	*ret = NULL;
	if (s->kind != SCOPE_GIVEN) {
		opts->nr_pids = 0;
		opts->on_exec = false;
	}
	if (!opts->nr_pids || opts->on_exec || s->threads)
		return 0;
	widen_if_many(s, opts);
	if (s->kind != SCOPE_GIVEN)
		return 0;
	err = list_threads(opts->pids, opts->nr_pids, &list);
	*ret = list.tids;
	opts->pids = *ret;
	opts->nr_pids = list.nr;
	if (!err)
		widen_if_many(s, opts);
	return err;
}

int scope_targets_now(const struct population *all, struct perf_opts *opts, pid_t **ret)
{
	struct task *t, *next;
	size_t nr = 0;

	*ret = calloc(MAX_TARGETS, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	HASH_ITER(hh, all->tasks, t, next)
	if (!t->exited && nr < MAX_TARGETS)
		(*ret)[nr++] = t->tid;
	opts->pids = *ret;
	opts->nr_pids = nr;
	return nr ? 0 : -ESRCH;
}

/* ---- What exists already ---- */

/* Adds the threads of a process. Returns 0 or -ENOMEM. */
static int meet_threads(struct population *all, pid_t pid)
{
	DIR *dir;
	int ret = 0;
	pid_t tid;

	if (tasks_single(pid))
		return population_task(all, pid, pid) ? 0 : -ENOMEM;
	dir = tasks_open(pid);
	while (dir && !ret && (tid = tasks_next(dir)))
		ret = population_task(all, pid, tid) ? 0 : -ENOMEM;
	if (dir)
		closedir(dir);
	return ret;
}

/* Adds a process with its threads. Returns 0 or -ENOMEM. */
static int meet(const struct scope *s, struct population *all, pid_t pid)
{
	struct process *p = population_process(all, pid);

	if (!p)
		return -ENOMEM;
	p->ours |= s->expected != NULL;
	return meet_threads(all, pid);
}

/* Adds a thread without the other threads of its process. Returns 0 or -ENOMEM. */
static int meet_thread(struct population *all, pid_t tid)
{
	char text[32];
	pid_t pid;

	if (!task_field(tid, tid, "Tgid", text, sizeof(text)))
		return 0;
	pid = atoi(text);
	return pid > 0 && !population_task(all, pid, tid) ? -ENOMEM : 0;
}

/* Adds the processes or threads that were asked for. */
static int meet_given(const struct scope *s, struct population *all, int (*meanwhile)(void *arg),
		      void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < s->nr_pids && !ret; i++) {
		ret = i ? meanwhile(arg) : 0;
		if (!ret)
			ret = s->threads ? meet_thread(all, s->pids[i]) : meet(s, all, s->pids[i]);
	}
	return ret;
}

/* Notes whose records are wanted before they are met. Returns 0 or -ENOMEM. */
static int expect_given(struct scope *s)
{
	if (s->kind != SCOPE_OURS || s->awaited || !s->nr_pids)
		return 0;
	s->expected = calloc(s->nr_pids, sizeof(*s->expected));
	if (!s->expected)
		return -ENOMEM;
	memcpy(s->expected, s->pids, s->nr_pids * sizeof(*s->pids));
	qsort(s->expected, s->nr_pids, sizeof(*s->expected), by_number);
	return 0;
}

int scope_look_around(struct scope *s, struct population *all, int (*meanwhile)(void *arg),
		      void *arg)
{
	DIR *dir = s->kind == SCOPE_ALL ? tasks_open(0) : NULL;
	int ret = expect_given(s);
	pid_t pid;

	if (!ret)
		ret = meet_given(s, all, meanwhile, arg);
	free(s->expected);
	s->expected = NULL;
	while (dir && !ret && (pid = tasks_next(dir))) {
		ret = meanwhile(arg);
		if (!ret)
			ret = meet(s, all, pid);
	}
	if (dir)
		closedir(dir);
	return ret;
}

/* ---- While recording ---- */

/*
 * Returns the thread of a record, or NULL if it is not known. A process that was asked for and not met yet
 * is met now: who begins there is recorded, too. A thread that is being reaped has no number (-1).
 */
static struct task *find_task(const struct scope *s, struct population *all,
			      const struct perf_record *r)
{
	struct task *t;

	if (!s->expected || r->tid <= 0 ||
	    !bsearch(&r->pid, s->expected, s->nr_pids, sizeof(*s->expected), by_number))
		return population_find_task(all, r->tid);
	t = population_task(all, r->pid, r->tid);
	if (t)
		t->process->ours = true;
	return t;
}

bool scope_has(const struct scope *s, struct population *all, const struct perf_record *r)
{
	struct task *t;

	if (s->kind != SCOPE_OURS)
		return true;
	t = find_task(s, all, r);
	if (t && s->awaited && r->pid == s->awaited && r->type == PERF_RECORD_COMM &&
	    r->misc & PERF_RECORD_MISC_COMM_EXEC)
		t->process->ours = true;
	return t && t->process->ours;
}

void scope_widen(struct scope *s, struct population *all)
{
	struct process *p, *next;

	HASH_ITER(hh, all->processes, p, next)
	p->ours = true;
	s->kind = SCOPE_OURS;
}

unsigned int scope_alive(const struct scope *s)
{
	unsigned int alive = 0;

	poll(s->ends, s->nr_ends, 0);
	/* A thread that is not the first of its process has no pidfd, nor have all where there are few files. */
	for (size_t i = 0; i < s->nr_given; i++)
		alive += s->ends[i].fd >= 0 ? !s->ends[i].revents :
					      !kill(s->pids[i], 0) || errno == EPERM;
	return alive;
}
