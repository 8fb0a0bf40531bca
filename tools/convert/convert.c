// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * convert.c - the converter: hands records to the population, makes stacks of samples, and adds
 * them to the profile. See convert.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/walk.h"
#include "tools/convert/ahead.h"
#include "tools/convert/contexts.h"
#include "tools/convert/convert.h"
#include "tools/java/methods.h"
#include "tools/language/languages.h"
#include "tools/perf/regs.h"
#include "tools/repeats.h"
#include "tools/shstk.h"
#include "tools/stack_pointer.h"

#define FEW 4 /* samples: for a thread with fewer, its first period matters */
#define SHORT 2000000000 /* ns that such a thread lasts at most; others slept */

/* Has the store of names ask for functions that interpreters ran. */
static void know_functions(struct converter *c, struct shstk_symbols *symbols)
{
	if (c->opts.languages)
		shstk_symbols_set_functions(symbols, languages_function, c->opts.languages);
}

struct converter *converter_create(const struct convert_opts *opts, struct shstk_symbols *symbols,
				   struct shstk_profile *profile, const struct mappings_files *past)
{
	struct converter *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->opts = *opts;
	c->stacks.source = opts->source;
	c->stacks.kernel = opts->kernel;
	c->stacks.depth = opts->depth;
	c->stacks.fold = opts->fold;
	c->stacks.labels = opts->labels;
	c->profile = profile;
	know_functions(c, symbols);
	if (opts->keep_times)
		shstk_profile_keep_times(profile, opts->keep_times);
	if (population_init(&c->all, symbols, past)) {
		free(c);
		return NULL;
	}
	c->all.labels = opts->labels;
	return c;
}

void converter_destroy(struct converter *c)
{
	if (!c)
		return;
	ahead_destroy(c->ahead);
	population_deinit(&c->all);
	stacks_deinit(&c->stacks);
	free(c->methods);
	free(c);
}

void converter_renew(struct converter *c, struct shstk_symbols *symbols,
		     struct shstk_profile *profile)
{
	c->profile = profile;
	know_functions(c, symbols);
	if (c->opts.keep_times)
		shstk_profile_keep_times(profile, c->opts.keep_times);
	population_renew(&c->all, symbols);
	memset(c->weights, 0, sizeof(c->weights));
	c->counts = (struct convert_counts){ .samples = 0 };
	c->first = (struct convert_first){ .proc = NULL };
	c->learnt.short_lived = 0;
}

/* ---- Samples that wait ---- */

static int take_sample(struct converter *c, int which, const struct perf_sample *sample,
		       const struct memory_pieces *more, const struct unwound *ahead);

/* Adds the sample that waits for longest to the profile. Returns 0 or a negative errno. */
static int settle_first(struct converter *c, const struct ahead_sample *s)
{
	const uint64_t now = c->all.time;
	int err = s->err;

	s->process->waiting--;
	c->all.time = s->time;
	if (!err)
		err = take_sample(c, s->which, &s->sample, NULL, s->unwound ? &s->user : NULL);
	c->all.time = now;
	ahead_drop_first(c->ahead);
	return err;
}

int convert_settle(struct converter *c)
{
	const struct ahead_sample *s;
	int err = 0;

	while (c->ahead && !err && (s = ahead_first(c->ahead)))
		err = settle_first(c, s);
	return err;
}

/*
 * Adds the samples of a process that wait, with those of others before them, as what they depend on is
 * about to change. @p may be NULL. Returns 0 or a negative errno.
 */
static int settle(struct converter *c, const struct process *p)
{
	int err = 0;

	while (p && p->waiting && !err)
		err = settle_first(c, ahead_first(c->ahead));
	return err;
}

/* Does the same for the process to which a thread is known to belong. */
static int settle_thread(struct converter *c, int tid)
{
	const struct task *t = c->ahead ? population_find_task(&c->all, tid) : NULL;

	return t ? settle(c, t->process) : 0;
}

static int settle_process(struct converter *c, int pid)
{
	return c->ahead ? settle(c, population_find_process(&c->all, pid)) : 0;
}

