/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace.h - the parts of `shstk trace` that running processes and core files share: taking one
 * stack from two sources, and printing it.
 */
#ifndef TOOLS_TRACE_TRACE_H
#define TOOLS_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/json.h"
#include "libshstk/symbol/symbol.h"
#include "tools/read_limit.h"

#define TRACE_DEPTH 4096 /* default maximum of frames shown of a thread */
#define TRACE_MAX_DEPTH (1 << 24) /* maximum of frames taken of a thread */

/**
 * enum trace_source - where stacks come from
 * @TRACE_AUTO: the shadow stack where it is on, else unwinding.
 * @TRACE_HARDWARE: the shadow stack only.
 * @TRACE_UNWIND: unwinding only.
 */
enum trace_source {
	TRACE_AUTO,
	TRACE_HARDWARE,
	TRACE_UNWIND,
};

/**
 * struct trace_opts - the options of `shstk trace`
 * @pid: process ID, or 0.
 * @core: the core file, or NULL.
 * @exe: the program's file, used instead of the path in the core file; or NULL.
 * @sysroot: folder below which the core file's files lie; or NULL.
 * @depth: maximum number of frames of a thread.
 * @fold: take deeper stacks, too, and show once what repeats in them.
 * @source: enum trace_source.
 * @addresses: print the address of each frame.
 * @full_names: as in &struct shstk_symbols_opts.
 * @read_limit: limit for reading the symbols of files.
 * @compare: take both sources, and print where they differ.
 * @no_stop: do not stop the process.
 * @goroutines: show all goroutines of a Go program instead of the threads.
 * @tasks: show all tasks of asyncio of a Python program instead of the threads.
 * @each_thread: print threads with equal stacks one by one.
 * @first_apart: of a core file: the first thread, which received the signal, is not among others
 *	with equal stacks.
 * @json: JSON output to use instead of lines of text; or NULL.
 */
struct trace_opts {
	int pid;
	const char *core;
	const char *exe;
	const char *sysroot;
	unsigned int depth;
	bool fold;
	int source;
	bool addresses;
	bool full_names;
	struct read_limit read_limit;
	bool compare;
	bool no_stop;
	bool goroutines;
	bool tasks;
	bool each_thread;
	bool first_apart;
	struct json *json;
};

/**
 * struct trace_fold - entries of a stack that stand for more entries
 * @at: index of the first entry.
 * @period: number of entries that repeat together; 0: entries in front of @at are left out.
 * @times: how often the entries repeat; if @period is 0, the number of entries left out.
 */
struct trace_fold {
	int at;
	unsigned int period;
	size_t times;
};

/**
 * struct trace_stack - one trace
 * @taken: somebody tried to take the trace.
 * @nr: number of entries, or a negative errno.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each entry.
 * @sps: the stack pointer of each entry of a stack that was unwound, or NULL.
 * @info: how taking it ended.
 * @folds: runs of entries that repeat or are left out.
 * @nr_folds: number of @folds.
 * @too_deep: an interpreter runs more functions than are read, so that none of them is shown.
 */
struct trace_stack {
	bool taken;
	int nr;
	uint64_t *pcs;
	uint8_t *marks;
	uint64_t *sps;
	struct shstk_info info;
	struct trace_fold *folds;
	unsigned int nr_folds;
	bool too_deep;
};

struct mutex_waiter;

/**
 * struct trace_thread - a thread and its stacks
 * @tid: thread ID.
 * @own_tid: the same in the process's own PID namespace, as its memory has it.
 * @comm: its name.
 * @note: what the thread was doing, such as "sleeping"; or NULL.
 * @held_up: why the thread does not stop; "" if it stopped or ended.
 * @sampled: the registers could be read.
 * @regs: registers.
 * @call: number of the system call that the thread may be in; valid if @sampled.
 * @in_handler: the thread handles a signal, and what the signal interrupted is not known.
 * @shadow_on: the thread has a shadow stack, and @shadow is valid.
 * @shadow: where the shadow stack lies.
 * @hardware: trace from the shadow stack.
 * @unwound: trace by unwinding.
 * @waiter: the mutex that the thread waits for; NULL if this is not known.
 * @index: place of the thread in the list that is printed; set by trace_print().
 */
struct trace_thread {
	int tid;
	int own_tid;
	char comm[64];
	const char *note;
	char held_up[160];
	bool sampled;
	struct shstk_regs regs;
	int64_t call;
	bool in_handler;
	bool shadow_on;
	struct shstk_shadow shadow;
	struct trace_stack hardware;
	struct trace_stack unwound;
	const struct mutex_waiter *waiter;
	size_t index;
};

/**
 * trace_take() - take the traces of a thread that the options ask for
 * @opts: the options.
 * @space: the program's modules.
 * @thread: the thread. Its @regs and @shadow are used, its traces are filled.
 * @read: reads the program's memory.
 * @arg: passed to @read.
 *
 * Return: 0 or -ENOMEM.
 */
