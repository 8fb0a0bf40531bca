/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * population.h - the table of processes and threads as they are at a time: what they have mapped,
 * what they are called, and when they are gone.
 *
 * It is told by perf events. Of processes that live it looks into /proc for those that began
 * before; of those of a file all is told. A process ID may be used again: a fork makes it another
 * process, and the one before lasts only as long as threads of it are known. Other tables of
 * processes are no such thing: tools/record/agent/drain.c and heap.c have the images that agents number,
 * one for each fork and exec, whatever their process ID; tools/record/agent/ledger.c has their CPU time,
 * as parents account for children, also of those that no agent is in.
 */
#ifndef TOOLS_CONVERT_POPULATION_H
#define TOOLS_CONVERT_POPULATION_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/symbol/symbol.h"
#include "tools/convert/above.h"
#include "tools/convert/beyond.h"
#include "tools/convert/live.h"
#include "tools/perf/records.h"
#include "tools/perf/write.h"

struct golabels;

#define TASK_COMM 16

/**
 * struct process - a process
 * @pid: process ID.
 * @refs: its threads that are known.
 * @layout: what it has mapped.
 * @proc: the same, to name addresses; NULL until it is sampled. The store's.
 * @golabels: the labels of its goroutines, once a sample was of one, or NULL.
 * @ours: it is to be recorded.
 * @executed: it was seen to execute a program.
 * @sampled: it is in the profile.
 * @alive: one of its threads has not ended; for population_alive().
 * @shadow: it has a shadow stack,
 * @bare: or it had none when that was asked last.
 * @unknown_since: time of its first sample while it was not known to have one, 0: none yet.
 * @ask_at: it is asked again with a sample that is not before this time.
 * @read_at: when its maps were read last.
 */
struct process {
	UT_hash_handle hh;
	int pid;
	unsigned int refs;
	struct layout *layout;
	struct shstk_symproc *proc;
	struct golabels *golabels;
	bool ours;
	bool executed;
	bool sampled;
	bool alive;
	bool shadow;
	bool bare;
	uint64_t unknown_since;
	uint64_t ask_at;
	uint64_t read_at;
};

/**
 * struct stack - a stack as it goes into the profile
 * @time: when it was sampled, ns.
 * @nr: entries.
 * @end: enum shstk_end.
 * @note: enum shstk_note.
 * @too_short: its copy is: it goes on behind that.
 * @elsewhere: it goes on on another stack, that was not copied.
 * @by: enum beyond_by: where its outer part is from.
 * @by_pieces: it goes on with the stack of its goroutine, copied at the same moment, or
 * @spliced: with the kernel's callchain, of Go code.
 * @bare: it is the innermost entry alone, as the process has no shadow stack.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each.
 * @labels: of its goroutine, &struct shstk_sample.labels, and
 * @labels_size: so many bytes.
 */
struct stack {
	uint64_t time;
	unsigned int nr;
	int end;
	int note;
	bool too_short;
	bool elsewhere;
	int by;
	bool by_pieces;
	bool spliced;
	bool bare;
	uint64_t *pcs;
	uint8_t *marks;
	char *labels;
	size_t labels_size;
};

/**
 * struct task - a thread
 * @next: next one that exited, and
 * @prev: the one before.
 * @tid: thread ID.
 * @process: its process.
 * @comm: its name.
 * @sampled: it is in the profile.
 * @preempted: it could have run when it left its CPU.
 * @samples: of it so far, in all profiles.
 * @began: when, ns; 0: before recording did.
 * @exited: when it ended, or 0. What is left of it runs no more code of its own.
 * @left: when it left its CPU, or 0.
 * @woken: when it was woken since, or 0: that is not known,
 * @waker: and by whom: a thread; 0: an interrupt.
 * @proc: the program in it then; NULL: it left before this profile began.
 * @beyond: its last stack that was seen to its end.
 * @above: what lay above a copy of its stack that ended too soon.
 * @stack: where it left; one allocation, or NULL.
 */
struct task {
	UT_hash_handle hh;
	struct task *next, *prev;
	int tid;
	struct process *process;
	char comm[TASK_COMM];
	bool sampled;
	bool preempted;
	uint64_t samples;
	uint64_t began;
	uint64_t exited;
	uint64_t left;
	uint64_t woken;
	int waker;
	struct shstk_symproc *proc;
	struct beyond beyond;
	struct above above;
	struct stack stack;
};

/**
 * struct population - all of them
 * @symbols: the store of names.
 * @files: where the files are that processes have mapped.
 * @live: the same of processes that live; NULL: they are those of a file.
 * @processes: by process ID.
 * @tasks: by thread ID.
 * @exited: those that are forgotten soon, the oldest first.
 * @writer: is told what is read from /proc, or NULL.
 * @time: of the record that is looked at, ns; 0: before the first one.
 */
struct population {
	struct shstk_symbols *symbols;
	const struct layout_files *files;
	struct live *live;
	struct process *processes;
	struct task *tasks;
	struct task *exited;
	struct perf_writer *writer;
	uint64_t time;
};

/*
 * Begins with nobody. @past: where the files of processes are that live no more, which outlives
 * @all; NULL: they live, and are asked. Returns 0 or -ENOMEM; population_deinit() follows.
 */
int population_init(struct population *all, struct shstk_symbols *symbols,
		    const struct layout_files *past);
void population_deinit(struct population *all);

/* A process that began before recording did, if it is not known. NULL: no memory. */
struct process *population_process(struct population *all, int pid);

/* The thread, likewise. */
struct task *population_task(struct population *all, int pid, int tid);

/* NULL: it is not known. */
struct task *population_find_task(struct population *all, int tid);

/* What names the process's addresses; NULL: no memory. */
struct shstk_symproc *population_names(struct population *all, struct process *p);

/* Looks what the process has mapped now, if that was not done a moment ago. */
bool population_read_maps(struct population *all, struct process *p);

/* Addresses are named by another store from now on. */
void population_renew(struct population *all, struct shstk_symbols *symbols);

/*
 * Records that tell of processes and threads. What has no number that a process may have is passed
 * over: it is the kernel's own. Each returns 0 or -ENOMEM.
 */
int population_map(struct population *all, const struct perf_map *m);
int population_comm(struct population *all, const struct perf_comm *c);
int population_fork(struct population *all, const struct perf_fork *f);

/*
 * Before a record is taken: of those without number, as when their ends were lost, the ones that
 * are known for longest are forgotten. Who lives is looked for in /proc when it is seen again.
 */
void population_make_room(struct population *all);

/* A thread with that number begins elsewhere: the one that had it before is over. */
void population_forget(struct population *all, int tid);

/* The thread that ended, if it was known: for population_leave(). */
struct task *population_exit(struct population *all, const struct perf_fork *f);

/* A thread that ended is forgotten: at once, or @later, as it may be seen still. */
void population_leave(struct population *all, struct task *t, bool later);

/* Calls @fn for each process that has not ended; @ours: of those to be recorded. */
void population_alive(struct population *all, bool ours, void (*fn)(void *arg, int pid), void *arg);

/* Those that ended long ago are forgotten. */
void population_age(struct population *all);

/* The stack at which a thread left its CPU is of no use any more. */
void task_forget_stack(struct task *t);

#endif
