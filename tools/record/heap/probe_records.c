// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probe_records.c - turns the records of the BPF probes at allocators into blocks and their stacks.
 *
 * The kernel's ring has the records of all threads in the order in which they came. For each call
 * there is one record with its stack and, once it returns, one with the block's address. The stack
 * is unwound at once, and kept as a site until the address is known.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/convert/population.h"
#include "tools/convert/stack_deep.h"
#include "tools/perf/regs.h"
#include "tools/probes/attach.h"
#include "tools/probes/probe_programs.h"
#include "tools/probes/bpf_ring.h"
#include "tools/proc/tasks.h"
#include "tools/record/heap/blocks.h"
#include "tools/record/heap/heap_values.h"
#include "tools/record/heap/probe_functions.h"
#include "tools/record/heap/probe_records.h"
#include "tools/record/heap/told.h"
#include "tools/shstk.h"
#include "tools/stack_pointer.h"

#define OBJECT "shstk-heap.bpf.o"
#define START_SIZE 512
#define PART 4096 /* bytes of a part of a stack's copy, struct probe_call */
#define PIECES \
	(PROBE_LARGE_COPY / PART / 2 + 1) /* most pieces, as each lies behind a missing part */

/**
 * struct probe_recording_process - a process that is recorded
 * @pid: its process ID.
 * @end: pidfd, which becomes readable when the process has ended.
 * @start_size: bytes in @start.
 * @start: the process's auxiliary vector when recording began; another program has another one.
 * @comm: its name.
 * @probes: the probes at its allocators.
 */
struct probe_recording_process {
	pid_t pid;
	int end;
	size_t start_size;
	char start[START_SIZE];
	char comm[PROBE_COMM];
	struct attached probes;
};

/* A call of a thread that has begun and not returned. */
struct pending {
	UT_hash_handle hh;
	uint32_t tid;
	struct site *site;
};

struct probe_recording {
	struct probe_recording_opts opts;
	struct programs programs;
	struct ring ring;
	struct probe_recording_process *targets;
	struct population all;
	struct probe_functions *functions; /* of interpreters */
	struct blocks *blocks;
	struct told told; /* what the profile has been told, if it is told as recording goes on */
	struct pending *pending;
	struct probe_config config;
	struct probe_recording_counts counts;
	uint64_t began;
	uint64_t window, too_short; /* stacks since the copy grew; those longer than it */
	uint64_t checked; /* lost records of frees that were taken into account */
	uint64_t *pcs;
	uint64_t *sps;
	uint8_t *marks;
	struct unwound deep; /* room for stacks that are shortened, if they are */
};

/* ---- Stacks ---- */

static void take_words(const struct probe_call *call, struct shstk_regs *regs)
{
#ifdef __x86_64__
	/*
	 * The words are in the order of struct pt_regs: r15 to r12, bp, bx, r11 to r8, ax, cx, dx,
	 * si, di, orig_ax (-1: no register of ours), ip, and so on.
	 */
	static const int8_t number[PROBE_WORDS] = { 23, 22, 21, 20, 6,	1, 19, 18, 17, 16, 0,
						    2,	3,  4,	5,  -1, 8, -1, -1, 7,  -1 };
#else
	static const int8_t number[PROBE_WORDS] = { 0,	1,  2,	3,  4,	5,  6,	7,  8,	9,  10, 11,
						    12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
						    24, 25, 26, 27, 28, 29, 30, 31, 32, -1 };
#endif

	*regs = (struct shstk_regs){ .size = sizeof(*regs) };
	for (int i = 0; i < PROBE_WORDS; i++)
		if (number[i] >= 0)
			perf_regs_set(perf_regs_arch(), number[i], call->words[i], regs);
}

static bool unknown_address(const struct process *p, const struct unwound *u)
{
	for (unsigned int i = 0; i < u->nr; i++)
		if (!mappings_has(p->mappings, u->pcs[i] - !!i))
			return true;
	return false;
}