/* Does the same if the thread is now one of process @pid, but was known as another one's. */
static int settle_moved(struct converter *c, int pid, int tid)
{
	const struct task *t = c->ahead ? population_find_task(&c->all, tid) : NULL;

	return t && t->process->pid != pid ? settle(c, t->process) : 0;
}

int convert_read(struct converter *c, int tid)
{
	return settle_thread(c, tid);
}

int convert_forget(struct converter *c, int tid)
{
	int err = settle_thread(c, tid);

	if (!err)
		population_forget(&c->all, tid);
	return err;
}

/* ---- Processes and threads ---- */

void convert_at(struct converter *c, uint64_t time)
{
	c->all.time = time;
	population_make_room(&c->all);
}

/* Looks whether threads of the process publish trace contexts. */
static void watch_contexts(struct converter *c, struct process *p)
{
	if (c->opts.contexts && p->pid)
		contexts_watch(c->opts.contexts, &p->context, p->pid, c->all.files,
			       now_ns(CLOCK_MONOTONIC));
}

int convert_language(struct converter *c, int pid)
{
	const bool wanted = c->opts.languages || c->opts.contexts;
	struct process *p = wanted ? population_process(&c->all, pid) : NULL;

	if (p && c->opts.languages)
		process_language(p, c->opts.languages);
	if (p)
		watch_contexts(c, p);
	return p || !wanted ? 0 : -ENOMEM;
}

int convert_map(struct converter *c, const struct perf_map *m)
{
	struct process *p;
	int err;

	c->learnt.moved = c->all.time;
	err = settle_process(c, m->pid);
	if (!err)
		err = population_map(&c->all, m);
	if (err || m->pid <= 0)
		return err;
	p = c->opts.contexts && mappings_is_file(m->path) ? population_process(&c->all, m->pid) :
							    NULL;
	if (p)
		context_watch_moved(p->context);
	return languages_may_be(m->path) ? convert_language(c, m->pid) : 0;
}

int convert_comm(struct converter *c, const struct perf_comm *m)
{
	int err = settle_process(c, m->pid);

	if (!err)
		err = settle_thread(c, m->tid);
	c->learnt.moved = c->all.time;
	return err ? err : population_comm(&c->all, m);
}

/* Notes in the profile that the process of a thread began or ended. Returns 0 or -ENOMEM. */
static int note_life(struct converter *c, const struct task *t, bool ended)
{
	const struct shstk_life life = {
		.time = c->all.time,
		.comm = t->comm,
		.pid = t->process->pid,
		.ended = ended,
	};

	return life.pid > 0 && life.time ? shstk_profile_live(c->profile, &life) : 0;
}

int convert_fork(struct converter *c, const struct perf_fork *f)
{
	const struct task *t;
	int err;

	c->learnt.moved = c->all.time;
	err = settle_process(c, f->pid);
	if (!err)
		err = settle_thread(c, f->tid);
	if (!err)
		err = settle_moved(c, f->parent, f->from);
	if (!err)
		err = population_fork(&c->all, f);
	t = err || f->pid == f->parent ? NULL : population_find_task(&c->all, f->tid);
	return t ? note_life(c, t, false) : err;
}

/* Notes the thread to which is added what has no sample. */
static void note_first(struct converter *c, const struct task *t, struct shstk_symproc *proc)
{
	c->first.proc = proc;
	c->first.tid = t->tid;
	memcpy(c->first.comm, t->comm, sizeof(c->first.comm));
}

/* Returns whether the thread began when periods varied: others stand for it if it has no sample. */
static bool has_varied_period(const struct converter *c, const struct task *t)
{
	return c->varied && t->began >= c->varied;
}

/* Counts a thread that began and ended while it was recorded. */
static void count_ended(struct converter *c, const struct task *t)
{
	if (!t->began)
		return;
	if (!has_varied_period(c, t)) {
		c->counts.ended++;
		return;
	}
	c->counts.varied++;
	c->counts.brief += c->all.time - t->began < c->opts.period / 2;
}

/*
 * Counts a thread that ended without samples or with few of them. An event begins anew in each
 * thread, so a thread that is too short has no sample, and one that is just long enough is always
 * sampled near its end and never near its beginning.
 */
