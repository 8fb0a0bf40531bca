/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakers.h - tells which thread woke a waiting thread, and when, by the tracepoint
 * sched:sched_waking.
 *
 * It is the waking thread that meets the tracepoint. So it must be watched on all CPUs for all
 * threads, which needs root or CAP_PERFMON, and tracefs must be mounted.
 */
#ifndef TOOLS_CONVERT_WAKERS_H
#define TOOLS_CONVERT_WAKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/perf/rings.h"
#include "tools/reason.h"

/**
 * struct waking - a thread is woken
 * @tid: thread ID of the woken thread.
 * @waker: thread ID of the thread that woke it; 0: an interrupt of a timer or a device did.
 */
struct waking {
	int tid;
	int waker;
};

/* Bytes of a label, at most. */
#define WAKERS_LABEL 64

struct wakers;

/**
 * wakers_create() - find the tracepoint
 * @ret: receives the state.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int wakers_create(struct wakers **ret, struct reason *why);
void wakers_destroy(struct wakers *w);

/* Returns the event to open, for &struct perf_opts.wakings; NULL if @w is NULL. */
const struct perf_event *wakers_event(const struct wakers *w);

/* Reads a record of the tracepoint. Returns false if it is another record, or invalid. */
bool wakers_parse(const struct wakers *w, const struct perf_record *r, struct waking *ret);

/**
 * wakers_label() - make the label of a time off the CPU that a waker ended
 * @w: from wakers_create().
 * @waker: thread ID of the waker; 0: an interrupt.
 * @name: name of the waker, or NULL: it is looked for in /proc.
 * @buf: receives "waker" and the waker, each followed by a 0; WAKERS_LABEL bytes.
 *
 * Return: bytes in @buf.
 */
size_t wakers_label(struct wakers *w, int waker, const char *name, char *buf);

#endif
