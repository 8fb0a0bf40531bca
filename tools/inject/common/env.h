/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * env.h - keeps the object that contains this file in the environment of programs that are
 * executed.
 */
#ifndef INJECT_ENV_H
#define INJECT_ENV_H

#include <stdbool.h>

/* Looks up the functions that are hooked. */
void env_resolve(void);

/* Begins to change environments. @record is the value of REC_ENV. */
void env_remember(const char *record);

/*
 * Expects that the process has @filters seccomp filters and may get more. Programs that it executes
 * are told this number, and stay out if there are more.
 */
void env_expect_filters(unsigned int filters);

/*
 * Returns whether the process still has only the filters of env_expect_filters(). It asks the
 * kernel, so the caller must know that the program has not installed a filter by calls that are
 * hooked.
 */
bool env_unfiltered(void);

/* execve() and execveat() for programs that call syscall() (rawcall.c). The path is one more pointer. */
long env_execute(long path, long argv, long envp);
long env_execute_at(long fd, long path, long argv, long envp, long flags);

/* Frees what the calling thread may keep between two calls. To be called when the thread ends. */
void env_free(void);

/*
 * Returns whether system calls may be made, or the program has given them up. The object defines
 * this and the next two functions.
 */
bool env_may_call(void);
/*
 * Called before the process executes @path. The process may be a child of vfork(), which shares the parent's
 * memory and does not come back. @path is the program's: it may be a bad pointer. Returns what was done, for
 * env_call_returned().
 */
int env_before_exec(const char *path);
/* Called before a child is created by such a call, which may fail. Returns what was done, too. */
int env_before_spawn(void);
/*
 * Called when a call that executes a program has returned: it failed, or the program is a child's. @done is what
 * the call before it returned.
 */
void env_call_returned(int done);
/* Called after a child @pid was created that executes @path, which may be a bad pointer. */
void env_after_spawn(int pid, const char *path);

#endif