static void count_unseen(struct converter *c, const struct task *t)
{
	if (has_varied_period(c, t))
		return;
	if (t->samples >= FEW || !t->began || c->all.time - t->began > SHORT)
		return;
	c->learnt.short_lived++;
	c->counts.unseen += !t->samples;
	/* Its time is shown even if there are no samples at all. */
	if (!c->first.proc && !t->samples)
		note_first(c, t, population_names(&c->all, t->process));
}

int convert_exit(struct converter *c, const struct perf_fork *f, bool later)
{
	int err = settle_thread(c, f->tid);
	struct task *t = err ? NULL : population_exit(&c->all, f);

	if (t) {
		count_ended(c, t);
		count_unseen(c, t);
		if (population_ends(t))
			err = note_life(c, t, true);
		population_leave(&c->all, t, later);
	}
	population_age(&c->all);
	return err;
}

/* ---- Samples ---- */

/*
 * Returns whether the stack has an address of user space in no known mapping. Mostly a caller lies
 * in the same mapping as its callee.
 */
static bool unknown_address(struct shstk_symproc *proc, const struct stack *s)
{
	uint64_t start = 0, end = 0; /* of the last mapping that was found */

	for (unsigned int i = 0; i < s->nr; i++) {
		uint64_t pc = s->pcs[i] - !!i;
		const struct shstk_symmap *map;

		if (s->pcs[i] >= SHSTK_FUNCTION_BASE || (pc >= start && pc < end))
			continue;
		map = shstk_symproc_find(proc, pc);
		if (map->kind == SHSTK_SYMMAP_NONE)
			return true;
		start = map->start;
		end = map->end;
	}
	return false;
}

static void count_end(struct convert_counts *n, const struct process *p, const struct stack *s)
{
	if (s->note || s->end == SHSTK_END_COMPLETE)
		return;
	n->truncated++;
	n->cut += s->end == SHSTK_END_CAPACITY;
	n->too_short += s->end == SHSTK_END_READ && !s->elsewhere;
	n->elsewhere += s->elsewhere;
	n->java += s->end != SHSTK_END_CAPACITY && s->end != SHSTK_END_READ &&
		   mappings_has_jit(p->mappings);
}

/* Counts a stack of the profile by what it was made of. */
static void count_stack(struct convert_counts *n, const struct process *p, const struct stack *s)
{
	count_end(n, p, s);
	n->no_shadow += s->no_shadow;
	n->continued += s->by == OUTER_BEFORE;
	n->read += s->by == OUTER_READ;
	n->chained += s->by == OUTER_CALLCHAIN;
	n->goroutines += s->by_pieces;
	n->folded += s->folded;
	n->walked += s->walked;
	n->compat += s->compat;
}

/* Counts a stack that has no functions of a program, as nobody reads the frames of its interpreter. */
static void count_interpreter(struct convert_counts *n, const struct process *p)
{
	const char *path = mappings_interpreter(p->mappings), *slash;

	if (!path)
		return;
	slash = strrchr(path, '/');
	if (!n->interpreted++)
		snprintf(n->interpreter, sizeof(n->interpreter), "%s", slash ? slash + 1 : path);
}

/* Counts a sample of the thread that is about to be added. */
static void count_sample(struct converter *c, struct task *t, struct shstk_symproc *proc, int which,
			 uint64_t value)
{
	if (!c->first.proc)
		note_first(c, t, proc);
	if (!t->sampled)
		c->counts.threads++;
	if (!t->process->sampled)
		c->counts.processes++;
	t->sampled = true;
	t->samples++;
	t->process->sampled = true;
	c->counts.samples++;
	if (which < PERF_FIRST_MORE)
		c->counts.weight += value;
	c->weights[which] += value;
}

/* Fills in the values of a sample: the number of samples, then the weight of each event. */
static void set_values(int64_t values[2 + PERF_MORE], int64_t samples, int which, uint64_t value)
{
	const unsigned int at = which < PERF_FIRST_MORE ? 1 : 2 + which - PERF_FIRST_MORE;

	memset(values, 0, (2 + PERF_MORE) * sizeof(*values));
	values[0] = samples;
	values[at] = value < INT64_MAX / 2 ? (int64_t)value : 0;
}

