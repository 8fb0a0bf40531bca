// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.c - from the kernel's records to a profile.
 *
 * A sample has a callchain that the kernel made, or a copy of the stack that is unwound
 * here (tools/convert/layout.h), by what the process had mapped then (population.h).
 *
 * Time off the CPU: a sample at each switch away keeps the thread's stack, the
 * switch back says how long it lasted.
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

#include "libshstk/shstk.h"
#include "tools/convert/golabels.h"
#include "tools/convert/population.h"
#include "tools/convert/splice.h"
#include "tools/perf/regs.h"
#include "tools/perf/sample.h"
#include "tools/proc/shadow.h"
#include "tools/proc/tasks.h"
#include "tools/record/gomoments.h"
#include "tools/record/perf.h"
#include "tools/shstk.h"

#define MAX_KERNEL 512 /* entries of the kernel's part */
#define MAX_ENTRIES (MAX_KERNEL + 4096)
#define MAX_TARGETS 65536
#define MAX_ROUNDS 16
#define CALM 200000000 /* ns without a new process, program or mapping */

#define UNSEEN 16 /* short threads with none or few samples that matter, if there are */
#define UNSEEN_PART 8 /* not so many times as many samples */
#define FEW 4 /* samples of a thread whose first period matters */
#define SHORT 2000000000 /* ns that such a thread lasts; others slept */
#define NOBODY -1

#define WINDOW 50000000 /* ns over which that is looked at */

/* Stacks are copied once a process had no shadow stack for so many ns of its samples, or all such
 * processes for so much CPU time: a loader on a slow machine takes some ms to switch it on. */
#define BARE_OF_ONE 50000000
#define BARE_OF_ALL 200000000
#define ASK_AGAIN 1000000 /* ns before a process is asked again whether it has one now */

/* What is too frequent is sampled by the next of these: primes, which no loop is in step with. */
static const uint64_t coarser[] = { 11, 101, 1009, 10007, 100003, 1000003 };

/* The copy of a stack grows to the next of these when it is too small for some. */
static const unsigned int copy_sizes[] = { PERF_FIRST_COPY, 32768, 65528 };

#define NR_COPIES (sizeof(copy_sizes) / sizeof(*copy_sizes))

struct perf_drain {
	struct perf_rings *rings;
	struct perf_opts opts; /* as these are opened */
	uint64_t lost; /* by earlier ones */
	/* Of each event: by those of earlier rings, less what these had when they took over. */
	uint64_t counted[PERF_WHICH];
	struct shstk_symproc *first; /* process of the first sample in this profile, */
	int first_tid; /* its thread, */
	char first_comm[TASK_COMM]; /* and that one's name */
	int total; /* an event that counts all of the command, or -1: these themselves do */
	bool may_coarsen; /* samples may become fewer */
	enum perf_off_time off; /* the times off the CPU that are wanted */
	struct wakers *wakers; /* who ends them, or NULL */
	uint64_t came, came_since; /* samples in this window, lost ones too, and when it began */
	uint64_t lost_before; /* what of that is of earlier profiles, */
	uint64_t counted_before[PERF_WHICH]; /* and of each event's own count */
	uint64_t weights[PERF_WHICH]; /* of samples of further events, in this profile */
	uint64_t moved; /* when a process last began something */
	uint64_t since; /* samples from before that time are of earlier ones */
	unsigned int copy; /* index in copy_sizes[] */
	uint64_t window, too_short; /* samples since the copy grew, those it was too short for */
	struct shstk_profile *profile;
	struct population all;
	struct perf_writer *writer; /* of all records, or NULL */
	unsigned int max_stack; /* entries of a callchain */
	unsigned int depth; /* entries of a stack that is unwound */
	size_t keep_times; /* of so many samples, 0: of none */
	bool kernel; /* show it in each stack */
	bool copies; /* stacks are copied, */
	bool chains; /* and callchains are exact where there is a shadow stack */
	bool mixed; /* stacks are not copied yet, but to be for processes that have none, */
	bool must_copy; /* and there is one */
	uint64_t bare; /* CPU time of such in ns, in all profiles */
	bool wide; /* not only given processes */
	int root; /* record only this process, from its exec on, and its children; 0: all */
	uint64_t unseen; /* short threads with none or few samples, in this profile */
	bool wide_asked; /* it was tried to sample all processes for these */
	pid_t *pids;
	struct pollfd *ends; /* of each: readable when it has ended */
	size_t nr_pids;
	size_t nr_given; /* of these, in front: others are their children */
	bool threads; /* they are threads, of whose processes the others are not recorded */
	struct drain_counts counts;
	struct perf_counts more;
	uint64_t pcs[MAX_ENTRIES];
	uint64_t sps[MAX_ENTRIES];
	uint8_t marks[MAX_ENTRIES];
	bool labels; /* goroutines' labels are wanted, */
	char label_text[GOLABELS_MAX + BEYOND_LABEL + WAKERS_LABEL]; /* and of the sample at hand */
	bool made; /* a process makes code at run time, which may be gone soon */
	bool go; /* a process runs code of Go */
	bool go_asked; /* it was tried to get these: */
	struct gomoments *moments; /* what is copied beside samples, or NULL, */
	struct memory_piece pieces[GOMOMENTS_PIECES]; /* and of the sample at hand */
	size_t nr_pieces;
};