/*
 * Reads the auxiliary vector, which the kernel gave the program at its start. Returns its size, or
 * 0 if it cannot be read.
 */
static size_t read_start(pid_t pid, char buf[START_SIZE])
{
	char path[32];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, buf, START_SIZE);
	close(fd);
	return n < 0 ? 0 : n;
}

/*
 * Returns whether the process has ended or executed another program, whereupon the kernel took the
 * probes away. Another program is recognised by its auxiliary vector, which contains addresses, at
 * least one of its stack.
 */
static bool is_over(const struct probe_recording_process *t)
{
	struct pollfd end = { .fd = t->end, .events = POLLIN };
	char start[START_SIZE];

	if (poll(&end, 1, 0) > 0)
		return true;
	return read_start(t->pid, start) != t->start_size || memcmp(start, t->start, t->start_size);
}

/*
 * Reads the mappings of a process anew, unless that was done a moment ago and it has mapped nothing since.
 * An interpreter may be among them. Returns whether it did.
 */
static bool read_maps(struct probe_recording *p, struct process *process)
{
	if (!population_read_maps(&p->all, process))
		return false;
	probe_functions_look(p->functions, process->pid);
	probe_functions_name(p->functions, p->all.symbols);
	probe_functions_meet(p->functions, process);
	return true;
}

/*
 * Unwinds a stack. Does so once more with the mappings read anew, if there are addresses in no
 * known mapping. Returns 0 or a negative errno.
 */
static int unwind(struct probe_recording *p, const struct probe_recording_process *target,
		  const struct stack_copy *copy, struct unwound *u)
{
	struct process *process = population_process(&p->all, target->pid);
	struct unwound empty = *u;
	int ret = -ENOMEM;

	if (process)
		ret = mappings_unwind(process->mappings, process->pid, copy, u);
	if (ret || (u->end != SHSTK_END_BAD_PC && !unknown_address(process, u)) ||
	    is_over(target) || !read_maps(p, process))
		return ret;
	*u = empty;
	return mappings_unwind(process->mappings, process->pid, copy, u);
}

/*
 * Unwinds a stack. If it has more entries than @u has room for, @deep becomes the whole stack, as far as
 * there is room for that; else its room is 0. Returns 0 or a negative errno.
 */
static int unwind_all(struct probe_recording *p, const struct probe_recording_process *target,
		      const struct stack_copy *copy, struct unwound *u, struct unwound *deep)
{
	int ret = unwind(p, target, copy, u);

	*deep = (struct unwound){ .max = 0 };
	if (ret || u->end != SHSTK_END_CAPACITY || !p->deep.max)
		return ret;
	*deep = p->deep;
	return unwind(p, target, copy, deep);
}

/* Puts the functions of an interpreter into the stack of a call, and shortens it if it is @deep. */
static void finish_stack(struct probe_recording *p, const struct probe_call *call,
			 const struct shstk_regs *regs, struct unwound *u, struct unwound *deep)
{
	const pid_t pid = p->targets[call->event.process].pid;
	struct process *process = population_process(&p->all, pid);
	const struct unwound *whole = deep->max ? deep : u;

	if (process &&
	    probe_functions_place(p->functions, process, call, regs, whole, u, p->opts.heap.fold))
		p->counts.folded += probe_functions_folded(p->functions);
	else if (deep->max)
		p->counts.folded += deep_fold(deep, u);
}

static void count_end(struct probe_recording *p, const struct unwound *u)
{
	int end = u->end;

	p->window++;
	if (unwound_too_short(u)) {
		p->counts.too_short++;
		p->too_short++;
	} else if (u->elsewhere) {
		p->counts.elsewhere++;
	} else if (end == SHSTK_END_CAPACITY) {
		p->counts.deep++;
	} else if (end != SHSTK_END_COMPLETE) {
		p->counts.cut++;
	}
	/* Make copies larger if they are too short for more than one stack of 200. */
	if (p->config.large || p->too_short < 4 || p->too_short <= p->window / 200)
		return;
	p->config.large = 1;
	p->counts.copy = PROBE_LARGE_COPY;
	programs_set(&p->programs, PROBE_MAP_CONFIG, 0, &p->config);
}

