/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * goroutines.h - `shstk trace --goroutines`: the stacks of all goroutines of a program, running or
 * not.
 */
#ifndef TOOLS_TRACE_GOROUTINES_H
#define TOOLS_TRACE_GOROUTINES_H

#include "tools/trace/trace.h"

/**
 * struct goroutine_source - the program whose goroutines are read
 * @opts: the options.
 * @space: the program's modules.
 * @read: reads the program's memory; must allow reads of 4096 bytes.
 * @arg: first argument of @read and @regs.
 * @regs: returns the registers of a thread, or NULL if they are not known.
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
 * goroutines_find() - find Go's runtime in a program; this takes time
 * @from: the program; must stay valid.
 * @ret: receives the result; give it to goroutines_destroy().
 *
 * The program may run while this is done.
 *
 * Return: 0, -ENOENT if there is no known Go runtime, or -ENOMEM.
 */
int goroutines_find(const struct goroutine_source *from, struct goroutines **ret);

/**
 * goroutines_take() - take the stacks of all goroutines
 * @all: from goroutines_find(). The program must not run now.
 *
 * Return: 0, -ENOMEM, or -EFAULT if the runtime's list cannot be read.
 */
int goroutines_take(struct goroutines *all);

/**
 * goroutines_print() - print the goroutines; those with equal stacks are printed as one
 * @all: after goroutines_take().
 * @proc: names addresses.
 *
 * Return: false if a goroutine has no stack, or if out of memory.
 */
bool goroutines_print(const struct goroutines *all, struct shstk_symproc *proc);

/**
 * goroutines_count() - get the number of goroutines
 * @all: after goroutines_take().
 */
size_t goroutines_count(const struct goroutines *all);

/**
 * goroutines_destroy() - release the goroutines
 * @all: from goroutines_find(), or NULL.
 */
void goroutines_destroy(struct goroutines *all);

#endif
