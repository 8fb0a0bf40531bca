/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drain_private.h - what the files of drain.h share.
 */
#ifndef TOOLS_RECORD_AGENT_DRAIN_PRIVATE_H
#define TOOLS_RECORD_AGENT_DRAIN_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tools/inject/agent/ring.h"
#include "tools/record/agent/drain.h"
#include "tools/record/agent/memory.h"

#define DRAIN_MEMORY "shstk-record"
#define DRAIN_SLOTS 4096
#define DRAIN_MAX_RECORD 65536
#define DRAIN_BUCKETS 1024

/**
 * struct maps_text - what was mapped in a process, as its agent sent it
 * @next: older, mostly.
 * @instance: of the process image.
 * @time: when it was read.
 * @pass: pass over the rings in which it was found.
 * @size: of @bytes.
 * @bytes: lines of /proc/PID/maps.
 */
struct maps_text {
	struct maps_text *next;
	uint32_t instance;
	uint64_t time;
	unsigned int pass;
	size_t size;
	char bytes[];
};

/**
 * struct image - a process, from fork or exec on
 * @next: in the hash bucket.
 * @instance: its number in the shared memory.
 * @pid: process ID.
 * @proc: its mappings,
 * @mapped_at: as they were then.
 * @last_read: when /proc/PID/maps was read last.
 * @opens: calls of dlopen() that the last look took into account.
 * @open_seen: when they were seen to change.
 * @comm: name of a thread of it.
 * @gone: /proc/PID/maps cannot be read any more.
 * @dead: the process was seen to have ended.
 * @missing: consecutive looks that found threads without a slot.
 * @asked: number of scans asked for.
 *
 * Found by @instance, which the agent has drawn and records have: those of a process that is
 * gone, or of what it was before exec, may come late.
 */
struct image {
	struct image *next;
	uint32_t instance;
	int pid;
	struct shstk_symproc *proc;
	uint64_t mapped_at;
	uint64_t last_read;
	uint64_t open_seen;
	uint32_t opens;
	char comm[REC_COMM];
	bool gone;
	bool dead;
	unsigned int missing;
	unsigned int asked;
};

/**
 * struct slot_progress - what the recorder knows of a slot, not shared
 * @epoch: of the thread that the rest is about.
 * @tail: records up to here were taken,
 * @freed: and the agent was told so up to here.
 * @ahead: maps records up to here were looked for.
 * @text: of maps records that are not complete yet.
 * @taken: samples, lost ones included, when last looked at.
 * @lost: those that found the ring full.
 * @lost_weight: their weight.
 * @known: @epoch is valid.
 */
struct slot_progress {
	uint32_t epoch;
	uint64_t tail;
	uint64_t freed;
	uint64_t ahead;
	struct maps_text *text;
	uint64_t taken;
	uint64_t lost;
	uint64_t lost_weight;
	bool known;
};

/* The thread that had a slot from one epoch to the next. */
struct loser {
	struct loser *next;
	uint32_t slot;
	uint32_t epoch;
	struct drain_loser thread;
};

/**
 * struct drain - a recording by agents
 * @memory: the memory shared with them,
 * @size: its bytes,
 * @header, @slots, @rings: and its parts (tools/inject/agent/ring.h),
 * @nr_slots, @ring_size, @max_depth: and their sizes, as they do not change.
 * @symbols, @profile: what samples go to.
 * @images: processes by their numbers, hashed.
 * @nr_images: how many.
 * @nr_execs: of them, those that were not forked.
 * @samples, @weight, @late, @truncated, @lost, @lost_weight, @lost_threads, @left_out, @damaged:
 *	see struct drain_counts.
 * @period: ns between samples.
 * @most: see drain_most().
 * @ledger: compares with the CPU time that processes used; NULL: for wall-clock time.
 * @nesting: slots that are emptied for the sake of another one.
 * @losers: threads that lost samples.
 * @texts: what was mapped: complete texts,
 * @nr_texts: how many,
 * @text_bytes: and bytes in them and in incomplete ones.
 * @pass: counts the passes over the rings.
 * @progress: of each slot.
 * @shown: differences printed.
 * @started: CLOCK_MONOTONIC in ns.
 * @sampled: @before holds a sample.
 * @record: a copy of the record that is looked at,
 * @before: of the sample before it,
 * @ahead: and of a record that is looked at ahead of time.
 */
struct drain {
	struct memory memory;
	uint64_t size;
	struct rec_header *header;
	struct rec_slot *slots;
	uint8_t *rings;
	uint32_t nr_slots;
	uint32_t ring_size;
	uint32_t max_depth;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct image *images[DRAIN_BUCKETS];
	uint32_t nr_images;
	uint32_t nr_execs;
	uint64_t samples, weight, late, truncated, lost, lost_weight;
	uint64_t period;
	unsigned int most;
	struct ledger *ledger;
	uint32_t lost_threads;
	uint64_t left_out;
	uint32_t damaged;
	unsigned int nesting;
	struct loser *losers;
	struct maps_text *texts;
	unsigned int nr_texts;
	size_t text_bytes;
	unsigned int pass;
	struct slot_progress progress[DRAIN_SLOTS];
	unsigned int shown;
	uint64_t started;
	bool sampled;
	_Alignas(8) uint8_t record[DRAIN_MAX_RECORD];
	_Alignas(8) uint8_t before[DRAIN_MAX_RECORD];
	_Alignas(8) uint8_t ahead[DRAIN_MAX_RECORD];
};

static inline void drain_forget_text(struct drain *d, struct maps_text *t)
{
	if (t)
		d->text_bytes -= t->size;
	free(t);
}

/* drain_memory.c */

int drain_map_memory(struct drain *d, const struct drain_opts *opts);

/* Slots that any thread ever had are below this. */
uint32_t drain_slots_used(const struct drain *d);

/* Copies the record of slot @i at @tail to @to. Return: its size, or -EINVAL. */
int drain_copy_record(const struct drain *d, uint32_t i, uint64_t tail, uint64_t head, uint8_t *to);

/* What is known of the thread that has the slot now. */
struct slot_progress *drain_know_slot(struct drain *d, uint32_t i);

/* drain_maps.c */

/* Reads them from the living process. Return: false if that was done a moment ago. */
bool drain_read_maps(struct image *image);

/* Its text is what is mapped from now on, unless a newer one is in use. */
void drain_take_maps(struct drain *d, struct image *image, const struct rec_maps *m);

/* Before a sample of @image is told to the profile: what was mapped when it was taken. */
void drain_know_maps(struct drain *d, struct image *image, const struct rec_sample *s);

/* Frees texts of earlier passes: older records were all taken. */
void drain_forget_old_texts(struct drain *d);

/* drain_check.c: prints the sample before, and @s, which should be the same but are not. */
void drain_show_difference(struct drain *d, struct image *image, const struct rec_sample *s);

/* drain.c: takes what is left of threads whose process has ended, and frees their slots. */
void drain_free_dead(struct drain *d);

#endif