static int add_sample(struct converter *c, struct task *t, struct shstk_symproc *proc,
		      const struct stack *s, int which, uint64_t value)
{
	int64_t values[2 + PERF_MORE];
	const struct shstk_sample sample = {
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
		.cpu = s->cpu,
		.values = values,
	};

	set_values(values, 1, which, value);
	count_sample(c, t, proc, which, value < INT64_MAX / 2 ? value : 0);
	count_stack(&c->counts, t->process, s);
	if (!c->opts.languages)
		count_interpreter(&c->counts, t->process);
	return shstk_profile_add(c->profile, &sample);
}

/* Learns from a stack what the process is like, and whether copies are large enough. */
static void learn(struct converter *c, const struct task *t, const struct stack *s)
{
	struct convert_learnt *l = &c->learnt;

	l->go |= mappings_has_go(t->process->mappings);
	l->made |= mappings_has_jit(t->process->mappings);
	/* The recorder's own stack is another one while it unwinds: larger copies do not help. */
	l->too_short += s->too_short && t->process->pid != getpid();
	if (s->no_shadow) {
		uint64_t known = stacks_no_shadow_for(t->process, c->all.time);

		l->no_shadow += c->opts.period;
		l->no_shadow_longest = known > l->no_shadow_longest ? known : l->no_shadow_longest;
	}
}

/* Returns the part of a stack that was copied. */
static struct native_stack copied_part(const struct stacks *st, const struct stack *s)
{
	return (struct native_stack){
		.pcs = s->pcs + s->copied,
		.marks = s->marks + s->copied,
		.sps = st->sps,
		.nr = s->nr_copied,
		.complete = s->end == SHSTK_END_COMPLETE,
	};
}

/*
 * Returns the part of a stack among which the functions of an interpreter can be placed: it was
 * copied, and it has all frames. It has no entries if there is none.
 */
static struct native_stack native_part(const struct stacks *st, const struct stack *s)
{
	const struct native_stack whole = {
		.pcs = st->whole.pcs,
		.marks = st->whole.marks,
		.sps = st->whole.sps,
		.nr = st->whole.nr,
		.complete = st->whole.end == SHSTK_END_COMPLETE,
	};

	if (s->folded)
		return whole;
	/* What lies behind the copied part would stay behind it. */
	return s->nr == s->copied + s->nr_copied ? copied_part(st, s) :
						   (struct native_stack){ .nr = 0 };
}

/*
 * Makes @to the part of a stack that was copied; what was read behind that stays. Too deep a stack is
 * shortened, as it is without methods. Returns false if it cannot be.
 */
static bool take_entries(const struct converter *c, struct java_entries *to, bool complete,
			 struct stack *s)
{
	const unsigned int outer = s->folded ? 0 : s->nr - s->copied - s->nr_copied;
	const unsigned int room = STACKS_MAX - s->copied - outer;
	unsigned int nr = to->nr;

	if (c->stacks.fold && nr > c->stacks.depth)
		nr = repeats_shorten(to->pcs, to->marks, nr, c->stacks.depth, complete);
	if (nr > room)
		return false;
	memmove(s->pcs + s->copied + nr, s->pcs + s->nr - outer, outer * sizeof(*s->pcs));
	memmove(s->marks + s->copied + nr, s->marks + s->nr - outer, outer);
	memcpy(s->pcs + s->copied, to->pcs, nr * sizeof(*s->pcs));
	memcpy(s->marks + s->copied, to->marks, nr);
	s->folded = nr < to->nr;
	s->nr = s->copied + nr + outer;
	return true;
}

/* Puts the methods that Java's machine ran into a stack that was copied. */
static void place_methods(struct converter *c, const struct task *t,
			  const struct perf_sample *sample, const struct memory_pieces *more,
			  struct stack *s)
{
	const struct stack_copy copy = stacks_copy(sample, more);
	struct native_stack native = native_part(&c->stacks, s);

	/* What was read behind the copy stays behind it. */
	if (!s->folded)
		native = copied_part(&c->stacks, s);
	if (!native.nr || !mappings_has_jit(t->process->mappings))
		return;
	if (!c->methods)
		c->methods = malloc(sizeof(*c->methods));
	if (c->methods && mappings_place_methods(t->process->mappings, c->opts.languages, &native,
						 &copy, c->methods))
		take_entries(c, c->methods, native.complete, s);
}

