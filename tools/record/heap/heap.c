// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * heap.c - the recorder's view of the memory that it shares with the heap agents: finds the regions
 * of processes, and adds what they counted to the profile.
 *
 * Everything that is read from that memory may be wrong (tools/inject/heap/region.h). A record is
 * therefore copied first and then checked, and what is invalid is passed over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "tools/elf/allocator.h"
#include "tools/inject/heap/region.h"
#include "tools/proc/about.h"
#include "tools/proc/tasks.h"
#include "tools/record/agent/shared_memory.h"
#include "tools/record/agent_functions.h"
#include "tools/record/heap/growth.h"
#include "tools/record/heap/heap.h"
#include "tools/record/heap/heap_values.h"
#include "tools/record/heap/told.h"
#include "tools/shstk.h"

#define MAX_TEXT (2u << 20)
#define MAX_PROGRAMS 64 /* programs whose symbols are looked at, at most */
#define SMALLEST_PAGE 4096
#define SHARED "the memory shared with recorded programs"
#define CHUNK (16u << 20) /* bytes of a region that are mapped at a time */

#define STEPS 1024 /* records between two looks at the clock */

/*
 * What reading all regions may take while recording goes on. One region gets a quarter of the time at
 * most.
 */
#define FOLLOW_MEMORY (256u << 20)
#define FOLLOW_TIME 4000000000u

/* Why a region is read: between two profiles, for a profile, or for the last time. */
enum occasion { FOLLOW, PART, LAST };

/**
 * struct text_place - the place of a maps record's text. The text is read only when a trace needs
 * it, since it can be long and costs a program nothing.
 * @number: number of the record, as the record says.
 * @size: bytes of the text.
 * @at: where the text is, in bytes from the start of the region.
 */
struct text_place {
	uint32_t number;
	uint32_t size;
	uint64_t at;
};

/**
 * struct thread_name - the name of a thread
 * @hh: makes it a member of the hash table, by @tid.
 * @tid: thread ID.
 * @comm: the last name.
 */
struct thread_name {
	UT_hash_handle hh;
	uint32_t tid;
	char comm[REC_COMM];
};

/**
 * struct heap_region - a region, which belongs to one process image
 * @number: number of the region.
 * @pid: process ID.
 * @proc: the mappings of the process in the symboliser.
 * @done: the region was read for the last time.
 * @replaced: the process executes another program, which has a region of its own.
 * @growth: what was in use at the last snapshot, if snapshots are made.
 * @told: what the profile has been told of the region's stacks, with &heap_opts.follow.
 */
struct heap_region {
	uint32_t number;
	int pid;
	struct shstk_symproc *proc;
	bool done;
	bool replaced;
	struct growth growth;
	struct told told;
};

/**
 * struct newest - the newest region of a process
 * @hh: makes it a member of the hash table, by @pid.
 * @pid: process ID.
 * @number: number of the region.
 */
struct newest {
	UT_hash_handle hh;
	int pid;
	uint32_t number;
};

/**
 * struct heap_reading - a region that is being read
 * @d: the recorder's state.
 * @number: number of the region.
 * @head: copy of the region's head.
 * @proc: the mappings of the process in the symboliser.
 * @growth: snapshots of the region, or NULL.
 * @told: what the profile has been told, or NULL: it is told all now.
 * @time: time of what the profile is told now, in ns of CLOCK_MONOTONIC; 0: none.
 * @account: time and memory that the reading may take.
 * @texts: places of the maps texts, in the order of their numbers.
 * @nr_texts: number of @texts.
 * @max_texts: number of texts for which @texts has room.
 * @text: the maps text that was read last.
 * @text_size: bytes for which @text has room.
 * @current: number of the maps text that @proc has.
 * @interpreter: number of the Python that the process has; 0: none.
 * @names: names of threads.
 * @copy: copy of the record that is looked at.
 * @copy_size: bytes for which @copy has room.
 * @first: start of the mapped part, in bytes from the region's start.
 * @window: the mapped part, CHUNK bytes, or NULL.
 */
struct heap_reading {
	struct heap_recording *d;
	uint32_t number;
	struct heap_image head;
	struct shstk_symproc *proc;
	struct growth *growth;
	struct told *told;
	uint64_t time;
	struct shstk_account *account;
	struct text_place *texts;
	size_t nr_texts;
	size_t max_texts;
	char *text;
	size_t text_size;
	uint32_t current;
	int interpreter;
	struct thread_name *names;
	uint8_t *copy;
	size_t copy_size;
	uint64_t first;
	uint8_t *window;
};