/*
 * Divides the copy of a stack into its beginning and @pieces, between which pages are missing. Where
 * there are such, all parts of the copy end where pages do.
 */
static void divide(const struct probe_call *call, struct stack_copy *copy,
		   struct memory_piece pieces[PIECES])
{
	const uint64_t sp = stack_pointer(perf_regs_arch(), copy->regs);
	size_t from = PART - sp % PART;
	bool behind = true; /* the part before this one is there */

	copy->more = pieces;
	copy->nr_more = 0;
	copy->size = call->stack_size;
	if (!call->missing)
		return;
	copy->size = from < call->stack_size ? from : call->stack_size;
	for (unsigned int i = 1; i < 64 && from + PART <= call->stack_size; i++, from += PART) {
		const bool there = !(call->missing >> i & 1);

		if (there && behind && !copy->nr_more)
			copy->size += PART;
		else if (there && behind)
			pieces[copy->nr_more - 1].size += PART;
		else if (there && copy->nr_more < PIECES)
			pieces[copy->nr_more++] =
				(struct memory_piece){ sp + from, call->stack + from, PART };
		behind = there;
	}
}

/* Returns the site of a call, or NULL if there is no memory. */
static struct site *find_site(struct probe_recording *p, const struct probe_call *call)
{
	struct probe_recording_process *target = &p->targets[call->event.process];
	struct memory_piece pieces[PIECES];
	struct shstk_regs regs;
	struct stack_copy copy = { .regs = &regs, .bytes = call->stack };
	struct unwound u = {
		.pcs = p->pcs,
		.marks = p->marks,
		.sps = p->sps,
		.max = p->opts.heap.max_depth,
	};
	struct unwound deep;
	struct site_stack stack = {
		.process = call->event.process,
		.tid = call->event.tid,
		.comm = p->opts.heap.per_thread ? call->comm : target->comm,
	};

	take_words(call, &regs);
	divide(call, &copy, pieces);
	if (unwind_all(p, target, &copy, &u, &deep))
		return NULL;
	finish_stack(p, call, &regs, &u, &deep);
	count_end(p, &u);
	/* Leave out the allocating function itself. */
	stack.nr = u.nr > 1 ? u.nr - 1 : u.nr;
	stack.pcs = u.pcs + u.nr - stack.nr;
	stack.marks = u.marks + u.nr - stack.nr;
	stack.end = u.end;
	return blocks_site(p->blocks, &stack);
}

/* ---- Records ---- */

static struct pending *find_pending(const struct probe_recording *p, uint32_t tid)
{
	struct pending *call;

	HASH_FIND(hh, p->pending, &tid, sizeof(tid), call);
	return call;
}

static int take_call(struct probe_recording *p, const struct probe_call *call)
{
	struct pending *pending = find_pending(p, call->event.tid);
	struct site *site = find_site(p, call);

	if (!site)
		return -ENOMEM;
	if (!pending) {
		pending = calloc(1, sizeof(*pending));
		if (!pending)
			return -ENOMEM;
		pending->tid = call->event.tid;
		HASH_ADD(hh, p->pending, tid, sizeof(pending->tid), pending);
		if (!pending->hh.tbl) {
			free(pending);
			return -ENOMEM;
		}
	}
	pending->site = site;
	return 0;
}

static int take_end(struct probe_recording *p, const struct probe_event *e)
{
	struct pending *pending = find_pending(p, e->tid);
	int ret = 0;

	if (e->old)
		blocks_freed(p->blocks, e, e->old);
	if (e->addr && pending && pending->site) {
		ret = blocks_allocated(p->blocks, pending->site, e);
		pending->site = NULL;
	}
	return ret;
}

