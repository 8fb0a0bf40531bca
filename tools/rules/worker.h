/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker.h - compiling a stranger's file in a process that can do nothing else.
 */
#ifndef TOOLS_RULES_WORKER_H
#define TOOLS_RULES_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/elf/image.h"
#include "tools/rules/compile.h"
#include "tools/rules/sandbox.h"

/**
 * struct worker - such a process
 * @pid: the process.
 * @pipe: what it says, and is told.
 * @out: where it puts the table.
 * @stop: as in &struct worker_terms.
 * @limits: what it may use.
 */
struct worker {
	pid_t pid;
	int pipe;
	int out;
	int stop;
	const struct sandbox_limits *limits;
};

/**
 * struct worker_terms - how the process is treated
 * @trusted: the file is root's: it may take much memory and time.
 * @stop: a descriptor; when there is something to read, nobody waits for the process any
 *	longer. -1: there is none.
 */
struct worker_terms {
	bool trusted;
	int stop;
};

/**
 * worker_start() - start a process for one file
 * @w: receives it; give it to worker_end().
 * @fd: the file, open for reading; stays the caller's.
 * @terms: how it is treated.
 * @id: receives the build id, size 0 if there is none.
 *
 * Return: 0; -ENOEXEC: no regular file, or none that holds anything; -EFBIG: larger than
 * the memory that the process may take; -EPROTO: the process died over it; -ETIMEDOUT;
 * -ECANCELED: @terms->stop; -EBUSY: too many of them could not be killed; other negative
 * errnos. Nothing is to be ended on failure.
 */
int worker_start(struct worker *w, int fd, const struct worker_terms *terms, struct build_id *id);

/**
 * worker_compile() - have it make the table
 * @w: the process.
 * @ret: receives the table, which was checked and is for this machine; free its header.
 *
 * Return: 0; what rules_compile() returns; or as worker_start().
 */
int worker_compile(struct worker *w, struct rules_table *ret);

/**
 * worker_end() - end it, whatever it does
 * @w: the process.
 *
 * What waits in the kernel, as for a file whose server does not answer, cannot be killed.
 * It is not waited for: it ends when it can, or when this process has.
 */
void worker_end(struct worker *w);

#endif
