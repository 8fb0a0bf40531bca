// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.c - recording by perf events: opens them, hands what they tell to tools/convert/convert.h
 * while it is there, and opens others where these turn out to be too small, too many or too narrow.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/bpf/walker.h"
#include "tools/convert/convert.h"
#include "tools/convert/live.h"
#include "tools/perf/write.h"
#include "tools/proc/tasks.h"
#include "tools/record/perf/gomoments.h"
#include "tools/record/perf/perf.h"
#include "tools/shstk.h"

#define MAX_TARGETS 65536
#define MAX_ROUNDS 16
#define CALM 200000000 /* ns without a new process, program or mapping */

#define UNSEEN 16 /* short threads with none or few samples that matter, if there are */
#define UNSEEN_PART 8 /* not so many times as many samples */
#define NOBODY -1

#define WINDOW 50000000 /* ns over which that is looked at */

/* Stacks are copied once a process had no shadow stack for so many ns of its samples, or all such
 * processes for so much CPU time: a loader on a slow machine takes some ms to switch it on. */
#define BARE_OF_ONE 50000000
#define BARE_OF_ALL 200000000

/* What is too frequent is sampled by the next of these: primes, which no loop is in step with. */
static const uint64_t coarser[] = { 11, 101, 1009, 10007, 100003, 1000003 };

/* The copy of a stack grows to the next of these when it is too small for some. */
static const unsigned int copy_sizes[] = { PERF_FIRST_COPY, 32768, 65528 };

#define NR_COPIES (sizeof(copy_sizes) / sizeof(*copy_sizes))

struct perf_drain {
	struct perf_rings *rings;
	struct perf_opts opts; /* as these are opened */
	struct converter *convert;
	uint64_t lost; /* by earlier ones */
	/* Of each event: by those of earlier rings, less what these had when they took over. */
	uint64_t counted[PERF_WHICH];
	int total; /* an event that counts all of the command, or -1: these themselves do */
	bool may_coarsen; /* samples may become fewer */
	struct wakers *wakers; /* who ends times off the CPU, or NULL */
	uint64_t came, came_since; /* samples in this window, lost ones too, and when it began */
	uint64_t lost_told; /* records of this profile of which a record says that they are lost */
	uint64_t throttled; /* times in this profile that the kernel held an event back */
	uint64_t lost_before; /* what of that is of earlier profiles, */
	uint64_t counted_before[PERF_WHICH]; /* and of each event's own count */
	uint64_t since; /* samples from before that time are of earlier ones */
	unsigned int copy; /* index in copy_sizes[] */
	struct perf_writer *writer; /* of all records, or NULL */
	int unwritten; /* 0, or a negative errno: the writer's file is not complete */
	bool chains; /* callchains are exact where there is a shadow stack */
	bool wide; /* not only given processes */
	int root; /* record only this process, from its exec on, and its children; 0: all */
	bool wide_asked; /* it was tried to sample all processes for these */
	pid_t *pids;
	struct pollfd *ends; /* of each: readable when it has ended */
	size_t nr_pids;
	size_t nr_given; /* of these, in front: others are their children */
	bool threads; /* they are threads, of whose processes the others are not recorded */
	bool go_asked; /* it was tried to get these: */
	const struct walker *walker; /* walks stacks in the kernel, or NULL */
	struct gomoments *moments; /* what is copied beside samples, or NULL */
};

/* ---- records ---- */

/*
 * Of Go the goroutine is wanted, too, whose stack and labels only a copy leads to: such a process
 * is not walked any more.
 */
static void leave_go(struct perf_drain *d, const struct perf_record *r)
{
	const struct task *t = population_find_task(&d->convert->all, r->tid);

	if (t && layout_has_go(t->process->layout))
		walker_leave(d->walker, r->pid);
}

static int take_sample(struct perf_drain *d, const struct perf_record *r)
{
	const struct converter *c = d->convert;
	struct memory_piece pieces[GOMOMENTS_PIECES];
	struct memory_pieces more = { .pieces = pieces };
	struct perf_sample sample;
	int ret;

	if (r->pid <= 0 || r->tid <= 0 ||
	    !perf_sample_parse(r, stacks_are_copied(&c->stacks), d->opts.max_stack, &sample))
		return 0;
	more.nr = gomoments_find(d->moments, r, &sample, pieces);
	ret = convert_sample(d->convert, r->which, &sample, &more);
	if (sample.walked)
		leave_go(d, r);
	return ret;
}

