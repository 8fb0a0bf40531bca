/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap.h - recording of allocations instead of time, for `shstk record --heap`.
 *
 * The heap agent (tools/inject/heap/) counts by stack in memory that it shares with this command,
 * so nothing needs to be emptied meanwhile. A process is read when it has ended, when recording
 * ends, and for each snapshot.
 */
#ifndef TOOLS_RECORD_HEAP_HEAP_H
#define TOOLS_RECORD_HEAP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"

/**
 * struct heap_opts - what to record
 * @sample: mean number of bytes between two samples; 0: every allocation is recorded.
 * @with_mmap: record mmap() too.
 * @with_python: record Python's objects, too.
 * @per_thread: keep threads apart.
 * @max_depth: most entries of a stack.
 * @fold: deeper stacks are shortened, so that both ends of a recursion remain.
 * @snapshots: several profiles are written, which also tell what grew from one to the next.
 * @follow: heap_recording_follow() is called; what a profile receives has times.
 * @labels: samples have labels that say which process they are of.
 */
struct heap_opts {
	uint64_t sample;
	bool with_mmap;
	bool with_python;
	bool per_thread;
	uint32_t max_depth;
	bool fold;
	bool snapshots;
	bool follow;
	bool labels;
};

/**
 * struct heap_lacks - how many stacks of the present profile are not as they were
 * @stacks: stacks in the profile.
 * @folded: those of them that were shortened.
 * @deep: those of them that lack the outer end because they are too deep.
 * @cut: those of them that lack it for another reason.
 */
struct heap_lacks {
	uint64_t stacks;
	uint64_t folded;
	uint64_t deep;
	uint64_t cut;
};

/**
 * struct heap_counts - counts of what was recorded so far
 * @objects: allocations. With sampling this and what follows are estimates.
 * @bytes: bytes of these allocations.
 * @left: allocations that were not freed, in the processes that were read.
 * @left_bytes: bytes of these allocations.
 * @temporary: allocations that were freed before their thread's next allocation.
 * @live: bytes in use in the processes that were not read yet.
 * @peak: most bytes in use at a time, in one process or in all together.
 * @peak_time: ns from the start of recording to that peak.
 * @peak_pid: process ID of the process with that peak; 0: it is of all together.
 * @lost: allocations that are missing.
 * @stacks: distinct stacks.
 * @lacks: what stacks lack.
 * @processes: processes, forked children included.
 * @foreign: programs with a malloc() of their own.
 * @deepbind: programs that loaded a library with RTLD_DEEPBIND in a way that could not be followed.
 * @mapped: most bytes of anonymous memory that one process had mapped itself at a time, if mmap()
 *	is not recorded.
 * @mapped_pid: process ID of that process.
 * @mapped_by: name of that process.
 * @alive: processes that still ran when recording ended.
 * @inside: a program with an allocator linked into it, whose allocations are not seen; "": none.
 * @allocator: the function of that allocator; see allocator_inside().
 * @more_inside: number of further programs of that kind.
 * @objects_unseen: programs with a Python whose objects were not recorded.
 * @interpreted: stacks of which functions of an interpreter were read.
 * @placed: how many of these have them.
 * @too_deep: how many have none because it ran more functions than are read.
 * @refused: why functions are not shown, or NULL.
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
	struct heap_lacks lacks;
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
	uint32_t objects_unseen;
	uint64_t interpreted;
	uint64_t placed;
	uint64_t too_deep;
	const char *refused;
};

struct heap_recording;

/* Makes the shared memory. Returns 0 or a negative errno. */
int heap_recording_create(const struct heap_opts *opts, struct shstk_symbols *symbols,
			  struct shstk_profile *profile, struct heap_recording **ret);
void heap_recording_destroy(struct heap_recording *d);

/* Returns the value of REC_ENV for the command. */
const char *heap_recording_env(const struct heap_recording *d);

/* Returns how many bytes of the shared memory are in use. */
uint64_t heap_recording_shared(const struct heap_recording *d);

/* Reads processes that have ended. Returns 0 or a negative errno. */
int heap_recording_watch(struct heap_recording *d);

/*
 * With &heap_opts.follow, adds to the profile what processes that still run have counted since the
 * last call. It takes no more than a few seconds, and leaves for the next call what it did not come
 * to. Returns 0 or a negative errno.
 */
int heap_recording_follow(struct heap_recording *d);

/*
 * Adds to the profile what processes that still run have counted. The profile is then a complete
 * snapshot of these and of the processes that ended since the snapshot before. Returns 0 or a
 * negative errno.
 */
int heap_recording_part(struct heap_recording *d);

/*
 * Adds to another profile from now on. Nothing of the old one is used any more. Returns 0 or a
 * negative errno.
 */
int heap_recording_renew(struct heap_recording *d, struct shstk_symbols *symbols,
			 struct shstk_profile *profile);

/* Has the agents stop counting, and reads all processes. Returns 0 or a negative errno. */
int heap_recording_stop(struct heap_recording *d);

/* Fills in the counts so far, with the present ones of processes that were not read yet. */
void heap_recording_count(const struct heap_recording *d, struct heap_counts *ret);

#endif