/* ---- samples ---- */

/* Callers mostly lie in the same mapping. */
static bool unknown_address(struct shstk_symproc *proc, const struct stack *s)
{
	uint64_t start = 0, end = 0; /* of the last mapping */

	for (unsigned int i = 0; i < s->nr; i++) {
		uint64_t pc = s->pcs[i] - !!i;
		const struct shstk_symmap *map;

		if (s->pcs[i] >> 63 || (pc >= start && pc < end))
			continue;
		map = shstk_symproc_find(proc, pc);
		if (map->kind == SHSTK_SYMMAP_NONE)
			return true;
		start = map->start;
		end = map->end;
	}
	return false;
}

static void count_end(struct perf_drain *d, const struct process *p, int end, bool elsewhere)
{
	if (end == SHSTK_END_COMPLETE)
		return;
	d->counts.truncated++;
	d->more.cut += end == SHSTK_END_CAPACITY;
	d->more.too_short += end == SHSTK_END_READ && !elsewhere;
	d->more.elsewhere += elsewhere;
	d->more.java += end != SHSTK_END_CAPACITY && end != SHSTK_END_READ &&
			layout_has_jit(p->layout);
}

/* The place of an event's number among the values of a sample: behind that of samples. */
static unsigned int value_at(int which)
{
	return which < PERF_FIRST_MORE ? 1 : 2 + which - PERF_FIRST_MORE;
}

static int add_sample(struct perf_drain *d, struct task *t, struct shstk_symproc *proc,
		      const struct stack *s, int which, uint64_t value)
{
	int64_t values[2 + PERF_MORE] = { 1 };
	struct shstk_sample sample = {
		.proc = proc,
		.tid = t->tid,
		.comm = t->comm,
		.pcs = s->pcs,
		.marks = s->marks,
		.nr = s->nr,
		.end = s->end,
		.note = s->note,
		.labels = s->labels,
		.labels_size = s->labels_size,
		.time = s->time,
		.values = values,
	};

	values[value_at(which)] = value < INT64_MAX ? (int64_t)value : 0;
	if (!d->first) {
		d->first = proc;
		d->first_tid = t->tid;
		memcpy(d->first_comm, t->comm, sizeof(d->first_comm));
	}
	if (!t->sampled)
		d->counts.threads++;
	if (!t->process->sampled)
		d->counts.processes++;
	t->sampled = true;
	t->samples++;
	t->process->sampled = true;
	d->counts.samples++;
	d->counts.weight += values[1];
	d->weights[which] += value;
	count_end(d, t->process, s->note ? SHSTK_END_COMPLETE : s->end, s->elsewhere && !s->note);
	return shstk_profile_add(d->profile, &sample);
}

