// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blocks.c - keeps the blocks in use and counts them by the stacks that allocated them. See
 * blocks.h.
 *
 * Sites and blocks are found by hash tables. A sampled block stands for several blocks: as each
 * byte has the same chance to be a sample point, a block of s bytes is sampled with the probability
 * p = 1 - exp(-s / rate), and stands for 1 / p blocks. This weight follows from the block's size,
 * so a block is subtracted by the same weight by which it was added.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "tools/record/heap/blocks.h"
#include "tools/record/heap/growth.h"
#include "tools/record/heap/heap_values.h"

#define ONE 1024 /* the value of one object, where counts are estimates */

/**
 * struct key - what makes a site; the entries of the stack and their marks follow it
 * @process: number of the process.
 * @tid: thread ID, or 0 if threads are not told apart.
 * @nr: number of entries.
 * @end: enum shstk_end.
 */
struct key {
	uint32_t process;
	uint32_t tid;
	uint32_t nr;
	int32_t end;
};

/**
 * struct site - a stack that allocates
 * @hh: makes it a member of the hash table, by @key and what follows it.
 * @number: number of the site, counted from 0.
 * @peak: number of the peak to which @peak_objects and @peak_bytes belong.
 * @objects: objects allocated, in units of 1 / ONE.
 * @bytes: bytes allocated.
 * @freed: objects of @objects that were freed again.
 * @freed_bytes: bytes of @bytes that were freed again.
 * @peak_objects: objects in use at that peak.
 * @peak_bytes: bytes in use at that peak.
 * @temporary: blocks that were freed before their thread allocated anything else.
 * @lifetime: ns that freed objects were in use, added up.
 * @comm: name of the thread.
 * @key: the stack.
 */
struct site {
	UT_hash_handle hh;
	uint32_t number;
	uint32_t peak;
	uint64_t objects, bytes;
	uint64_t freed, freed_bytes;
	uint64_t peak_objects, peak_bytes;
	uint64_t temporary;
	uint64_t lifetime;
	char comm[PROBE_COMM];
	struct key key;
};

/**
 * struct live_block - a block in use
 * @hh: makes it a member of the hash table, by @key.
 * @key: its process and address.
 * @site: the site that allocated it.
 * @size: its size in bytes.
 * @time: CLOCK_MONOTONIC in ns, when it was allocated.
 * @tid: thread ID of the thread that allocated it.
 */
struct live_block {
	UT_hash_handle hh;
	struct probe_block key;
	struct site *site;
	uint64_t size;
	uint64_t time;
	uint32_t tid;
};

/* The last block that a thread allocated, by thread ID. */
struct last {
	UT_hash_handle hh;
	uint32_t tid;
	struct probe_block key;
};

struct blocks {
	struct heap_opts opts;
	struct site *sites;
	struct live_block *blocks;
	struct last *lasts;
	struct growth growth;
	uint64_t live, top, top_time; /* bytes in use, the most there were, and when */
	uint32_t peak; /* number of the last peak that has ended */
	bool rising; /* as many bytes are in use now as ever before */
	void *room; /* memory for a key that is looked for */
	size_t room_size;
};

struct blocks *blocks_create(const struct heap_opts *opts)
{
	struct blocks *b = calloc(1, sizeof(*b));

	if (b)
		b->opts = *opts;
	return b;
}

void blocks_destroy(struct blocks *b)
{
	struct live_block *block, *next_block;
	struct site *site, *next_site;
	struct last *last, *next_last;

	if (!b)
		return;
	HASH_ITER(hh, b->blocks, block, next_block)
	{
		HASH_DEL(b->blocks, block);
		free(block);
	}
	HASH_ITER(hh, b->sites, site, next_site)
	{
		HASH_DEL(b->sites, site);
		free(site);
	}
	HASH_ITER(hh, b->lasts, last, next_last)
	{
		HASH_DEL(b->lasts, last);
		free(last);
	}
	growth_deinit(&b->growth);
	free(b->room);
	free(b);
}

/* ---- Sites ---- */

static size_t key_size(const struct key *key)
{
	return sizeof(*key) + key->nr * (sizeof(uint64_t) + 1);
}

static struct key *make_key(struct blocks *b, const struct site_stack *stack)
{
	struct key head = {
		.process = stack->process,
		.tid = b->opts.per_thread ? stack->tid : 0,
		.nr = stack->nr,
		.end = stack->end,
	};
	size_t size = key_size(&head);
	struct key *key = b->room_size < size ? realloc(b->room, size) : b->room;

