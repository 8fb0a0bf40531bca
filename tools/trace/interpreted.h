/* SPDX-License-Identifier: GPL-2.0-or-later */
/* interpreted.h - functions that an interpreter, or Java's machine, runs, in the stacks of threads. */
#ifndef TOOLS_TRACE_INTERPRETED_H
#define TOOLS_TRACE_INTERPRETED_H

#include "tools/trace/trace.h"

struct java_entries;
struct java_methods;
struct language_module;

/**
 * struct interpreted - the interpreter of a process, which lives or has left a core file
 * @arch: enum shstk_arch of the process.
 * @all: the languages, or NULL: the process has no interpreter that is known, and no Java.
 * @number: its number.
 * @stop: how often threads were stopped so far.
 * @until: time in ns (CLOCK_MONOTONIC) after which nothing is read, because threads are held; 0: no
 *	thread is held.
 * @account: account of the process, from which reading draws; set with @number.
 * @room: room for a stack with its functions; set with @all.
 * @jit: knows code of Java's machine, or NULL.
 * @methods: what is known of Java's methods; set with @jit.
 * @read: reads memory of the process, which does not change meanwhile.
 * @arg: first argument of @read.
 */
struct interpreted {
	int arch;
	struct languages *all;
	int number;
	unsigned int stop;
	uint64_t until;
	struct shstk_account *account;
	struct java_entries *room;
	struct jit *jit;
	struct java_methods *methods;
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
};

/*
 * Looks for an interpreter in process @pid, whose functions are named by @symbols then. @i has @arch,
 * @read and @arg. Returns 0 or -ENOMEM.
 */
int interpreted_find(struct interpreted *i, int pid, struct shstk_symbols *symbols);

/*
 * Does the same for one file of a process that has left a core file. @module has the file and where
 * its code was mapped. @account: account of the core file.
 */
int interpreted_find_in(struct interpreted *i, const struct language_module *module,
			struct shstk_account *account, struct shstk_symbols *symbols);

/*
 * Has the methods of Java be shown, which @jit finds (NULL: there is none) and @symbols names. Returns 0 or
 * -ENOMEM.
 */
int interpreted_add_java(struct interpreted *i, struct jit *jit, struct shstk_symbols *symbols);
void interpreted_deinit(struct interpreted *i);

/* Begins a stop, in which memory does not change. Frames are read for STOP_HOLD_MS from now on. */
void interpreted_stop(struct interpreted *i);

/* Holds threads for longer, two seconds from now on: for what was asked for by name. */
void interpreted_hold(struct interpreted *i);

/* Returns whether threads may still be held. */
bool interpreted_in_time(const struct interpreted *i);

/*
 * Reads memory for as long as threads may be held. A process can have lists as long as it likes; what
 * is read of a core file is bounded by its account. @arg: a struct interpreted.
 */
int interpreted_read_memory(void *arg, uint64_t addr, void *buf, size_t size);

/* Reads the frames of a thread that is stopped, or whose process has left a core file. */
void interpreted_read(const struct interpreted *i, const struct trace_thread *t);

/*
 * Puts the functions of a thread into its stack, once it is unwound in @space. @read reads the stack that was
 * unwound, with @arg.
 */
void interpreted_place(const struct interpreted *i, const struct trace_opts *o,
		       struct shstk_space *space, struct trace_thread *t, shstk_read_fn read,
		       void *arg);

#endif
