/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * population.h - the table of processes and threads at the present time of the records: what they
 * have mapped, what their names are, and when they ended.
 *
 * Perf events fill it. For living processes it reads from /proc what existed before recording; for
 * processes of a file the records tell everything. A process ID may be used again: a fork makes it
 * the number of another process, and the older process is kept only as long as its threads are
 * known. Other tables of processes differ from this one: tools/record/agent/agent_recording.c and
 * tools/record/heap/heap.c have the images that agents number, one for each fork and exec, whatever
 * their process ID; tools/record/agent/ledger.c has the CPU time of processes as parents account
 * for their children, also of those that no agent entered.
 */
#ifndef TOOLS_CONVERT_POPULATION_H
#define TOOLS_CONVERT_POPULATION_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/symbol/symbol.h"
#include "tools/convert/stack_read_twice.h"
#include "tools/convert/stack_outer.h"
#include "tools/convert/living_files.h"
#include "tools/perf/records.h"
#include "tools/perf/write.h"

struct context_watch;
struct golabels;
struct languages;

#define TASK_COMM 16

/**
 * struct process - a process
 * @hh: makes it a member of the hash table, by @pid.
 * @pid: process ID; 0 once it is not in the table any more.
 * @refs: number of its threads that are known.
 * @tasks: list of these threads.
 * @living: number of those that have not ended.
 * @mappings: what it has mapped.
 * @proc: its mappings for naming addresses; NULL until it is sampled. The store of names owns it.
 * @golabels: the labels of its goroutines, or NULL as long as no sample was of a goroutine.
 * @context: whether its threads publish trace contexts; NULL: it was not looked at yet.
 * @language: number of the interpreter that was told of it (languages_set()).
 * @ours: the process is recorded.
 * @leader_ended: its first thread ended.
 * @executed: the process was seen to execute a program.
 * @sampled: the profile has a sample of it.
 * @alive: one of its threads has not ended; used by population_alive().
 * @shadow: the process has a shadow stack.
 * @no_shadow: the process had no shadow stack when it was last asked, or only a later program has one.
 * @unknown_since: time in ns of its first sample without a known shadow stack, 0: none yet.
 * @ask_at: time in ns; samples from then on ask again whether it has a shadow stack.
 * @read_at: CLOCK_MONOTONIC in ns, when its maps were last read.
 * @maps_changed: it has mapped something else since then.
 * @leave_at: time in ns; samples from then on tell the walker to leave the process. The recorder's.
 * @waiting: how many of its samples wait for their stacks. Until it is 0, the process and its threads
 *	do not change. The converter's.
 */
struct process {
	UT_hash_handle hh;
	int pid;
	unsigned int refs;
	struct task *tasks;
	unsigned int living;
	struct mappings *mappings;
	struct shstk_symproc *proc;
	struct golabels *golabels;
	struct context_watch *context;
	int language;
	bool ours;
	bool leader_ended;
	bool executed;
	bool sampled;
	bool alive;
	bool shadow;
	bool no_shadow;
	uint64_t unknown_since;
	uint64_t ask_at;
	uint64_t read_at;
	bool maps_changed;
	uint64_t leave_at;
	unsigned int waiting;
};

/**
 * struct stack - a stack as it goes into the profile
 * @time: when it was sampled, in ns.
 * @cpu: as in &struct shstk_sample.
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @note: enum shstk_note.
 * @too_short: it goes on behind its copy.
 * @elsewhere: it continues on another stack that was not copied.
 * @by: enum outer_source: where its outer part is from.
 * @by_pieces: it goes on with the stack of its goroutine, which was copied at the same moment.
 * @spliced: it goes on with the kernel's callchain, in code of Go.
 * @no_shadow: it has only the innermost entry, as the process has no shadow stack.
 * @folded: it has entries that stand for others of a deep stack (stack_deep.h).
 * @walked: a BPF program walked it.
 * @compat: it is of 32-bit code.
 * @copied: index of the first entry that was unwound from a copy.
 * @nr_copied: number of such entries.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each entry.
 * @labels: labels of its goroutine and others, as in &struct shstk_sample.labels.
 * @labels_size: bytes in @labels.
 */
struct stack {
	uint64_t time;
	unsigned int cpu;
	unsigned int nr;
	int end;
	int note;
	bool too_short;
	bool elsewhere;
	int by;
	bool by_pieces;
	bool spliced;
	bool no_shadow;
	bool folded;
	bool walked;
	bool compat;
	unsigned int copied;
	unsigned int nr_copied;
	uint64_t *pcs;
	uint8_t *marks;
	char *labels;
	size_t labels_size;
};

/**
 * struct task - a thread
 * @hh: makes it a member of the hash table, by @tid.
 * @next: the next thread that ended.
 * @prev: the previous thread that ended.
 * @next_of: the next thread of its process.
 * @prev_of: the previous thread of its process.
 * @tid: thread ID.
 * @process: its process.
 * @comm: its name.
 * @sampled: the profile has a sample of it.
 * @preempted: it could have run when it left its CPU.
 * @samples: number of its samples so far, in all profiles.
 * @began: when it began, in ns; 0: before recording did.
 * @exited: when it ended, in ns, or 0. After that it runs no code of its own any more.
 * @taken: time of its last sample, in ns, or 0.
 * @left: when it left its CPU, in ns, or 0.
 * @woken: when it was woken since then, in ns; 0: not known.
 * @waker: thread ID of the thread that woke it; 0: an interrupt did.
 * @proc: its program when it left its CPU; NULL: it left before this profile began.
 * @whole: its last stack that was seen to its end.
 * @above: what lay above a copy of its stack that ended too soon.
 * @stack: the stack at which it left its CPU, in one allocation at @pcs, or NULL there.
 */