/* Puts the functions that an interpreter ran into a stack that was copied. */
static void place_functions(struct converter *c, struct task *t, const struct perf_sample *sample,
			    struct stack *s)
{
	const struct language_sample of = {
		.number = process_language(t->process, c->opts.languages),
		.tid = t->tid,
		.time = sample->time,
		.pc = sample->regs.pc,
		.sp = stack_pointer(perf_regs_arch(), &sample->regs),
		.fold = c->stacks.fold ? c->stacks.depth : 0,
	};
	struct native_stack native = native_part(&c->stacks, s);
	unsigned int nr;

	if (!of.number || !native.nr)
		return;
	native.function = process_function;
	native.arg = t->process;
	nr = languages_place(c->opts.languages, &of, &native, s->pcs + s->copied,
			     s->marks + s->copied, STACKS_MAX - s->copied);
	if (c->opts.labels) {
		s->labels = c->stacks.label_text;
		s->labels_size +=
			languages_label(c->opts.languages, c->stacks.label_text + s->labels_size);
	}
	if (!nr)
		return;
	s->nr = s->copied + nr;
	s->folded = languages_folded(c->opts.languages);
}

/* Gives a stack the trace context that its thread published. */
static void add_context(struct converter *c, struct task *t, const struct perf_sample *sample,
			struct stack *s)
{
	const struct callchain chain = perf_sample_user(sample);
	const struct context_sample of = {
		.tid = t->tid,
		.time = sample->time,
		.pc = sample->abi ? sample->regs.pc :
		      chain.nr	  ? chain.ips[0] & ~WALK_MARKS :
				    0,
	};

	watch_contexts(c, t->process);
	s->labels = c->stacks.label_text;
	s->labels_size += contexts_label(c->opts.contexts, t->process->context, &of,
					 c->stacks.label_text + s->labels_size);
}

/*
 * Reads what the process has mapped now, unless that was done a moment ago. What is unwound ahead
 * meanwhile would be without it. Returns whether it did.
 */
static bool read_maps(struct converter *c, struct process *p)
{
	if (!population_may_read_maps(&c->all, p))
		return false;
	if (c->ahead)
		ahead_drop_stacks(c->ahead);
	return population_read_maps(&c->all, p);
}

/*
 * Makes the stack of a sample, and names code in it that was made at run time. Returns 0 or a
 * negative errno.
 */
static int make_stack(struct converter *c, struct task *t, struct shstk_symproc *proc,
		      const struct perf_sample *sample, const struct memory_pieces *more,
		      const struct unwound *ahead, struct stack *ret)
{
	int err = stacks_make(&c->stacks, &c->all, t, sample, more, ahead, ret);

	/* A process that is known only from /proc may have mapped more since. */
	if (!err && (ret->end == SHSTK_END_BAD_PC || unknown_address(proc, ret)) &&
	    read_maps(c, t->process))
		err = stacks_make(&c->stacks, &c->all, t, sample, more, NULL, ret);
	/* Names of code that is made at run time are known only as long as the code exists. */
	if (!err)
		err = mappings_name_generated(t->process->mappings, proc, ret->pcs, ret->nr);
	if (!err && c->opts.languages)
		place_methods(c, t, sample, more, ret);
	if (!err && c->opts.languages)
		place_functions(c, t, sample, ret);
	if (!err && c->opts.contexts)
		add_context(c, t, sample, ret);
	return err;
}

/* Keeps the stack at which a thread left its CPU. Returns 0 or -ENOMEM. */
static int keep_stack(struct task *t, struct shstk_symproc *proc, const struct stack *s)
{
	uint64_t *pcs = malloc(s->nr * 9 + s->labels_size + 1);

	task_forget_stack(t);
	if (!pcs)
		return -ENOMEM;
	t->stack = *s;
	t->stack.pcs = pcs;
	t->stack.marks = (uint8_t *)&pcs[s->nr];
	t->stack.labels = (char *)t->stack.marks + s->nr;
	if (s->labels_size)
		memcpy(t->stack.labels, s->labels, s->labels_size);
	memcpy(pcs, s->pcs, s->nr * sizeof(*pcs));
	memcpy(t->stack.marks, s->marks, s->nr);
	t->proc = proc;
	t->left = s->time;
	return 0;
}