static int take_switch(struct perf_drain *d, const struct perf_record *r)
{
	if (!(r->misc & PERF_RECORD_MISC_SWITCH_OUT))
		return convert_return(d->convert, r->tid, r->time);
	/* Kernels before 4.17 do not tell. */
	convert_leave(d->convert, r->tid, r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	return 0;
}

/* What processes and threads do. */
static int take_event(struct perf_drain *d, const struct perf_record *r)
{
	struct perf_map map;
	struct perf_comm comm;
	struct perf_fork fork;

	switch (r->type) {
	case PERF_RECORD_MMAP2:
		return perf_record_map(r, &map) ? convert_map(d->convert, &map) : 0;
	case PERF_RECORD_COMM:
		return perf_record_comm(r, &comm) ? convert_comm(d->convert, &comm) : 0;
	case PERF_RECORD_FORK:
		return perf_record_fork(r, &fork) ? convert_fork(d->convert, &fork) : 0;
	case PERF_RECORD_EXIT:
		/* A CPU's own events still see it leave, until it is reaped. */
		if (perf_record_fork(r, &fork))
			convert_exit(d->convert, &fork, d->wide);
		return 0;
	default:
		return 0;
	}
}

/* Of a process that is to be recorded, if not all are? */
static bool is_ours(struct perf_drain *d, const struct perf_record *r)
{
	struct task *t;

	if (!d->root)
		return true;
	t = population_find_task(&d->convert->all, r->tid);
	if (t && r->pid == d->root && r->type == PERF_RECORD_COMM &&
	    r->misc & PERF_RECORD_MISC_COMM_EXEC)
		t->process->ours = true;
	return t && t->process->ours;
}

/* What the kernel says of the recording itself. */
static void count_record(struct perf_drain *d, const struct perf_record *r)
{
	const uint64_t *body = r->body;

	if (r->type == PERF_RECORD_LOST && r->size >= 16) {
		d->lost_told += body[1];
		d->came += body[1];
	}
	d->came += r->type == PERF_RECORD_SAMPLE;
	if (r->type == PERF_RECORD_LOST_SAMPLES && r->size >= 8)
		d->lost_told += body[0];
	d->throttled += r->type == PERF_RECORD_THROTTLE;
}

/* A thread of others begins: what had its number before is over. */
static void pass_over(struct perf_drain *d, const struct perf_record *r)
{
	struct perf_fork fork;

	if (r->type == PERF_RECORD_FORK && perf_record_fork(r, &fork))
		population_forget(&d->convert->all, fork.tid);
}

static int take_record(void *arg, const struct perf_record *r)
{
	struct perf_drain *d = arg;
	struct waking waking;
	int ret;

	if (d->wakers && wakers_parse(d->wakers, r, &waking)) {
		convert_waking(d->convert, &waking, r->time);
		return 0;
	}
	count_record(d, r);
	if (!is_ours(d, r)) {
		pass_over(d, r);
		return 0;
	}
	if (r->type == PERF_RECORD_SAMPLE && r->time < d->since)
		return 0;
	convert_at(d->convert, r->time);
	if (r->type == PERF_RECORD_SAMPLE)
		ret = take_sample(d, r);
	else if (r->type == PERF_RECORD_SWITCH || r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		ret = take_switch(d, r);
	else
		ret = take_event(d, r);
	/* Behind what was looked up for it: in this order it is taken from the file. */
	if (d->writer)
		perf_writer_add(d->writer, r);
	return ret;
}

/* ---- begin and end ---- */

/* Adds the threads of a process, or all processes, that are not there yet. */
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

/* The threads of all processes, until no new ones turn up. */
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

/* A process that is there already, with its threads. */
static int meet(struct perf_drain *d, pid_t pid)
{
	DIR *dir = tasks_open(pid);
	int ret = population_process(&d->convert->all, pid) ? 0 : -ENOMEM;
	pid_t tid;

	while (dir && !ret && (tid = tasks_next(dir)))
		ret = population_task(&d->convert->all, pid, tid) ? 0 : -ENOMEM;
	if (dir)
		closedir(dir);
	return ret;
}

/* A thread that is there already, without the others of its process. */
static int meet_thread(struct perf_drain *d, pid_t tid)
{
	char text[32];
	pid_t pid;

	if (!task_field(tid, tid, "Tgid", text, sizeof(text)))
		return 0;
	pid = atoi(text);
	return pid > 0 && !population_task(&d->convert->all, pid, tid) ? -ENOMEM : 0;
}

/* What is there already: only what recording does not see begin. */
static int look_around(struct perf_drain *d)
{
	DIR *dir = d->wide && !d->root ? tasks_open(0) : NULL;
	int ret = 0;
	pid_t pid;

	for (size_t i = 0; i < d->nr_pids && !ret; i++)
		ret = d->threads ? meet_thread(d, d->pids[i]) : meet(d, d->pids[i]);
	while (dir && !ret && (pid = tasks_next(dir)))
		ret = meet(d, pid);
	if (dir)
		closedir(dir);
	return ret;
}

static int begin(struct perf_drain *d, const struct perf_record_opts *opts, struct reason *why)
{
	struct perf_opts rings = opts->rings;
	pid_t *threads = NULL;
	size_t nr = 0;
	int ret = 0;

	if (d->root) {
		rings.nr_pids = 0;
		rings.on_exec = false;
	} else if (rings.nr_pids && !rings.on_exec && !d->threads) {
		ret = list_threads(rings.pids, rings.nr_pids, &threads, &nr);
		rings.pids = threads;
		rings.nr_pids = nr;
	}
	if (!ret)
		ret = perf_rings_open(&rings, &d->rings, why);
	if (!ret && d->walker) {
		ret = perf_rings_walk(d->rings, d->walker);
		because(why, "events for what BPF walks: %s", strerror(-ret));
	}
	d->opts = rings;
	d->opts.on_exec = false;
	/* A clock of the command is known at its end. */
	if (!ret && d->root && rings.main && !rings.main->clock)
		d->total = perf_total_open(&opts->rings, perf_rings_user_only(d->rings));
	if (ret == -ESRCH)
		because(why, "%s %d: %s", d->threads ? "thread" : "process", *opts->rings.pids,
			process_gone_why(*opts->rings.pids));
	if (!ret)
		ret = look_around(d);
	free(threads);
	return ret;
}

static int keep_pids(struct perf_drain *d, const struct perf_record_opts *opts)
{
	const pid_t *pids = opts->rings.pids;
	size_t nr = opts->rings.nr_pids;

	d->pids = calloc(nr + 1, sizeof(*d->pids));
	d->ends = calloc(nr + 1, sizeof(*d->ends));
	if (!d->pids || !d->ends)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		d->pids[i] = pids[i];
	d->nr_pids = nr;
	d->nr_given = opts->given ? opts->given : nr;
	for (size_t i = 0; i < d->nr_given; i++) {
		d->ends[i].fd = syscall(SYS_pidfd_open, pids[i], 0);
		d->ends[i].events = POLLIN;
	}
	return 0;
}

static void tell_vdso(struct perf_drain *d)
{
	struct build_id id;
	uint64_t size = live_vdso(d->convert->all.live, &id);

	if (size)
		perf_writer_vdso(d->writer, size, &id);
}

static enum stack_source first_source(const struct perf_record_opts *opts)
{
	if (opts->rings.copy)
		return opts->chains ? STACK_SHADOW_OR_COPIES : STACK_COPIES;
	return opts->mixed ? STACK_SHADOW : STACK_CHAINS;
}

static struct converter *create_converter(const struct perf_record_opts *opts,
					  struct shstk_symbols *symbols,
					  struct shstk_profile *profile)
{
	const struct convert_opts how = {
		.source = first_source(opts),
		.kernel = opts->kernel ? KERNEL_ALWAYS : KERNEL_ALONE,
		.depth = opts->depth,
		.labels = opts->labels,
		.keep_times = opts->keep_times,
		.off = opts->off,
		.wakers = opts->wakers,
		.period = opts->rings.freq ? 1000000000 / opts->rings.freq : 0,
	};

	return converter_create(&how, symbols, profile, NULL);
}

int perf_drain_create(const struct perf_record_opts *opts, struct shstk_symbols *symbols,
		      struct shstk_profile *profile, struct perf_drain **ret, struct reason *why)
{
	struct perf_drain *d = calloc(1, sizeof(*d));
	size_t nr = opts->rings.nr_pids;
	int error;

	because(why, "cannot set up recording: %s", strerror(ENOMEM));
	if (!d)
		return -ENOMEM;
	d->total = -1;
	d->may_coarsen = opts->may_coarsen;
	d->wakers = opts->wakers;
	d->walker = opts->walker;
	d->opts = opts->rings;
	d->chains = opts->chains;
	d->threads = opts->threads;
	d->wide = !nr || opts->tree;
	d->root = opts->tree ? *opts->rings.pids : 0;
	d->convert = create_converter(opts, symbols, profile);
	error = d->convert ? 0 : -ENOMEM;
	if (!error && opts->perf_data) {
		error = perf_writer_create(opts->perf_data, &opts->rings, &d->writer);
		because(why, "cannot write %s: %s", opts->perf_data, strerror(-error));
	}
	if (!error && d->writer) {
		d->convert->all.writer = d->writer;
		tell_vdso(d);
	}
	if (!error)
		error = keep_pids(d, opts);
	if (!error)
		error = begin(d, opts, why);
	if (error) {
		perf_drain_destroy(d);
		return error;
	}
	*ret = d;
	return 0;
}

void perf_drain_destroy(struct perf_drain *d)
{
	if (!d)
		return;
	if (d->total >= 0)
		close(d->total);
	perf_rings_close(d->rings);
	gomoments_destroy(d->moments);
	perf_writer_close(d->writer);
	converter_destroy(d->convert);
	for (size_t i = 0; i < d->nr_given; i++)
		if (d->ends[i].fd >= 0)
			close(d->ends[i].fd);
	free(d->pids);
	free(d->ends);
	free(d);
}

/* All threads that are known and live. They are counted if @list is NULL. */
static size_t list_tasks(const struct population *all, pid_t *list, size_t max)
{
	struct task *t, *next;
	size_t nr = 0;

	HASH_ITER(hh, all->tasks, t, next)
	if (!t->exited && nr < max) {
		if (list)
			list[nr] = t->tid;
		nr++;
	}
	return nr;
}

/* What @rings had counted when they took over from those before counts once. */
static void take_over(struct perf_drain *d, const struct perf_rings *rings, int which)
{
	uint64_t counted, before;

	if (perf_rings_total(rings, which, &before) && perf_rings_total(d->rings, which, &counted))
		d->counted[which] += counted - before;
}

/*
 * Opens other events for all that is recorded, with larger copies or another program. Both
 * record for a moment, so that nothing that happens to processes is missed; it does no harm
 * twice.
 */
static int replace_rings(struct perf_drain *d, unsigned int copy)
{
	struct perf_opts opts = d->opts;
	struct perf_rings *rings;
	pid_t *list = NULL;
	uint64_t lost, stopped;
	struct reason why;
	int ret = 0;

	opts.copy = copy;
	/* As many stacks as before. */
	if (opts.may_shrink)
		opts.ring_size = perf_ring_size(opts.ring_size,
						opts.ring_size / PERF_FIRST_COPY * opts.copy);
	if (opts.nr_pids) {
		list = calloc(MAX_TARGETS, sizeof(*list));
		opts.nr_pids = list ? list_tasks(&d->convert->all, list, MAX_TARGETS) : 0;
		opts.pids = list;
		ret = opts.nr_pids ? 0 : -ESRCH;
	}
	if (!ret)
		ret = perf_rings_open(&opts, &rings, &why);
	free(list);
	if (ret) {
		d->copy = NR_COPIES; /* what there is must do */
		return 0;
	}
	perf_rings_stop(d->rings);
	stopped = now_ns(CLOCK_MONOTONIC);
	/* If it does not walk there, stacks are copied. */
	if (d->walker)
		perf_rings_walk(rings, d->walker);
	for (int which = 0; which < PERF_WHICH; which++)
		take_over(d, rings, which);
	ret = perf_rings_read(d->rings, true, take_record, d);
	if (perf_rings_lost(d->rings, &lost))
		d->lost += lost;
	perf_rings_close(d->rings);
	d->rings = rings;
	d->since = stopped;
	d->opts.copy = opts.copy;
	return ret;
}

/* From now on stacks are looked at that have copies of another size. */
static void begin_window(struct perf_drain *d)
{
	d->convert->learnt.copies = d->convert->learnt.too_short = 0;
}

/* More than one stack of 200 is larger than what is copied. */
static bool must_grow(const struct perf_drain *d)
{
	const struct convert_learnt *l = &d->convert->learnt;

	return stacks_are_copied(&d->convert->stacks) && d->copy + 1 < NR_COPIES &&
	       l->too_short >= 4 && l->too_short > l->copies / 200;
}

/*
 * From now on with what Go's threads were doing for their goroutines. It is not done before
 * there is a program of Go: loading takes time, and so does each sample of others.
 */
static int add_moments(struct perf_drain *d)
{
	d->go_asked = true;
	if (d->walker)
		return 0; /* an event has one program */
	d->moments = gomoments_create(d->opts.freq);
	if (!d->moments)
		return 0;
	d->opts.program = gomoments_program(d->moments);
	return replace_rings(d, d->opts.copy);
}

/*
 * Do many threads end sooner than a period? Events of processes begin anew in each thread, and go
 * from one to the other with a switch between them: the time of all of these is lost then.
 */
static bool must_widen(const struct perf_drain *d)
{
	const struct convert_learnt *l = &d->convert->learnt;

	return !d->wide && !d->wide_asked && !d->threads && d->opts.main && !d->opts.count &&
	       l->short_lived >= UNSEEN &&
	       l->short_lived > d->convert->counts.samples / UNSEEN_PART;
}

/* From now on by events of the CPUs, of which others' samples are passed over; if permitted. */
static int widen(struct perf_drain *d)
{
	const struct perf_rings *before = d->rings;
	const unsigned int copy = d->copy;
	const size_t nr = d->opts.nr_pids;
	struct process *p, *next;
	int ret;

	d->wide_asked = true;
	d->opts.nr_pids = 0;
	ret = replace_rings(d, d->opts.copy);
	if (d->rings == before) {
		d->opts.nr_pids = nr;
		d->copy = copy;
		return ret;
	}
	HASH_ITER(hh, d->convert->all.processes, p, next)
	p->ours = true;
	d->root = NOBODY;
	d->wide = true;
	return ret;
}

/* Are there more samples than can be taken? Looks once in a window. */
static bool must_coarsen(struct perf_drain *d, uint64_t *count)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), passed = now - d->came_since;
	uint64_t second;

	if (!d->may_coarsen || passed < WINDOW)
		return false;
	second = d->came * 1000000000 / passed;
	d->came = 0;
	d->came_since = now;
	if (second <= PERF_AFFORDED)
		return false;
	for (size_t i = 0; i < sizeof(coarser) / sizeof(*coarser); i++) {
		*count = coarser[i];
		if (second * d->opts.count / *count < PERF_AFFORDED / 4)
			break;
	}
	return *count > d->opts.count;
}