	if (!key)
		return NULL;
	b->room = key;
	if (size > b->room_size)
		b->room_size = size;
	*key = head;
	memcpy(key + 1, stack->pcs, stack->nr * sizeof(*stack->pcs));
	memcpy((uint64_t *)(key + 1) + stack->nr, stack->marks, stack->nr);
	return key;
}

struct site *blocks_site(struct blocks *b, const struct site_stack *stack)
{
	struct key *key = make_key(b, stack);
	struct site *site;
	size_t size;

	if (!key)
		return NULL;
	size = key_size(key);
	HASH_FIND(hh, b->sites, key, size, site);
	if (site)
		return site;
	site = calloc(1, sizeof(*site) + size - sizeof(*key));
	if (!site)
		return NULL;
	site->number = HASH_COUNT(b->sites);
	memcpy(&site->key, key, size);
	memcpy(site->comm, stack->comm, sizeof(site->comm) - 1);
	HASH_ADD(hh, b->sites, key, size, site);
	if (site->hh.tbl)
		return site;
	free(site);
	return NULL;
}

/* ---- Counting ---- */

/*
 * Returns for how many objects, in units of 1 / ONE, a block of @size bytes stands, and writes for
 * how many bytes.
 */
static uint64_t weigh(const struct blocks *b, uint64_t size, uint64_t *bytes)
{
	double weight;

	*bytes = size;
	if (!b->opts.sample)
		return ONE;
	weight = -1 / expm1(-(double)(size ? size : 1) / (double)b->opts.sample);
	*bytes = (uint64_t)((double)size * weight + 0.5);
	return (uint64_t)(weight * ONE + 0.5);
}

/* Keeps the values that a site had at the last peak. Called before they change. */
static void keep_peak(const struct blocks *b, struct site *site)
{
	if (b->rising || site->peak == b->peak)
		return;
	site->peak = b->peak;
	site->peak_objects = site->objects - site->freed;
	site->peak_bytes = site->bytes - site->freed_bytes;
}

static void set_last(struct blocks *b, uint32_t tid, const struct probe_block *key)
{
	struct last *last;

	HASH_FIND(hh, b->lasts, &tid, sizeof(tid), last);
	if (!last) {
		last = calloc(1, sizeof(*last));
		if (!last)
			return;
		last->tid = tid;
		HASH_ADD(hh, b->lasts, tid, sizeof(last->tid), last);
		if (!last->hh.tbl) {
			free(last);
			return;
		}
	}
	last->key = *key;
}

/*
 * Returns whether this is the last block that the thread allocated. That is known only if all
 * allocations are recorded.
 */
static bool is_last(const struct blocks *b, uint32_t tid, const struct probe_block *key)
{
	struct last *last;

	HASH_FIND(hh, b->lasts, &tid, sizeof(tid), last);
	return last && !b->opts.sample && last->key.process == key->process &&
	       last->key.addr == key->addr;
}

static struct live_block *find_block(const struct blocks *b, uint64_t process, uint64_t addr)
{
	struct probe_block key = { process, addr };
	struct live_block *block;

	HASH_FIND(hh, b->blocks, &key, sizeof(key), block);
	return block;
}

static void drop(struct blocks *b, struct live_block *block, uint64_t time)
{
	struct site *site = block->site;
	uint64_t bytes, objects = weigh(b, block->size, &bytes);

	/* Memory in use has grown until now, so this is the end of a peak. */
	if (b->rising) {
		b->rising = false;
		b->peak++;
	}
	keep_peak(b, site);
	site->freed += objects;
	site->freed_bytes += bytes;
	if (time > block->time)
		site->lifetime += (time - block->time) * objects / ONE;
	b->live -= bytes;
	HASH_DEL(b->blocks, block);
	free(block);
}

static void count(struct blocks *b, struct site *site, const struct probe_event *e)
{
	uint64_t bytes, objects = weigh(b, e->size, &bytes);

	keep_peak(b, site);
	site->objects += objects;
	site->bytes += bytes;
	b->live += bytes;
	if (b->live <= b->top)
		return;
	b->top = b->live;
	b->top_time = e->time;
	b->rising = true;
}

