/* SPDX-License-Identifier: GPL-2.0-or-later */
/* waiting_tasks.h - `shstk trace --tasks`: all tasks of asyncio in a Python program, and who waits for whom. */
#ifndef TOOLS_TRACE_WAITING_TASKS_H
#define TOOLS_TRACE_WAITING_TASKS_H

#include "tools/language/python/awaits.h"
#include "tools/trace/interpreted.h"

/**
 * struct waiting_tasks - the tasks of a process
 * @layout: where they are kept.
 * @why: why a Python keeps none of which that is known.
 * @refused: @why has a reason.
 * @all: what was read; NULL: nothing yet.
 */
struct waiting_tasks {
	struct awaits_layout layout;
	struct reason why;
	bool refused;
	struct awaits *all;
};

/* Returns whether a file of that name tells something about tasks. */
bool waiting_tasks_may_be(const char *path);

/* Looks at such a file that the process has mapped. The file is that of an interpreter unless @path says otherwise. */
void waiting_tasks_look(struct waiting_tasks *w, const char *path,
			const struct language_module *module);

/* Returns whether tasks can be read. If not, @why receives the reason. @of: the interpreter that was found. */
bool waiting_tasks_known(const struct waiting_tasks *w, const struct interpreted *of,
			 struct reason *why);

/*
 * Reads the tasks. No thread may run. Returns what awaits_read() returns, and -EAGAIN for what another try may
 * read.
 */
int waiting_tasks_take(struct waiting_tasks *w, struct interpreted *of);

/* Prints the tasks as a tree, or as a list in JSON. Returns false if out of memory. */
bool waiting_tasks_print(const struct waiting_tasks *w, const struct trace_opts *o,
			 struct shstk_symproc *proc);

/* Says why tasks could not be read; -EBUSY: a thread did not stop. @whose: "process 1" or the like. */
void waiting_tasks_complain(const char *whose, int err);

void waiting_tasks_deinit(struct waiting_tasks *w);

#endif
