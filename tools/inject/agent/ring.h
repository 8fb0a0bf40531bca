/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring.h - the memory that `shstk record` and the agents in its targets share.
 *
 * One sealed memfd holds a header, an array of slots and one ring for each slot:
 *
 *   | rec_header | rec_slot[nr_slots] ... | ring 0 | ring 1 | ...
 *
 * A slot belongs to one thread at a time. Its ring has one producer (that thread, mostly in its
 * signal handler) and one consumer (the recorder):
 *
 *   producer                               consumer
 *   load-acquire tail   <--- A ---------   store-release tail
 *   write the record                       load-acquire head
 *   store-release head  ---- B -------->   copy the record
 *
 * A: a record is overwritten only after it was copied. B: a record is complete before the consumer
 * sees it. head and tail count bytes since the slot was last taken and never wrap; their low bits
 * are the offset in the ring.
 *
 * @owner of a slot is its state in the low byte and the process ID above it:
 *
 *   FREE -> TAKEN (agent, compare-and-swap) -> ACTIVE -> DYING -> FREE
 *
 * The thread, or a later image of its process after exec, sets DYING; then the recorder empties the
 * ring and frees the slot. The recorder also frees a slot whose process died. A thread that was
 * never sampled frees its slot itself; @epoch tells the recorder that the slot has another thread.
 *
 * A target may write anything here at any time. So the recorder copies each record before it looks
 * at it, checks all sizes, and uses the content for nothing but the names and numbers in the
 * profile.
 */
#ifndef AGENT_RING_H
#define AGENT_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "../protocol.h"
#include "bpf/language.h"

#define REC_MAGIC 0x306b747368736873ULL /* "shshstk0" */
#define REC_VERSION 10

#define REC_MAX_SLOTS 65536
#define REC_MAX_LABELS 1024 /* most bytes of the labels of a sample */

enum rec_clock {
	REC_CLOCK_CPU = 0,
	REC_CLOCK_WALL = 1,
};

#define REC_EXECS 64
#define REC_PATH 240

enum rec_exec_state {
	REC_EXEC_FREE = 0,
	REC_EXEC_TAKEN = 1,
	REC_EXEC_READY = 2,
};

/**
 * struct rec_exec - a process is about to execute a program
 * @state: enum rec_exec_state. An agent sets TAKEN and then READY, the recorder sets FREE.
 * @pid: process ID.
 * @instance: image that executes the program; in a child that has no instance, that of its parent.
 * @cpu: CPU time that the process had used, in ns.
 * @path: path of the program, as in the call.
 *
 * This is not a record in a ring because a child of vfork() has no ring of its own.
 */
struct rec_exec {
	_Atomic uint32_t state;
	uint32_t pid;
	uint32_t instance;
	uint64_t cpu;
	char path[REC_PATH];
};

/**
 * struct rec_header - start of the memory
 * @magic: REC_MAGIC.
 * @version: REC_VERSION.
 * @nr_slots: number of slots and rings.
 * @ring_size: bytes of each ring, a power of two.
 * @max_depth: most entries of a stack.
 * @deepest: most entries of a stack that is shortened to @max_depth entries, so that both ends of a
 *	recursion remain; 0: deeper stacks are cut at the outer end.
 * @clock: enum rec_clock.
 * @cookie: random number, which is also in the environment.
 * @period: ns between two samples.
 * @slots_offset: offset of the slots in the memory, in bytes.
 * @rings_offset: offset of the rings in the memory, in bytes.
 * @recorder: process ID of the recorder.
 * @labels: samples of goroutines have their labels.
 * @in_time: periods that may run out from one of the kernel's ticks to the next.
 * @events: perf events may be opened; they do not depend on the tick.
 * @stop: set by the recorder, or by an agent that finds it gone: no more samples are taken.
 * @slot_hint: number of the slot at which the search for a free one begins.
 * @slot_high: highest number of a slot that was ever taken, plus 1.
 * @instances: number of processes and exec images so far; instance 0 is none.
 * @threads: threads that were sampled.
 * @no_slot: threads that found no free slot.
 * @no_timer: threads for which the kernel gave no timer.
 * @sandboxed: threads and processes that began behind a seccomp filter.
 * @foreign: processes in another PID namespace.
 * @execs: programs that are about to be executed.
 * @stretch: most periods between two samples of a thread that waits, if more than 1.
 */
struct rec_header {
	uint64_t magic;
	uint32_t version;
	uint32_t nr_slots;
	uint32_t ring_size;
	uint32_t max_depth;
	uint32_t deepest;
	uint32_t clock;
	uint32_t recorder;
	uint64_t cookie;
	uint64_t period;
	uint64_t slots_offset;
	uint64_t rings_offset;
	uint32_t labels;
	uint32_t in_time;
	uint32_t events;
	_Alignas(64) _Atomic uint32_t stop;
	_Alignas(64) _Atomic uint32_t slot_hint;
	_Atomic uint32_t slot_high;
	_Atomic uint32_t instances;
	_Atomic uint32_t threads;
	_Atomic uint32_t no_slot;
	_Atomic uint32_t no_timer;
	_Atomic uint32_t sandboxed;
	_Atomic uint32_t foreign;
	_Atomic uint32_t stretch;
	struct rec_exec execs[REC_EXECS];
};

