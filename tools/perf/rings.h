/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rings.h - events of perf_event_open(2) on every CPU, with a ring for each CPU. What is in all
 * rings is handed out as one stream in the order of time.
 *
 * This file knows nothing of stacks and profiles: tools/record/perf/perf_recording.c makes these.
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
 * enum perf_which - the events that are opened for each target on each CPU
 * @PERF_MAIN: a sample by @main of struct perf_opts.
 * @PERF_OFF: a sample at each switch away from the CPU.
 * @PERF_WAKINGS: a sample at each wake-up of a thread, by any process.
 * @PERF_FIRST_MORE: a sample by the first event of @more of struct perf_opts; the next ones follow.
 * @PERF_WHICH: number of the events.
 */
enum perf_which {
	PERF_MAIN,
	PERF_OFF,
	PERF_WAKINGS,
	PERF_FIRST_MORE,
	PERF_WHICH = PERF_FIRST_MORE + 7,
};

#define PERF_MORE (PERF_WHICH - PERF_FIRST_MORE)

/**
 * struct perf_walk - how the broker is asked to have stacks walked in the kernel
 * @max: maximum number of entries in a chain; 0: it is not asked.
 * @guesses: walks follow frame records in code of no file.
 */
struct perf_walk {
	unsigned int max;
	bool guesses;
};

/**
 * struct perf_opts - what to open
 * @main: event to sample, or NULL.
 * @more: further events to sample at the same time.
 * @nr_more: number of @more.
 * @freq: samples per second of each event, unless @count applies. For a clock it is converted to a
 *	period in nanoseconds.
 * @count: events from one sample to the next, for events that the kernel itself counts; 0: use
 *	@freq.
 * @count_all: @count applies to all events that are no clocks.
 * @off: also sample at each switch away from the CPU, and report switches.
 * @wakings: the tracepoint that threads meet when they wake others, or NULL.
 * @kernel: record the kernel's part of callchains.
 * @no_user: do not record the other part, of user space, at events at which a walker can run. It writes
 *	that part beside the samples that are taken (LANGUAGE_CALLCHAIN in bpf/language.h).
 * @max_stack: most entries of a callchain.
 * @copy: bytes of the stack to copy with each sample, with the registers; 0: copy neither.
 * @ring_size: bytes of the ring of each CPU, a power of two and at least a page.
 * @may_shrink: rings may be smaller if the kernel or the memory does not permit this size.
 * @cgroup: file descriptor of a cgroup's folder, or -1.
 * @pids: processes or threads, which are sampled with all that they start. Without @pids and
 *	@cgroup the whole system is sampled. For perf_probe() NULL, if it is a command that is not there yet.
 * @nr_pids: number of @pids.
 * @on_exec: begin when the process executes a program.
 * @program: file descriptor of a BPF program that runs at each sample; 0: none.
 * @vary: periods of what is started from then on can be set (perf_rings_vary()), and each sample
 *	tells how long its event counted (@counted of &struct perf_sample). From Linux 6.12 on.
 * @borrow: ask the broker (borrow.h) if the kernel refuses events of @pids.
 * @walk: with @borrow: have stacks walked by what the broker lends, if it does. Then it is also asked
 *	where the kernel itself permits no more than the broker, which is user mode.
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
	bool no_user;
	unsigned int max_stack;
	unsigned int copy;
	size_t ring_size;
	bool may_shrink;
	int cgroup;
	const pid_t *pids;
	size_t nr_pids;
	bool on_exec;
	int program;
	bool vary;
	bool borrow;
	struct perf_walk walk;
};

/**
 * struct perf_record - a record
 * @type: PERF_RECORD_*.
 * @misc: PERF_RECORD_MISC_*.
 * @which: enum perf_which of a sample.
 * @walked: a walker wrote the record instead of a sample: it contains the stack.
 * @language: a walker wrote the record beside a sample: it contains what bpf/language.h says.
 * @cpu: number of the CPU that wrote it.
 * @pid: process ID.
 * @tid: thread ID.
 * @time: CLOCK_MONOTONIC in ns.
 * @period: events that a sample stands for; 0: @body says it.
 * @tells_count: the body of a sample says what its event counted.
 * @body: what follows the fields above in a sample (see tools/perf/sample.h, or the raw data
 *	preceded by its size), or what follows the header of another record; aligned to 8 bytes.
 * @size: bytes in @body.
 * @raw: the whole record, as the kernel wrote it.
 */
