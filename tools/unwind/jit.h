/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit.h - frames of code that a living process makes at run time, known from that code.
 */
#ifndef TOOLS_UNWIND_JIT_H
#define TOOLS_UNWIND_JIT_H

#include "tools/unwind/layout.h"

struct jit;

/* Makes code be of a kind that is known? @map: something that a process has mapped. */
bool jit_is_known(const struct layout_map *map);

/* Begins with nothing known. NULL when memory runs out. */
struct jit *jit_create(void);
void jit_destroy(struct jit *jit);

/* The next stack is one of process @pid, which has @layout. */
void jit_begin(struct jit *jit, pid_t pid, const struct layout *layout);

/**
 * struct jit_code - a piece of code that has a name
 * @start: its first address, and
 * @end: the first behind it.
 * @name: its name.
 */
struct jit_code {
	uint64_t start;
	uint64_t end;
	char name[512];
};

/**
 * jit_name() - the name of an address
 * @jit: of a process, after jit_begin().
 * @pc: the address.
 * @ret: receives the piece of code.
 *
 * Return: true: it is one that was not told yet, or there is another one now.
 */
bool jit_name(struct jit *jit, uint64_t pc, struct jit_code *ret);

/* A shstk_shape_fn; @arg: struct jit. */
int jit_shape(void *arg, uint64_t pc, int exact, struct shstk_frame_shape *ret);

#endif
