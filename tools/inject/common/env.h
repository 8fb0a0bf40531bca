/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * env.h - keeps the object that this is part of in the environment of what is executed.
 */
#ifndef INJECT_ENV_H
#define INJECT_ENV_H

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
 * The object provides these. The process is about to execute @path, which may be a child
 * of vfork(); a child @pid was made that executes it.
 */
void env_before_exec(const char *path);
void env_after_spawn(int pid, const char *path);

#endif
