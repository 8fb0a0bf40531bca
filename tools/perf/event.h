/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/event.h - perf events, found by the names that people give them.
 */
#ifndef TOOLS_PERF_EVENT_H
#define TOOLS_PERF_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/reason.h"

/**
 * struct perf_event - one kind of event
 * @name: the name as on the command line.
 * @type: type of struct perf_event_attr.
 * @config: config of struct perf_event_attr.
 * @config1: config1 of struct perf_event_attr.
 * @config2: config2 of struct perf_event_attr.
 * @clock: the event counts nanoseconds.
 * @raw: a tracepoint of which each event is a sample, with raw data and without a callchain.
 * @no_kernel: count only in user mode (:u).
 * @no_user: count only in the kernel (:k).
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

/*
 * Returns whether the kernel counts the event without a counter of the CPU, and it is not a clock.
 */
bool perf_event_by_kernel(const struct perf_event *event);

/* Returns whether the event always happens in the kernel, so that user mode alone has none of it. */
bool perf_event_in_kernel(const struct perf_event *event);

/* Returns a plain event by its name, or NULL if there is none. */
const struct perf_event *perf_event_find(const char *name);

/* Returns the names that perf_event_find() knows, in one line. */
const char *perf_event_names(void);

/**
 * perf_event_parse() - find an event as people write it
 * @text: a name that perf_event_find() knows or an alias (faults, cs); rHEX, the CPU's own code;
 *	PMU/TERM=VALUE,.../, as in /sys/bus/event_source/devices; SUBSYSTEM:NAME, a tracepoint; or a
 *	name that libpfm4 knows, where it is installed. Then :u, :k and :p may follow, in any order.
 *	The text must stay in memory as long as the event is used.
 * @ret: receives the event.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int perf_event_parse(const char *text, struct perf_event *ret, struct reason *why);

#endif
