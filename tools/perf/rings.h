/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rings.h - events of perf_event_open(2) on every CPU, a ring per CPU, and
 * what is in the rings as one stream in the order of time.
 *
 * No word here is about stacks or profiles: tools/record/perf/perf.c makes these.
 */
#ifndef TOOLS_PERF_RINGS_H
#define TOOLS_PERF_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/perf/event.h"
#include "tools/reason.h"

/**
 * enum perf_which - the events opened for each target on each CPU
 * @PERF_MAIN: samples by @main of the options.
 * @PERF_OFF: a sample at each switch away from the CPU.
 * @PERF_WAKINGS: a sample at each wake-up of a thread, of any process, on each CPU.
 * @PERF_FIRST_MORE: samples by the first of @more, and so on.
 */
enum perf_which {
	PERF_MAIN,
	PERF_OFF,
	PERF_WAKINGS,
	PERF_FIRST_MORE,
	PERF_WHICH = PERF_FIRST_MORE + 7,
};

#define PERF_MORE (PERF_WHICH - PERF_FIRST_MORE)

struct walker;

/**
 * struct perf_opts - what to open
 * @main: event to sample, or NULL.
 * @more: further events to sample at the same time; @nr_more of them.
 * @freq: samples per second of each, if @count is 0. Of clocks both are the same: a period is so
 *	many nanoseconds.
 * @count: events from one sample to the next, of those that the kernel counts itself, and
 * @count_all: of the others, too.
 * @off: also sample at each switch away, and report switches.
 * @wakings: the tracepoint that wakers meet, or NULL.
 * @kernel: with the kernel's part of the callchains.
 * @max_stack: most entries of a callchain.
 * @copy: bytes of the stack to copy with each sample, and the registers; 0: neither.
 * @ring_size: bytes of the ring of each CPU, a power of two, pages at least.
 * @may_shrink: less will do if the kernel does not permit that much.
 * @cgroup: descriptor of a cgroup's folder, or -1.
 * @pids: processes or threads, with all they start; @nr_pids of them. None and
 *	no @cgroup: the whole system.
 * @on_exec: begin when the process executes a program.
 * @program: descriptor of a BPF program that runs at each sample; 0: none.
 * @borrow: where the kernel refuses events of @pids, ask the broker (borrow.h).
 */
struct perf_opts {
	const struct perf_event *main;
	const struct perf_event *more[PERF_MORE];
	unsigned int nr_more;
	unsigned int freq;
	uint64_t count;
	bool count_all;
	bool off;
	const struct perf_event *wakings;
	bool kernel;
	unsigned int max_stack;
	unsigned int copy;
	size_t ring_size;
	bool may_shrink;
	int cgroup;
	const pid_t *pids;
	size_t nr_pids;
	bool on_exec;
	int program;
	bool borrow;
};

/**
 * struct perf_record - a record
 * @type: PERF_RECORD_*.
 * @misc: PERF_RECORD_MISC_*.
 * @which: enum perf_which for samples.
 * @walked: instead of a sample, a walker wrote it: the stack is in it.
 * @pid: process.
 * @tid: thread.
 * @time: CLOCK_MONOTONIC in ns.
 * @period: of samples: events that it stands for; 0: @body says it.
 * @body: what is behind these fields (see tools/perf/sample.h, or the raw data
 *	with its size before it), or behind the header for other records than
 *	samples; aligned to 8 bytes.
 * @size: bytes in @body.
 * @raw: the whole record, as the kernel wrote it.
 */
struct perf_record {
	uint32_t type;
	uint16_t misc;
	int which;
	bool walked;
	int pid;
	int tid;
	uint64_t time;
	uint64_t period;
	const void *body;
	size_t size;
	const void *raw;
};

struct perf_rings;

struct perf_event_attr;

/* How the event @which (enum perf_which) is opened, if the kernel is not too old. */
void perf_rings_attr(const struct perf_opts *opts, int which, struct perf_event_attr *attr);

/**
 * perf_probe() - may such events be opened at all?
 * @opts: as for perf_rings_open(); targets are not looked at but for system-wide.
 * @user_only: receives whether only user mode may be sampled.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int perf_probe(const struct perf_opts *opts, bool *user_only, struct reason *why);

/**
 * perf_ring_size() - how large a ring is to be
 * @size: bytes that it has at least, a power of two.
 * @want: bytes that it is to hold.
 *
 * Return: a power of two, 16 MiB at most: there is a ring for each CPU.
 */
size_t perf_ring_size(size_t size, size_t want);

/**
 * perf_rings_open() - open events and rings, begin unless @on_exec
 * @opts: what to open; threads that are gone already are passed over.
 * @ret: receives the rings.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno; -ESRCH if no target is left.
 */
int perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret, struct reason *why);

void perf_rings_close(struct perf_rings *rings);

/**
 * perf_rings_walk() - have the stack of each sample of PERF_MAIN walked from now on
 * @rings: the rings, opened without a program.
 * @walker: writes a record instead of a sample where it comes to the end of the stack; to these
 *	rings only from now on.
 *
 * Of kinds of events at which it cannot run, samples are as they are without it.
 *
 * Return: 0 or a negative errno: then it does not walk.
 */
int perf_rings_walk(struct perf_rings *rings, const struct walker *walker);

/* Bytes of all rings. They are the kernel's memory, no process is charged for them. */
uint64_t perf_rings_memory(const struct perf_rings *rings);

/* Only user mode is sampled, because more is not permitted. */
bool perf_rings_user_only(const struct perf_rings *rings);

/* The events are the broker's. */
bool perf_rings_borrowed(const struct perf_rings *rings);

/* How many records found a ring full so far. False: the kernel does not tell. */
bool perf_rings_lost(const struct perf_rings *rings, uint64_t *ret);

/* What the sampling events @which themselves counted so far, in all their targets. */
bool perf_rings_total(const struct perf_rings *rings, int which, uint64_t *ret);

/**
 * perf_total_open() - count what perf_rings_open() would sample, and sample nothing
 * @opts: @main, from the exec of @pids[0] on, in all that it starts.
 * @user_only: whether only user mode is to be counted.
 *
 * Return: a descriptor that read(2) reads the number from, or a negative errno.
 */
int perf_total_open(const struct perf_opts *opts, bool user_only);

/* No more records from now on. */
void perf_rings_stop(struct perf_rings *rings);

/**
 * perf_rings_read() - hand out records in the order of time
 * @rings: the rings.
 * @all: also what is so new that an earlier record may still come.
 * @fn: gets each; another value than 0 ends reading and is returned.
 * @arg: for @fn.
 *
 * Records are handed out where they lie: room for more is made as @fn returns.
 *
 * Return: 0, or what @fn returned.
 */
int perf_rings_read(struct perf_rings *rings, bool all,
		    int (*fn)(void *arg, const struct perf_record *record), void *arg);

/*
 * Would no ring be fuller than a quarter after @ns, at the rate of the last look, and not than half
 * if threads that waited now run all the time?
 */
bool perf_rings_last(const struct perf_rings *rings, uint64_t ns);

/* Is there a record in them, not handed out yet, of something that a process begins? */
bool perf_rings_news(const struct perf_rings *rings);

/* As many open files as this process may have: an event of each CPU is one, for each thread. */
void perf_more_files(void);

#endif
