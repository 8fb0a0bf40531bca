/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event.h - what heap.bpf.c, which runs in the kernel, and the recorder share.
 *
 * The recorder creates the maps and attaches the programs to the functions of allocators. The
 * cookie of each attachment tells the number of the process and what the function does.
 */
#ifndef PROBES_BPF_EVENT_H
#define PROBES_BPF_EVENT_H

#include <linux/types.h>

/* Number of words of the user-space registers that the kernel passes to the program. */
#if defined(__x86_64__) || defined(PROBES_X86)
#define PROBE_WORDS 21
#else
#define PROBE_WORDS 34
#endif

/* Bytes of a stack that are copied: the usual size, and the size after a copy was too small. */
#define PROBE_COPY 8192
#define PROBE_LARGE_COPY 65536

#define PROBE_GAPS 4096 /* number of random distances between sample points to choose from */
#define PROBE_COMM 16

/* What a function does: the low byte of a cookie. The number of the process is above it. */
enum probe_kind {
	PROBE_SIZE, /* f(size) allocates */
	PROBE_COUNT_SIZE, /* f(count, size) */
	PROBE_ALIGN_SIZE, /* f(alignment, size) */
	PROBE_POINTER, /* f(&address, alignment, size): returns 0 and stores the address */
	PROBE_REALLOC, /* f(old, size) */
	PROBE_REALLOC_ARRAY, /* f(old, count, size) */
	PROBE_FREE, /* f(old) */
	PROBE_LOADER, /* no allocator's: the loader calls it when it has mapped or removed libraries */
};

#define PROBE_KIND_BITS 8

/* The maps, in the order of their definitions. */
enum probe_map {
	PROBE_MAP_CONFIG,
	PROBE_MAP_COUNTS,
	PROBE_MAP_GAPS,
	PROBE_MAP_DISTANCE,
	PROBE_MAP_CALLS,
	PROBE_MAP_BLOCKS,
	PROBE_MAP_RING,
	PROBE_MAP_TAILS,
	PROBE_MAPS,
};

/* Places in the map PROBE_MAP_TAILS of programs that are called. */
enum probe_tail {
	PROBE_TAIL_EMPTY, /* there is never one */
	PROBE_TAIL_FRAMES, /* reads frames of interpreters (bpf/probed.bpf.c), if there is one */
	PROBE_TAILS,
};

/**
 * struct probe_config - what the recorder tells the programs
 * @stop: not 0: nothing is recorded any more.
 * @sample: mean number of bytes between two sample points; 0: every allocation is recorded.
 * @large: not 0: copy PROBE_LARGE_COPY bytes of stacks.
 */
struct probe_config {
	__u64 stop;
	__u64 sample;
	__u64 large;
};

/**
 * struct probe_counts - what the programs tell the recorder
 * @lost: allocations that are missing, because the ring buffer was full or there are too many
 *	blocks.
 * @lost_frees: blocks whose free was not recorded.
 * @unseen: allocations that are missing, because their return was not seen.
 */
struct probe_counts {
	__u64 lost;
	__u64 lost_frees;
	__u64 unseen;
};

/* The key of a block that was recorded and is in use. */
struct probe_block {
	__u64 process; /* number of the process */
	__u64 addr;
};

/**
 * struct probe_pending - a call that has not returned yet; the map has one for each thread
 * @sp: stack pointer when the call began.
 * @size: bytes asked for.
 * @old: a recorded block that was passed to realloc(), or 0.
 * @result: where the function will store the address; 0: it returns the address.
 * @chosen: the allocation is recorded.
 * @frames: enum probe_frames.
 */
struct probe_pending {
	__u64 sp;
	__u64 size;
	__u64 old;
	__u64 result;
	__u64 chosen;
	__u64 frames;
};

enum probe_what {
	PROBE_BEGINS, /* struct probe_call: a function that allocates was called */
	PROBE_ENDS, /* struct probe_event: it returned */
	PROBE_FREED, /* struct probe_event */
	PROBE_MAPPED, /* struct probe_event: the process has mapped or removed libraries */
	PROBE_LANGUAGE, /* a record of bpf/language.h, whose first word is this */
};

/* What became of the frames of an interpreter in which a function was called that allocates. */
enum probe_frames {
	PROBE_FRAMES_NONE, /* there are none */
	PROBE_FRAMES_WRITTEN, /* a record with them is in front of the call's */
	PROBE_FRAMES_MISSED, /* they could not be read or written */
};

/**
 * struct probe_event - a record in the ring buffer
 * @what: enum probe_what.
 * @tid: thread ID.
 * @process: number of the process.
 * @time: CLOCK_MONOTONIC, in ns.
 * @size: bytes asked for.
 * @addr: PROBE_ENDS: address of the new block, or 0. PROBE_FREED: address of the block that is
 *	freed.
 * @old: address of the block that realloc() gave back, or 0.
 * @frames: PROBE_BEGINS: enum probe_frames.
 */
struct probe_event {
	__u32 what;
	__u32 tid;
	__u64 process;
	__u64 time;
	__u64 size;
	__u64 addr;
	__u64 old;
	__u64 frames;
};

/**
 * struct probe_call - a record of a call, with the stack
 * @event: the head of the record.
 * @comm: name of the thread.
 * @words: the user-space registers.
 * @stack_size: number of bytes from the stack pointer to the end of the last part in @stack.
 * @missing: parts of @stack that were not in memory, a bit for each: part 0 ends where the page of
 *	the stack pointer does, each further one is 4096 bytes.
 * @stack: copy of the stack, from the stack pointer on.
 */
struct probe_call {
	struct probe_event event;
	char comm[PROBE_COMM];
	__u64 words[PROBE_WORDS];
	__u64 stack_size;
	__u64 missing;
	__u8 stack[];
};

#endif