static int coarsen(struct perf_drain *d, uint64_t count)
{
	d->opts.count = count;
	return replace_rings(d, d->opts.copy);
}

/* From now on processes without a shadow stack are sampled by copies, if these are to be had. */
static int begin_copies(struct perf_drain *d)
{
	const size_t second = d->opts.off ? SIZE_MAX : d->opts.freq * PERF_FIRST_COPY;
	int ret;

	if (d->opts.may_shrink)
		d->opts.ring_size = perf_ring_size(d->opts.ring_size, second);
	ret = replace_rings(d, PERF_FIRST_COPY);
	if (d->opts.copy)
		d->convert->stacks.source = d->chains ? STACK_SHADOW_OR_COPIES : STACK_COPIES;
	begin_window(d);
	return ret;
}

/* Is there a process without a shadow stack, for longer than its loader may take? */
static bool must_copy(const struct perf_drain *d)
{
	const struct convert_learnt *l = &d->convert->learnt;

	return d->convert->stacks.source == STACK_SHADOW && d->copy < NR_COPIES &&
	       (l->bare_longest >= BARE_OF_ONE || l->bare >= BARE_OF_ALL);
}

int perf_drain_take(struct perf_drain *d)
{
	int ret = perf_rings_read(d->rings, false, take_record, d);
	uint64_t count;

	if (!ret && must_coarsen(d, &count))
		ret = coarsen(d, count);
	if (!ret && must_copy(d))
		return begin_copies(d);
	if (!ret && must_widen(d))
		ret = widen(d);
	if (!ret && d->convert->learnt.go && stacks_are_copied(&d->convert->stacks) && !d->go_asked)
		ret = add_moments(d);
	if (ret || !must_grow(d))
		return ret;
	d->copy++;
	begin_window(d);
	return replace_rings(d, copy_sizes[d->copy]);
}