struct heap_recording {
	struct shared_memory memory;
	struct heap_opts opts;
	struct heap_header *header;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct heap_region *images;
	uint32_t nr_images;
	uint32_t max_images;
	struct newest *newest;
	struct shstk_account *account; /* time and memory that reading all regions may take */
	uint32_t in_profile; /* processes whose counts are in the profile */
	struct heap_lacks lacks;
	struct heap_counts counts;
	char *programs[MAX_PROGRAMS]; /* programs whose symbols were looked at */
	uint32_t nr_programs;
	struct agent_functions *functions; /* of Python; NULL: no process has any */
	uint64_t ticks, ns; /* the agents' clock and CLOCK_MONOTONIC when recording began */
	uint64_t peak_ticks;
};

static uint64_t region_at(uint32_t i)
{
	return HEAP_FIRST + i * HEAP_REGION;
}

static int map_memory(struct heap_recording *d)
{
	struct heap_header *h;
	int err = shared_memory_create("shstk-heap", region_at(HEAP_MAX_IMAGES), &d->memory);

	if (err)
		return err;
	h = mmap(NULL, HEAP_FIRST, PROT_READ | PROT_WRITE, MAP_SHARED, d->memory.fd, 0);
	if (h == MAP_FAILED)
		return -errno;
	d->header = h;
	h->magic = HEAP_MAGIC;
	h->version = HEAP_VERSION;
	h->max_depth = d->opts.max_depth;
	h->deepest = d->opts.fold ? HEAP_DEEPEST : 0;
	h->sample = d->opts.sample;
	h->with_mmap = d->opts.with_mmap;
	h->with_python = d->opts.with_python;
	h->per_thread = d->opts.per_thread;
	h->recorder = getpid();
	h->cookie = d->memory.cookie;
	return 0;
}

int heap_recording_create(const struct heap_opts *opts, struct shstk_symbols *symbols,
			  struct shstk_profile *profile, struct heap_recording **ret)
{
	struct heap_recording *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->opts = *opts;
	d->symbols = symbols;
	d->profile = profile;
	d->ticks = heap_ticks();
	d->ns = now_ns(CLOCK_MONOTONIC);
	err = map_memory(d);
	if (!err) {
		d->account = shstk_symbols_account(symbols, SHARED);
		err = d->account ? 0 : -ENOMEM;
	}
	if (err) {
		heap_recording_destroy(d);
		return err;
	}
	*ret = d;
	return 0;
}

void heap_recording_destroy(struct heap_recording *d)
{
	struct newest *newest, *next;

	if (!d)
		return;
	HASH_ITER(hh, d->newest, newest, next)
	{
		HASH_DEL(d->newest, newest);
		free(newest);
	}
	if (d->header)
		munmap(d->header, HEAP_FIRST);
	shared_memory_destroy(&d->memory);
	while (d->nr_programs)
		free(d->programs[--d->nr_programs]);
	while (d->nr_images) {
		growth_deinit(&d->images[--d->nr_images].growth);
		told_forget(&d->images[d->nr_images].told);
	}
	free(d->images);
	agent_functions_destroy(d->functions);
	free(d);
}

uint64_t heap_recording_shared(const struct heap_recording *d)
{
	return shared_memory_filled(&d->memory);
}

const char *heap_recording_env(const struct heap_recording *d)
{
	return d->memory.env;
}

/*
 * Returns the ns of one tick of the agents' clock. The time since recording began tells the rate.
 */
static double ns_per_tick(const struct heap_recording *d)
{
	uint64_t ticks = heap_ticks() - d->ticks;

	return ticks ? (double)(now_ns(CLOCK_MONOTONIC) - d->ns) / ticks : 0;
}

/* Returns a time of the agents' clock in ns. A time of centuries is nonsense: it becomes 0. */
static uint64_t ns_of(const struct heap_recording *d, uint64_t ticks)
{
	double ns = ticks * ns_per_tick(d);

	return ns < 0x1p61 ? (uint64_t)ns : 0;
}

/*
 * Returns memory that shows at least @size bytes of the region from @at on, or NULL if it cannot be
 * mapped.
 */
static const uint8_t *look(struct heap_reading *r, uint64_t at, uint64_t size)
{
	uint64_t first = at & ~(uint64_t)65535;

	if (r->window && at >= r->first && at + size <= r->first + CHUNK)
		return r->window + (at - r->first);
	if (r->window)
		munmap(r->window, CHUNK);
	r->first = first;
	r->window = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, r->d->memory.fd,
			 region_at(r->number) + first);
	if (r->window != MAP_FAILED)
		return r->window + (at - first);
	r->window = NULL;
	return NULL;
}

/*
 * Returns the first position from @at on where the region has content. A process may claim that it
 * used all of its region, and looking at a hole would fill it with memory.
 */
static uint64_t next_filled(const struct heap_reading *r, uint64_t at)
{
	off_t start = (off_t)region_at(r->number);
	off_t found = lseek(r->d->memory.fd, start + (off_t)at, SEEK_DATA);

	return found < 0 ? HEAP_REGION : (uint64_t)(found - start) & ~(uint64_t)(HEAP_UNIT - 1);
}

/*
 * Copies @size bytes to r->copy by reading, since that does not fill holes. Returns 0 or a negative
 * errno.
 */
