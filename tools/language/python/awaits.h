/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * awaits.h - which tasks of asyncio a Python program has, and who waits for whom.
 *
 *	a file that the process has mapped    awaits_take_python(), awaits_take_asyncio()
 *	all threads are stopped               awaits_read()
 *
 * Python keeps that itself from 3.14 on: each future has the tasks that wait for it, each thread has a list
 * of its tasks, and two tables of offsets tell where (_Py_DebugOffsets, _AsyncioDebug). Either all of it can
 * be read, and every list is whole, or nothing is told.
 */
#ifndef TOOLS_LANGUAGE_PYTHON_AWAITS_H
#define TOOLS_LANGUAGE_PYTHON_AWAITS_H

#include "tools/language/language.h"

#define AWAITS_SINCE 14 /* the first minor version that keeps it */
#define AWAITS_TASK_BYTES 512 /* of a task, at most */
#define AWAITS_FRAMES 16384 /* coroutines of a task that wait for each other, at most */

/**
 * struct awaits_layout - where a Python keeps its tasks
 * @minor: 14 for Python 3.14; 0: no Python was found.
 * @asyncio: its module for tasks was found.
 * @text: offsets in texts (&struct python_version).
 * @runtime: address of _PyRuntime.
 * @coroutine_type: address of the type of coroutines; the next ones are of types, too.
 * @interpreters: offset in _PyRuntime of the first interpreter's address.
 * @interpreter_next: offset in an interpreter.
 * @interpreter_threads: the same, of the first thread's state.
 * @interpreter_tasks: the same, of the head of the list of tasks whose threads have ended.
 * @thread_prev: offset in a thread's state.
 * @thread_tasks: the same, of the head of the list of its tasks.
 * @thread_task: the same, of the task that it runs.
 * @node_next: offset in a link of a list.
 * @task_bytes: bytes of a task.
 * @task_name: offset in a task.
 * @task_awaited_by: the same, of who waits for it, which futures have, too: one task or future, or a set.
 * @task_node: the same, of its link in a list.
 * @set_used: offset in a set, of the number of its elements.
 * @type_flags: offset in a type.
 * @generator_frame: offset in a generator or coroutine.
 * @frame_code: offset in a frame.
 * @frame_stack: the same, of the end of its stack.
 * @awaited_at: bytes from what a coroutine waits for to the end of its stack.
 * @long_tag: offset in an int.
 * @instructions: offset in a code object.
 * @code_tags: low bits of references that are none of the address.
 */
struct awaits_layout {
	int minor;
	bool asyncio;
	const struct python_version *text;
	uint64_t runtime;
	uint64_t coroutine_type;
	uint64_t generator_type;
	uint64_t async_generator_type;
	uint64_t set_type;
	uint32_t interpreters;
	uint32_t interpreter_next;
	uint32_t interpreter_threads;
	uint32_t interpreter_tasks;
	uint32_t thread_prev;
	uint32_t thread_next;
	uint32_t thread_id;
	uint32_t thread_tasks;
	uint32_t thread_task;
	uint32_t node_next;
	uint32_t node_prev;
	uint32_t task_bytes;
	uint32_t task_name;
	uint32_t task_awaited_by;
	uint32_t task_is_task;
	uint32_t task_by_set;
	uint32_t task_coroutine;
	uint32_t task_node;
	uint32_t set_used;
	uint32_t set_table;
	uint32_t set_mask;
	uint32_t object_type;
	uint32_t type_name;
	uint32_t type_flags;
	uint32_t generator_frame;
	uint32_t generator_state;
	uint32_t frame_bytes;
	uint32_t frame_code;
	uint32_t frame_instruction;
	uint32_t frame_stack;
	uint32_t awaited_at;
	uint32_t long_tag;
	uint32_t long_digits;
	uint32_t instructions;
	uint32_t code_tags;
};

/**
 * struct awaits_source - a process that is stopped, or has left a core file
 * @read: reads its memory, all or nothing. Returns 0 or a negative errno.
 * @arg: first argument of @read.
 * @place: finds the address that stands for an instruction, at an offset in bytes, of the function whose
 *	object is at @code. Returns 0 or a negative errno as awaits_read() does.
 * @place_arg: its argument.
 * @account: account of the process, from which reading draws time and memory.
 */
struct awaits_source {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	int (*place)(void *arg, uint64_t code, int at, uint64_t *ret);
	void *place_arg;
	struct shstk_account *account;
};

/* What a task does. */
enum awaits_state {
	AWAITS_NEW, /* it has not begun */
	AWAITS_WAITING,
	AWAITS_RUNNING,
	AWAITS_ENDED,
};

/**
 * struct awaits_task - a task
 * @addr: address of its object.
 * @name: its name; "?" if that is no text.
 * @state: what it does.
 * @tid: thread that runs it; 0: none, or one that has given it up for another task for a moment.
 * @pcs: where its coroutines wait, as addresses that stand for functions and lines, the innermost first.
 * @nr_pcs: number of elements of @pcs; 0 while it runs.
 * @what: type of what the innermost one waits for; NULL: nothing, so it is to be called again.
 * @by: indexes of the tasks that wait for it, in increasing order.
 * @nr_by: number of elements of @by.
 */
struct awaits_task {
	uint64_t addr;
	char *name;
	enum awaits_state state;
	int tid;
	uint64_t *pcs;
	size_t nr_pcs;
	char *what;
	size_t *by;
	size_t nr_by;
};

/**
 * struct awaits - the tasks of a process
 * @tasks: the tasks, in the order in which they were made, of one thread after the other.
 * @nr: number of elements of @tasks.
 */
struct awaits {
	struct awaits_task **tasks;
	size_t nr;
};

/*
 * Takes from a Python's file, which the process has mapped, what of @ret it tells. Returns 0, -ENOENT if it is
 * none, or another negative errno with the reason.
 */
int awaits_take_python(const struct language_module *m, struct awaits_layout *ret,
		       struct reason *why);

/* Returns whether a file of that name may be its module for tasks. */
bool awaits_may_be_asyncio(const char *path);

/* The same for that module, which Python itself may contain. */
int awaits_take_asyncio(const struct language_module *m, struct awaits_layout *ret,
			struct reason *why);

/**
 * awaits_read() - read all tasks and who waits for whom
 * @layout: where they are kept.
 * @from: the process. None of its threads may run.
 * @ret: receives the tasks; give them to awaits_destroy().
 *
 * Return: 0; -EAGAIN: a thread was stopped while it changed a list; -EFAULT: memory cannot be read; -E2BIG: there
 * is more than is read; -ETIMEDOUT: the time for it is over; -ENOMEM.
 */
int awaits_read(const struct awaits_layout *layout, const struct awaits_source *from,
		struct awaits **ret);
void awaits_destroy(struct awaits *a);

#endif