struct perf_record {
	uint32_t type;
	uint16_t misc;
	int which;
	bool walked;
	bool language;
	int cpu;
	int pid;
	int tid;
	uint64_t time;
	uint64_t period;
	bool tells_count;
	const void *body;
	size_t size;
	const void *raw;
};

#define PERF_MAX_CPUS 4096 /* CPUs that are sampled; the kernel has 8192 at most */

/**
 * struct perf_losses - records that were lost because a ring was full
 * @all: how many, on all CPUs.
 * @of: how many on each CPU, by its number.
 */
struct perf_losses {
	uint64_t all;
	uint64_t of[PERF_MAX_CPUS];
};

/* Adds @nr records that the CPU @cpu lost. */
void perf_losses_add(struct perf_losses *l, int cpu, uint64_t nr);

struct perf_rings;

struct perf_event_attr;

/* Fills @attr as the event @which (enum perf_which) is opened, if the kernel is not too old. */
void perf_rings_attr(const struct perf_opts *opts, int which, struct perf_event_attr *attr);

/* Fills @attr as an event is opened that only has what a BPF program writes to it. */
void perf_output_attr(struct perf_event_attr *attr);

/**
 * perf_probe() - find out whether such events may be opened at all
 * @opts: options of perf_rings_open(). Of the targets it matters only whether there are any.
 * @user_only: receives whether only user mode may be sampled.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int perf_probe(const struct perf_opts *opts, bool *user_only, struct reason *why);

/* Returns whether a broker runs that perf_rings_open() asks first: it may open the events and walk stacks. */
bool perf_rings_may_be_lent(const struct perf_opts *opts);

/*
 * Returns whether this process may have as many files open as there are events of @opts, one of each
 * target on each CPU, twice, since other rings may take the place of these, and beside @others that it has
 * open.
 */
bool perf_rings_fit(const struct perf_opts *opts, size_t others);

/**
 * perf_ring_size() - choose the size of a ring
 * @size: its least size in bytes, a power of two.
 * @want: bytes that it should hold.
 *
 * Return: a power of two, at most 16 MiB (or @size), as there is a ring for each CPU.
 */
size_t perf_ring_size(size_t size, size_t want);

/**
 * perf_rings_open() - open events and rings, and begin unless @on_exec
 * @opts: what to open. Threads that are gone already are passed over.
 * @ret: receives the rings.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno: -ESRCH if no target is left.
 */
int perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret, struct reason *why);

void perf_rings_close(struct perf_rings *rings);

/**
 * perf_rings_add() - open the events of one more thread, and begin
 * @rings: the rings, which were opened for threads.
 * @opts: as the rings were opened.
 * @tid: the thread, which must not have inherited events from one that has them.
 *
 * Return: 0 or a negative errno: -ESRCH if the thread is gone. Then nothing is open for it.
 */
int perf_rings_add(struct perf_rings *rings, const struct perf_opts *opts, pid_t tid);

/*
 * Closes the events that were opened for the thread, and with them those of all threads that
 * inherited them.
 */
void perf_rings_drop(struct perf_rings *rings, pid_t tid);

/**
 * perf_rings_meet() - have two sets of rings know the identifiers of each other's events
 * @a: rings whose records are handed out.
 * @b: rings that are to take their place, and record the same threads already.
 *
 * At a software event the kernel fills in a sample once for all events of the thread (Linux 6.18: what
 * perf_prepare_sample() finds in @sample_flags is not made again), so what comes into one ring may have
 * the identifier of the other ring's event, and a copy of the stack of the other one's size.
 *
 * Return: 0 or -ENOMEM.
 */
int perf_rings_meet(struct perf_rings *a, struct perf_rings *b);

/*
 * Sets the period that threads and processes get that begin from now on. The rings were opened with @vary,
 * for a process that does nothing but start others. What it has started keeps its periods.
 */
void perf_rings_vary(const struct perf_rings *rings, uint64_t period);

/* Returns whether the rings have a record, not handed out yet, of the beginning of the thread. */
bool perf_rings_began(const struct perf_rings *rings, pid_t tid);

/*
 * Returns whether the rings have a record, not handed out yet, that the process executed another program after
 * @since, in ns of CLOCK_MONOTONIC. What such a process shows of itself now is not the program of before.
 */
