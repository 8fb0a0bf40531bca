/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakers.h - who woke a thread that waited, and when: the tracepoint sched:sched_waking.
 *
 * It is met by who wakes, so it has to be seen on all CPUs, of all threads: for root, or with
 * CAP_PERFMON, and where tracefs is mounted.
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
 * @tid: it.
 * @waker: the thread that woke it; 0: an interrupt did, of a timer or a device.
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
 * @ret: receives it.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int wakers_create(struct wakers **ret, struct reason *why);
void wakers_destroy(struct wakers *w);

/* The event to be opened, &struct perf_opts.wakings; NULL for NULL. */
const struct perf_event *wakers_event(const struct wakers *w);

/* Reads such a record. False: it is none. */
bool wakers_parse(const struct wakers *w, const struct perf_record *r, struct waking *ret);

/**
 * wakers_label() - the label of the time that ended so
 * @w: from wakers_create().
 * @waker: as in struct waking.
 * @name: its name if it is known, else NULL: it is looked for in /proc.
 * @buf: receives "waker" and who that is, each with a zero behind it; WAKERS_LABEL bytes.
 *
 * Return: bytes in @buf.
 */
size_t wakers_label(struct wakers *w, int waker, const char *name, char *buf);

#endif