int trace_take(const struct trace_opts *opts, struct shstk_space *space,
	       struct trace_thread *thread, shstk_read_fn read, void *arg);

struct jit;

/**
 * trace_name_made() - name code made at run time in the traces of a thread
 * @jit: knows the code.
 * @proc: receives the names.
 * @thread: a thread after trace_take().
 *
 * Return: 0 or -ENOMEM.
 */
int trace_name_made(struct jit *jit, struct shstk_symproc *proc, const struct trace_thread *thread);

/**
 * trace_has_gap() - does a trace lack what a signal interrupted?
 * @stack: a trace from the shadow stack.
 */
bool trace_has_gap(const struct trace_stack *stack);

/* Returns the trace of a thread that is shown. */
const struct trace_stack *trace_shown(const struct trace_thread *thread);

/**
 * trace_print() - print the stacks of threads, and how they compare
 * @opts: the options.
 * @proc: names addresses.
 * @list: threads after trace_take(). The list is sorted by this function.
 * @nr: number of threads.
 *
 * Return: false if a thread has no stack to print, if both sources were compared and differ, or if
 * out of memory (this function says so then).
 */
bool trace_print(const struct trace_opts *opts, struct shstk_symproc *proc,
		 struct trace_thread **list, size_t nr);

/**
 * trace_print_stack() - print the frames of a stack, and where it ends
 * @opts: the options.
 * @proc: names its addresses.
 * @stack: the stack.
 */
void trace_print_stack(const struct trace_opts *opts, struct shstk_symproc *proc,
		       const struct trace_stack *stack);

/* Prints the function for which an address stands, and its line, behind @used columns. */
void trace_print_function(const struct trace_opts *o, struct shstk_symproc *proc, uint64_t pc,
			  size_t used);

/**
 * trace_put_frames() - write the frames of a stack as a JSON value "frames"
 * @json: the output.
 * @proc: names its addresses.
 * @stack: the stack.
 */
void trace_put_frames(struct json *json, struct shstk_symproc *proc,
		      const struct trace_stack *stack);

/**
 * trace_deinit() - release what trace_take() allocated
 * @thread: a thread.
 */
void trace_deinit(struct trace_thread *thread);

/**
 * trace_describe() - find out the name and the state of a thread
 * @pid: the process.
 * @tid: the thread.
 * @thread: its @comm and @note are filled.
 */
void trace_describe(int pid, int tid, struct trace_thread *thread);

#define TRACE_RED_ZONE 128 /* bytes beyond the stack pointer that x86 functions may use */

/**
 * trace_registers() - read the registers of a stopped thread
 * @tid: the thread, which the calling thread traces.
 * @regs: receives the registers.
 * @used: receives the lowest address of the part of its stack that is in use.
 * @call: receives the number of the system call that the thread may be in.
 *
 * Return: 0 or a negative errno.
 */
int trace_registers(int tid, struct shstk_regs *regs, uint64_t *used, int64_t *call);

/**
 * trace_check() - can the stacks of this process be taken?
 * @pid: the process.
 *
 * Return: 0; or the exit status, after a message with the reason.
 */
int trace_check(int pid);

/**
 * trace_refuse() - print why a process cannot be traced
 * @pid: the process.
 * @how: how it was tried, with a blank before it, or ""; used if the error is of no known kind.
 * @err: a negative errno.
 *
 * Return: exit status.
 */
int trace_refuse(int pid, const char *how, int err);

/*
 * Says what names are missing, behind the stacks: in JSON as "cautions", in a report that is not read on a
 * terminal as lines, and always on standard error.
 */
void trace_put_missing(const struct trace_opts *opts, const struct shstk_symbols *symbols);

/**
 * trace_running() - do `shstk trace -p PID --no-stop`
 * @opts: the options.
 *
 * Return: exit status.
 */
int trace_running(const struct trace_opts *opts);

/**
 * trace_process() - do `shstk trace -p PID`
 * @opts: the options.
 *
 * Return: exit status.
 */
int trace_process(const struct trace_opts *opts);

struct core;

/**
 * struct core_output - what is printed beside the stacks of a core file
 * @head: called before anything is printed, when nothing can fail any more but single stacks. For
 *	JSON, it opens the object in which "threads" will be.
 * @tail: called behind the stacks. For JSON, it closes the object.
 */
struct core_output {
	void (*head)(const struct core *core, struct json *json);
	void (*tail)(const struct core *core, struct json *json);
};

/**
 * trace_core_threads() - print the stacks of all threads of a core file
 * @opts: the options.
 * @core: the core file.
 * @out: prints what is beside them.
 *
 * Return: exit status.
 */
int trace_core_threads(const struct trace_opts *opts, struct core *core,
		       const struct core_output *out);

/**
 * trace_core() - do `shstk trace --core FILE`
 * @opts: the options.
 *
 * Return: exit status.
 */
int trace_core(const struct trace_opts *opts);

#endif
