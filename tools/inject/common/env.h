/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * env.h - keeps the object that this is part of in the environment of what is executed.
 */
#ifndef INJECT_ENV_H
#define INJECT_ENV_H

#include <stdbool.h>

/* Finds the functions that the hooks stand in front of. */
void env_resolve(void);

/* From now on. @record: value of REC_ENV. */
void env_remember(const char *record);

/*
 * The process may get more seccomp filters than the @filters that it has: what it executes then is
 * told, and stays out if there are more.
 */
void env_expect_filters(unsigned int filters);

/*
 * After that: has the process still those filters and no more? It asks the kernel, and is for a
 * program whose own way to a filter would have been seen.
 */
bool env_unfiltered(void);

/* Gives back what the calling thread may keep between two calls. At its end. */
void env_free(void);

/*
 * The object provides these. May system calls be made, or has the program given them up? The
 * process is about to execute @path, which may be a child of vfork(); a child @pid was made that
 * executes it. @path is the program's: it may be a bad pointer.
 */
bool env_may_call(void);
void env_before_exec(const char *path);
void env_after_spawn(int pid, const char *path);

#endif
