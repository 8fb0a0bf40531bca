/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap.h - allocations instead of time, for `shstk record --heap`.
 *
 * The agent (tools/inject/heap/) counts in memory shared with this command, per stack,
 * so there is nothing to be emptied meanwhile: a process is read when it has
 * ended, when recording does, and for each snapshot.
 */
#ifndef TOOLS_RECORD_HEAP_HEAP_H
#define TOOLS_RECORD_HEAP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"

/**
 * struct heap_opts - what to record
 * @sample: mean number of bytes between two samples; 0: every allocation.
 * @with_mmap: mmap() too.
 * @per_thread: keep threads apart.
 * @max_depth: most entries of a stack.
 * @snapshots: there are several profiles, which also tell what grew from one to the next.
 */
struct heap_opts {
	uint64_t sample;
	bool with_mmap;
	bool per_thread;
	uint32_t max_depth;
	bool snapshots;
};

/**
 * struct heap_counts - what was recorded so far
 * @objects: allocations; an estimate if sampled, as all that follow.
 * @bytes: their bytes.
 * @left: allocations that were not freed, of processes that were read.
 * @left_bytes: their bytes.
 * @temporary: allocations freed with no other one in between.
 * @live: bytes in use in processes that were not read.
 * @peak: most bytes in use at a time in one process.
 * @peak_time: ns since the start of recording until that.
 * @peak_pid: that process.
 * @lost: allocations that are missing.
 * @stacks: distinct stacks.
 * @processes: processes, forked children included.
 * @foreign: programs with an own malloc().
 * @deepbind: programs that loaded a library with RTLD_DEEPBIND.
 * @mapped: most bytes at a time that a process mapped itself, of no file, if that is not
 *	recorded,
 * @mapped_pid: that process, and
 * @mapped_by: its name.
 * @alive: processes that still ran when recording ended.
 * @inside: a program that has an allocator linked into it, which nobody sees; "".
 * @allocator: its function; see allocator_inside().
 * @more_inside: further such programs.
 */
struct heap_counts {
	uint64_t objects;
	uint64_t bytes;
	uint64_t left;
	uint64_t left_bytes;
	uint64_t temporary;
	uint64_t live;
	uint64_t peak;
	uint64_t peak_time;
	int peak_pid;
	uint64_t lost;
	uint64_t stacks;
	uint32_t processes;
	uint32_t foreign;
	uint32_t deepbind;
	uint64_t mapped;
	int mapped_pid;
	char mapped_by[16];
	uint32_t alive;
	char inside[128];
	const char *allocator;
	uint32_t more_inside;
};

struct heap_drain;

/* Makes the shared memory. Returns 0 or a negative errno. */
int heap_drain_create(const struct heap_opts *opts, struct shstk_symbols *symbols,
		      struct shstk_profile *profile, struct heap_drain **ret);
void heap_drain_destroy(struct heap_drain *d);

/* Value of REC_ENV for the target. */
const char *heap_drain_env(const struct heap_drain *d);

/* Bytes of the shared memory. */
uint64_t heap_drain_shared(const struct heap_drain *d);

/* Reads processes that have ended. Returns 0 or -ENOMEM. */
int heap_drain_watch(struct heap_drain *d);

/*
 * Adds what processes that still run have counted to the profile, which is then a complete
 * snapshot: of them, and of those that ended since the one before. Returns 0 or -ENOMEM.
 */
int heap_drain_part(struct heap_drain *d);

/* What is read from now on is for another profile; nothing of the old one is used. */
int heap_drain_renew(struct heap_drain *d, struct shstk_symbols *symbols,
		     struct shstk_profile *profile);

/* No more from now on; reads all. */
int heap_drain_stop(struct heap_drain *d);

void heap_drain_count(const struct heap_drain *d, struct heap_counts *ret);

#endif