/* The process has mapped or removed libraries: its mappings are read when an address is in none. */
static void take_mapped(struct probe_recording *p, const struct probe_event *e)
{
	struct process *process = population_find_process(&p->all, p->targets[e->process].pid);

	if (process)
		population_maps_changed(process);
}

static int take_record(void *arg, const void *record, size_t size)
{
	const struct probe_call *call = record;
	const struct probe_event *e = record;
	struct probe_recording *p = arg;

	if (size >= sizeof(e->what) && e->what == PROBE_LANGUAGE)
		return probe_functions_take(p->functions, record, size);
	if (size < sizeof(*e) || e->process >= p->opts.nr_pids)
		return 0;
	switch (e->what) {
	case PROBE_BEGINS:
		return size < sizeof(*call) || call->stack_size > size - sizeof(*call) ?
			       0 :
			       take_call(p, call);
	case PROBE_ENDS:
		return take_end(p, e);
	case PROBE_FREED:
		blocks_freed(p->blocks, e, e->addr);
		return 0;
	case PROBE_MAPPED:
		take_mapped(p, e);
		return 0;
	default:
		return 0;
	}
}

static bool is_gone(void *arg, const struct probe_block *block)
{
	const struct probe_recording *p = arg;

	return !programs_has_block(&p->programs, block);
}

uint64_t probe_recording_shared(const struct probe_recording *p)
{
	return p->programs.ring_size;
}

int probe_recording_take(struct probe_recording *p)
{
	return ring_read(&p->ring, take_record, p);
}

/*
 * Takes all records. If records of frees were lost, asks which blocks are gone. Returns 0 or a
 * negative errno.
 */
static int take_all(struct probe_recording *p)
{
	struct probe_counts counts = { .lost = 0 };
	int ret = probe_recording_take(p);

	if (ret || programs_get(&p->programs, PROBE_MAP_COUNTS, &counts) ||
	    counts.lost_frees == p->checked)
		return ret;
	p->checked = counts.lost_frees;
	blocks_check(p->blocks, is_gone, p);
	return 0;
}

/* ---- Begin and end ---- */

/*
 * Gives the BPF program exponentially distributed distances between sample points. Returns 0 or a
 * negative errno.
 */
static int set_gaps(const struct probe_recording *p)
{
	int ret = 0;

	for (uint32_t i = 0; i < PROBE_GAPS && p->config.sample && !ret; i++) {
		/*
		 * Take the middle of each of PROBE_GAPS equally probable parts: then any random
		 * choice among them will do.
		 */
		double u = (i + 0.5) / PROBE_GAPS;
		uint64_t gap = (uint64_t)(-log(u) * (double)p->config.sample);

		ret = programs_set(&p->programs, PROBE_MAP_GAPS, i, &gap);
	}
	return ret;
}

static int begin_target(struct probe_recording *p, uint32_t i, struct reason *why)
{
	struct probe_recording_process *t = &p->targets[i];
	struct task *task;
	int ret;

	t->pid = p->opts.pids[i];
	t->end = syscall(SYS_pidfd_open, t->pid, 0);
	if (t->end < 0) {
		because(why, "process %d: %s", (int)t->pid,
			errno == EINVAL || errno == ENOENT ? "that is a thread, not a process" :
							     strerror(errno));
		return -ESRCH;
	}
	if (process_is_zombie(t->pid)) {
		because(why, "process %d: %s", (int)t->pid, process_gone_why(t->pid));
		return -ESRCH;
	}
	t->start_size = read_start(t->pid, t->start);
	task = population_task(&p->all, t->pid, t->pid);
	if (!task)
		return -ENOMEM;
	memcpy(t->comm, task->comm, sizeof(t->comm));
	probe_functions_meet(p->functions, task->process);
	ret = probes_attach(&p->programs, t->pid, i, &t->probes, why);
	p->counts.functions += t->probes.functions;
	return ret;
}

