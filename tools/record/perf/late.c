// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * late.c - finds threads that have no events, because they began while events were being opened.
 * See late.h.
 *
 * The kernel reports the beginning of each thread that inherits events, if its creator's events
 * record by then. So a thread of which nothing was reported, and which was not there when the
 * opening had ended, has no events. It gets some. A thread that was there at that moment may have
 * inherited events before these recorded: it gets events once it has used CPU time without a
 * sample. If the recorder was behind with reading, it learns of some threads only then: these began
 * before the others were listed, so they get events before the old ones are stopped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/proc/tasks.h"
#include "tools/record/perf/late.h"
#include "tools/record/perf/perf_recording_private.h"
#include "tools/shstk.h"

#define FIRST_NS 50000000 /* ns for which threads are looked for at once */
#define MIN_PAUSE 20000000 /* ns from the first look to the second; each pause is twice as long */
#define MAX_PAUSE 1000000000 /* ns from one look to the next at most */
#define MAX_PROCESSES 256 /* processes that are looked at */
#define MAX_DOUBTS 4096 /* threads that are watched */
#define WITHOUT_NS 100000000 /* CPU time without a sample that only a thread without events has */
#define DOUBLE_NS 1000000000 /* the beginning of a thread is reported within this time */

/* Returns whether such threads may exist: events are those of threads, and of all threads. */
static bool is_wanted(const struct perf_recording *d)
{
	return d->scope.kind == SCOPE_GIVEN && !d->scope.threads;
}

/* Returns whether records were lost. The beginning of a thread may be among them. */
static bool has_lost(const struct perf_recording *d)
{
	struct perf_losses lost;

	sums_lost(&d->sums, d->rings, &lost);
	return lost.all + d->sums.lost_before.all;
}

/*
 * Notes that a thread could not be given events, as @err says. One that has ended needs none.
 */
static void refuse(struct late *l, pid_t pid, pid_t tid, int err)
{
	struct task_stat stat;

	if (err == -ESRCH || task_stat(pid, tid, &stat))
		return;
	l->nr_refused++;
	l->refused = err;
}

/*
 * Opens events of a thread, of whose beginning nothing was reported until @since, CLOCK_MONOTONIC in
 * ns. This is tried once. Returns 0 or -ENOMEM.
 */
static int add(struct perf_recording *d, pid_t pid, pid_t tid, uint64_t since)
{
	struct late *l = &d->late;
	const size_t at = l->nr_added % LATE_KEPT;
	const int err = l->nr_added < LATE_MOST ? perf_rings_add(d->rings, &d->opts, tid) : -E2BIG;

	if (err) {
		refuse(l, pid, tid, err);
		return err == -ESRCH || population_task(&d->convert->all, pid, tid) ? 0 : -ENOMEM;
	}
	l->added[at] = tid;
	l->since[at] = since;
	l->nr_added++;
	return population_task(&d->convert->all, pid, tid) ? 0 : -ENOMEM;
}

/* ---- Threads of which nothing was reported ---- */

/* Looks at the threads of a process; counts in @found those without events. */
static int find_threads(struct perf_recording *d, pid_t pid, unsigned int *found)
{
	const uint64_t since = now_ns(CLOCK_MONOTONIC);
	DIR *dir = tasks_open(pid);
	int ret = 0;
	pid_t tid;

	while (dir && !ret && (tid = tasks_next(dir))) {
		if (population_find_task(&d->convert->all, tid) || perf_rings_began(d->rings, tid))
			continue;
		++*found;
		ret = add(d, pid, tid, since);
	}
	if (dir)
		closedir(dir);
	return ret;
}

static int find_all_threads(struct perf_recording *d, unsigned int *found)
{
	struct process *p, *next;
	unsigned int n = 0;
	int ret = 0;

	*found = 0;
	if (has_lost(d))
		return 0;
	HASH_ITER(hh, d->convert->all.processes, p, next)
	if (!ret && n++ < MAX_PROCESSES)
		ret = find_threads(d, p->pid, found);
	return ret;
}

/* ---- Threads that may have events ---- */

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

static void doubt(struct late *l, const struct task *t)
{
	struct task_stat stat;

	if (l->nr_doubts < MAX_DOUBTS && !task_stat(t->process->pid, t->tid, &stat))
		l->doubts[l->nr_doubts++] =
			(struct doubt){ t->process->pid, t->tid, stat.cpu, t->samples };
}