/* Adds the part of a callchain behind @context, whose first entry is a program counter. */
static void add_chain(struct perf_drain *d, const struct perf_sample *sample, uint64_t context,
		      unsigned int max, struct stack *s)
{
	bool wanted = false, first = false;

	for (uint64_t i = 0; i < sample->nr; i++) {
		uint64_t pc = sample->chain[i];

		if (pc >= PERF_CONTEXT_MAX) {
			first = wanted = pc == context;
		} else if (wanted && s->nr < max) {
			d->marks[s->nr] = first ? SHSTK_MARK_PC : 0;
			d->pcs[s->nr++] = pc;
			first = false;
		}
	}
}

/* How long is a process known by its samples, and not to have a shadow stack? In ns. */
static uint64_t unknown_for(const struct process *p, uint64_t time)
{
	return time > p->unknown_since ? time - p->unknown_since : 0;
}

/*
 * Is the callchain of a shadow stack? A program has it some time after it begins, which may be
 * after its first sample: it is looked for again when twice as much time has passed; without
 * delay if all depends on it, as stacks are not copied yet.
 */
static bool has_shadow_stack(const struct perf_drain *d, struct process *p)
{
	const uint64_t time = d->all.time;
	struct shadow_stacks stacks;

	if (p->shadow)
		return true;
	if (!p->unknown_since)
		p->unknown_since = time;
	if (time < p->ask_at)
		return false;
	p->ask_at = time + ASK_AGAIN;
	if (!d->mixed)
		p->ask_at += unknown_for(p, time);
	if (!shadow_stacks_read(p->pid, &stacks)) {
		p->shadow = stacks.n > 0;
		p->bare = !p->shadow;
		free(stacks.v);
	}
	return p->shadow;
}

/* Addresses of the stack of the goroutine that a sample is of. */
static void find_places(const struct stack_copy *copy, const struct unwound *user, bool spliced,
			struct golabels_hints *hints)
{
	bool x86 = perf_regs_arch() == SHSTK_ARCH_X86;
	const uint64_t *r = copy->regs->r;

	hints->g = r[x86 ? 14 : 28];
	if (!spliced && user->nr && user->end == SHSTK_END_COMPLETE)
		hints->places[hints->nr++] = user->sps[user->nr - 1];
	hints->places[hints->nr++] = splice_frame(copy, x86 ? 6 : 29, x86 ? 7 : 31);
	/* While the vdso is called on another stack. */
	hints->places[hints->nr++] = r[x86 ? 12 : 20];
}

/* The labels of the goroutine, in a process that runs code of Go. */
static void find_labels(struct perf_drain *d, struct process *p, const struct stack_copy *copy,
			const struct unwound *user, struct stack *s)
{
	struct golabels_hints hints = { .nr = 0 };

	if (!d->labels || !layout_has_go(p->layout))
		return;
	if (!p->golabels)
		p->golabels = golabels_create(p->pid);
	if (!p->golabels)
		return;
	find_places(copy, user, s->spliced, &hints);
	s->labels = d->label_text;
	s->labels_size = golabels_find(p->golabels, &hints, d->label_text);
}

static void add_user_chain(struct perf_drain *d, const struct perf_sample *sample, struct stack *s)
{
	const struct callchain chain = perf_sample_user(sample);

	add_chain(d, sample, PERF_CONTEXT_USER, MAX_ENTRIES, s);
	s->end = chain.nr >= chain.max ? SHSTK_END_CAPACITY : SHSTK_END_COMPLETE;
}

/*
 * The kernel followed frame pointers, which are anything here: only where it was is known. A
 * process that begins has no shadow stack yet; so it takes some samples of one, or many of all.
 */
static void add_bare(struct perf_drain *d, const struct process *p,
		     const struct perf_sample *sample, struct stack *s)
{
	const struct callchain chain = perf_sample_user(sample);

	if (!chain.nr)
		return;
	d->marks[s->nr] = SHSTK_MARK_PC;
	d->pcs[s->nr++] = chain.ips[0];
	s->end = SHSTK_END_NO_RULE;
	d->more.bare++;
	if (d->opts.freq)
		d->bare += 1000000000 / d->opts.freq;
	d->must_copy |= unknown_for(p, d->all.time) >= BARE_OF_ONE || d->bare >= BARE_OF_ALL;
}

