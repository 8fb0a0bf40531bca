// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ring_test.c - tests how the walk writes chains into a ring that is as perf's own ones (bpf/ring_record.h): by
 * reading them as tools/perf/rings.c does. Prints KTAP.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/walk.h"

typedef __u64 u64;
typedef __u32 u32;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define MASKED(value, bound) ((value) & ((bound)-1))

#include "bpf/ring_record.h"

#define RECORDS 20000
#define GUARD 0x5a5a5a5a5a5a5a5aull

/* A ring, and memory behind it that nobody may write to. */
static struct {
	struct walk_ring ring;
	u64 guard[RING_MOST / 8];
} memory;

static u64 contents[RING_CONTENTS + RING_AT_ONCE];
static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

static void begin(u64 at)
{
	memset(&memory, 0, sizeof(memory));
	for (size_t i = 0; i < RING_MOST / 8; i++)
		memory.guard[i] = GUARD;
	memory.ring.head = memory.ring.tail = at;
}

static bool is_guarded(void)
{
	for (size_t i = 0; i < RING_MOST / 8; i++)
		if (memory.guard[i] != GUARD)
			return false;
	return true;
}

/* How many words the contents of a record have: most of them few, some as many as there may be. */
static u32 size_of(u64 i)
{
	return i % 7 ? 4 + i * 37 % 50 : RING_CONTENTS - i % 3;
}

static bool put(u64 i)
{
	for (size_t j = 0; j < RING_CONTENTS; j++)
		contents[j] = i * 1000003 + j;
	return put_record(&memory.ring, ring_header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 0),
			  i << 32 | 7, i + 1, contents, size_of(i));
}

/* Reads a record and returns whether it is that one. */
static bool get(u64 i)
{
	struct walk_ring *r = &memory.ring;
	const u64 *at = &r->word[MASKED(r->tail, RING_BYTES) / 8];
	struct perf_event_header h;

	memcpy(&h, at, sizeof(h));
	if (!h.type) {
		r->tail += h.size;
		at = r->word;
		if (MASKED(r->tail, RING_BYTES))
			return false;
		memcpy(&h, at, sizeof(h));
	}
	r->tail += h.size;
	if (h.type != PERF_RECORD_SAMPLE || h.misc != PERF_RECORD_MISC_USER ||
	    h.size != 8 * (RING_HEAD + size_of(i)) || at[1] || at[2] != (i << 32 | 7) ||
	    at[3] != i + 1)
		return false;
	for (u32 j = 0; j < size_of(i); j++)
		if (at[RING_HEAD + j] != i * 1000003 + j)
			return false;
	return r->tail <= r->head;
}

/* Each record is read as it was written, with up to @late of them in the ring. */
static bool all_arrive(u64 late)
{
	u64 read = 0;

	begin(0);
	for (u64 i = 0; i < RECORDS; i++) {
		if (!put(i))
			return false;
		while (i + 1 - read > late)
			if (!get(read++))
				return false;
	}
	while (read < RECORDS)
		if (!get(read++))
			return false;
	return memory.ring.head == memory.ring.tail && is_guarded();
}

/* A ring that nobody reads refuses records, keeps those that it has, and takes more when these are read. */
static bool full_one_keeps_all(void)
{
	u64 nr = 0, read = 0;

	begin(0);
	while (put(nr))
		nr++;
	if (nr < 20 || put(nr))
		return false;
	while (read < nr)
		if (!get(read++))
			return false;
	return put(nr) && get(nr) && memory.ring.head == memory.ring.tail && is_guarded();
}

/* Whoever maps the ring may write anything to what it shares. */
static bool nonsense_does_no_harm(void)
{
	srandom(1);
	for (u64 i = 0; i < RECORDS; i++) {
		begin(0);
		memory.ring.head = ((u64)random() << 33 ^ (u64)random()) & ~7ull;
		memory.ring.tail = i % 2 ? memory.ring.head : (u64)random() << 30;
		put(i);
		if (!is_guarded())
			return false;
	}
	return true;
}

int main(void)
{
	puts("KTAP version 1\n1..5");
	verdict(all_arrive(0), "each record is read at once");
	verdict(all_arrive(12), "each record is read after twelve more");
	verdict(full_one_keeps_all(), "a full ring takes no record, and loses none");
	verdict(nonsense_does_no_harm(), "whatever the reader says, nothing is written elsewhere");
	verdict(offsetof(struct walk_ring, head) ==
				offsetof(struct perf_event_mmap_page, data_head) &&
			offsetof(struct walk_ring, word) == 4096,
		"it begins as one of perf's");
	return !!failed;
}
