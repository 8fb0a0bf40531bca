/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read.h - reads the frames of an interpreter from a process that is stopped, by the same table as
 * the BPF program does that reads them at samples (bpf/language_walk.h).
 */
#ifndef TOOLS_LANGUAGE_READ_H
#define TOOLS_LANGUAGE_READ_H

#include "tools/language/languages.h"

/**
 * struct language_thread - a thread that is stopped
 * @read: reads memory of its process, all or nothing. Returns 0 or a negative errno.
 * @arg: first argument of @read.
 * @account: account of the process, from which reading draws time.
 * @stop: number of the stop, so that functions of another stop are not taken for the same.
 * @tid: thread ID.
 * @pointer: its thread pointer.
 * @pc: its program counter.
 * @sp: its stack pointer.
 * @live: its registers r14 and r15.
 */
struct language_thread {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	struct shstk_account *account;
	unsigned int stop;
	int tid;
	uint64_t pointer;
	uint64_t pc;
	uint64_t sp;
	uint64_t live[2];
};

/*
 * Reads the frames of a thread of a process that has the interpreter @number, for
 * languages_place() with the time 0. Returns 0 or -ENOMEM; that nothing could be read, or no time is
 * left in the account, is no error.
 */
int language_read(struct languages *all, int number, const struct language_thread *thread);

/*
 * Begins to read functions of a process, which no thread needs to run. @thread: a thread of it, of which @read,
 * @arg, @account and @stop count; it must stay. Returns NULL without memory.
 */
struct language_reading *language_reading_create(struct languages *all, int number,
						 const struct language_thread *thread);
void language_reading_destroy(struct language_reading *r);

/*
 * Finds the address that stands for an instruction, at an offset from the first one, of the function whose
 * object is at @code. Returns 0; -EFAULT: the object cannot be read; -ETIMEDOUT: reading it returned that;
 * -EAGAIN: it is none of a function; -ENOMEM: there is no room for the function.
 */
int language_reading_place(struct language_reading *r, uint64_t code, int at, uint64_t *ret);

#endif
