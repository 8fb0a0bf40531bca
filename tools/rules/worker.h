/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker.h - compiles a stranger's file in a process that can do nothing else.
 */
#ifndef TOOLS_RULES_WORKER_H
#define TOOLS_RULES_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/elf/image.h"
#include "tools/rules/compile.h"
#include "tools/rules/confine.h"

/**
 * struct worker - the process
 * @pid: the process.
 * @pipe: socket by which it sends messages and receives them.
 * @out: file into which it writes the table.
 * @stop: as in &struct worker_terms.
 * @leaves_go: as in &struct worker_terms.
 * @limits: what it may use.
 */
struct worker {
	pid_t pid;
	int pipe;
	int out;
	int stop;
	bool leaves_go;
	const struct sandbox_limits *limits;
};

/**
 * struct worker_terms - how the process is treated
 * @trusted: the file belongs to root, so the process may take much memory and time.
 * @stop: a descriptor; when it becomes readable, nobody waits for the process any longer. -1 if
 *	there is none.
 * @leaves_go: a program of Go gets no table.
 */
struct worker_terms {
	bool trusted;
	int stop;
	bool leaves_go;
};

/**
 * worker_start() - start a process for one file
 * @w: receives the process; must be given to worker_end().
 * @fd: the file, open for reading; the caller keeps it.
 * @terms: how the process is treated.
 * @id: receives the build id, with size 0 if there is none.
 *
 * Return: 0; -ENOEXEC if it is no regular file or is empty; -EFBIG if the file is larger than the
 * memory that the process may take; -EPROTO if the process died; -ETIMEDOUT; -ECANCELED if
 * @terms->stop became readable; -EBUSY if too many processes could not be killed; other negative
 * errnos. After a failure there is nothing to end.
 */
int worker_start(struct worker *w, int fd, const struct worker_terms *terms, struct build_id *id);

/**
 * worker_compile() - let the process make the table
 * @w: the process.
 * @ret: receives the table, which was checked and is for this machine; the caller frees its header.
 *
 * Return: 0; an error of rules_compile(); -EOPNOTSUPP if it is a program of Go and these get no table; or
 * an error of worker_start().
 */
int worker_compile(struct worker *w, struct compiled_table *ret);

/**
 * worker_end() - end the process, whatever it does
 * @w: the process.
 *
 * A process that waits in the kernel, for example for a file whose server does not answer, cannot
 * be killed. It is not waited for: it ends when it can, or when this process has ended.
 */
void worker_end(struct worker *w);

#endif