static int load(struct probe_recording *p, struct reason *why)
{
	char path[4096];
	int ret;

	if (find_object(OBJECT, path, sizeof(path))) {
		because(why, "%s is missing: install clang and build again", OBJECT);
		return -ENOENT;
	}
	ret = programs_load(&heap_programs, path, p->opts.ring_size, &p->programs, why);
	if (ret == -EPERM)
		because(why,
			"--heap with --pid is not permitted: be root, or have CAP_BPF and CAP_PERFMON");
	if (ret)
		return ret;
	because(why, "BPF maps: %s", strerror(EIO));
	ret = ring_map(p->programs.maps[PROBE_MAP_RING], p->programs.ring_size, &p->ring);
	if (!ret)
		ret = set_gaps(p);
	return ret ? ret : programs_set(&p->programs, PROBE_MAP_CONFIG, 0, &p->config);
}

static int set_up(struct probe_recording *p, struct shstk_symbols *symbols)
{
	int ret;

	p->targets = calloc(p->opts.nr_pids, sizeof(*p->targets));
	p->pcs = calloc(p->opts.heap.max_depth, sizeof(*p->pcs));
	p->sps = calloc(p->opts.heap.max_depth, sizeof(*p->sps));
	p->marks = calloc(p->opts.heap.max_depth, sizeof(*p->marks));
	p->blocks = blocks_create(&p->opts.heap);
	if (!p->targets || !p->pcs || !p->sps || !p->marks || !p->blocks)
		return -ENOMEM;
	if (p->opts.heap.fold && !deep_init(&p->deep))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->opts.nr_pids; i++)
		p->targets[i].end = -1;
	ret = population_init(&p->all, symbols, NULL);
	if (ret)
		return ret;
	p->all.labels = p->opts.heap.labels;
	return 0;
}

int probe_recording_create(const struct probe_recording_opts *opts, struct shstk_symbols *symbols,
			   struct probe_recording **ret, struct reason *why)
{
	struct probe_recording *p = calloc(1, sizeof(*p));
	int error = p ? 0 : -ENOMEM;

	because(why, "%s", strerror(ENOMEM));
	if (!p)
		return error;
	p->opts = *opts;
	p->config.sample = opts->heap.sample;
	p->config.stop = 1;
	p->counts.copy = PROBE_COPY;
	p->began = now_ns(CLOCK_MONOTONIC);
	error = set_up(p, symbols);
	if (!error)
		error = load(p, why);
	if (!error)
		p->functions = probe_functions_create(&p->programs);
	for (uint32_t i = 0; i < opts->nr_pids; i++)
		probe_functions_look(p->functions, opts->pids[i]);
	probe_functions_name(p->functions, symbols);
	for (uint32_t i = 0; i < opts->nr_pids && !error; i++)
		error = begin_target(p, i, why);
	/*
	 * Start only now that all probes are there: a call of an allocator inside another one is
	 * recognised only if the outer call was seen.
	 */
	p->config.stop = 0;
	if (!error)
		error = programs_set(&p->programs, PROBE_MAP_CONFIG, 0, &p->config);
	if (error) {
		probe_recording_destroy(p);
		return error;
	}
	*ret = p;
	return 0;
}

void probe_recording_destroy(struct probe_recording *p)
{
	struct pending *call, *next;

	if (!p)
		return;
	for (uint32_t i = 0; p->targets && i < p->opts.nr_pids; i++) {
		probes_detach(&p->targets[i].probes);
		if (p->targets[i].end >= 0)
			close(p->targets[i].end);
	}
	ring_unmap(&p->ring);
	probe_functions_destroy(p->functions);
	programs_unload(&p->programs);
	HASH_ITER(hh, p->pending, call, next)
	{
		HASH_DEL(p->pending, call);
		free(call);
	}
	blocks_destroy(p->blocks);
	told_forget(&p->told);
	population_deinit(&p->all);
	free(p->targets);
	free(p->pcs);
	free(p->sps);
	free(p->marks);
	deep_deinit(&p->deep);
	free(p);
}

