/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * borrow.h - perf events that the broker (tools/broker/) opens for users who may not open them.
 */
#ifndef TOOLS_PERF_BORROW_H
#define TOOLS_PERF_BORROW_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/perf/rings.h"
#include "tools/reason.h"

struct lent_process;

/*
 * Returns whether the broker has such events. It has clocks and switches of threads, and nothing of
 * the kernel.
 */
bool borrow_possible(const struct perf_opts *opts);

/**
 * borrow_begin() - connect to the broker
 *
 * The variable SHSTK_BROKER of the environment, if it exists, names the broker's socket; if it is
 * empty, there is no broker.
 *
 * Return: a file descriptor to be closed, or a negative errno: -ENOENT if no broker runs.
 */
int borrow_begin(void);

/**
 * borrow_proof() - show that this process may trace a thread
 * @tid: the thread.
 *
 * Return: a file descriptor for borrow_event(), to be closed, or a negative errno: -ESRCH if the
 * thread is gone.
 */
int borrow_proof(pid_t tid);

/**
 * borrow_lease() - have the stacks of events that follow walked in the kernel
 * @broker: connection made by borrow_begin().
 * @walk: how they are walked.
 * @ret: receives the number of the lease.
 *
 * Return: a file descriptor, with whose last close the lease ends; or a negative errno: -EOPNOTSUPP or
 * -EINVAL if the broker lends no walks.
 */
int borrow_lease(int broker, const struct perf_walk *walk, uint32_t *ret);

/**
 * borrow_output() - have the broker open the event that receives the chains of a lease
 * @broker: connection made by borrow_begin().
 * @lease: number of the lease.
 * @cpu: number of the CPU.
 *
 * Return: the event's file descriptor or a negative errno.
 */
int borrow_output(int broker, uint32_t lease, int cpu);

/**
 * borrow_process() - have the frames of a process's interpreter read at samples
 * @broker: connection made by borrow_begin().
 * @lease: number of the lease of these samples.
 * @pid: the process.
 * @process: how frames are found.
 *
 * Return: 0 or a negative errno; -EOPNOTSUPP: the broker reads none.
 */
int borrow_process(int broker, uint32_t lease, pid_t pid, const struct lent_process *process);

/**
 * borrow_event() - have the broker open an event
 * @broker: connection made by borrow_begin().
 * @opts: how the event is opened; its targets are not looked at.
 * @which: enum perf_which.
 * @tid: the thread, which is sampled with all that it starts.
 * @proof: file descriptor from borrow_proof().
 * @cpu: number of the CPU.
 * @lease: number of the lease by which stacks are walked, or 0.
 * @user_only: set to true if only user mode is sampled.
 *
 * Return: the event's file descriptor or a negative errno.
 */
int borrow_event(int broker, const struct perf_opts *opts, int which, pid_t tid, int proof, int cpu,
		 uint32_t lease, bool *user_only);

/* Returns a text that says why the broker did not open an event, by the errno @error. */
const char *borrow_error(int error);

#endif