/* Takes a sample; @ahead is its stack, if that was unwound ahead. Returns 0 or a negative errno. */
static int take_sample(struct converter *c, int which, const struct perf_sample *sample,
		       const struct memory_pieces *more, const struct unwound *ahead)
{
	struct shstk_symproc *proc;
	struct stack stack;
	struct task *t;
	int err;

	c->learnt.copies++;
	t = population_task(&c->all, sample->pid, sample->tid);
	proc = t ? population_names(&c->all, t->process) : NULL;
	if (!proc)
		return -ENOMEM;
	t->taken = sample->time;
	err = make_stack(c, t, proc, sample, more, ahead, &stack);
	if (err)
		return err;
	stack.cpu = sample->cpu;
	learn(c, t, &stack);
	if (which == PERF_OFF)
		return t->exited ? 0 : keep_stack(t, proc, &stack);
	return add_sample(c, t, proc, &stack, which, sample->period);
}

/*
 * Returns whether a sample may wait while its stack is unwound: it has a copy, for which nothing is
 * read that is gone soon. The first sample of the profile does not wait, as what has none is added to
 * its thread.
 */
static bool may_wait(const struct converter *c, int which, const struct perf_sample *sample,
		     const struct memory_pieces *more)
{
	return c->opts.threads > 1 && c->first.proc && !c->all.writer && which != PERF_OFF &&
	       stacks_are_copied(&c->stacks) && !sample->walked &&
	       sample->abi == PERF_SAMPLE_REGS_ABI_64 && sample->stack_size &&
	       !(more && more->nr) &&
	       !(c->opts.contexts && contexts_have(c->opts.contexts, sample->tid));
}

/* Starts the threads, if that was not done yet. Returns whether there are any. */
static bool have_threads(struct converter *c)
{
	if (!c->ahead)
		c->ahead = ahead_create(c->opts.threads - 1, c->stacks.depth);
	if (!c->ahead)
		c->opts.threads = 1;
	return c->ahead;
}

/* Returns whether unwinding is all that is needed for a stack of the process, as far as is known. */
static bool is_native(const struct process *p)
{
	return !p->language && !mappings_has_jit(p->mappings) && !mappings_has_go(p->mappings);
}

/* Lets a sample wait, if it may. Returns 1 if it waits, 0 if it does not, or a negative errno. */
static int let_wait(struct converter *c, int which, const struct perf_sample *sample)
{
	struct ahead_sample s = { .which = which, .time = c->all.time, .sample = *sample };
	int err = settle_moved(c, sample->pid, sample->tid);
	struct task *t = err ? NULL : population_task(&c->all, sample->pid, sample->tid);

	if (!t)
		return err ? err : -ENOMEM;
	if (!is_native(t->process) || !have_threads(c))
		return 0;
	t->taken = sample->time;
	s.process = t->process;
	do {
		err = ahead_add(c->ahead, &s);
	} while (err == -ENOSPC && !(err = settle_first(c, ahead_first(c->ahead))));
	t->process->waiting += !err;
	return err ? err : 1;
}

int convert_sample(struct converter *c, int which, const struct perf_sample *sample,
		   const struct memory_pieces *more)
{
	int ret = may_wait(c, which, sample, more) ? let_wait(c, which, sample) : 0;

	if (!ret)
		ret = settle_process(c, sample->pid);
	if (!ret)
		ret = settle_thread(c, sample->tid);
	return ret ? (ret < 0 ? ret : 0) : take_sample(c, which, sample, more, NULL);
}

/* ---- Time off the CPU ---- */

/*
 * Returns the part of the time off the CPU until @time that is wanted. A thread that was preempted
 * could run all that time. A thread that waited could run from its wake-up on or, if that was not
 * seen, only from @time on.
 */
