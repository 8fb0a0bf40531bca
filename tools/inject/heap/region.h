/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * region.h - the memory that `shstk record --heap` and the agents in its targets share
 * (tools/inject/heap/).
 *
 * One sealed, sparse memfd: a header, then one region for each process image (a process from fork
 * or exec on). Only the used part of a region takes memory:
 *
 *   | heap_header | region 0 | region 1 | ...
 *   region: | heap_image | record | record | ...
 *
 * Records begin at multiples of HEAP_UNIT, and are never removed. A record's @kind is written last:
 * a record without one is still being written, or its process died meanwhile; the reader goes on at
 * the next unit. Counters change all the time: a reader gets approximate values while the process
 * runs.
 *
 * A target may write anything here: the recorder copies each record, checks all sizes, and uses the
 * content for nothing but what the profile shows.
 */
#ifndef HEAP_REGION_H
#define HEAP_REGION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../protocol.h"
#include "bpf/language.h"

#define HEAP_MAGIC 0x3070616568736873ULL /* "shsheap0" */
#define HEAP_VERSION 7

#define HEAP_MAX_IMAGES 65536
#define HEAP_REGION (1ull << 36) /* bytes of a region */
#define HEAP_FIRST 65536u /* offset of the first region in bytes */
#define HEAP_UNIT 64u /* the size of a record is a multiple of this */
#define HEAP_ONE 1024 /* one object, where counts are estimated */
/*
 * Entries of a stack that is shortened. The library remembers as many of a thread's last stack, so
 * that only new ones cost much.
 */
#define HEAP_DEEPEST 12000

/**
 * struct heap_header - start of the memory
 * @magic: HEAP_MAGIC.
 * @version: HEAP_VERSION.
 * @max_depth: most entries of a stack.
 * @deepest: most entries of a stack that is shortened to @max_depth entries, so that both ends of a
 *	recursion remain; 0: deeper stacks are cut at the outer end.
 * @cookie: random number, which is also in the environment.
 * @sample: mean number of bytes between two samples; 0: every allocation is recorded.
 * @with_mmap: mmap() is recorded too.
 * @with_python: Python's objects are recorded, too.
 * @per_thread: each thread has a record of its own for a stack.
 * @recorder: process ID of the recorder.
 * @stop: set by the recorder: nothing more is recorded.
 * @images: number of regions in use.
 */
struct heap_header {
	uint64_t magic;
	uint32_t version;
	uint32_t max_depth;
	uint32_t deepest;
	uint64_t cookie;
	uint64_t sample;
	uint32_t with_mmap;
	uint32_t with_python;
	uint32_t per_thread;
	uint32_t recorder;
	_Alignas(64) _Atomic uint32_t stop;
	_Atomic uint32_t images;
};

/**
 * struct heap_image - start of a region
 * @pid: process ID; 0: not begun.
 * @parent: number of the region it was forked from, plus 1; 0: a new program.
 * @foreign: the program has a malloc() of its own, which the agent cannot see.
 * @deepbind: the program has loaded libraries that prefer their own functions (RTLD_DEEPBIND) and
 *	do not call the agent's.
 * @objects: Python's objects are recorded.
 * @comm: name of the program.
 * @began: when the region was begun, in ticks. The process goes on when it executes a program, and
 *	has another region then. When it ends the recorder sees, as a process that is killed cannot say
 *	it.
 * @size: bytes of the region that the process can use.
 * @used: bytes given to records.
 * @lost: allocations that were not recorded because the region was full or there was no memory.
 * @live: bytes allocated and not freed.
 * @peak: largest value of @live.
 * @peak_time: time of @peak, in ticks.
 * @peak_state: the number of the last peak that is over (HEAP_PEAK()), and HEAP_RISING if @live is
 *	at its largest now. Both are in one word so that a peak ends only once.
 * @mapped: without @with_mmap: bytes of mappings without a file that the program itself has made.
 * @mapped_peak: largest value of @mapped.
 *
 * Every allocation and every free changes @live, and reads what is behind it. That changes seldom and
 * has a cache line of its own, so that a CPU which reads it does not take the line of @live away
 * from the one that changes it next.
 */
struct heap_image {
	_Atomic uint32_t pid;
	uint32_t parent;
	uint32_t foreign;
	_Atomic uint32_t deepbind;
	uint32_t objects;
	char comm[REC_COMM];
	uint64_t began;
	uint64_t size;
	_Alignas(64) _Atomic uint64_t used;
	_Atomic uint64_t lost;
	_Alignas(64) _Atomic int64_t live;
	_Alignas(64) _Atomic int64_t peak;
	_Atomic uint64_t peak_time;
	_Atomic uint32_t peak_state;
	_Alignas(64) _Atomic int64_t mapped;
	_Atomic int64_t mapped_peak;
};

_Static_assert(offsetof(struct heap_image, peak) / 64 != offsetof(struct heap_image, live) / 64,
	       "not in one line");

#define HEAP_RISING 1u
#define HEAP_PEAK(state) ((state) >> 1)

enum heap_kind {
	HEAP_TRACE = 0x72743031, /* a stack */
	HEAP_COUNTS = 0x746e3034, /* counters of many stacks */
	HEAP_MAPS = 0x706d3032, /* executable lines of /proc/self/maps */
	HEAP_THREAD = 0x68743033, /* name of a thread */
	HEAP_PYTHON = 0x79703035, /* which Python the process has */
	HEAP_CODE = 0x6f633036, /* a function of Python */
};

