/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/event.h - kinds of perf events, by the names that people give them.
 */
#ifndef TOOLS_PERF_EVENT_H
#define TOOLS_PERF_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/reason.h"

/**
 * struct perf_event - one kind of event
 * @name: as on the command line.
 * @type: of struct perf_event_attr,
 * @config: likewise,
 * @config1: and
 * @config2: likewise.
 * @clock: counts nanoseconds.
 * @raw: a trace event: a sample of each, with what it says and no callchain.
 * @no_kernel: only in user mode (:u).
 * @no_user: only in the kernel (:k).
 * @precise: how exactly the instruction is wanted, 0 to 3 (:p, :pp, :ppp).
 */
struct perf_event {
	const char *name;
	uint32_t type;
	uint64_t config;
	uint64_t config1;
	uint64_t config2;
	bool clock;
	bool raw;
	bool no_kernel;
	bool no_user;
	uint8_t precise;
};

/* Does the kernel count it without a counter of the CPU, and is it no clock? */
bool perf_event_by_kernel(const struct perf_event *event);

/* Finds a plain event by its name. NULL: there is none. */
const struct perf_event *perf_event_find(const char *name);

/* The names that perf_event_find() knows, in one line. */
const char *perf_event_names(void);

/**
 * perf_event_parse() - find an event as people write it
 * @text: a name of perf_event_find() or an alias (faults, cs); rHEX, the CPU's own code;
 *	PMU/TERM=VALUE,.../, as in /sys/bus/event_source/devices; SUBSYSTEM:NAME, a tracepoint;
 *	or a name that libpfm4 knows, where it is installed. Then :u, :k and :p, in any order.
 *	It must stay.
 * @ret: receives it.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int perf_event_parse(const char *text, struct perf_event *ret, struct reason *why);

#endif