enum rec_state {
	REC_FREE = 0,
	REC_TAKEN = 1,
	REC_ACTIVE = 2,
	REC_DYING = 3,
};

#define REC_OWNER(pid, state) ((uint64_t)(uint32_t)(pid) << 8 | (state))
#define REC_OWNER_PID(owner) ((int)((owner) >> 8))
#define REC_OWNER_STATE(owner) ((int)((owner)&0xff))

/**
 * struct rec_slot - one thread
 * @owner: REC_OWNER().
 * @epoch: number of threads that had this slot.
 * @tid: thread ID.
 * @signo: signal that the agent uses in this process; 0: the thread is to get none.
 * @instance: process image that this thread belongs to.
 * @parent: instance that @instance was forked from, or 0.
 * @start_slot: slot whose ring holds the REC_START record of @instance.
 * @parent_slot: slot whose ring holds the REC_START record of @parent.
 * @comm: name of the thread when the agent last read it.
 * @head: bytes produced.
 * @taken: samples taken, including lost samples.
 * @lost: samples that found the ring full.
 * @lost_weight: weight of the lost samples, in ns.
 * @cpu: the thread's CPU clock up to which its samples account for its time, in ns.
 * @wait_since: with wall-clock time: CLOCK_MONOTONIC in ns when the thread began to wait; its
 *	sample lies at @head, complete but for its weight. 0: the thread does not wait.
 * @wait_until: with wall-clock time: CLOCK_MONOTONIC in ns when its process began to end. 0: it
 *	does not.
 * @tail: bytes consumed.
 * @kernel_rest: in @start_slot: time in the kernel of threads of @instance that ended, which no place
 *	has got yet, in ns. The recorder takes it if the process ends without its agent.
 * @ticks_rest: likewise, time that no tick has found.
 */
struct rec_slot {
	_Alignas(64) _Atomic uint64_t owner;
	_Atomic uint32_t epoch;
	uint32_t tid;
	uint32_t signo;
	uint32_t instance;
	uint32_t parent;
	uint32_t start_slot;
	uint32_t parent_slot;
	char comm[REC_COMM];
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t taken;
	_Atomic uint64_t lost;
	_Atomic uint64_t lost_weight;
	_Atomic uint64_t cpu;
	_Atomic uint64_t wait_since;
	_Atomic uint64_t wait_until;
	_Alignas(64) _Atomic uint64_t tail;
	_Atomic uint64_t kernel_rest;
	_Atomic uint64_t ticks_rest;
};

enum rec_type {
	REC_PAD = 1, /* to be skipped; reaches to the end of the ring */
	REC_START = 2, /* a process image: first record of its start_slot */
	REC_MAPS = 3, /* part of the executable lines of /proc/self/maps */
	REC_SAMPLE = 4,
	REC_END = 5, /* the agent leaves the process, which exits; not with wall-clock time */
	REC_REAPED = 6, /* the process has waited for a child */
	REC_PYTHON = 7, /* which Python the process has */
	REC_CODE = 8, /* a function of Python */
};

/**
 * struct rec_record - start of every record, 8-byte aligned
 * @size: bytes of the record with this header, a multiple of 8.
 * @type: enum rec_type.
 * @flags: for REC_MAPS: REC_MAPS_FIRST, REC_MAPS_LAST. For REC_SAMPLE: enum rec_place. Otherwise 0.
 */
struct rec_record {
	uint32_t size;
	uint16_t type;
	uint16_t flags;
};

/* Where the time of a sample without a stack was spent. */
enum rec_place {
	REC_PLACE_STACK = 0,
	REC_PLACE_TICKS = 1, /* not known: between two ticks */
	REC_PLACE_LOADER = 2, /* in the loader, before the agent's constructor */
	REC_PLACE_HELD = 3, /* where the agent's signal is held back (hold_back.c) */
	REC_PLACE_KERNEL = 4, /* in the kernel, in no system call that was seen */
};

#define REC_MAPS_FIRST 1
#define REC_MAPS_LAST 2

/*
 * REC_START and REC_END say when a process began and ended, by its own look at the clock:
 *
 *   - the child of a fork begins in the child, before the program's code goes on there;
 *   - a process that executes a program goes on. The image begins when the agent's constructor
 *     runs; the process begins with it only if the recorder does not know the process yet;
 *   - a child of vfork(), which has no record of its own, begins with the program that it
 *     executes;
 *   - with wall-clock time a process ends at @wait_until of its slots: a REC_END would take the
 *     place of the sample of the thread that ends it in a handler while it waits;
 *   - a process ends without a REC_END if it is killed, has a sandbox, executes a program without
 *     an agent, or has no room in its ring. Then it ends when the recorder sees that it is gone.
 */

/**
 * struct rec_start - a process, or a new image in it after exec
 * @record: the record's header.
 * @pid: process ID.
 * @parent: instance it was forked from, or 0: a new image, whose maps follow.
 * @parent_pid: process ID of its parent.
 * @pad: 0.
 * @time: CLOCK_MONOTONIC in ns.
 */