struct task {
	UT_hash_handle hh;
	struct task *next, *prev;
	struct task *next_of, *prev_of;
	int tid;
	struct process *process;
	char comm[TASK_COMM];
	bool sampled;
	bool preempted;
	uint64_t samples;
	uint64_t began;
	uint64_t exited;
	uint64_t taken;
	uint64_t left;
	uint64_t woken;
	int waker;
	struct shstk_symproc *proc;
	struct whole_stack whole;
	struct above above;
	struct stack stack;
};

/**
 * struct population - all processes and threads
 * @symbols: the store of names.
 * @files: where the files that processes have mapped are found.
 * @live: the state of finding files of living processes; NULL: the processes are those of a file.
 * @processes: hash table by process ID.
 * @tasks: hash table by thread ID.
 * @exited: list of threads that ended and are forgotten soon, the oldest first.
 * @writer: is told what is read from /proc, or NULL.
 * @kept: bytes that are kept of threads' stacks above their copies (stack_read_twice.h).
 * @early: ns of CPU time that were left at @early_at for reading maps soon after the last time.
 * @early_at: CLOCK_MONOTONIC in ns.
 * @labels: processes get labels that say what they are.
 * @executes: returns whether it is known, though its record was not taken yet, that the process executed
 *	another program after @time; NULL: nothing of what follows is known.
 * @executes_arg: is handed to it.
 * @time: time of the present record in ns; 0 before the first one.
 */
struct population {
	struct shstk_symbols *symbols;
	const struct mappings_files *files;
	struct live *live;
	struct process *processes;
	struct task *tasks;
	struct task *exited;
	struct perf_writer *writer;
	size_t kept;
	int64_t early;
	uint64_t early_at;
	bool labels;
	bool (*executes)(const void *arg, int pid, uint64_t time);
	const void *executes_arg;
	uint64_t time;
};

/*
 * Makes an empty population. @past: where files of processes are that no longer live, which must
 * outlive @all; NULL: the processes live and can be asked. Returns 0 or -ENOMEM;
 * population_deinit() must follow.
 */
int population_init(struct population *all, struct shstk_symbols *symbols,
		    const struct mappings_files *past);
void population_deinit(struct population *all);

/*
 * Returns the process. If it is not known it is added, as one that began before recording did.
 * Returns NULL if there is no memory.
 */
struct process *population_process(struct population *all, int pid);

/*
 * Returns the thread. If it is not known it is added, as one that began before recording did.
 * Returns NULL if there is no memory.
 */
struct task *population_task(struct population *all, int pid, int tid);

/* Returns the process, or NULL if it is not known. */
struct process *population_find_process(struct population *all, int pid);

/* Returns the thread, or NULL if it is not known. */
struct task *population_find_task(struct population *all, int tid);

/*
 * Tells the languages which interpreter a process has, if that has changed. Returns its number; 0: none
 * that is known.
 */
int process_language(struct process *p, struct languages *languages);

/* Returns the address at which a function of a process (@p) begins that has an address; 0: it is not known. */
uint64_t process_function(void *p, uint64_t pc);

/*
 * Returns the mappings by which addresses of the process are named, or NULL if there is no memory.
 */
struct shstk_symproc *population_names(struct population *all, struct process *p);

/*
 * Tells that the process has mapped something else: population_read_maps() reads it once more at once. A
 * process that does so all the time makes it read no more often than CPU time is left for that.
 */
void population_maps_changed(struct process *p);

/* Returns whether population_read_maps() would read: the process lives, and it was not done just now. */
bool population_may_read_maps(const struct population *all, const struct process *p);

/*
 * Reads what the process has mapped now, unless that was done a moment ago. Returns whether it did.
 */
bool population_read_maps(struct population *all, struct process *p);

/*
 * Returns whether what the process shows of itself now may be of another program than that of the present
 * record: records of a busy machine are taken later than they were written.
 */
bool population_is_later(const struct population *all, const struct process *p);

/* Uses another store of names from now on. */
void population_renew(struct population *all, struct shstk_symbols *symbols);

/*
 * Take records that tell of processes and threads. Those without a valid process ID are passed
 * over: they are about the kernel's own threads. Each returns 0 or -ENOMEM.
 */
int population_map(struct population *all, const struct perf_map *m);
int population_comm(struct population *all, const struct perf_comm *c);
int population_fork(struct population *all, const struct perf_fork *f);

/*
 * Makes room before a record is taken. If there are too many processes or threads, because records
 * of their ends were lost, the ones that are known for longest are forgotten, once none of their
 * samples waits. One that still lives is looked for in /proc when it is seen again.
 */
void population_make_room(struct population *all);

/* Forgets the thread with that number, because another thread with it has begun. */
void population_forget(struct population *all, int tid);

/*
 * Returns the thread that ended according to @f, for population_leave(), or NULL if it is not
 * known.
 */
struct task *population_exit(struct population *all, const struct perf_fork *f);

/*
 * Notes that a thread ends, before population_leave(). Returns whether its process ends with it: its
 * first thread ended, and no other one is known that has not.
 */
bool population_ends(struct task *t);

/* Forgets a thread that ended: at once, or @later, as it may still be seen. */
void population_leave(struct population *all, struct task *t, bool later);

/* Calls @fn for each process that has not ended; with @ours only for those that are recorded. */
void population_alive(struct population *all, bool ours, void (*fn)(void *arg, int pid), void *arg);

/* Forgets the threads that ended long ago, unless samples of their process wait. */
void population_age(struct population *all);

/* Forgets the stack at which a thread left its CPU. */
void task_forget_stack(struct task *t);

#endif