static int copy_record(struct heap_reading *r, uint64_t at, size_t size)
{
	if (size > r->copy_size) {
		uint8_t *more = realloc(r->copy, size);

		if (!more)
			return -ENOMEM;
		r->copy = more;
		r->copy_size = size;
	}
	return pread(r->d->memory.fd, r->copy, size, (off_t)(region_at(r->number) + at)) ==
			       (ssize_t)size ?
		       0 :
		       -EIO;
}

static int take_maps(struct heap_reading *r, uint64_t at, size_t size)
{
	const struct heap_maps *m = (const void *)r->copy;
	struct text_place *texts;

	if (size < sizeof(*m) || !m->bytes || m->bytes > size - sizeof(*m) ||
	    (r->nr_texts && m->number <= r->texts[r->nr_texts - 1].number))
		return 0;
	texts = shstk_account_grow(r->account, r->texts, r->nr_texts, &r->max_texts,
				   sizeof(*texts));
	if (!texts)
		return r->account->excess ? 0 : -ENOMEM;
	r->texts = texts;
	texts[r->nr_texts++] = (struct text_place){ m->number, m->bytes, at + sizeof(*m) };
	return 0;
}

static const struct text_place *find_text(const struct heap_reading *r, uint32_t number)
{
	size_t lo = 0, hi = r->nr_texts, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (r->texts[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->nr_texts && r->texts[lo].number == number ? r->texts + lo : NULL;
}

/* Reads a maps text to r->text. Returns 0 or a negative errno. */
static int read_text(struct heap_reading *r, const struct text_place *text)
{
	off_t at = (off_t)(region_at(r->number) + text->at);
	char *more;

	if (text->size > r->text_size) {
		more = realloc(r->text, text->size);
		if (!more)
			return -ENOMEM;
		r->text = more;
		r->text_size = text->size;
	}
	return pread(r->d->memory.fd, r->text, text->size, at) == (ssize_t)text->size ? 0 : -EIO;
}

/*
 * Sets the mappings of the process to the maps text with that number. Returns 0 or a negative
 * errno.
 */
static int use_maps(struct heap_reading *r, uint32_t number)
{
	const struct text_place *text = find_text(r, number);
	int ret;

	if (!text || !shstk_account_on(r->account))
		return 0;
	ret = read_text(r, text);
	if (!ret)
		ret = shstk_symproc_set_maps(r->proc, r->text, text->size);
	if (ret < 0)
		return ret;
	r->current = number;
	return 0;
}

static struct thread_name *get_name(struct heap_reading *r, uint32_t tid)
{
	struct thread_name *name;

	HASH_FIND(hh, r->names, &tid, sizeof(tid), name);
	if (name)
		return name;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	name->tid = tid;
	HASH_ADD(hh, r->names, tid, sizeof(name->tid), name);
	if (name->hh.tbl)
		return name;
	free(name);
	return NULL;
}

static int take_thread(struct heap_reading *r, size_t size)
{
	const struct heap_thread *t = (const void *)r->copy;
	struct thread_name *name;

	if (size < sizeof(*t))
		return 0;
	name = get_name(r, t->tid);
	if (!name)
		return -ENOMEM;
	shared_memory_name(name->comm, t->comm);
	return 0;
}

static int64_t value_of(const struct heap_recording *d, enum heap_value value, uint64_t v)
{
	int shift = heap_type_counts(value) && d->opts.sample ? 10 : 0;

	/*
	 * The counters of a running process are not all read at one moment, so that a difference
	 * may be below 0.
	 */
	if (v > INT64_MAX / 4)
		return 0;
	return (v + (shift ? HEAP_ONE / 2 : 0)) >> shift;
}

/*
 * Copies the counter of a stack, and how many of its blocks were temporary. Returns 0 or a negative
 * errno.
 */
static int copy_counter(const struct heap_reading *r, uint32_t unit, struct heap_counter *ret,
			uint64_t *temporary)
{
	uint32_t i = heap_counter_index(unit);
	uint64_t at = region_at(r->number) + (uint64_t)unit * HEAP_UNIT;
	uint64_t rest = at - (i + 1ull) * HEAP_UNIT + offsetof(struct heap_counters, temporary[i]);

	if (i >= HEAP_COUNTERS || (uint64_t)unit * HEAP_UNIT >= r->head.used ||
	    r->head.used > HEAP_REGION)
		return -EINVAL;
	return pread(r->d->memory.fd, ret, sizeof(*ret), at) == sizeof(*ret) &&
			       pread(r->d->memory.fd, temporary, sizeof(*temporary), rest) ==
				       sizeof(*temporary) ?
		       0 :
		       -EIO;
}

static void take_values(struct heap_reading *r, const struct heap_counter *t, uint64_t temporary,
			int64_t *values)
{
	struct heap_recording *d = r->d;
	uint64_t objects = t->objects - t->freed;
	uint64_t bytes = t->bytes - t->freed_bytes;
	bool kept = !(r->head.peak_state & HEAP_RISING) &&
		    t->peak_no == HEAP_PEAK(r->head.peak_state);

	values[ALLOC_OBJECTS] = value_of(d, ALLOC_OBJECTS, t->objects);
	values[ALLOC_SPACE] = value_of(d, ALLOC_SPACE, t->bytes);
	values[INUSE_OBJECTS] = value_of(d, INUSE_OBJECTS, objects);
	values[INUSE_SPACE] = value_of(d, INUSE_SPACE, bytes);
	values[PEAK_OBJECTS] = value_of(d, PEAK_OBJECTS, kept ? t->peak_objects : objects);
	values[PEAK_SPACE] = value_of(d, PEAK_SPACE, kept ? t->peak_bytes : bytes);
	values[TEMPORARY] = value_of(d, TEMPORARY, temporary);
	values[LIFETIME] = t->lifetime < 1ull << 52 ? (int64_t)ns_of(d, t->lifetime * 64) : 0;
	d->counts.objects += values[ALLOC_OBJECTS];
	d->counts.bytes += values[ALLOC_SPACE];
	d->counts.left += values[INUSE_OBJECTS];
	d->counts.left_bytes += values[INUSE_SPACE];
	d->counts.temporary += values[TEMPORARY];
	d->counts.stacks++;
}

/*
 * Fills in by how much more the stack has in use than at the snapshot before. Returns 0 or -ENOMEM.
 */
static int take_growth(struct heap_reading *r, uint32_t counter, int64_t *values)
{
	struct in_use more, now = {
		.counter = counter,
		.objects = values[INUSE_OBJECTS],
		.bytes = values[INUSE_SPACE],
	};

	if (!r->growth)
		return 0;
	if (growth_take(r->growth, &now, &more))
		return -ENOMEM;
	values[GROWTH_OBJECTS] = more.objects;
	values[GROWTH_SPACE] = more.bytes;
	return 0;
}

static const char *thread_name(const struct heap_reading *r, uint32_t tid)
{
	struct thread_name *name;

	HASH_FIND(hh, r->names, &tid, sizeof(tid), name);
	return name ? name->comm : r->head.comm;
}

/* Takes which Python the process has. Returns 0 or -ENOMEM. */
static int take_interpreter(struct heap_reading *r, size_t size)
{
	struct heap_recording *d = r->d;
	const struct heap_interpreter *it;
	struct agent_python python;

	if (size < sizeof(struct heap_interpreter) || r->interpreter)
		return 0;
	if (!d->functions) {
		d->functions = agent_functions_create(d->opts.max_depth, d->opts.fold);
		if (!d->functions)
			return -ENOMEM;
		agent_functions_name(d->functions, d->symbols);
	}
	it = (const void *)r->copy;
	python = (struct agent_python){ it->minor, it->run, it->run_size, NULL };
	r->interpreter = agent_functions_python(d->functions, &python);
	return 0;
}

/* Counts a stack by what it lacks, values of enum told_lack. */
static void count_lacks(struct heap_lacks *counts, unsigned int lacks)
{
	counts->stacks++;
	counts->folded += !!(lacks & TOLD_FOLDED);
	counts->deep += !!(lacks & TOLD_DEEP);
	counts->cut += !!(lacks & TOLD_CUT);
}

/* Returns what a stack lacks that ends with @end, an enum shstk_end. */
static unsigned int find_lacks(uint32_t end, bool folded)
{
	unsigned int lacks = folded ? TOLD_FOLDED : 0;

	if (end == SHSTK_END_CAPACITY)
		lacks |= TOLD_DEEP;
	else if (end != SHSTK_END_COMPLETE)
		lacks |= TOLD_CUT;
	return lacks;
}

/* Takes a function of Python. Returns 0 or -ENOMEM. */
static int take_code(struct heap_reading *r, size_t size)
{
	struct heap_code *record = (void *)r->copy;

	if (!r->interpreter || size < sizeof(*record) - sizeof(record->code.table))
		return 0;
	return agent_functions_take(r->d->functions, r->interpreter, r->number, &record->code,
				    size - offsetof(struct heap_code, code));
}

/* Adds a stack that the profile does not know yet. Returns 0 or -ENOMEM. */
static int add_stack(struct heap_reading *r, uint32_t number, const struct shstk_sample *sample,
		     unsigned int lacks)
{
	int ret;

	count_lacks(&r->d->lacks, lacks);
	if (!r->told)
		return shstk_profile_add(r->d->profile, sample);
	ret = told_new(r->told, number, r->d->profile, sample);
	if (!ret && lacks)
		told_set_lacks(told_find(r->told, number), lacks);
	return ret;
}

/* Finds the entries of a stack, with the functions of Python in it. */
static void place_functions(struct heap_reading *r, struct heap_trace *t, struct agent_stack *ret)
{
	const struct agent_frames frames = {
		.python = r->interpreter,
		.owner = r->number,
		.bytes = &t->pcs[t->nr],
		.size = t->frames,
		.complete = t->end == SHSTK_END_COMPLETE,
	};

	*ret = (struct agent_stack){
		.pcs = t->pcs,
		.marks = (const uint8_t *)&t->pcs[t->nr] + t->frames,
		.nr = t->nr,
	};
	agent_functions_place(r->d->functions, &frames, ret);
}

static int take_trace(struct heap_reading *r, size_t size)
{
	struct heap_trace *t = (void *)r->copy;
	int64_t values[HEAP_VALUES] = { 0 };
	struct heap_counter counter;
	struct shstk_sample sample;
	struct agent_stack stack;
	uint64_t temporary;
	unsigned int skip;

	if (size < sizeof(*t) || t->nr > r->d->opts.max_depth ||
	    heap_trace_size(t->nr, t->frames) != size ||
	    copy_counter(r, t->counter, &counter, &temporary))
		return 0;
	if (t->maps != r->current) {
		int ret = use_maps(r, t->maps);

		if (ret < 0)
			return ret;
	}
	skip = heap_skip_new(r->proc, t->pcs, t->nr);
	take_values(r, &counter, temporary, values);
	if (take_growth(r, t->counter, values))
		return -ENOMEM;
	place_functions(r, t, &stack);
	/* A program can claim that Python's functions take the place of these entries. */
	if (skip >= stack.nr)
		skip = 0;
	sample = (struct shstk_sample){
		.proc = r->proc,
		.tid = t->tid ? t->tid : r->head.pid,
		.comm = thread_name(r, t->tid),
		.pcs = stack.pcs + skip,
		.marks = stack.marks + skip,
		.nr = stack.nr - skip,
		.end = t->end,
		.time = r->time,
		.values = values,
	};
	return add_stack(r, t->counter, &sample, find_lacks(t->end, t->folded || stack.folded));
}

/**
 * struct known_stack - a stack that the profile knows already
 * @stack: what it was told of it; NULL: it does not know the stack.
 * @unit: the unit of its counter.
 */
struct known_stack {
	struct told_stack *stack;
	uint32_t unit;
};

/* Takes the values of a stack that the profile knows already. */
static int take_again(struct heap_reading *r, const struct known_stack *known)
{
	int64_t values[HEAP_VALUES] = { 0 };
	struct heap_counter counter;
	uint64_t temporary;

	if (copy_counter(r, known->unit, &counter, &temporary))
		return 0;
	take_values(r, &counter, temporary, values);
	count_lacks(&r->d->lacks, told_lacks(known->stack));
	if (take_growth(r, known->unit, values))
		return -ENOMEM;
	return told_again(known->stack, r->d->profile, r->time, values);
}

/*
 * Takes a record. In the first pass these are names and maps, in the second one the traces that
 * refer to them.
 */
static int take_record(struct heap_reading *r, uint32_t kind, uint64_t at, size_t size, int pass)
{
	int ret = copy_record(r, at, kind == HEAP_MAPS ? HEAP_UNIT : size);

	if (ret)
		return ret;
	if (kind == HEAP_TRACE)
		return pass ? take_trace(r, size) : 0;
	if (pass)
		return 0;
	switch (kind) {
	case HEAP_MAPS:
		return take_maps(r, at, size);
	case HEAP_PYTHON:
		return take_interpreter(r, size);
	case HEAP_CODE:
		return take_code(r, size);
	default:
		return take_thread(r, size);
	}
}

/* Finds the stack of a record, whose process may change it meanwhile. */
static struct known_stack find_known(const struct heap_reading *r, const struct heap_record *record,
				     uint32_t kind)
{
	const volatile struct heap_trace *t = (const volatile void *)record;
	struct known_stack known = { .stack = NULL };

	if (!r->told || kind != HEAP_TRACE)
		return known;
	known.unit = t->counter;
	known.stack = told_find(r->told, known.unit);
	return known;
}

static bool is_kind(uint32_t kind)
{
	return kind == HEAP_TRACE || kind == HEAP_MAPS || kind == HEAP_THREAD ||
	       kind == HEAP_COUNTS || kind == HEAP_PYTHON || kind == HEAP_CODE;
}

static int read_records(struct heap_reading *r, int pass)
{
	uint64_t used = r->head.used < HEAP_REGION ? r->head.used : HEAP_REGION;
	uint64_t at = (sizeof(r->head) + HEAP_UNIT - 1) / HEAP_UNIT * HEAP_UNIT;
	uint64_t filled = 0; /* end of the page that is known to have content */
	unsigned int steps = 0;

	while (at + HEAP_UNIT <= used) {
		const struct heap_record *record;
		struct known_stack known;
		uint32_t kind;
		size_t size;
		int ret;

		if (!(++steps % STEPS) && !shstk_account_on(r->account))
			return 0;
		if (at >= filled) {
			at = next_filled(r, at);
			filled = (at | (SMALLEST_PAGE - 1)) + 1;
			continue;
		}
		record = (const void *)look(r, at, HEAP_UNIT);
		if (!record)
			return -ENOMEM;
		kind = atomic_load_explicit(&record->kind, memory_order_acquire);
		size = (size_t)record->units * HEAP_UNIT;
		if (!is_kind(kind) || !size || size > MAX_TEXT || size > used - at) {
			at += HEAP_UNIT;
			continue;
		}
		/* Counters are read with their stacks: only their size matters here. */
		if (kind != HEAP_COUNTS && pass == (kind == HEAP_TRACE)) {
			known = find_known(r, record, kind);
			ret = known.stack ? take_again(r, &known) :
					    take_record(r, kind, at, size, pass);
			if (ret)
				return ret;
		}
		at += size;
	}
	return 0;
}

static void take_head(struct heap_reading *r)
{
	struct heap_counts *c = &r->d->counts;

	shared_memory_name(r->head.comm, r->head.comm);
	c->lost += r->head.lost;
	c->foreign += !!r->head.foreign;
	c->deepbind += !!r->head.deepbind;
	if (r->head.mapped_peak > 0 && (uint64_t)r->head.mapped_peak > c->mapped) {
		c->mapped = r->head.mapped_peak;
		c->mapped_pid = r->head.pid;
		memcpy(c->mapped_by, r->head.comm, sizeof(c->mapped_by));
	}
	if (r->head.peak <= 0 || (uint64_t)r->head.peak <= c->peak)
		return;
	c->peak = r->head.peak;
	c->peak_pid = r->head.pid;
	r->d->peak_ticks = r->head.peak_time - r->d->ticks;
}

/*
 * Returns a copy of the first file's path in a text of mappings, which is the program; NULL if
 * there is none.
 */
static char *program_of(const char *text, size_t size)
{
	const char *path = memchr(text, '/', size), *end;

	if (!path)
		return NULL;
	end = memchr(path, '\n', text + size - path);
	return end ? strndup(path, end - path) : NULL;
}

/* Returns whether the program was looked at before. Takes ownership of @program. */
static bool looked_at(struct heap_recording *d, char *program)
{
	uint32_t i;

	for (i = 0; i < d->nr_programs; i++)
		if (!strcmp(d->programs[i], program))
			break;
	if (i < d->nr_programs || i == MAX_PROGRAMS) {
		free(program);
		return true;
	}
	d->programs[d->nr_programs++] = program;
	return false;
}

/*
 * Looks whether the program has an allocator linked into it. Programs that export their malloc()
 * are reported by the agent.
 */
static void find_static_allocator(struct heap_reading *r)
{
	struct heap_counts *c = &r->d->counts;
	const char *allocator;
	char *program;

	if (r->head.foreign || !r->nr_texts || read_text(r, &r->texts[0]))
		return;
	program = program_of(r->text, r->texts[0].size);
	if (!program || looked_at(r->d, program))
		return;
	allocator = allocator_inside(program);
	if (!allocator)
		return;
	if (c->allocator) {
		c->more_inside++;
		return;
	}
	c->allocator = allocator;
	snprintf(c->inside, sizeof(c->inside), "%s", program);
	printable(c->inside);
}

static void release(struct heap_reading *r)
{
	struct thread_name *name, *next;

	if (r->window)
		munmap(r->window, CHUNK);
	shstk_account_give(r->account, r->max_texts * sizeof(*r->texts));
	free(r->texts);
	free(r->text);
	HASH_ITER(hh, r->names, name, next)
	{
		HASH_DEL(r->names, name);
		free(name);
	}
	free(r->copy);
}

/* Ends a region that was read for the last time, and gives its memory back. */
static void end_image(struct heap_recording *d, struct heap_region *image)
{
	image->done = true;
	growth_deinit(&image->growth);
	told_forget(&image->told);
	fallocate(d->memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  region_at(image->number), HEAP_REGION);
}

/*
 * Adds what a process has counted so far to the profile. @account bounds what this takes. Returns 0
 * or a negative errno.
 */
static int read_image(struct heap_recording *d, struct heap_region *image, enum occasion why,
		      struct shstk_account *account)
{
	struct heap_reading r = {
		.d = d,
		.number = image->number,
		.proc = image->proc,
		.growth = d->opts.snapshots && why != FOLLOW ? &image->growth : NULL,
		.told = d->opts.follow ? &image->told : NULL,
		.time = d->opts.follow ? now_ns(CLOCK_MONOTONIC) : 0,
		.account = account,
	};
	const uint8_t *head = look(&r, 0, sizeof(r.head));
	int ret = head ? 0 : -ENOMEM;

	d->in_profile += why != FOLLOW;
	shstk_account_begin(account);
	for (int pass = 0; pass < 2 && !ret; pass++) {
		if (!pass) {
			memcpy(&r.head, head, sizeof(r.head));
			take_head(&r);
		}
		ret = read_records(&r, pass);
	}
	if (why != FOLLOW)
		growth_turn(&image->growth);
	d->counts.objects_unseen += r.interpreter && !r.head.objects;
	if (why == LAST)
		find_static_allocator(&r);
	release(&r);
	shstk_account_end(account);
	if (why == LAST)
		end_image(d, image);
	return ret;
}

static int read_head(const struct heap_recording *d, uint32_t i, struct heap_image *ret)
{
	return pread(d->memory.fd, ret, sizeof(*ret), region_at(i)) == sizeof(*ret) ? 0 : -EIO;
}

/* Returns when a region was begun, or now if its agent says what cannot be. */
static uint64_t began_at(const struct heap_recording *d, uint64_t ticks)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	const uint64_t time = d->ns + ns_of(d, ticks - d->ticks);

	return ticks < d->ticks || ticks > heap_ticks() || time > now ? now : time;
}

/* Tells the profile that a process began or ended. Returns 0 or -ENOMEM. */
static int note_life(struct heap_recording *d, const struct heap_image *head, uint64_t time,
		     bool ended)
{
	char name[REC_COMM];
	const struct shstk_life life = {
		.time = time,
		.comm = name,
		.pid = (int)head->pid,
		.ended = ended,
	};

	shared_memory_name(name, head->comm);
	return life.pid > 0 ? shstk_profile_live(d->profile, &life) : 0;
}

/*
 * Tells the profile that a process began, if it did with this region. Called before set_newest().
 * Returns 0 or -ENOMEM.
 */
static int note_beginning(struct heap_recording *d, const struct heap_image *head)
{
	const uint64_t time = began_at(d, head->began);
	const int pid = (int)head->pid;
	const struct heap_region *last;
	struct heap_image before;
	struct newest *newest;
	int err = 0;

	HASH_FIND_INT(d->newest, &pid, newest);
	last = newest ? &d->images[newest->number] : NULL;
	if (last && !last->done && !head->parent)
		return 0;
	/* Another process has the number of one that was not seen to be gone. */
	if (last && !last->done && !read_head(d, last->number, &before))
		err = note_life(d, &before, time, true);
	return err ? err : note_life(d, head, time, false);
}

/*
 * Notes the newest region of a process. The region that the process had before is not written any
 * more. Returns 0 or -ENOMEM.
 */
static int set_newest(struct heap_recording *d, const struct heap_region *image)
{
	struct newest *newest;

	HASH_FIND_INT(d->newest, &image->pid, newest);
	if (newest) {
		d->images[newest->number].replaced = true;
		newest->number = image->number;
		return 0;
	}
	newest = calloc(1, sizeof(*newest));
	if (!newest)
		return -ENOMEM;
	newest->pid = image->pid;
	newest->number = image->number;
	HASH_ADD_INT(d->newest, pid, newest);
	if (newest->hh.tbl)
		return 0;
	free(newest);
	return -ENOMEM;
}

/* Makes the process of a region in the symboliser. Returns 0 or a negative errno. */
static int make_proc(struct heap_recording *d, struct heap_region *image)
{
	char labels[ABOUT_MAX];
	size_t size;
	int err = shstk_symproc_create(d->symbols, image->pid, &image->proc);

	if (err || !d->opts.labels)
		return err;
	size = about_process(image->pid, labels);
	return size ? shstk_symproc_set_labels(image->proc, labels, size) : 0;
}

/* Adds the regions that were begun since the last look. Returns 0 or a negative errno. */
static int meet_images(struct heap_recording *d)
{
	uint32_t nr = atomic_load(&d->header->images);

	if (nr > HEAP_MAX_IMAGES)
		nr = HEAP_MAX_IMAGES;
	while (d->nr_images < nr) {
		struct heap_region *image;
		struct heap_image head;
		int err;

		if (d->nr_images == d->max_images) {
			uint32_t max = d->max_images ? 2 * d->max_images : 64;

			image = reallocarray(d->images, max, sizeof(*image));
			if (!image)
				return -ENOMEM;
			d->images = image;
			d->max_images = max;
		}
		/* The agent has not filled the head yet: look again next time. */
		if (read_head(d, d->nr_images, &head) || (int)head.pid <= 0)
			return 0;
		image = &d->images[d->nr_images];
		*image = (struct heap_region){ .number = d->nr_images, .pid = head.pid };
		err = make_proc(d, image);
		if (!err)
			err = note_beginning(d, &head);
		if (!err)
			err = set_newest(d, image);
		if (err)
			return err;
		d->nr_images++;
	}
	return 0;
}

/* Returns whether the process has ended or executes another program by now. */
static bool is_over(const struct heap_region *image)
{
	return image->replaced || process_gone(image->pid);
}

/* Reads a region whose process is over, and tells the profile if the process ended. */
static int read_over(struct heap_recording *d, struct heap_region *image)
{
	const uint64_t time = now_ns(CLOCK_MONOTONIC);
	struct heap_image head = { .pid = 0 };
	int ret;

	if (!image->replaced)
		read_head(d, image->number, &head);
	ret = read_image(d, image, LAST, d->account);
	return ret ? ret : note_life(d, &head, time, true);
}

int heap_recording_watch(struct heap_recording *d)
{
	int ret = meet_images(d);

	for (uint32_t i = 0; i < d->nr_images && !ret; i++)
		if (!d->images[i].done && is_over(&d->images[i]))
			ret = read_over(d, &d->images[i]);
	return ret;
}

int heap_recording_follow(struct heap_recording *d)
{
	const struct heap_counts counts = d->counts;
	const struct heap_lacks lacks = d->lacks;
	struct shstk_budget budget;
	int ret = 0;

	shstk_budget_init(&budget, FOLLOW_MEMORY, FOLLOW_TIME);
	for (uint32_t i = 0; d->opts.follow && i < d->nr_images && !ret; i++) {
		struct shstk_account account;

		if (d->images[i].done)
			continue;
		shstk_account_open(&account, &budget, SHARED);
		ret = read_image(d, &d->images[i], FOLLOW, &account);
		shstk_account_close(&account);
	}
	/* What the processes have counted is added up when they are read for a profile. */
	d->counts = counts;
	d->lacks = lacks;
	return ret;
}

/*
 * Notes in the profile that its peaks are sums over processes, whose peaks were at different times.
 * Returns 0 or a negative errno.
 */
static int note_peaks(struct heap_recording *d)
{
	char text[80];
	int err;

	if (d->in_profile < 2)
		return 0;
	snprintf(text, sizeof(text), "sum of the peaks of %u processes", d->in_profile);
	err = shstk_profile_set_note(d->profile, PEAK_OBJECTS, text);
	if (!err)
		err = shstk_profile_set_note(d->profile, PEAK_SPACE, text);
	if (!err)
		err = shstk_profile_comment(
			d->profile,
			"peak_objects and peak_space: each process at its own peak, added up");
	return err;
}

int heap_recording_part(struct heap_recording *d)
{
	int ret = heap_recording_watch(d);
	struct heap_counts counts = d->counts;

	for (uint32_t i = 0; i < d->nr_images && !ret; i++)
		if (!d->images[i].done)
			ret = read_image(d, &d->images[i], PART, d->account);
	/* Processes that go on are counted when they are read for the last time. */
	counts.mapped = d->counts.mapped;
	counts.mapped_pid = d->counts.mapped_pid;
	memcpy(counts.mapped_by, d->counts.mapped_by, sizeof(counts.mapped_by));
	d->counts = counts;
	return ret ? ret : note_peaks(d);
}

int heap_recording_renew(struct heap_recording *d, struct shstk_symbols *symbols,
			 struct shstk_profile *profile)
{
	int ret = 0;

	d->symbols = symbols;
	d->profile = profile;
	d->in_profile = 0;
	d->lacks = (struct heap_lacks){ 0 };
	if (d->functions)
		agent_functions_name(d->functions, symbols);
	d->account = shstk_symbols_account(symbols, SHARED);
	if (!d->account)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->nr_images && !ret; i++) {
		struct heap_region *image = &d->images[i];

		image->proc = NULL;
		told_forget(&image->told);
		if (!image->done)
			ret = make_proc(d, image);
	}
	return ret;
}