static void add_outer_label(struct perf_drain *d, struct stack *s)
{
	if (!d->labels || s->by == BEYOND_NOTHING)
		return;
	s->labels = d->label_text;
	s->labels_size += beyond_label(s->by, d->label_text + s->labels_size);
}

/*
 * Has the copy the end of the stack, as it is smaller than it was to be? Of the largest ones the
 * kernel leaves out what does not fit into a record.
 */
static bool has_end(size_t size)
{
	for (size_t i = 0; i < NR_COPIES - 1; i++)
		if (size == copy_sizes[i])
			return false;
	return size <= copy_sizes[NR_COPIES - 2];
}

/* Unwinds the copy of the stack. */
static int add_copy(struct perf_drain *d, struct task *t, const struct perf_sample *sample,
		    struct stack *s)
{
	struct process *p = t->process;
	struct stack_copy copy = {
		.regs = &sample->regs,
		.bytes = sample->stack,
		.size = sample->stack_size,
		.more = d->pieces,
		.nr_more = d->nr_pieces,
	};
	struct unwound user = {
		.pcs = d->pcs + s->nr,
		.marks = d->marks + s->nr,
		.sps = d->sps,
		.max = d->depth,
	};
	struct callchain chain = perf_sample_user(sample);
	int ret = layout_unwind(p->layout, p->pid, &copy, &user);

	if (ret)
		return ret;
	/* Where the goroutine is known the end of the thread's own stack is one. */
	s->by_pieces = d->nr_pieces && user.end == SHSTK_END_COMPLETE;
	s->spliced = !s->by_pieces && splice_stack(p->layout, &chain, &user);
	user.elsewhere |= user.end == SHSTK_END_READ && has_end(sample->stack_size);
	s->too_short = !s->spliced && unwound_too_short(&user);
	if (!s->spliced)
		s->by = beyond_continue(&t->beyond, p->layout, &user, &copy, &chain);
	find_labels(d, p, &copy, &user, s);
	add_outer_label(d, s);
	s->nr += user.nr;
	s->end = user.end;
	s->elsewhere = user.elsewhere && user.end == SHSTK_END_READ;
	return 0;
}

/*
 * While a program is being executed the registers are those of the old one, whose stack
 * is gone; a process that ends has none. A thread that begins has touched no page of its
 * stack yet; no other one than the first executes programs.
 */
static int find_note(const struct task *t, const struct perf_sample *sample)
{
	const struct process *p = t->process;

	if (!sample->abi)
		return layout_empty(p->layout) ? SHSTK_NOTE_NONE : SHSTK_NOTE_EXIT;
	if (sample->user_mode)
		return SHSTK_NOTE_NONE;
	return (!sample->stack_size && t->tid == p->pid) ||
			       (p->executed && !layout_has(p->layout, sample->regs.pc)) ?
		       SHSTK_NOTE_LOADER :
		       SHSTK_NOTE_NONE;
}

/*
 * The stack of a sample: that of the kernel, if it is wanted or there is no other, and that of
 * user space.
 */
static int make_stack(struct perf_drain *d, struct task *t, const struct perf_sample *sample,
		      struct stack *ret)
{
	struct process *p = t->process;
	const bool chain = !d->copies || sample->abi == PERF_SAMPLE_REGS_ABI_32 ||
			   (d->chains && has_shadow_stack(d, p));

	*ret = (struct stack){ .pcs = d->pcs, .marks = d->marks };
	if (!chain)
		ret->note = find_note(t, sample);
	if (d->kernel || (!chain && (ret->note || !sample->abi)))
		add_chain(d, sample, PERF_CONTEXT_KERNEL, MAX_KERNEL, ret);
	if (chain && d->mixed && !has_shadow_stack(d, p) && p->bare)
		add_bare(d, p, sample, ret);
	else if (chain)
		add_user_chain(d, sample, ret);
	return chain || !sample->abi || ret->note ? 0 : add_copy(d, t, sample, ret);
}