bool perf_rings_executes(const struct perf_rings *rings, pid_t pid, uint64_t since);

/*
 * Lets a BPF program write to the rings. @connect makes it write its records of the CPU @cpu to the event @fd, and
 * returns 0 or a negative errno; @arg is its first argument. Returns 0 or a negative errno.
 */
int perf_rings_connect(struct perf_rings *rings, int (*connect)(const void *arg, int cpu, int fd),
		       const void *arg);

/**
 * perf_rings_walk() - have the stack of each sample of PERF_MAIN walked from now on
 * @rings: the rings, which were opened without a BPF program, and to which the walker may write:
 *	perf_rings_connect().
 * @program: file descriptor of a BPF program, the walker, that runs at each sample. It writes a
 *	record instead of the sample where it reaches the end of the stack, or records beside it.
 * @all: at samples of all events, not of PERF_MAIN alone.
 *
 * Samples of events at which the walker cannot run are as they are without it.
 */
void perf_rings_walk(struct perf_rings *rings, int program, bool all);

/*
 * Has records that a walker writes into a map be read as if they came by the CPU's ring. @fd is a descriptor
 * of the map, an array that can be mapped, with a struct walk_ring. Returns 0 or a negative errno.
 */
int perf_rings_chains(struct perf_rings *rings, int cpu, int fd);

/* Returns the bytes of all rings. This is memory of the kernel, for which no process is charged. */
uint64_t perf_rings_memory(const struct perf_rings *rings);

/* Returns whether only user mode is sampled, because more is not permitted. */
bool perf_rings_user_only(const struct perf_rings *rings);

/* Returns whether the broker opened the events. */
bool perf_rings_borrowed(const struct perf_rings *rings);

/* Returns whether stacks are walked in the kernel by what the broker lends. */
bool perf_rings_lent(const struct perf_rings *rings);

struct lent_process;

/**
 * perf_rings_read_process() - have what the broker lends read the frames of a process's interpreter
 * @rings: the rings, whose stacks are walked by what the broker lends.
 * @pid: the process.
 * @process: how frames are found.
 *
 * Return: 0 or a negative errno; -EOPNOTSUPP: it does not read them.
 */
int perf_rings_read_process(const struct perf_rings *rings, int pid,
			    const struct lent_process *process);

/*
 * Writes to @ret how many records were lost so far because a ring was full. Returns false if the
 * kernel does not tell; then @ret is incomplete.
 */
bool perf_rings_lost(const struct perf_rings *rings, struct perf_losses *ret);

/*
 * Writes to @ret what the events @which counted so far in all their targets, sampled or not.
 * Returns false if the kernel does not tell.
 */
bool perf_rings_total(const struct perf_rings *rings, int which, uint64_t *ret);

/**
 * perf_total_open() - open an event that counts @main of @opts without sampling it
 * @opts: the options of the rings. The event counts from the exec of @pids[0] on, in all that this
 *	process starts.
 * @user_only: whether only user mode is counted.
 *
 * Return: a file descriptor from which read(2) reads the count, or a negative errno.
 */
int perf_total_open(const struct perf_opts *opts, bool user_only);

/* Stops the events, so that no more records come. */
void perf_rings_stop(struct perf_rings *rings);

/**
 * perf_rings_read() - hand out records in the order of time
 * @rings: the rings.
 * @all: hand out also records that are so new that an earlier one may still come.
 * @fn: called with each record. A value other than 0 ends reading.
 * @arg: passed to @fn.
 *
 * Records are handed out where they lie. Their room in the ring is free once @fn returns.
 *
 * Return: 0, or what @fn returned.
 */
int perf_rings_read(struct perf_rings *rings, bool all,
		    int (*fn)(void *arg, const struct perf_record *record), void *arg);

/*
 * Returns whether during the next @ns no ring becomes fuller than a quarter at the present rate, or
 * than half if threads that wait now run all the time.
 */
bool perf_rings_last(const struct perf_rings *rings, uint64_t ns);

/*
 * Returns whether the rings have a record, not handed out yet, of a process that begins, executes
 * or maps something.
 */
bool perf_rings_news(const struct perf_rings *rings);

/*
 * Raises the limit of open files as far as this process may: for each thread an event of each CPU
 * is one.
 */
void perf_more_files(void);

#endif
