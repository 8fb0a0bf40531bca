/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * goroutine.h - finds the goroutines of another program, running or not.
 *
 * Everything is read from the program's memory, and may be wrong. So all loops are bounded,
 * and a description counts as a goroutine only if it points at itself.
 */
#ifndef SHSTK_GOROUTINE_H
#define SHSTK_GOROUTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "shstk.h"

#define GOROUTINES_MAX 1000000
#define GO_LABELS_MAX 64
#define GO_TEXT_MAX 256 /* most bytes of a label or a reason, with the zero behind them */

struct module;

/**
 * struct shstk_goruntime - the Go runtime of a program
 * @space: the program's modules.
 * @mod: the module that contains the runtime.
 * @release: the second number of Go's release, such as 19 for Go 1.19.
 * @allgs: address of the list of all goroutines.
 * @reasons: address of the list of texts that tell what a goroutine waits for, or 0.
 * @read: reads the program's memory, up to 4096 bytes at a time.
 * @arg: passed to @read.
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
 * @SHSTK_GO_RUNNABLE: it is ready to run.
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
 * @tid: ID of the thread that it runs on, as the runtime knows it, or 0.
 * @gopc: return address of the call that made it, or 0.
 * @startpc: the function that it began with, or 0.
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

/*
 * Finds the runtime in @space and fills @rt. Returns 0, or -ENOENT if there is no runtime, or none
 * that the library knows.
 */
int shstk_goruntime_find(struct shstk_goruntime *rt, struct shstk_space *space, shstk_read_fn read,
			 void *arg);

/*
 * Calls @each for each goroutine that is not dead, until @each returns a value other than 0.
 * Returns that value, 0, or -EFAULT if the list can't be read.
 */
int shstk_goruntime_each(const struct shstk_goruntime *rt,
			 int (*each)(void *arg, const struct shstk_goroutine *g), void *arg);

/* Returns the second number of the release of Go that made @m, or 0 if it is not known. */
unsigned int shstk_goruntime_release(const struct module *m);

/*
 * Sets @g->labels to the address of the labels of the goroutine at @g->g. It does not need the list
 * of all goroutines.
 */
void shstk_goroutine_find_labels(const struct shstk_goruntime *rt, struct shstk_goroutine *g);

/**
 * struct shstk_gostack - the stack of a goroutine
 * @lo: lowest address.
 * @hi: first address behind it.
 * @current: the goroutine that the same thread runs, or 0. It is needed where the stack is the
 *	thread's own one (g0).
 */
struct shstk_gostack {
	uint64_t lo, hi;
	uint64_t current;
};

/* Reads the stack of what may be a goroutine at @g. Returns false if it is not a goroutine. */
bool shstk_goroutine_stack(const struct shstk_goruntime *rt, uint64_t g, struct shstk_gostack *ret);

/**
 * enum shstk_gokind - what a frame tells about its caller
 * @SHSTK_GO_NONE: the frame is not Go code.
 * @SHSTK_GO_CODE: its caller follows on the same stack.
 * @SHSTK_GO_SWITCH: its caller may lie on another stack.
 * @SHSTK_GO_VDSO: the same, and what it calls is the vdso.
 * @SHSTK_GO_OUTERMOST: it has no caller.
 */
enum shstk_gokind {
	SHSTK_GO_NONE,
	SHSTK_GO_CODE,
	SHSTK_GO_SWITCH,
	SHSTK_GO_VDSO,
	SHSTK_GO_OUTERMOST,
};

/* Returns the kind of a frame whose code is at @pc. */
enum shstk_gokind shstk_go_kind(struct shstk_space *space, uint64_t pc);

/*
 * Tells whether the Go function at @pc has made its frame at this instruction. Then it has saved a
 * frame pointer too.
 */
bool shstk_go_has_frame(struct shstk_space *space, uint64_t pc);

/*
 * Calls @each for each label of @g, until it returns a value other than 0. Returns that value, or
 * 0.
 */
int shstk_goroutine_labels(const struct shstk_goruntime *rt, const struct shstk_goroutine *g,
			   int (*each)(void *arg, const char *key, const char *value), void *arg);

#endif