void probe_recording_watch(struct probe_recording *p)
{
	for (uint32_t i = 0; i < p->opts.nr_pids; i++) {
		struct process *process = NULL;

		if (!is_over(&p->targets[i]))
			process = population_process(&p->all, p->targets[i].pid);
		if (process)
			population_read_maps(&p->all, process);
	}
}

unsigned int probe_recording_alive(const struct probe_recording *p)
{
	unsigned int alive = 0;

	for (uint32_t i = 0; i < p->opts.nr_pids; i++)
		alive += !is_over(&p->targets[i]);
	return alive;
}

int probe_recording_stop(struct probe_recording *p)
{
	p->config.stop = 1;
	programs_set(&p->programs, PROBE_MAP_CONFIG, 0, &p->config);
	return take_all(p);
}

/* ---- Results ---- */

/* A profile to which sites are added. */
struct addition {
	struct probe_recording *p;
	struct shstk_profile *profile;
	uint64_t time; /* CLOCK_MONOTONIC in ns, 0: the profile keeps no times */
};

static int add_site(void *arg, const struct site_stack *stack, const int64_t *values)
{
	const struct addition *to = arg;
	struct probe_recording *p = to->p;
	struct told_stack *known = told_find(&p->told, stack->number);
	pid_t pid = p->targets[stack->process].pid;
	struct process *process = population_process(&p->all, pid);
	struct shstk_symproc *proc = process ? population_names(&p->all, process) : NULL;
	unsigned int skip;
	struct shstk_sample sample;

	if (known)
		return told_again(known, to->profile, to->time, values);
	if (!proc)
		return -ENOMEM;
	skip = heap_skip_new(proc, stack->pcs, stack->nr);
	sample = (struct shstk_sample){
		.proc = proc,
		.tid = stack->tid ? (int)stack->tid : pid,
		.comm = stack->comm,
		.pcs = stack->pcs + skip,
		.marks = stack->marks + skip,
		.nr = stack->nr - skip,
		.end = stack->end,
		.time = to->time,
		.values = values,
	};
	return p->opts.heap.follow ? told_new(&p->told, stack->number, to->profile, &sample) :
				     shstk_profile_add(to->profile, &sample);
}

static int report(struct probe_recording *p, struct shstk_profile *profile, bool snapshot)
{
	struct addition to = {
		.p = p,
		.profile = profile,
		.time = p->opts.heap.follow ? now_ns(CLOCK_MONOTONIC) : 0,
	};
	int ret = take_all(p);

	return ret ? ret : blocks_report(p->blocks, add_site, &to, snapshot);
}

int probe_recording_follow(struct probe_recording *p, struct shstk_profile *profile)
{
	return report(p, profile, false);
}

int probe_recording_report(struct probe_recording *p, struct shstk_profile *profile)
{
	return report(p, profile, true);
}

void probe_recording_renew(struct probe_recording *p, struct shstk_symbols *symbols)
{
	told_forget(&p->told);
	population_renew(&p->all, symbols);
	probe_functions_name(p->functions, symbols);
}

void probe_recording_count(const struct probe_recording *p, struct heap_counts *ret,
			   struct probe_recording_counts *more)
{
	struct probe_counts counts = { .lost = 0 };

	*ret = (struct heap_counts){ .processes = p->opts.nr_pids };
	programs_get(&p->programs, PROBE_MAP_COUNTS, &counts);
	blocks_count(p->blocks, ret);
	ret->lost = counts.lost;
	probe_functions_count(p->functions, ret);
	ret->peak_time = ret->peak_time > p->began ? ret->peak_time - p->began : 0;
	if (!more)
		return;
	*more = p->counts;
	more->unseen = counts.unseen;
}
