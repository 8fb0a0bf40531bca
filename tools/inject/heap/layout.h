/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout.h - the memory shared by `shstk record --heap` and the agent in its
 * targets (tools/inject/heap/).
 *
 * One sealed, sparse memfd: a header, then one region per process image (a
 * process from fork or exec on), of which only what is used takes memory:
 *
 *   | heap_header | region 0 | region 1 | ...
 *   region: | heap_image | record | record | ...
 *
 * Records begin at multiples of HEAP_UNIT and only ever get more. A record's
 * @kind is written last: what has none yet is being written, or the process
 * died over it; the reader goes on at the next unit. Counters change all the
 * time; whoever reads them while the process runs gets them approximately.
 *
 * A target may write anything here: the recorder copies each record, checks all
 * sizes, and trusts none of it for more than what the profile shows.
 */
#ifndef HEAP_LAYOUT_H
#define HEAP_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "../protocol.h"

#define HEAP_MAGIC 0x3070616568736873ULL /* "shsheap0" */
#define HEAP_VERSION 3

#define HEAP_MAX_IMAGES 65536
#define HEAP_REGION (1ull << 36) /* bytes of a region */
#define HEAP_FIRST 65536u /* bytes before the first region */
#define HEAP_UNIT 64u /* records are multiples of this */
#define HEAP_ONE 1024 /* an object, where counts are estimated */

/**
 * struct heap_header - start of the memory
 * @magic: HEAP_MAGIC.
 * @version: HEAP_VERSION.
 * @max_depth: most entries of a stack.
 * @cookie: random; the environment must name the same.
 * @sample: mean number of bytes between two samples; 0: every allocation.
 * @with_mmap: record mmap() too.
 * @per_thread: a record per thread and stack.
 * @recorder: process ID of the recorder.
 * @stop: set by the recorder: record no more.
 * @images: regions in use.
 */
struct heap_header {
	uint64_t magic;
	uint32_t version;
	uint32_t max_depth;
	uint64_t cookie;
	uint64_t sample;
	uint32_t with_mmap;
	uint32_t per_thread;
	uint32_t recorder;
	_Alignas(64) _Atomic uint32_t stop;
	_Atomic uint32_t images;
};

/**
 * struct heap_image - start of a region
 * @pid: process ID; 0: not begun.
 * @parent: number of the region it was forked from, plus 1; 0: a new program.
 * @foreign: the program brings a malloc() of its own, which nobody can see.
 * @deepbind: it has loaded libraries that prefer their own functions (RTLD_DEEPBIND), which call
 *	past the agent.
 * @comm: name of the program.
 * @size: bytes of the region that the process can use.
 * @used: bytes handed out to records.
 * @lost: allocations not recorded: the region is full, or memory ran out.
 * @live: bytes allocated and not freed.
 * @peak: largest value of @live.
 * @peak_time: ticks when that was.
 * @peak_state: HEAP_PEAK(): which peak was the last that is over (see struct heap_counter), and
 *	whether @live is at its largest now. One word, so that a peak ends once.
 * @mapped: without @with_mmap: bytes that the program itself has mapped, of no file, and
 * @mapped_peak: the largest value of that.
 */
struct heap_image {
	_Atomic uint32_t pid;
	uint32_t parent;
	uint32_t foreign;
	_Atomic uint32_t deepbind;
	char comm[REC_COMM];
	uint64_t size;
	_Alignas(64) _Atomic uint64_t used;
	_Atomic uint64_t lost;
	_Alignas(64) _Atomic int64_t live;
	_Atomic int64_t peak;
	_Atomic uint64_t peak_time;
	_Atomic uint32_t peak_state;
	_Alignas(64) _Atomic int64_t mapped;
	_Atomic int64_t mapped_peak;
};

#define HEAP_RISING 1u
#define HEAP_PEAK(state) ((state) >> 1)

enum heap_kind {
	HEAP_TRACE = 0x72743031, /* a stack */
	HEAP_COUNTS = 0x746e3034, /* counters of many stacks */
	HEAP_MAPS = 0x706d3032, /* executable lines of /proc/self/maps */
	HEAP_THREAD = 0x68743033, /* name of a thread */
};

/**
 * struct heap_record - start of every record
 * @kind: enum heap_kind.
 * @units: its length in HEAP_UNITs.
 */
struct heap_record {
	_Atomic uint32_t kind;
	uint32_t units;
};

/**
 * struct heap_counter - what is counted of a stack
 * @objects: allocations, in HEAP_ONE if they are sampled.
 * @bytes: their bytes.
 * @freed: those freed again, as @objects.
 * @freed_bytes: their bytes.
 * @lifetime: sum over those freed, in ticks / 64.
 * @peak_objects: objects in use at peak @peak_no. Whoever changes the counters
 *	first after a peak keeps what they were; where the number is an older one
 *	nobody did, and the counters tell.
 * @peak_bytes: bytes in use then.
 * @peak_no: number of the peak that these two tell of.
 * @check: for the agent.
 *
 * One line of the cache, as this is what every allocation and every free touches.
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
 * @record: the header.
 * @counter: each has the number of the unit it is, counted from the region's start.
 * @temporary: of each, those freed with no other allocation of the thread in between.
 *
 * Begins at a multiple of its size.
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

/* Which of @counter is unit @unit? Not below HEAP_COUNTERS: none is. */
static inline uint32_t heap_counter_index(uint32_t unit)
{
	return unit % HEAP_COUNTS_UNITS - 1;
}

/**
 * struct heap_trace - a stack
 * @record: the header.
 * @counter: its counter, in units from the region's start.
 * @maps: number of the maps record that was valid.
 * @tid: thread, or 0: all together.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @pad: 0.
 * @pcs: the entries; behind them one byte of marks for each.
 */
struct heap_trace {
	struct heap_record record;
	uint32_t counter;
	uint32_t maps;
	uint32_t tid;
	uint32_t nr;
	uint32_t end;
	uint32_t pad;
	uint64_t pcs[];
};

/**
 * struct heap_maps - text of a maps file
 * @record: the header.
 * @number: counts from 1.
 * @bytes: length of @text.
 */
struct heap_maps {
	struct heap_record record;
	uint32_t number;
	uint32_t bytes;
	char text[];
};

/**
 * struct heap_thread - a thread, whenever its name was seen to change
 * @record: the header.
 * @tid: thread ID.
 * @comm: its name.
 */
struct heap_thread {
	struct heap_record record;
	uint32_t tid;
	uint32_t pad;
	char comm[REC_COMM];
};

/* Bytes of a trace record. */
static inline uint64_t heap_trace_size(uint64_t nr)
{
	return (sizeof(struct heap_trace) + nr * 9 + HEAP_UNIT - 1) & ~(uint64_t)(HEAP_UNIT - 1);
}

/* The clock of lifetimes and peaks. The recorder finds out how fast it runs. */
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
