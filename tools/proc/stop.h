/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/proc/stop.h - waiting for threads that were told to stop, and what those do that
 * cannot.
 *
 * A thread in an uninterruptible system call does not stop before that ends: one that waits for
 * a disk, or for its child of vfork(2). The others are not held until then.
 */
#ifndef TOOLS_PROC_STOP_H
#define TOOLS_PROC_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STOP_HOLD_MS 200 /* how long threads are held while others have not stopped */
#define STOP_LATE_MS 2000 /* how long is waited for these then, while nobody is held */
#define STOP_STUCK_MS 50 /* the same, either time, if they are in an uninterruptible call */

/* Call it before threads are told to stop, and before the thread is made that waits. */
void stop_prepare(void);

/**
 * stop_wait() - wait until a traced thread stops or ends
 * @tid: the thread.
 * @until: how long to wait, on CLOCK_MONOTONIC, in ns.
 * @status: receives what waitpid(2) says.
 *
 * Return: true; false: it did neither.
 */
bool stop_wait(pid_t tid, uint64_t until, int *status);

/* Waits for any thread to stop, until then, or for a few ms. */
void stop_pause(uint64_t until);

/* Is the thread in an uninterruptible system call? */
bool stop_is_stuck(pid_t pid, pid_t tid);

/**
 * stop_describe() - what a thread does that does not stop
 * @pid: the process.
 * @tid: the thread.
 * @text: receives it, such as "in disk sleep, in kernel_clone(), system call 58".
 * @size: bytes of @text.
 */
void stop_describe(pid_t pid, pid_t tid, char *text, size_t size);

#endif