int heap_recording_stop(struct heap_recording *d)
{
	int ret;

	atomic_store(&d->header->stop, 1);
	ret = heap_recording_watch(d);
	for (uint32_t i = 0; i < d->nr_images && !ret; i++) {
		if (d->images[i].done)
			continue;
		d->counts.alive++;
		ret = read_image(d, &d->images[i], LAST, d->account);
	}
	d->counts.peak_time = ns_of(d, d->peak_ticks);
	return ret ? ret : note_peaks(d);
}

void heap_recording_count(const struct heap_recording *d, struct heap_counts *ret)
{
	struct language_counts languages;
	struct heap_image head;

	*ret = d->counts;
	ret->lacks = d->lacks;
	agent_functions_count(d->functions, &languages);
	ret->interpreted = languages.samples;
	ret->placed = languages.placed;
	ret->too_deep = languages.too_deep;
	ret->refused = agent_functions_refused(d->functions);
	ret->processes = atomic_load(&d->header->images);
	for (uint32_t i = 0; i < d->nr_images; i++) {
		if (d->images[i].done || read_head(d, i, &head))
			continue;
		if (head.live > 0)
			ret->live += head.live;
		if (head.peak > 0 && (uint64_t)head.peak > ret->peak) {
			ret->peak = head.peak;
			ret->peak_pid = (int)head.pid;
		}
	}
}
