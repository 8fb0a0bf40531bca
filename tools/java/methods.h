/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * methods.h - the methods that HotSpot, the Java virtual machine, runs in a stack, in place of the
 * native frames that run them.
 *
 * Each frame of the interpreter has the address of its method and of the present bytecode, and they lie
 * in the copy of the stack. Names and lines are read from the process later: a method stays where it is
 * until its class is unloaded.
 */
#ifndef TOOLS_JAVA_METHODS_H
#define TOOLS_JAVA_METHODS_H

#include "libshstk/shstk.h"
#include "tools/language/languages.h"

struct java_methods;
struct jit;

/**
 * struct java_stack - a stack of a thread on x86-64
 * @native: its native stack.
 * @regs: registers of the innermost entry.
 * @read: reads the stack as it was then, all of a piece or nothing. Returns 0 or a negative errno.
 * @arg: first argument of @read.
 */
struct java_stack {
	struct native_stack native;
	const struct shstk_regs *regs;
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
};

/**
 * struct java_entries - a stack with its methods
 * @pcs: its entries, innermost first.
 * @marks: SHSTK_MARK_* of each entry.
 * @nr: number of entries.
 */
struct java_entries {
	uint64_t pcs[LANGUAGES_MOST];
	uint8_t marks[LANGUAGES_MOST];
	unsigned int nr;
};

/* Begins with no method of a process known. Returns NULL if out of memory. */
struct java_methods *java_methods_create(void);
void java_methods_destroy(struct java_methods *methods);

/**
 * java_place() - put methods in place of the native frames that run them
 * @methods: what is known of the process's methods.
 * @jit: of the same process, after jit_begin().
 * @all: has the functions; counts the stack if it has frames of the interpreter.
 * @stack: the stack.
 * @ret: receives the new stack.
 *
 * A native frame remains if its method is not known for sure.
 *
 * Return: true if a method was put into the stack; otherwise @ret may hold anything.
 */
bool java_place(struct java_methods *methods, struct jit *jit, struct languages *all,
		const struct java_stack *stack, struct java_entries *ret);

#endif