/* Keeps the stack at which a thread left its CPU. */
static int keep_stack(struct task *t, struct shstk_symproc *proc, const struct stack *s)
{
	task_forget_stack(t);
	t->stack.pcs = malloc(s->nr * 9 + s->labels_size + 1);
	if (!t->stack.pcs)
		return -ENOMEM;
	t->stack.marks = (uint8_t *)&t->stack.pcs[s->nr];
	t->stack.labels = (char *)t->stack.marks + s->nr;
	t->stack.labels_size = s->labels_size;
	if (s->labels_size)
		memcpy(t->stack.labels, s->labels, s->labels_size);
	memcpy(t->stack.pcs, s->pcs, s->nr * sizeof(*s->pcs));
	memcpy(t->stack.marks, s->marks, s->nr);
	t->stack.nr = s->nr;
	t->stack.end = s->end;
	t->stack.note = s->note;
	t->proc = proc;
	t->stack.time = t->left = s->time;
	return 0;
}

/* What is learnt of a process and of the copies from a stack. */
static void count_stack(struct perf_drain *d, const struct task *t, const struct stack *s)
{
	d->go |= layout_has_go(t->process->layout);
	d->made |= layout_has_jit(t->process->layout);
	/* The recorder's own stack is elsewhere while it unwinds: larger copies have it neither. */
	d->too_short += s->too_short && t->process->pid != getpid();
	d->more.continued += s->by == BEYOND_BEFORE;
	d->more.chained += s->by == BEYOND_CALLCHAIN;
	d->more.goroutines += s->by_pieces;
}

static int take_sample(struct perf_drain *d, const struct perf_record *r)
{
	struct perf_sample sample;
	struct shstk_symproc *proc;
	struct stack stack;
	struct task *t;
	int ret;

	d->window++;
	if (r->pid <= 0 || r->tid <= 0 || !perf_sample_parse(r, d->copies, d->max_stack, &sample))
		return 0;
	t = population_task(&d->all, r->pid, r->tid);
	proc = t ? population_names(&d->all, t->process) : NULL;
	if (!proc)
		return -ENOMEM;
	d->nr_pieces = gomoments_find(d->moments, r, &sample, d->pieces);
	ret = make_stack(d, t, &sample, &stack);
	/* A process known only from /proc may have mapped more since. */
	if (!ret && (stack.end == SHSTK_END_BAD_PC || unknown_address(proc, &stack)) &&
	    population_read_maps(&d->all, t->process))
		ret = make_stack(d, t, &sample, &stack);
	/* Names of code made at run time are known only while it is there. */
	if (!ret)
		ret = layout_name_made(t->process->layout, proc, stack.pcs, stack.nr);
	if (ret)
		return ret;
	count_stack(d, t, &stack);
	stack.time = r->time;
	d->more.compat += sample.abi == PERF_SAMPLE_REGS_ABI_32;
	if (r->which == PERF_OFF)
		return t->exited ? 0 : keep_stack(t, proc, &stack);
	return add_sample(d, t, proc, &stack, r->which, sample.period);
}

/*
 * Of the time until now, that which is wanted. Who was pushed off could run all the time; who waits
 * can run from the wake-up on, or, where that was not seen, when it does.
 */
static uint64_t wanted_time(const struct perf_drain *d, const struct task *t, uint64_t time)
{
	uint64_t could_run = t->preempted ? t->left : t->woken ? t->woken : time;

	if (time <= t->left)
		return 0;
	if (could_run > time)
		could_run = time;
	return d->off == PERF_OFF_ALL	    ? time - t->left :
	       d->off == PERF_OFF_PREEMPTED ? time - could_run :
					      could_run - t->left;
}

/* A thread that waits is woken. Others are told so, too, as those that run already. */
static void take_waking(struct perf_drain *d, const struct waking *waking, uint64_t time)
{
	struct task *t = population_find_task(&d->all, waking->tid);

	if (!t || !t->left || t->woken || time < t->left)
		return;
	t->woken = time;
	t->waker = waking->waker;
}

/* The stack at which it left, with who woke it. */
static struct stack stack_with_waker(struct perf_drain *d, const struct task *t)
{
	const struct task *waker = population_find_task(&d->all, t->waker);
	struct stack stack = t->stack;

	if (!d->wakers || !d->labels || !t->woken || t->preempted)
		return stack;
	if (stack.labels_size)
		memcpy(d->label_text, stack.labels, stack.labels_size);
	stack.labels = d->label_text;
	stack.labels_size += wakers_label(d->wakers, t->waker, waker ? waker->comm : NULL,
					  d->label_text + stack.labels_size);
	return stack;
}

