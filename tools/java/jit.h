/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit.h - frames of code that a living process makes at run time, known from that code.
 */
#ifndef TOOLS_JAVA_JIT_H
#define TOOLS_JAVA_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"

struct jit;

/**
 * struct jit_process - who makes code
 * @read: reads its memory, all of it or nothing. Returns 0 or a negative errno.
 * @open: opens the file of the mapping of which jit_is_known(). Returns a descriptor, which is
 *	closed, or a negative errno; @start receives where it is mapped, @offset from which
 *	offset of the file on.
 * @arg: for these.
 */
struct jit_process {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	int (*open)(void *arg, uint64_t *start, uint64_t *offset);
	void *arg;
};

/* Does a program that has mapped this file's code make some of a kind that is known? */
bool jit_is_known(const char *path);

/* Begins with nothing known. NULL when memory runs out. */
struct jit *jit_create(void);
void jit_destroy(struct jit *jit);

/* The next stacks are of this process. */
void jit_begin(struct jit *jit, const struct jit_process *process);

/**
 * jit_attach() - have a space ask for frames of what a process made, if it makes any
 * @space: the space of the process's code, on x86-64.
 * @process: the process; copied.
 * @ret: receives who knows, for jit_destroy() after the space is gone; NULL: it makes none.
 *
 * Return: 0 or -ENOMEM.
 */
int jit_attach(struct shstk_space *space, const struct jit_process *process, struct jit **ret);

/**
 * jit_name() - name the code that addresses lie in, as far as that was not told yet
 * @jit: of a process, after jit_begin().
 * @proc: receives the names.
 * @pcs: the addresses; those in other code are passed over.
 * @nr: their number.
 *
 * Return: 0 or -ENOMEM.
 */
int jit_name(struct jit *jit, struct shstk_symproc *proc, const uint64_t *pcs, size_t nr);

/* All names are to be told again: to another view of the process. */
void jit_tell_again(struct jit *jit);

/* A shstk_shape_fn; @arg: struct jit. */
int jit_shape(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret);

#endif
