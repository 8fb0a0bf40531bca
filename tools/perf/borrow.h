/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * borrow.h - perf events that the broker opens (tools/broker/), for who may not.
 */
#ifndef TOOLS_PERF_BORROW_H
#define TOOLS_PERF_BORROW_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/perf/rings.h"
#include "tools/reason.h"

/* Does the broker have such events? It has time and switches of threads, and nothing of the kernel. */
bool borrow_possible(const struct perf_opts *opts);

/**
 * borrow_begin() - connect to the broker
 *
 * $SHSTK_BROKER is the name of its socket, if there is that variable; empty: there is no broker.
 *
 * Return: a descriptor, to be closed, or a negative errno: -ENOENT if no broker runs.
 */
int borrow_begin(void);

/**
 * borrow_proof() - show that this process may trace a thread
 * @tid: the thread.
 *
 * Return: a descriptor for borrow_event(), to be closed, or a negative errno: -ESRCH if it is gone.
 */
int borrow_proof(pid_t tid);

/**
 * borrow_event() - have an event opened
 * @broker: of borrow_begin().
 * @opts: how it is opened; the thread and the CPU are not looked at.
 * @which: enum perf_which.
 * @tid: the thread, with all it starts.
 * @proof: of borrow_proof().
 * @cpu: number of the CPU.
 * @user_only: set if only user mode is sampled.
 *
 * Return: the event's descriptor or a negative errno.
 */
int borrow_event(int broker, const struct perf_opts *opts, int which, pid_t tid, int proof, int cpu,
		 bool *user_only);

/* Why an event was not lent, by the errno. */
const char *borrow_error(int error);

#endif