static int came_back(struct perf_drain *d, struct task *t, uint64_t time)
{
	const uint64_t wanted = wanted_time(d, t, time);
	struct stack stack;
	int ret = 0;

	if (!t->left)
		return 0;
	d->more.other_off += time > t->left ? time - t->left - wanted : 0;
	if (!wanted) {
		task_forget_stack(t);
		return 0;
	}
	/* It left when this profile had not begun. */
	if (!t->proc)
		t->proc = population_names(&d->all, t->process);
	if (!t->proc)
		return -ENOMEM;
	stack = stack_with_waker(d, t);
	ret = add_sample(d, t, t->proc, &stack, PERF_OFF, wanted);
	task_forget_stack(t);
	return ret;
}

static int take_switch(struct perf_drain *d, const struct perf_record *r)
{
	struct task *t = population_find_task(&d->all, r->tid);

	if (!t)
		return 0;
	/* The sample of the stack came just before. Kernels before 4.17 do not tell. */
	if (r->misc & PERF_RECORD_MISC_SWITCH_OUT) {
		t->preempted = r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
		return 0;
	}
	return came_back(d, t, r->time);
}

/*
 * A thread ends. Was it too short to be sampled? Or only just long enough: an event that begins anew
 * in each thread finds such ones where they end, or never where they begin.
 */
static void count_unseen(struct perf_drain *d, const struct task *t, uint64_t time)
{
	if (t->samples >= FEW || !t->began || time - t->began > SHORT)
		return;
	d->unseen++;
	d->more.unseen += !t->samples;
}

static void take_exit(struct perf_drain *d, const struct perf_record *r)
{
	struct perf_fork fork;
	struct task *t = perf_record_fork(r, &fork) ? population_exit(&d->all, &fork) : NULL;

	/* A CPU's own events still see it leave, until it is reaped. */
	if (t) {
		count_unseen(d, t, r->time);
		population_leave(&d->all, t, d->wide);
	}
	population_age(&d->all, r->time);
}

/* Of a process that is to be recorded, if not all are? */
static bool is_ours(struct perf_drain *d, const struct perf_record *r)
{
	struct task *t;

	if (!d->root)
		return true;
	t = population_find_task(&d->all, r->tid);
	if (t && r->pid == d->root && r->type == PERF_RECORD_COMM &&
	    r->misc & PERF_RECORD_MISC_COMM_EXEC)
		t->process->ours = true;
	return t && t->process->ours;
}

