/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks.h - what /proc says of processes: their numbers, threads, names and CPU time.
 */
#ifndef TOOLS_PROC_TASKS_H
#define TOOLS_PROC_TASKS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * tasks_open() - begin to list
 * @pid: the process whose threads are listed; 0: all processes.
 *
 * Return: for tasks_next() and closedir(3); NULL and errno if there is no such process.
 */
DIR *tasks_open(pid_t pid);

/* The next process or thread ID; 0: there is none. */
pid_t tasks_next(DIR *dir);

/*
 * Another thread of a process, that has not ended; 0: there is none. Once its first thread has
 * ended, /proc shows what a process has by the numbers of the others only.
 */
pid_t tasks_other(pid_t pid);

/* Its own number, or that of such a thread if its first one has ended. */
pid_t tasks_living(pid_t pid);

/**
 * struct task_stat - what a process or a thread is, and has used
 * @name: of it, as the kernel cuts it; no control characters.
 * @state: a letter, as in proc_pid_stat(5).
 * @flags: the kernel's PF_*.
 * @cpu: user and system time in ns.
 */
struct task_stat {
	char name[64];
	char state;
	unsigned int flags;
	uint64_t cpu;
};

/**
 * task_field() - one field of a thread's status file
 * @pid: the process.
 * @tid: its thread.
 * @name: of the field, without the colon.
 * @value: receives what comes behind the colon and blanks, as much as there is room for;
 *	empty if there is no such field.
 * @size: bytes of @value.
 *
 * Return: was there such a field?
 */
bool task_field(pid_t pid, pid_t tid, const char *name, char *value, size_t size);

/* KiB of memory that a process has of its own: the kernel can take back what is of files. */
unsigned long task_memory(pid_t pid);

/* Has the process ended, and was it waited for? */
bool process_gone(pid_t pid);

/* Has it ended, with all its threads, and is its number taken until its parent asks? */
bool process_is_zombie(pid_t pid);

/* Why a process that is not there cannot be recorded, as the rest of a sentence. */
const char *process_gone_why(pid_t pid);

/**
 * task_stat() - what stands in its file of that name
 * @pid: the process.
 * @tid: its thread; 0: all of the process, with the CPU time of all its threads.
 * @ret: receives it.
 *
 * Return: 0, or -ESRCH: there is no such process or thread; then @ret is as it was.
 */
int task_stat(pid_t pid, pid_t tid, struct task_stat *ret);

/* What the letter @state of struct task_stat means, as a word or a few. */
const char *task_state_name(char state);

#endif