int blocks_allocated(struct blocks *b, struct site *site, const struct probe_event *e)
{
	struct live_block *block = find_block(b, e->process, e->addr);

	/* An earlier block at this address must have been freed without a record. */
	if (block)
		drop(b, block, e->time);
	block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	block->key = (struct probe_block){ e->process, e->addr };
	block->site = site;
	block->size = e->size;
	block->time = e->time;
	block->tid = e->tid;
	HASH_ADD(hh, b->blocks, key, sizeof(block->key), block);
	if (!block->hh.tbl) {
		free(block);
		return -ENOMEM;
	}
	count(b, site, e);
	set_last(b, e->tid, &block->key);
	return 0;
}

void blocks_freed(struct blocks *b, const struct probe_event *e, uint64_t addr)
{
	struct live_block *block = find_block(b, e->process, addr);

	if (!block)
		return;
	block->site->temporary += block->tid == e->tid && is_last(b, e->tid, &block->key);
	drop(b, block, e->time);
}

void blocks_check(struct blocks *b, bool (*gone)(void *arg, const struct probe_block *block),
		  void *arg)
{
	struct live_block *block, *next;

	HASH_ITER(hh, b->blocks, block, next)
	{
		if (gone(arg, &block->key))
			drop(b, block, block->time);
	}
}

/* ---- Results ---- */

static int64_t objects_of(uint64_t n)
{
	return (int64_t)((n + ONE / 2) / ONE);
}

/*
 * Fills in by how much more a site has in use than at the snapshot before. Returns 0 or -ENOMEM.
 */
static int take_growth(struct blocks *b, const struct site *site, int64_t *values)
{
	struct in_use more, now = {
		.counter = site->number,
		.objects = values[INUSE_OBJECTS],
		.bytes = values[INUSE_SPACE],
	};

	if (growth_take(&b->growth, &now, &more))
		return -ENOMEM;
	values[GROWTH_OBJECTS] = more.objects;
	values[GROWTH_SPACE] = more.bytes;
	return 0;
}

static void take_values(const struct blocks *b, const struct site *site, int64_t *values)
{
	uint64_t objects = site->objects - site->freed, bytes = site->bytes - site->freed_bytes;
	bool kept = !b->rising && site->peak == b->peak;

	values[ALLOC_OBJECTS] = objects_of(site->objects);
	values[ALLOC_SPACE] = (int64_t)site->bytes;
	values[INUSE_OBJECTS] = objects_of(objects);
	values[INUSE_SPACE] = (int64_t)bytes;
	values[PEAK_OBJECTS] = objects_of(kept ? site->peak_objects : objects);
	values[PEAK_SPACE] = (int64_t)(kept ? site->peak_bytes : bytes);
	values[TEMPORARY] = (int64_t)site->temporary;
	values[LIFETIME] = (int64_t)site->lifetime;
}

int blocks_report(struct blocks *b,
		  int (*fn)(void *arg, const struct site_stack *stack, const int64_t *values),
		  void *arg, bool snapshot)
{
	int64_t values[HEAP_VALUES] = { 0 };
	struct site *site, *next;
	int ret = 0;

	HASH_ITER(hh, b->sites, site, next)
	{
		const uint64_t *pcs = (const uint64_t *)(&site->key + 1);
		struct site_stack stack = {
			.number = site->number,
			.process = site->key.process,
			.tid = site->key.tid,
			.comm = site->comm,
			.nr = site->key.nr,
			.end = site->key.end,
			.pcs = pcs,
			.marks = (const uint8_t *)(pcs + site->key.nr),
		};

		/* The call may have failed. */
		if (!site->objects)
			continue;
		take_values(b, site, values);
		if (snapshot && b->opts.snapshots)
			ret = take_growth(b, site, values);
		if (!ret)
			ret = fn(arg, &stack, values);
		if (ret)
			break;
	}
	if (snapshot)
		growth_turn(&b->growth);
	return ret;
}

void blocks_count(const struct blocks *b, struct heap_counts *ret)
{
	struct site *site, *next;

	HASH_ITER(hh, b->sites, site, next)
	{
		if (!site->objects)
			continue;
		ret->objects += objects_of(site->objects);
		ret->bytes += site->bytes;
		ret->left += objects_of(site->objects - site->freed);
		ret->left_bytes += site->bytes - site->freed_bytes;
		ret->temporary += site->temporary;
		ret->stacks++;
	}
	ret->live = b->live;
	ret->peak = b->top;
	ret->peak_time = b->top_time;
}