bool perf_drain_calm(const struct perf_drain *d, uint64_t ns)
{
	const struct convert_learnt *l = &d->convert->learnt;

	return !l->go && !l->made && now_ns(CLOCK_MONOTONIC) - l->moved > CALM &&
	       !perf_rings_news(d->rings) && perf_rings_last(d->rings, ns);
}

int perf_drain_unsampled(struct perf_drain *d, int which, uint64_t value, int note)
{
	return convert_unsampled(d->convert, which, value, note);
}

/* Records that were lost in all profiles. Those that tell it come only once there is room again. */
static uint64_t all_lost(const struct perf_drain *d)
{
	uint64_t lost;

	return perf_rings_lost(d->rings, &lost) ? lost + d->lost : d->lost_told + d->lost_before;
}

/* What the events counted in all profiles; false: nobody knows. */
static bool all_counted(const struct perf_drain *d, int which, uint64_t *ret)
{
	const struct perf_opts *o = &d->opts;

	*ret = 0;
	if (d->total >= 0 && which == PERF_MAIN)
		return read(d->total, ret, sizeof(*ret)) == sizeof(*ret);
	if (!o->main || d->root || (!o->nr_pids && o->cgroup < 0 && o->main->clock) ||
	    !perf_rings_total(d->rings, which, ret))
		return false;
	*ret += d->counted[which];
	return true;
}

