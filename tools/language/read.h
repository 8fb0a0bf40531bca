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

#endif