static int take_record(void *arg, const struct perf_record *r)
{
	struct perf_drain *d = arg;
	const uint64_t *body = r->body;
	struct perf_map map;
	struct perf_comm comm;
	struct perf_fork fork;
	struct waking waking;

	if (d->wakers && wakers_parse(d->wakers, r, &waking)) {
		take_waking(d, &waking, r->time);
		return 0;
	}
	if (r->type == PERF_RECORD_LOST && r->size >= 16) {
		d->counts.lost += body[1];
		d->came += body[1];
	}
	d->came += r->type == PERF_RECORD_SAMPLE;
	if (r->type == PERF_RECORD_LOST_SAMPLES && r->size >= 8)
		d->counts.lost += body[0];
	d->more.throttled += r->type == PERF_RECORD_THROTTLE;
	if (!is_ours(d, r)) {
		if (r->type == PERF_RECORD_FORK && perf_record_fork(r, &fork))
			population_forget(&d->all, fork.tid);
		return 0;
	}
	if (r->type == PERF_RECORD_SAMPLE && r->time < d->since)
		return 0;
	d->all.time = r->time;
	population_make_room(&d->all);
	if (d->writer)
		perf_writer_add(d->writer, r);
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(d, r);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return take_switch(d, r);
	case PERF_RECORD_MMAP2:
		d->moved = r->time;
		return perf_record_map(r, &map) ? population_map(&d->all, &map) : 0;
	case PERF_RECORD_COMM:
		d->moved = r->time;
		return perf_record_comm(r, &comm) ? population_comm(&d->all, &comm) : 0;
	case PERF_RECORD_FORK:
		d->moved = r->time;
		return perf_record_fork(r, &fork) ? population_fork(&d->all, &fork) : 0;
	case PERF_RECORD_EXIT:
		take_exit(d, r);
		return 0;
	default:
		return 0;
	}
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
	int ret = population_process(&d->all, pid) ? 0 : -ENOMEM;
	pid_t tid;

	while (dir && !ret && (tid = tasks_next(dir)))
		ret = population_task(&d->all, pid, tid) ? 0 : -ENOMEM;
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
	return pid > 0 && !population_task(&d->all, pid, tid) ? -ENOMEM : 0;
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
	uint64_t size = live_vdso(d->all.live, &id);

	if (size)
		perf_writer_vdso(d->writer, size, &id);
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
	d->profile = profile;
	d->total = -1;
	d->may_coarsen = opts->may_coarsen;
	d->off = opts->off;
	d->wakers = opts->wakers;
	d->more.count = opts->rings.count;
	d->max_stack = opts->rings.max_stack;
	d->depth = opts->depth;
	d->kernel = opts->kernel;
	d->copies = opts->rings.copy;
	d->more.copy = opts->rings.copy;
	d->chains = opts->chains;
	d->mixed = opts->mixed && !d->copies;
	d->threads = opts->threads;
	d->wide = !nr || opts->tree;
	d->root = opts->tree ? *opts->rings.pids : 0;
	d->keep_times = opts->keep_times;
	d->labels = opts->labels;
	if (d->keep_times)
		shstk_profile_keep_times(profile, d->keep_times);
	error = population_init(&d->all, symbols);
	if (!error && opts->perf_data) {
		error = perf_writer_create(opts->perf_data, &opts->rings, &d->writer);
		because(why, "cannot write %s: %s", opts->perf_data, strerror(-error));
	}
	d->all.writer = d->writer;
	if (!error && d->writer)
		tell_vdso(d);
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
	population_deinit(&d->all);
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
		opts.nr_pids = list ? list_tasks(&d->all, list, MAX_TARGETS) : 0;
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
	for (int which = 0; which < PERF_WHICH; which++)
		take_over(d, rings, which);
	ret = perf_rings_read(d->rings, true, take_record, d);
	if (perf_rings_lost(d->rings, &lost))
		d->lost += lost;
	perf_rings_close(d->rings);
	d->rings = rings;
	d->since = stopped;
	d->more.copy = opts.copy;
	return ret;
}

/* More than one stack of 200 is larger than what is copied. */
static bool must_grow(const struct perf_drain *d)
{
	return d->copies && d->copy + 1 < NR_COPIES && d->too_short >= 4 &&
	       d->too_short > d->window / 200;
}

/*
 * From now on with what Go's threads were doing for their goroutines. It is not done before
 * there is a program of Go: loading takes time, and so does each sample of others.
 */
static int add_moments(struct perf_drain *d)
{
	d->go_asked = true;
	d->moments = gomoments_create(d->opts.freq);
	if (!d->moments)
		return 0;
	d->opts.program = gomoments_program(d->moments);
	return replace_rings(d, d->more.copy);
}

/*
 * Do many threads end sooner than a period? Events of processes begin anew in each thread, and go
 * from one to the other with a switch between them: the time of all of these is lost then.
 */
static bool must_widen(const struct perf_drain *d)
{
	return !d->wide && !d->wide_asked && !d->threads && d->opts.main && !d->opts.count &&
	       d->unseen >= UNSEEN && d->unseen > d->counts.samples / UNSEEN_PART;
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
	ret = replace_rings(d, d->more.copy);
	if (d->rings == before) {
		d->opts.nr_pids = nr;
		d->copy = copy;
		return ret;
	}
	HASH_ITER(hh, d->all.processes, p, next)
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
	d->opts.count = d->more.count = count;
	return replace_rings(d, d->more.copy);
}