/**
 * struct heap_record - start of every record
 * @kind: enum heap_kind.
 * @units: length of the record in HEAP_UNITs.
 */
struct heap_record {
	_Atomic uint32_t kind;
	uint32_t units;
};

/**
 * struct heap_counter - the counters of a stack
 * @objects: number of allocations; if they are sampled, in units of 1 / HEAP_ONE.
 * @bytes: bytes of these allocations.
 * @freed: number of them that were freed, in the unit of @objects.
 * @freed_bytes: bytes that were freed.
 * @lifetime: sum of the lifetimes of those freed, in ticks / 64.
 * @peak_objects: objects in use at peak @peak_no. Whoever first changes the counters after a peak
 *	saves their values here. If @peak_no is older than the last peak, the counters have not
 *	changed since.
 * @peak_bytes: bytes in use at peak @peak_no.
 * @peak_no: number of the peak that @peak_objects and @peak_bytes are of.
 * @check: for the agent's use.
 *
 * It is one cache line, because every allocation and every free accesses it.
 */
struct heap_counter {
	_Atomic uint64_t objects;
	_Atomic uint64_t bytes;
	_Atomic uint64_t freed;
	_Atomic uint64_t freed_bytes;
	_Atomic uint64_t lifetime;
	_Atomic uint64_t peak_objects;
	_Atomic uint64_t peak_bytes;
	_Atomic uint32_t peak_no;
	uint32_t check;
};

_Static_assert(sizeof(struct heap_counter) == HEAP_UNIT, "one unit");

/**
 * struct heap_counters - counters of many stacks, side by side
 * @record: the record's header.
 * @counter: the counters. The number of a counter is that of its unit, counted from the region's
 *	start.
 * @temporary: for each counter, the number of objects freed with no other allocation of the thread
 *	in between.
 *
 * The record begins at a multiple of its size.
 */
#define HEAP_COUNTS_BYTES 65536u
#define HEAP_COUNTS_UNITS (HEAP_COUNTS_BYTES / HEAP_UNIT)
#define HEAP_COUNTERS 909

struct heap_counters {
	_Alignas(64) struct heap_record record;
	_Alignas(64) struct heap_counter counter[HEAP_COUNTERS];
	_Atomic uint64_t temporary[HEAP_COUNTERS];
};

_Static_assert(sizeof(struct heap_counters) <= HEAP_COUNTS_BYTES, "room");

/*
 * Returns the index in @counter of unit @unit. If it is not below HEAP_COUNTERS, the unit has no
 * counter.
 */
static inline uint32_t heap_counter_index(uint32_t unit)
{
	return unit % HEAP_COUNTS_UNITS - 1;
}

/**
 * struct heap_trace - a stack
 * @record: the record's header.
 * @counter: the stack's counter, in units from the region's start.
 * @maps: number of the maps record that was valid.
 * @tid: thread ID, or 0: all threads.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @frames: bytes of what the interpreter ran, a multiple of 8; 0: nothing is known of it.
 * @folded: 1 if it has entries that stand for others of a deep stack (SHSTK_FUNCTION_LEFT_OUT).
 * @pad: 0.
 * @pcs: the entries. If @frames is not 0, that many bytes follow: the stack pointer of each entry, a
 *	struct language_moment and its entries. A byte of marks for each entry comes last.
 */
struct heap_trace {
	struct heap_record record;
	uint32_t counter;
	uint32_t maps;
	uint32_t tid;
	uint32_t nr;
	uint32_t end;
	uint32_t frames;
	uint32_t folded;
	uint32_t pad;
	uint64_t pcs[];
};

/**
 * struct heap_interpreter - the Python that a process has
 * @record: the record's header.
 * @minor: 11 for Python 3.11.
 * @pad: 0.
 * @run: address of the function that runs frames.
 * @run_size: bytes of this function.
 */
struct heap_interpreter {
	struct heap_record record;
	uint32_t minor;
	uint32_t pad;
	uint64_t run;
	uint64_t run_size;
};

/**
 * struct heap_code - a function of Python
 * @record: the record's header.
 * @code: the function; its @id is one of this region only. The record ends behind the last byte of its
 *	@table that was copied.
 */
struct heap_code {
	struct heap_record record;
	struct language_code code;
};

/**
 * struct heap_maps - text of a maps file
 * @record: the record's header.
 * @number: number of the record, from 1.
 * @bytes: length of @text.
 * @text: the executable lines of /proc/self/maps.
 */
struct heap_maps {
	struct heap_record record;
	uint32_t number;
	uint32_t bytes;
	char text[];
};

/**
 * struct heap_thread - a thread's name, at the times when the agent read it
 * @record: the record's header.
 * @tid: thread ID.
 * @pad: 0.
 * @comm: name of the thread.
 */
struct heap_thread {
	struct heap_record record;
	uint32_t tid;
	uint32_t pad;
	char comm[REC_COMM];
};

/* Returns the bytes of a trace record with @nr entries and @frames bytes of frames. */
static inline uint64_t heap_trace_size(uint64_t nr, uint64_t frames)
{
	uint64_t bytes = sizeof(struct heap_trace) + nr * 9 + frames;

	return (bytes + HEAP_UNIT - 1) & ~(uint64_t)(HEAP_UNIT - 1);
}

/* Returns the clock of lifetimes and peaks. The recorder measures its rate. */
static inline uint64_t heap_ticks(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return 0;
#endif
}

#endif
