/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * goroutine.h - the goroutines of another program, running or not.
 *
 * All that is read is the program's memory, and may be wrong: everything is bounded, and
 * only descriptions that point at themselves are taken for goroutines.
 */
#ifndef SHSTK_GOROUTINE_H
#define SHSTK_GOROUTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "shstk.h"

#define GOROUTINES_MAX 1000000
#define GO_LABELS_MAX 64
#define GO_TEXT_MAX 256 /* bytes of a label or a reason, with a zero behind them */

struct module;

/**
 * struct shstk_goruntime - the runtime of a program
 * @space: the program's modules.
 * @mod: the one that the runtime is in.
 * @release: the second number of Go's release, 19 of Go 1.19.
 * @allgs: address of the list of all goroutines.
 * @reasons: address of the list of texts for what is waited for, or 0.
 * @read: reads the program's memory, up to 4096 bytes at a time.
 * @arg: for @read.
 */
struct shstk_goruntime {
	struct shstk_space *space;
	const struct module *mod;
	unsigned int release;
	uint64_t allgs;
	uint64_t reasons;
	shstk_read_fn read;
	void *arg;
};

/**
 * enum shstk_gostate - what a goroutine does
 * @SHSTK_GO_RUNNABLE: it could run.
 * @SHSTK_GO_RUNNING: it runs.
 * @SHSTK_GO_SYSCALL: it is in a system call or in C.
 * @SHSTK_GO_WAITING: it waits.
 * @SHSTK_GO_OTHER: its stack is being copied, or it was stopped.
 */
enum shstk_gostate {
	SHSTK_GO_RUNNABLE,
	SHSTK_GO_RUNNING,
	SHSTK_GO_SYSCALL,
	SHSTK_GO_WAITING,
	SHSTK_GO_OTHER,
};

/**
 * struct shstk_goroutine - a goroutine
 * @g: address of its description.
 * @id: its number.
 * @state: enum shstk_gostate.
 * @reason: what it waits for, or "".
 * @tid: the thread that it runs on, as the runtime knows it, or 0.
 * @gopc: where it was made: behind the call; or 0.
 * @startpc: the function it began with, or 0.
 * @labels: address of its labels, or 0.
 * @regs: registers to unwind from, if it does not run.
 */
struct shstk_goroutine {
	uint64_t g;
	uint64_t id;
	int state;
	char reason[GO_TEXT_MAX];
	int tid;
	uint64_t gopc;
	uint64_t startpc;
	uint64_t labels;
	struct shstk_regs regs;
};

/* Find the runtime. 0, or -ENOENT: there is none, or none that is known. */
int shstk_goruntime_find(struct shstk_goruntime *rt, struct shstk_space *space, shstk_read_fn read,
			 void *arg);

/*
 * Give each goroutine that is not dead to @each; stops when that returns other than 0.
 * Returns what @each did, 0, or -EFAULT: the list cannot be read.
 */
int shstk_goruntime_each(const struct shstk_goruntime *rt,
			 int (*each)(void *arg, const struct shstk_goroutine *g), void *arg);

/* The second number of the release of Go that made a module; 0: not known. */
unsigned int shstk_goruntime_release(const struct module *m);

/* Where the labels of the goroutine at @g->g are, into @g->labels. Needs no list of all. */
void shstk_goroutine_find_labels(const struct shstk_goruntime *rt, struct shstk_goroutine *g);

/**
 * struct shstk_gostack - the stack of a goroutine
 * @lo: lowest address.
 * @hi: first address behind it.
 * @current: the goroutine that the same thread runs, or 0: for those that are a thread's own.
 */
struct shstk_gostack {
	uint64_t lo, hi;
	uint64_t current;
};

/* The stack of what may be a goroutine at @g. False: it is none. */
bool shstk_goroutine_stack(const struct shstk_goruntime *rt, uint64_t g, struct shstk_gostack *ret);

/**
 * enum shstk_gokind - what a frame says about those outside of it
 * @SHSTK_GO_NONE: it is not of Go.
 * @SHSTK_GO_CODE: its caller follows.
 * @SHSTK_GO_SWITCH: its caller may lie on another stack.
 * @SHSTK_GO_OUTERMOST: it has none.
 */
enum shstk_gokind {
	SHSTK_GO_NONE,
	SHSTK_GO_CODE,
	SHSTK_GO_SWITCH,
	SHSTK_GO_OUTERMOST,
};

/* Of the frame whose code is at @pc. */
enum shstk_gokind shstk_go_kind(struct shstk_space *space, uint64_t pc);

/* Has the function at @pc, of Go, made a frame there? Then it has a frame pointer, too. */
bool shstk_go_has_frame(struct shstk_space *space, uint64_t pc);

/* Give each label of @g to @each. Returns what that did, or 0. */
int shstk_goroutine_labels(const struct shstk_goruntime *rt, const struct shstk_goroutine *g,
			   int (*each)(void *arg, const char *key, const char *value), void *arg);

#endif
