/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event.h - what heap.bpf.c, which runs in the kernel, and the recorder share.
 *
 * The recorder makes the maps and attaches the programs to the functions of an allocator;
 * the cookie of each attachment says which process it is of, and what the function does.
 */
#ifndef PROBES_BPF_EVENT_H
#define PROBES_BPF_EVENT_H

#include <linux/types.h>

/* The registers of user space as the kernel hands them to the program, word by word. */
#if defined(__x86_64__) || defined(PROBES_X86)
#define PROBE_WORDS 21
#else
#define PROBE_WORDS 34
#endif

/* Bytes of a stack that are copied: first, and from when that is too small for some. */
#define PROBE_COPY 8192
#define PROBE_LARGE_COPY 65536

#define PROBE_GAPS 4096 /* distances between sample points to choose from */
#define PROBE_COMM 16

/* What a function does, the low byte of a cookie. Behind it: the number of the process. */
enum probe_kind {
	PROBE_SIZE, /* f(size) allocates */
	PROBE_COUNT_SIZE, /* f(count, size) */
	PROBE_ALIGN_SIZE, /* f(alignment, size) */
	PROBE_POINTER, /* f(&address, alignment, size): returns 0 and stores the address */
	PROBE_REALLOC, /* f(old, size) */
	PROBE_REALLOC_ARRAY, /* f(old, count, size) */
	PROBE_FREE, /* f(old) */
};

#define PROBE_KIND_BITS 8

/* The maps, in the order in which they are defined. */
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

/**
 * struct probe_config - said by the recorder
 * @stop: nothing is recorded any more.
 * @sample: mean number of bytes between two samples; 0: every allocation.
 * @large: copy PROBE_LARGE_COPY bytes of stacks.
 */
struct probe_config {
	__u64 stop;
	__u64 sample;
	__u64 large;
};

/**
 * struct probe_counts - told to the recorder
 * @lost: allocations that are missing: the ring was full, or there are too many blocks.
 * @lost_frees: blocks of which it was not told that they are free.
 * @unseen: allocations that are missing as their return was not seen.
 */
struct probe_counts {
	__u64 lost;
	__u64 lost_frees;
	__u64 unseen;
};

/* A block that was recorded and is in use. */
struct probe_block {
	__u64 process; /* its number */
	__u64 addr;
};

enum probe_what {
	PROBE_BEGINS, /* struct probe_call: a function that allocates was called */
	PROBE_ENDS, /* struct probe_event: it returned */
	PROBE_FREED, /* struct probe_event */
};

/**
 * struct probe_event - a record in the ring
 * @what: enum probe_what.
 * @tid: the thread.
 * @process: number of its process.
 * @time: CLOCK_MONOTONIC, in ns.
 * @size: bytes asked for.
 * @addr: the block that was allocated, or 0. PROBE_FREED: the one that is free.
 * @old: the block that realloc() gave back, or 0.
 */
struct probe_event {
	__u32 what;
	__u32 tid;
	__u64 process;
	__u64 time;
	__u64 size;
	__u64 addr;
	__u64 old;
};

/**
 * struct probe_call - a call, with its stack
 * @event: the head.
 * @comm: name of the thread.
 * @words: the registers.
 * @stack_size: bytes of @stack that were copied.
 * @stack: what lay from the stack pointer on.
 */
struct probe_call {
	struct probe_event event;
	char comm[PROBE_COMM];
	__u64 words[PROBE_WORDS];
	__u64 stack_size;
	__u8 stack[];
};

#endif
