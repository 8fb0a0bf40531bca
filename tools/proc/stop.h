/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/proc/stop.h - waits for threads that were told to stop, and says what threads do that do
 * not stop.
 *
 * A thread in an uninterruptible system call does not stop before that call ends, for instance one
 * that waits for a disk or for its child of vfork(2). Other threads are not held until then.
 */
#ifndef TOOLS_PROC_STOP_H
#define TOOLS_PROC_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STOP_HOLD_MS 200 /* how long threads are held while others have not stopped */
#define STOP_LATE_MS 2000 /* how long to wait for those others after that, while none is held */
#define STOP_STUCK_MS 50 /* replaces both times for threads in an uninterruptible call */

/*
 * Prepares SIGCHLD. Called before threads are told to stop, and before the thread that waits for
 * them is made.
 */
void stop_prepare(void);

/**
 * stop_wait() - wait until a traced thread stops or ends
 * @tid: the thread.
 * @until: CLOCK_MONOTONIC in ns, at which to give up.
 * @status: receives the status of waitpid(2).
 *
 * Return: true, or false if the thread neither stopped nor ended.
 */
bool stop_wait(pid_t tid, uint64_t until, int *status);

/*
 * Waits for any thread to stop, until @until (CLOCK_MONOTONIC in ns), but not longer than a few ms.
 */
void stop_pause(uint64_t until);

/* Returns whether the thread is in an uninterruptible system call. */
bool stop_is_stuck(pid_t pid, pid_t tid);

/**
 * stop_describe() - say what a thread does that does not stop
 * @pid: the process.
 * @tid: the thread.
 * @text: receives the text, such as "in disk sleep, in kernel_clone(), system call 58".
 * @size: bytes in @text.
 */
void stop_describe(pid_t pid, pid_t tid, char *text, size_t size);

#endif