static uint64_t wanted_time(const struct converter *c, const struct task *t, uint64_t time)
{
	uint64_t could_run = t->preempted ? t->left : t->woken ? t->woken : time;

	if (time <= t->left)
		return 0;
	if (could_run > time)
		could_run = time;
	return c->opts.off == OFF_ALL	    ? time - t->left :
	       c->opts.off == OFF_PREEMPTED ? time - could_run :
					      could_run - t->left;
}

/* Writes a label that tells time off the CPU from time on it. Returns its bytes. */
static size_t state_label(bool preempted, char *buf)
{
	static const char waiting[STATE_LABEL] = "state\0waiting";
	static const char could_run[STATE_LABEL] = "state\0preempted";

	memcpy(buf, preempted ? could_run : waiting, STATE_LABEL);
	return preempted ? sizeof("state\0preempted") : sizeof("state\0waiting");
}

/*
 * Returns the stack at which the thread left its CPU, with labels for why it did, where that is not
 * the same for all, and for the thread that woke it.
 */
static struct stack stack_with_labels(struct converter *c, const struct task *t)
{
	const struct task *waker = population_find_task(&c->all, t->waker);
	char *text = c->stacks.label_text;
	struct stack stack = t->stack;

	if (!c->opts.labels)
		return stack;
	if (stack.labels_size)
		memcpy(text, stack.labels, stack.labels_size);
	stack.labels = text;
	if (c->opts.off == OFF_ALL)
		stack.labels_size += state_label(t->preempted, text + stack.labels_size);
	if (c->opts.wakers && t->woken && !t->preempted)
		stack.labels_size += wakers_label(c->opts.wakers, t->waker,
						  waker ? waker->comm : NULL,
						  text + stack.labels_size);
	return stack;
}

static int came_back(struct converter *c, struct task *t, uint64_t time)
{
	const uint64_t wanted = wanted_time(c, t, time);
	struct stack stack;
	int ret = 0;

	/* A return that earlier rings have told comes once more from those that took their place. */
	if (!t->left || time < t->left)
		return 0;
	c->counts.other_off += time - t->left - wanted;
	if (!wanted) {
		task_forget_stack(t);
		return 0;
	}
	/* The thread left its CPU before this profile began. */
	if (!t->proc)
		t->proc = population_names(&c->all, t->process);
	if (!t->proc)
		return -ENOMEM;
	stack = stack_with_labels(c, t);
	ret = add_sample(c, t, t->proc, &stack, PERF_OFF, wanted);
	task_forget_stack(t);
	return ret;
}

/* The sample with the stack came just before. */
void convert_leave(struct converter *c, int tid, bool preempted)
{
	struct task *t = population_find_task(&c->all, tid);

	if (t)
		t->preempted = preempted;
}

/* The kernel also reports wake-ups of threads that run already. */
void convert_waking(struct converter *c, const struct waking *waking, uint64_t time)
{
	struct task *t = population_find_task(&c->all, waking->tid);

	if (!t || !t->left || t->woken || time < t->left)
		return;
	t->woken = time;
	t->waker = waking->waker;
}

int convert_return(struct converter *c, int tid, uint64_t time)
{
	struct task *t = population_find_task(&c->all, tid);
	int err = t ? settle(c, t->process) : 0;

	return t && !err ? came_back(c, t, time) : err;
}

int convert_end(struct converter *c, uint64_t time)
{
	struct task *t, *next;
	int ret = convert_settle(c);

	HASH_ITER(hh, c->all.tasks, t, next)
	if (!ret)
		ret = came_back(c, t, time);
	return ret;
}

/* ---- What has no sample ---- */

int convert_unsampled(struct converter *c, int which, uint64_t value, int note)
{
	int64_t values[2 + PERF_MORE];
	const struct shstk_sample sample = {
		.proc = c->first.proc,
		.tid = c->first.tid,
		.comm = c->first.comm,
		.end = SHSTK_END_COMPLETE,
		.note = note,
		.time = now_ns(CLOCK_MONOTONIC),
		.values = values,
	};

	set_values(values, 0, which, value);
	/*
	 * Without a first sample, or a thread that ended before it had one, there is no thread to
	 * which this could be added: then only the last lines tell.
	 */
	return c->first.proc ? shstk_profile_add(c->profile, &sample) : 0;
}