/* Notes the known threads that are neither in @opened, which is sorted, nor reported. */
static void find_doubts(struct perf_recording *d, const pid_t *opened, size_t nr)
{
	struct task *t, *next;

	d->late.nr_doubts = 0;
	HASH_ITER(hh, d->convert->all.tasks, t, next)
	if (!t->exited && !bsearch(&t->tid, opened, nr, sizeof(*opened), by_number) &&
	    !perf_rings_began(d->rings, t->tid))
		doubt(&d->late, t);
}

/* Returns whether it is known now that the thread has events, or that it needs none. */
static bool is_settled(struct perf_recording *d, const struct doubt *doubt, int *ret)
{
	const struct task *t = population_find_task(&d->convert->all, doubt->tid);
	struct task_stat stat;

	if (!t || t->samples > doubt->samples || task_stat(doubt->pid, doubt->tid, &stat))
		return true;
	/* Where only switches are recorded, one that comes twice counts once. */
	if (d->opts.main && stat.cpu - doubt->cpu < WITHOUT_NS + 4 * d->convert->opts.period)
		return false;
	*ret = add(d, doubt->pid, doubt->tid, now_ns(CLOCK_MONOTONIC));
	return true;
}

static int watch_doubts(struct perf_recording *d)
{
	struct late *l = &d->late;
	size_t kept = 0;
	int ret = 0;

	/* Of other events it is not known how much time passes without one. */
	if (d->opts.main && !d->opts.main->clock)
		l->nr_doubts = 0;
	for (size_t i = 0; i < l->nr_doubts && !ret; i++)
		if (!is_settled(d, &l->doubts[i], &ret))
			l->doubts[kept++] = l->doubts[i];
	l->nr_doubts = kept;
	return ret;
}

/* ---- Begin, while recording, end ---- */

/* Returns a sorted copy of the thread IDs, or NULL without memory. */
static pid_t *sorted_copy(const pid_t *tids, size_t nr)
{
	pid_t *ret = calloc(nr, sizeof(*ret));

	if (!ret)
		return NULL;
	memcpy(ret, tids, nr * sizeof(*ret));
	qsort(ret, nr, sizeof(*ret), by_number);
	return ret;
}

int late_listed(struct perf_recording *d, struct perf_rings *rings, const struct perf_opts *opts,
		const pid_t *listed, size_t nr, uint64_t since)
{
	struct task *t, *next;
	pid_t *sorted;

	if (!is_wanted(d) || !nr)
		return 0;
	sorted = sorted_copy(listed, nr);
	if (!sorted)
		return -ENOMEM;
	HASH_ITER(hh, d->convert->all.tasks, t, next)
	if (!t->exited && t->began && (!opts->main || t->began < since) &&
	    !bsearch(&t->tid, sorted, nr, sizeof(*sorted), by_number)) {
		const int err = perf_rings_add(rings, opts, t->tid);

		if (err)
			refuse(&d->late, t->process->pid, t->tid, err);
	}
	free(sorted);
	return 0;
}

int late_begin(struct perf_recording *d, const pid_t *opened, size_t nr)
{
	const uint64_t begin = now_ns(CLOCK_MONOTONIC);
	struct late *l = &d->late;
	unsigned int found;
	pid_t *sorted;
	int ret;

	if (!is_wanted(d) || !nr)
		return 0;
	sorted = sorted_copy(opened, nr);
	if (!l->doubts)
		l->doubts = calloc(MAX_DOUBTS, sizeof(*l->doubts));
	if (!sorted || !l->doubts) {
		free(sorted);
		return -ENOMEM;
	}
	find_doubts(d, sorted, nr);
	free(sorted);
	do {
		ret = find_all_threads(d, &found);
	} while (!ret && found && now_ns(CLOCK_MONOTONIC) - begin < FIRST_NS);
	l->pause = MIN_PAUSE;
	l->next = now_ns(CLOCK_MONOTONIC) + l->pause;
	return ret;
}

int late_find(struct perf_recording *d)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct late *l = &d->late;
	unsigned int found;
	int ret;

	if (!is_wanted(d) || !l->pause || now < l->next)
		return 0;
	ret = find_all_threads(d, &found);
	if (!ret)
		ret = watch_doubts(d);
	l->pause = 2 * l->pause < MAX_PAUSE ? 2 * l->pause : MAX_PAUSE;
	l->next = now + l->pause;
	return ret;
}

void late_fork(struct perf_recording *d, const struct perf_fork *f)
{
	const struct late *l = &d->late;
	const uint64_t now = d->convert->all.time;

	for (size_t i = 0; i < LATE_KEPT && i < l->nr_added; i++)
		if (l->added[i] == f->tid && now > l->since[i] && now - l->since[i] < DOUBLE_NS)
			perf_rings_drop(d->rings, f->tid);
}

void late_deinit(struct late *l)
{
	free(l->doubts);
}
