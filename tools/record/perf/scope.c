// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scope.c - keeps which processes and threads are recorded, and finds those that exist already.
 * See scope.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/record/perf/scope.h"

#define MAX_TARGETS 65536
#define MAX_ROUNDS 16 /* passes over all processes while they make new threads */

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
		.pids = calloc(nr + 1, sizeof(*s->pids)),
		.ends = calloc(nr + 1, sizeof(*s->ends)),
	};
	if (!s->pids || !s->ends)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		s->pids[i] = pids[i];
	s->nr_pids = nr;
	s->nr_given = opts->given ? opts->given : nr;
	for (size_t i = 0; i < s->nr_given; i++) {
		s->ends[i].fd = syscall(SYS_pidfd_open, pids[i], 0);
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
}

/* ---- The targets of events ---- */

/* Adds the threads of a process that are not in the list yet. Returns 0 or a negative errno. */
static int add_tasks(pid_t pid, pid_t **list, size_t *nr)
{
	DIR *dir = tasks_open(pid);
	pid_t *more, number;
	size_t i;

	if (!dir)
		return -errno;
	while (*nr < MAX_TARGETS && (number = tasks_next(dir))) {
		for (i = 0; i < *nr && (*list)[i] != number; i++)
			;
		if (i < *nr)
			continue;
		more = reallocarray(*list, *nr + 1, sizeof(*more));
		if (!more) {
			closedir(dir);
			return -ENOMEM;
		}
		*list = more;
		more[(*nr)++] = number;
	}
	closedir(dir);
	return 0;
}

/*
 * Lists the threads of all processes, again and again until there are no new ones. Returns 0,
 * -ENOMEM or -ESRCH.
 */
static int list_threads(const pid_t *pids, size_t nr_pids, pid_t **ret, size_t *nr)
{
	size_t before;
	int round = 0;

	do {
		before = *nr;
		for (size_t i = 0; i < nr_pids; i++)
			if (add_tasks(pids[i], ret, nr) == -ENOMEM)
				return -ENOMEM;
	} while (*nr != before && ++round < MAX_ROUNDS);
	return *nr ? 0 : -ESRCH;
}

int scope_targets(const struct scope *s, struct perf_opts *opts, pid_t **ret)
{
	size_t nr = 0;
	int err;

	*ret = NULL;
	if (s->kind != SCOPE_GIVEN) {
		opts->nr_pids = 0;
		opts->on_exec = false;
	}
	if (!opts->nr_pids || opts->on_exec || s->threads)
		return 0;
	err = list_threads(opts->pids, opts->nr_pids, ret, &nr);
	opts->pids = *ret;
	opts->nr_pids = nr;
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

/* Adds a process with its threads. Returns 0 or -ENOMEM. */
static int meet(struct population *all, pid_t pid)
{
	DIR *dir = tasks_open(pid);
	int ret = population_process(all, pid) ? 0 : -ENOMEM;
	pid_t tid;

	while (dir && !ret && (tid = tasks_next(dir)))
		ret = population_task(all, pid, tid) ? 0 : -ENOMEM;
	if (dir)
		closedir(dir);
	return ret;
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

int scope_look_around(const struct scope *s, struct population *all)
{
	DIR *dir = s->kind == SCOPE_ALL ? tasks_open(0) : NULL;
	int ret = 0;
	pid_t pid;

	for (size_t i = 0; i < s->nr_pids && !ret; i++)
		ret = s->threads ? meet_thread(all, s->pids[i]) : meet(all, s->pids[i]);
	while (dir && !ret && (pid = tasks_next(dir)))
		ret = meet(all, pid);
	if (dir)
		closedir(dir);
	return ret;
}

/* ---- While recording ---- */

bool scope_has(const struct scope *s, struct population *all, const struct perf_record *r)
{
	struct task *t;

	if (s->kind != SCOPE_OURS)
		return true;
	t = population_find_task(all, r->tid);
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

	poll(s->ends, s->nr_given, 0);
	/* A thread that is not the first of its process has no pidfd. */
	for (size_t i = 0; i < s->nr_given; i++)
		alive += s->ends[i].fd >= 0 ? !s->ends[i].revents :
					      !kill(s->pids[i], 0) || errno == EPERM;
	return alive;
}
