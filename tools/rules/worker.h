/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker.h - compiling a stranger's file in a process that can do nothing else.
 */
#ifndef TOOLS_RULES_WORKER_H
#define TOOLS_RULES_WORKER_H

#include <sys/types.h>

#include "tools/elf/image.h"
#include "tools/rules/compile.h"

/**
 * struct worker - such a process
 * @pid: the process.
 * @pipe: what it says, and is told.
 * @out: where it puts the table.
 */
struct worker {
	pid_t pid;
	int pipe;
	int out;
};

/**
 * worker_start() - start a process for one file
 * @w: receives it; give it to worker_end().
 * @fd: the file, open for reading; stays the caller's.
 * @id: receives the build id, size 0 if there is none.
 *
 * Return: 0; -ENOEXEC: no regular file, or none that holds anything; -EPROTO: the process
 * died over it; -ETIMEDOUT; other negative errnos. Nothing is to be ended on failure.
 */
int worker_start(struct worker *w, int fd, struct build_id *id);

/**
 * worker_compile() - have it make the table
 * @w: the process.
 * @ret: receives the table, which was checked and is for this machine; free its header.
 *	Its @functions, @code, @described and @cut are not told.
 *
 * Return: 0; what rules_compile() returns; or as worker_start().
 */
int worker_compile(struct worker *w, struct rules_table *ret);

/**
 * worker_end() - end it, whatever it does
 * @w: the process.
 */
void worker_end(struct worker *w);

#endif
