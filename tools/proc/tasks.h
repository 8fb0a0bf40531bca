/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks.h - reads what /proc tells of processes and threads: their numbers, names, states and CPU
 * time.
 */
#ifndef TOOLS_PROC_TASKS_H
#define TOOLS_PROC_TASKS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * tasks_open() - begin to list processes or threads
 * @pid: the process whose threads are listed; 0: list all processes.
 *
 * Return: a directory for tasks_next() and closedir(3), or NULL with errno set: ESRCH if there is
 * no such process.
 */
DIR *tasks_open(pid_t pid);

/* Returns the next process or thread ID; 0 if there are no more. */
pid_t tasks_next(DIR *dir);

/*
 * Returns whether the process has one thread, as far as /proc tells: looking that up takes a quarter of the
 * time that listing takes.
 */
bool tasks_single(pid_t pid);

/*
 * Returns another thread of a process that has not ended; 0 if there is none. Once the first thread
 * of a process has ended, /proc shows only by the numbers of other threads what the process has.
 */
pid_t tasks_other(pid_t pid);

/* Returns @pid, or another thread that has not ended if the first one has. */
pid_t tasks_living(pid_t pid);

/**
 * struct task_stat - state of a process or thread
 * @name: its name, as the kernel cuts it, without control characters.
 * @state: a letter, as in proc_pid_stat(5).
 * @parent: process ID of its parent.
 * @flags: the kernel's PF_*.
 * @cpu: user and system time in ns.
 */
struct task_stat {
	char name[64];
	char state;
	pid_t parent;
	unsigned int flags;
	uint64_t cpu;
};

/**
 * task_field() - read a field of a thread's status file
 * @pid: the process.
 * @tid: its thread.
 * @name: name of the field, without the colon.
 * @value: receives what follows the colon and blanks, as much as there is room for; empty if there
 *	is no such field.
 * @size: bytes in @value.
 *
 * Return: whether there is such a field.
 */
bool task_field(pid_t pid, pid_t tid, const char *name, char *value, size_t size);

/*
 * Returns the ID of a thread in its own PID namespace, by which its program knows it; 0: that is the one of whoever
 * asks, or cannot be read.
 */
pid_t task_own_id(pid_t pid, pid_t tid);

/*
 * Returns for how many ns the calling thread was ready to run in its life and had no CPU; 0 where the
 * kernel does not count that (CONFIG_SCHED_INFO).
 */
uint64_t task_waited(void);

/*
 * Returns the private memory of a process in KiB. Memory of files is not included, since the kernel
 * can take it back.
 */
unsigned long task_memory(pid_t pid);

/* Returns whether the process has ended and was waited for. */
bool process_gone(pid_t pid);

/*
 * Returns whether the process has ended with all its threads, but its parent has not waited for it
 * yet.
 */
bool process_is_zombie(pid_t pid);

/* Returns why a process that does not live cannot be recorded, as the rest of a sentence. */
const char *process_gone_why(pid_t pid);

/**
 * task_stat() - read the stat file of a process or thread
 * @pid: the process.
 * @tid: its thread; 0: the whole process, with the CPU time of all its threads.
 * @ret: receives the result.
 *
 * Return: 0, or -ESRCH if there is no such process or thread; then @ret is unchanged.
 */
int task_stat(pid_t pid, pid_t tid, struct task_stat *ret);

/* Returns what the letter @state of struct task_stat means, in a word or a few. */
const char *task_state_name(char state);

#endif
