/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/trace/trace.h - what `shstk trace` does alike for living processes and for
 * core files: one stack from two sources, and printing it.
 */
#ifndef TOOLS_TRACE_TRACE_H
#define TOOLS_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/json.h"
#include "libshstk/symbol/symbol.h"
#include "tools/read_limit.h"

#define TRACE_DEPTH 4096 /* frames of a thread that are shown, if nothing else is asked for */
#define TRACE_MAX_DEPTH (1 << 24) /* frames of a thread that can be taken */

/**
 * enum trace_source - where stacks shall come from
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
 * struct trace_opts - the options of the command
 * @pid: the process, or 0.
 * @core: the core file, or NULL.
 * @exe: the program's file, whatever the core says; or NULL.
 * @sysroot: folder below which the core's files lie; or NULL.
 * @depth: most frames of a thread.
 * @fold: what repeats in deeper ones is shown once, instead.
 * @source: enum trace_source.
 * @addresses: print the address of each frame.
 * @full_names: as in &struct shstk_symbols_opts.
 * @read_limit: what reading files for their names may take.
 * @compare: take both sources, and print where they differ.
 * @no_stop: let the process run.
 * @goroutines: of a Go program, all goroutines instead of threads.
 * @each_thread: threads with equal stacks are printed one by one.
 * @json: print to this instead of lines of text; or NULL.
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
	bool each_thread;
	struct json *json;
};

/**
 * struct trace_fold - entries that stand for more
 * @at: the first of them.
 * @period: so many repeat one after the other; 0: entries in front of @at are left out.
 * @times: how often they come, or how many are left out.
 */
struct trace_fold {
	int at;
	unsigned int period;
	size_t times;
};

/**
 * struct trace_stack - one trace
 * @taken: it was tried.
 * @nr: number of entries, or a negative errno.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each.
 * @info: how it went.
 * @folds: what entries stand for, @nr_folds of them.
 * @nr_folds: see @folds.
 */
struct trace_stack {
	bool taken;
	int nr;
	uint64_t *pcs;
	uint8_t *marks;
	struct shstk_info info;
	struct trace_fold *folds;
	unsigned int nr_folds;
};

struct mutex_waiter;

/**
 * struct trace_thread - a thread and its stack
 * @tid: thread ID.
 * @comm: its name.
 * @note: what it was doing: "sleeping", "SIGSEGV"; or NULL.
 * @held_up: what it does instead of stopping; "" if it stopped or ended.
 * @sampled: the registers below are there.
 * @regs: registers.
 * @call: number of the system call that it may be in, if @sampled; else nothing.
 * @in_handler: it handles a signal, and what that interrupted is not known.
 * @shadow_on: it has a shadow stack, and @shadow says where.
 * @shadow: see @shadow_on.
 * @hardware: trace by the shadow stack.
 * @unwound: trace by unwinding.
 * @waiter: what mutex it waits for, or NULL: that is not known.
 * @index: its place among those that are printed, set by trace_print().
 */
struct trace_thread {
	int tid;
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
 * @thread: its @regs and @shadow are given, its traces are filled.
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
 * @jit: who knows it.
 * @proc: receives the names.
 * @thread: a thread after trace_take().
 *
 * Return: 0 or -ENOMEM.
 */
int trace_name_made(struct jit *jit, struct shstk_symproc *proc, const struct trace_thread *thread);

/**
 * trace_has_gap() - does it lack what a signal interrupted?
 * @stack: a trace by the shadow stack.
 */
bool trace_has_gap(const struct trace_stack *stack);

/* The one of its stacks that is shown. */
const struct trace_stack *trace_shown(const struct trace_thread *thread);

/**
 * trace_print() - print the stacks of threads, and how they compare
 * @opts: the options.
 * @proc: names addresses.
 * @list: threads after trace_take(). It is sorted.
 * @nr: how many.
 *
 * Return: false if there is a thread without a stack to print, if both sources were
 * compared and differ, or if it was said that there is no memory.
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

/**
 * trace_put_frames() - the same as a value "frames" of JSON
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
 * trace_describe() - what a thread is called and does
 * @pid: the process.
 * @tid: the thread.
 * @thread: its @comm and @note are filled.
 */
void trace_describe(int pid, int tid, struct trace_thread *thread);

#define TRACE_RED_ZONE 128 /* bytes beyond the stack pointer that x86 functions may use */

/**
 * trace_registers() - the registers of a thread that is stopped
 * @tid: the thread, traced by this one.
 * @regs: receives them.
 * @used: receives where the part of its stack begins that it uses.
 * @call: receives the number of the system call that it may be in.
 *
 * Return: 0 or a negative errno.
 */
int trace_registers(int tid, struct shstk_regs *regs, uint64_t *used, int64_t *call);

/**
 * trace_check() - can there be stacks of this process?
 * @pid: the process.
 *
 * Return: 0; or it was said why not, and this is the exit status.
 */
int trace_check(int pid);

/**
 * trace_refuse() - say why a process cannot be traced
 * @pid: the process.
 * @how: how it was tried, for reasons of no known kind, with a blank before it; or "".
 * @err: a negative errno.
 *
 * Return: exit status.
 */
int trace_refuse(int pid, const char *how, int err);

/**
 * trace_running() - `shstk trace -p PID --no-stop`
 * @opts: the options.
 *
 * Return: exit status.
 */
int trace_running(const struct trace_opts *opts);

/**
 * trace_process() - `shstk trace -p PID`
 * @opts: the options.
 *
 * Return: exit status.
 */
int trace_process(const struct trace_opts *opts);

/**
 * trace_core() - `shstk trace --core FILE`
 * @opts: the options.
 *
 * Return: exit status.
 */
int trace_core(const struct trace_opts *opts);

#endif