bool perf_drain_whole(const struct perf_drain *d, int which, uint64_t *ret)
{
	bool known = all_counted(d, which, ret);

	*ret -= known ? d->counted_before[which] : 0;
	return known;
}

void perf_drain_renew(struct perf_drain *d, struct shstk_symbols *symbols,
		      struct shstk_profile *profile)
{
	converter_renew(d->convert, symbols, profile);
	d->lost_before = all_lost(d);
	for (int which = 0; which < PERF_WHICH; which++)
		all_counted(d, which, &d->counted_before[which]);
	d->lost_told = d->throttled = 0;
}

int perf_drain_stop(struct perf_drain *d)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC);
	int ret;

	perf_rings_stop(d->rings);
	ret = perf_rings_read(d->rings, true, take_record, d);
	if (!ret)
		ret = convert_end(d->convert, end);
	d->unwritten = perf_writer_close(d->writer);
	d->writer = d->convert->all.writer = NULL;
	return ret;
}

void perf_drain_left(struct perf_drain *d, void (*fn)(void *arg, int pid), void *arg)
{
	if (!d->wide || d->root)
		population_alive(&d->convert->all, d->root, fn, arg);
}

unsigned int perf_drain_alive(const struct perf_drain *d)
{
	unsigned int alive = 0;

	poll(d->ends, d->nr_given, 0);
	/* A thread's number has no descriptor. */
	for (size_t i = 0; i < d->nr_given; i++)
		alive += d->ends[i].fd >= 0 ? !d->ends[i].revents :
					      !kill(d->pids[i], 0) || errno == EPERM;
	return alive;
}

uint64_t perf_drain_shared(const struct perf_drain *d)
{
	return perf_rings_memory(d->rings);
}

bool perf_drain_user_only(const struct perf_drain *d)
{
	return perf_rings_user_only(d->rings);
}

uint64_t perf_drain_weight(const struct perf_drain *d, int which)
{
	return d->convert->weights[which];
}

bool perf_drain_borrowed(const struct perf_drain *d)
{
	return perf_rings_borrowed(d->rings);
}

void perf_drain_count(const struct perf_drain *d, struct drain_counts *ret,
		      struct perf_counts *more)
{
	const struct convert_counts *c = &d->convert->counts;

	*ret = (struct drain_counts){
		.samples = c->samples,
		.weight = c->weight,
		.truncated = c->truncated,
		.threads = c->threads,
		.processes = c->processes,
		.lost = all_lost(d) - d->lost_before,
	};
	if (!more)
		return;
	*more = (struct perf_counts){
		.stacks = *c,
		.copy = d->opts.copy,
		.count = d->opts.count,
		.throttled = d->throttled,
		.unwritten = d->unwritten,
	};
	if (d->wide || !d->wide_asked)
		more->stacks.unseen = 0;
}