/* From now on processes without a shadow stack are sampled by copies, if these are to be had. */
static int begin_copies(struct perf_drain *d)
{
	const size_t second = d->opts.off ? SIZE_MAX : d->opts.freq * PERF_FIRST_COPY;
	int ret;

	if (d->opts.may_shrink)
		d->opts.ring_size = perf_ring_size(d->opts.ring_size, second);
	ret = replace_rings(d, PERF_FIRST_COPY);
	d->copies = d->more.copy;
	d->mixed = !d->copies;
	d->window = d->too_short = 0;
	return ret;
}

int perf_drain_take(struct perf_drain *d)
{
	int ret = perf_rings_read(d->rings, false, take_record, d);
	uint64_t count;

	if (!ret && must_coarsen(d, &count))
		ret = coarsen(d, count);
	if (!ret && d->mixed && d->must_copy && d->copy < NR_COPIES)
		return begin_copies(d);
	if (!ret && must_widen(d))
		ret = widen(d);
	if (!ret && d->go && d->copies && !d->go_asked)
		ret = add_moments(d);
	if (ret || !must_grow(d))
		return ret;
	d->copy++;
	d->window = d->too_short = 0;
	return replace_rings(d, copy_sizes[d->copy]);
}

bool perf_drain_calm(const struct perf_drain *d, uint64_t ns)
{
	return !d->go && !d->made && now_ns(CLOCK_MONOTONIC) - d->moved > CALM &&
	       !perf_rings_news(d->rings) && perf_rings_last(d->rings, ns);
}

int perf_drain_unsampled(struct perf_drain *d, int which, uint64_t value, int note)
{
	int64_t values[2 + PERF_MORE] = { 0 };
	struct shstk_sample sample = {
		.proc = d->first,
		.tid = d->first_tid,
		.comm = d->first_comm,
		.end = SHSTK_END_COMPLETE,
		.note = note,
		.time = now_ns(CLOCK_MONOTONIC),
		.values = values,
	};

	values[value_at(which)] = value < INT64_MAX ? (int64_t)value : 0;
	/* Without a sample there is nobody of whom it could be shown: the lines tell. */
	return d->first ? shstk_profile_add(d->profile, &sample) : 0;
}

/* Records that were lost in all profiles. Those that tell it come only once there is room again. */
static uint64_t all_lost(const struct perf_drain *d)
{
	uint64_t lost;

	return perf_rings_lost(d->rings, &lost) ? lost + d->lost : d->counts.lost + d->lost_before;
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
	const struct perf_counts more = {
		.copy = d->more.copy,
		.count = d->more.count,
		.unwritten = d->more.unwritten,
	};

	d->profile = profile;
	if (d->keep_times)
		shstk_profile_keep_times(profile, d->keep_times);
	population_renew(&d->all, symbols);
	d->lost_before = all_lost(d);
	for (int which = 0; which < PERF_WHICH; which++)
		all_counted(d, which, &d->counted_before[which]);
	memset(d->weights, 0, sizeof(d->weights));
	d->counts = (struct drain_counts){ .lost = 0 };
	d->more = more;
	d->first = NULL;
	d->unseen = 0;
}

int perf_drain_stop(struct perf_drain *d)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC);
	struct task *t, *next;
	int ret;

	perf_rings_stop(d->rings);
	ret = perf_rings_read(d->rings, true, take_record, d);
	/* Threads off the CPU: their time counts up to now. */
	HASH_ITER(hh, d->all.tasks, t, next)
	if (!ret)
		ret = came_back(d, t, end);
	d->more.unwritten = perf_writer_close(d->writer);
	d->writer = d->all.writer = NULL;
	return ret;
}

void perf_drain_left(struct perf_drain *d, void (*fn)(void *arg, int pid), void *arg)
{
	if (!d->wide || d->root)
		population_alive(&d->all, d->root, fn, arg);
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
	return d->weights[which];
}

bool perf_drain_borrowed(const struct perf_drain *d)
{
	return perf_rings_borrowed(d->rings);
}

void perf_drain_count(const struct perf_drain *d, struct drain_counts *ret,
		      struct perf_counts *more)
{
	*ret = d->counts;
	ret->lost = all_lost(d) - d->lost_before;
	if (!more)
		return;
	*more = d->more;
	if (d->wide || !d->wide_asked)
		more->unseen = 0;
}
