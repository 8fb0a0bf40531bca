/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/trace/goroutines.h - `shstk trace --goroutines`: what the goroutines of a program do,
 * running or not.
 */
#ifndef TOOLS_TRACE_GOROUTINES_H
#define TOOLS_TRACE_GOROUTINES_H

#include "tools/trace/trace.h"

/**
 * struct goroutine_source - where goroutines are read
 * @opts: the options.
 * @space: the program's modules.
 * @read: reads the program's memory, 4096 bytes at a time too.
 * @arg: passed to @read and @regs.
 * @regs: registers of a thread, or NULL if it has none.
 */
struct goroutine_source {
	const struct trace_opts *opts;
	struct shstk_space *space;
	shstk_read_fn read;
	void *arg;
	const struct shstk_regs *(*regs)(void *arg, int tid);
};

struct goroutines;

/**
 * goroutines_find() - find the runtime, which takes time
 * @from: where; must stay.
 * @ret: receives what was found; give it to goroutines_destroy().
 *
 * The program may run meanwhile.
 *
 * Return: 0, -ENOENT if there is no runtime of Go, -ENOMEM.
 */
int goroutines_find(const struct goroutine_source *from, struct goroutines **ret);

/**
 * goroutines_take() - take the stacks of all goroutines
 * @all: from goroutines_find(); the program does not run.
 *
 * Return: 0, -ENOMEM, -EFAULT: the runtime's list cannot be read.
 */
int goroutines_take(struct goroutines *all);

/**
 * goroutines_print() - print them, those with equal stacks as one
 * @all: after goroutines_take().
 * @proc: names addresses.
 *
 * Return: false if a goroutine has no stack.
 */
bool goroutines_print(const struct goroutines *all, struct shstk_symproc *proc);

/**
 * goroutines_count() - how many there are
 * @all: after goroutines_take().
 */
size_t goroutines_count(const struct goroutines *all);

/**
 * goroutines_destroy() - release all
 * @all: what goroutines_find() made, or NULL.
 */
void goroutines_destroy(struct goroutines *all);

#endif
