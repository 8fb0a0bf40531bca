/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_code.h - unwind and name code that a running process makes at run time, by the tables of its
 * Java virtual machine.
 */
#ifndef TOOLS_JAVA_JIT_CODE_H
#define TOOLS_JAVA_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"

struct codeblob;
struct jit;
struct vmstructs;

/**
 * struct jit_process - access to a process that makes code
 * @read: reads all of a piece of memory or nothing. Returns 0 or a negative errno.
 * @open: opens the file of a mapping for which jit_is_known() is true. Returns a descriptor, which
 *	the caller closes, or a negative errno. Sets @start to the address of the mapping and
 *	@offset to its offset in the file.
 * @account: returns the account from which the search for the tables draws time and memory, and
 *	look-ups that take more of the time than an honest process needs; or NULL without memory.
 * @arg: first argument of these functions.
 */
struct jit_process {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	int (*open)(void *arg, uint64_t *start, uint64_t *offset);
	struct shstk_account *(*account)(void *arg);
	void *arg;
};

/* Creates a struct jit that knows nothing yet. Returns NULL if out of memory. */
struct jit *jit_create(void);
void jit_destroy(struct jit *jit);

/* Selects the process to which the next stacks belong. */
void jit_begin(struct jit *jit, const struct jit_process *process);

/**
 * jit_attach() - let a space ask for frames of code that a process made, if the process makes any
 * @space: the space of the process's code, on x86-64.
 * @process: the process; copied.
 * @ret: receives the struct jit, or NULL if the process makes no code. Give it to jit_destroy()
 *	after the space is destroyed.
 *
 * Return: 0 or -ENOMEM.
 */
int jit_attach(struct shstk_space *space, const struct jit_process *process, struct jit **ret);

/**
 * jit_name() - name the pieces of code at some addresses, unless this was done before
 * @jit: of a process, after jit_begin().
 * @proc: receives the names.
 * @pcs: the addresses; addresses in other code are ignored.
 * @nr: number of @pcs.
 *
 * Return: 0 or -ENOMEM.
 */
int jit_name(struct jit *jit, struct shstk_symproc *proc, const uint64_t *pcs, size_t nr);

/* Forgets which names were told. Used when another struct shstk_symproc is to receive all names. */
void jit_tell_again(struct jit *jit);

/* Returns HotSpot's tables, or NULL as long as they are not found. */
const struct vmstructs *jit_tables(const struct jit *jit);

/* Returns the time of the last jit_begin(), CLOCK_MONOTONIC in ns. */
uint64_t jit_time(const struct jit *jit);

/**
 * struct jit_look_up - a look-up in HotSpot's tables
 * @since: when it began, CLOCK_MONOTONIC in ns.
 * @used: CPU time of this thread when it began, in ns.
 * @account: the account that it draws from, or NULL.
 */
struct jit_look_up {
	uint64_t since;
	uint64_t used;
	struct shstk_account *account;
};

/*
 * Begins a look-up, which takes a part of the time that look-ups may take. Returns false if it must not
 * be made; then nothing is to be ended.
 */
bool jit_begin_look_up(struct jit *jit, struct jit_look_up *look_up);
void jit_end_look_up(struct jit *jit, const struct jit_look_up *look_up);

/* Finds the piece of code at an address, within a look-up. Returns what codecache_find() does. */
int jit_find_code(struct jit *jit, uint64_t pc, struct codeblob *ret);

/* Returns whether an address may be in such a piece of code. */
bool jit_has_code(const struct jit *jit, uint64_t pc);

/* A shstk_shape_fn. @arg is a struct jit. */
int jit_shape(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret);

#endif
