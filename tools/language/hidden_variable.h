/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hidden_variable.h - finds a thread-local variable that no symbol tells of, by the code of a function that reads it.
 *
 * The agents use it in their own process, so it needs nothing but a way to read memory.
 */
#ifndef TOOLS_LANGUAGE_HIDDEN_VARIABLE_H
#define TOOLS_LANGUAGE_HIDDEN_VARIABLE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/context.h"

#define HIDDEN_VARIABLE_RESULT (-1) /* The function returns what the variable has. */

/**
 * struct hidden_variable_reader - a function and the memory it lies in
 * @read: reads memory, all or nothing. Returns 0 or a negative errno.
 * @arg: first argument of @read.
 * @machine: of which the function is code (EM_*).
 * @function: its address; 0: there is none.
 * @member: offset of the member that it reads of the object whose address the variable has, or
 *	HIDDEN_VARIABLE_RESULT.
 */
struct hidden_variable_reader {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	unsigned int machine;
	uint64_t function;
	int member;
};

/**
 * hidden_variable_find() - find the variable that a function reads
 * @reader: the function.
 * @ret: receives where the variable is.
 *
 * Only the very code that compilers make of such a function counts.
 *
 * Return: 0; -ENOENT: it is other code; -EAGAIN: the loader did not prepare the variable yet.
 */
int hidden_variable_find(const struct hidden_variable_reader *reader, struct context_variable *ret);

#endif