struct rec_start {
	struct rec_record record;
	uint32_t pid;
	uint32_t parent;
	uint32_t parent_pid;
	uint32_t pad;
	uint64_t time;
};

/**
 * struct rec_end - CPU times when the agent leaves a process
 * @record: the record's header.
 * @time: CLOCK_MONOTONIC in ns.
 * @self: CPU time of the process, in ns.
 * @children: CPU time of its children that it waited for, in ns.
 */
struct rec_end {
	struct rec_record record;
	uint64_t time;
	uint64_t self;
	uint64_t children;
};

/**
 * struct rec_reaped - a child has ended and its parent has waited for it
 * @record: the record's header.
 * @pid: process ID of the child.
 * @pad: 0.
 * @cpu: CPU time of the child and its own children, in ns.
 */
struct rec_reaped {
	struct rec_record record;
	uint32_t pid;
	uint32_t pad;
	uint64_t cpu;
};

/**
 * struct rec_maps - text of a maps file
 * @record: the record's header.
 * @bytes: length of the text that follows.
 * @pad: 0.
 * @time: CLOCK_MONOTONIC in ns before the file was read. A maps record is also sent before anything
 *	is unmapped, so that the first one after a sample has all that was mapped at the sample.
 * @text: the text.
 */
struct rec_maps {
	struct rec_record record;
	uint32_t bytes;
	uint32_t pad;
	uint64_t time;
	char text[];
};

#define REC_BEGINNING 256 /* bytes of a function that are passed on */

/**
 * struct rec_python - the Python that a process has
 * @record: the record's header.
 * @minor: 11 for Python 3.11.
 * @pad: 0.
 * @run: address of the function that runs frames.
 * @run_size: bytes of this function.
 * @beginning: its first bytes.
 *
 * It, and a function, may lie in the ring of another thread than the frames that refer to it, but never
 * comes later than these.
 */
struct rec_python {
	struct rec_record record;
	uint32_t minor;
	uint32_t pad;
	uint64_t run;
	uint64_t run_size;
	uint8_t beginning[REC_BEGINNING];
};

/**
 * struct rec_code - a function of Python
 * @record: the record's header.
 * @code: the function; its @id is one of this process image only. The record ends behind the last byte
 *	of its @table that was copied.
 */
struct rec_code {
	struct rec_record record;
	struct language_code code;
};

/**
 * struct rec_sample - one sample
 * @record: the record's header.
 * @time: CLOCK_MONOTONIC in ns.
 * @weight: ns that this sample stands for.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @source: enum shstk_source.
 * @opens: calls of dlopen() in this process so far.
 * @late: periods in @weight that were not spent in this stack: they ran out where the kernel did
 *	not look.
 * @labels: bytes of labels.
 * @folded: 1 if it has entries that stand for others of a deep stack (SHSTK_FUNCTION_LEFT_OUT).
 * @frames: bytes of what Python ran, a multiple of 8; 0: it ran nothing; REC_FRAMES_UNKNOWN: it ran
 *	something that could not be read.
 * @pad: 0.
 * @pcs: the entries. One byte of marks for each entry follows them, and then the labels of the
 *	goroutine: keys and values, each with a zero behind it. What Python ran begins at the next
 *	multiple of 8: the stack pointer of each entry, and a struct language_moment with its entries.
 */
#define REC_FRAMES_UNKNOWN 1

struct rec_sample {
	struct rec_record record;
	uint64_t time;
	uint64_t weight;
	uint32_t nr;
	uint16_t end;
	uint16_t source;
	uint32_t opens;
	uint32_t late;
	uint32_t labels;
	uint32_t folded;
	uint32_t frames;
	uint32_t pad;
	uint64_t pcs[];
};

/* Returns the bytes of a sample record with @depth entries and @labels bytes of labels. */
static inline uint32_t rec_sample_size(uint32_t depth, uint32_t labels)
{
	return (sizeof(struct rec_sample) + depth * 9 + labels + 7) & ~7u;
}

/* Returns the bytes of the largest sample record with @depth entries. */
static inline uint32_t rec_sample_room(uint32_t depth)
{
	return rec_sample_size(depth, REC_MAX_LABELS);
}

/* Returns how deep stacks may be that are shortened in a ring of this size: 16384 in 256 KiB. */
static inline uint32_t rec_deepest(uint32_t ring_size)
{
	return ring_size / 16 < 16384 ? ring_size / 16 : 16384;
}

/* Returns the size of the smallest ring for stacks of @depth entries: it holds a few samples. */
static inline uint32_t rec_min_ring(uint32_t depth)
{
	uint32_t size = 16384;

	while (size < 4 * rec_sample_room(depth))
		size *= 2;
	return size;
}

/* Rounds @bytes up to whole pages of any page size in use (at most 64 KiB). */
static inline uint64_t rec_round(uint64_t bytes)
{
	return (bytes + 65535) & ~(uint64_t)65535;
}

#endif
