/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/data.h - reads perf.data files, as `perf record` writes them, in the order of time.
 *
 * Of the many kinds of records only those are handed out that stacks of user space need. A file may
 * be cut off anywhere and hold anything. Memory is needed for one record at a time, and 16 bytes
 * for each record of the file.
 */
#ifndef TOOLS_PERF_DATA_H
#define TOOLS_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/elf/image.h"
#include "tools/perf/records.h"
#include "tools/perf/sample.h"
#include "tools/reason.h"

#define PERFDATA_MAX_EVENTS 256

/**
 * struct perfdata_event - an event that was recorded
 * @name: its name in perf, or one made from type and config.
 * @nanoseconds: its periods are times (cpu-clock, task-clock).
 * @freq: @period is a frequency in Hz, not a period.
 * @period: the period or frequency that was asked for.
 * @has_stacks: its samples have registers and a copy of the stack.
 * @has_chains: its samples have callchains.
 * @type: perf_event_attr.type.
 * @config: perf_event_attr.config.
 * @sample_type: perf_event_attr.sample_type.
 * @read_format: perf_event_attr.read_format.
 * @branch_type: perf_event_attr.branch_sample_type.
 * @max_chain: perf_event_attr.sample_max_stack.
 * @regs: perf_event_attr.sample_regs_user.
 * @id_all: perf_event_attr.sample_id_all.
 */
struct perfdata_event {
	char name[64];
	bool nanoseconds;
	bool freq;
	uint64_t period;
	bool has_stacks;
	bool has_chains;
	uint32_t type;
	uint64_t config;
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_type;
	uint32_t max_chain;
	uint64_t regs;
	bool id_all;
};

/**
 * struct perfdata_handler - functions that receive the records; a value other than 0 ends the
 * reading
 * @at: tells the time of the record that is handed out next, in ns; 0 if it is not known. May be
 *	NULL.
 * @sample: a sample of @event, which points to an entry of @events of &struct perfdata.
 * @map: code was mapped.
 * @comm: a thread has a new name.
 * @fork: a thread has begun.
 * @exit: a thread has ended. May be NULL.
 * @lost: perf lost @nr records or samples here.
 */
struct perfdata_handler {
	void (*at)(void *arg, uint64_t time);
	int (*sample)(void *arg, const struct perfdata_event *event, const struct perf_sample *s);
	int (*map)(void *arg, const struct perf_map *m);
	int (*comm)(void *arg, const struct perf_comm *c);
	int (*fork)(void *arg, const struct perf_fork *f);
	int (*exit)(void *arg, const struct perf_fork *f);
	void (*lost)(void *arg, uint64_t nr);
};

/**
 * struct perfdata - an open perf.data file
 * @path: the path that was given.
 * @arch: enum shstk_arch of the machine on which it was recorded; 0: not supported.
 * @machine: name of that machine's architecture in the file, "" if the file does not name it.
 * @release: release of that machine's kernel, "" if the file does not name it.
 * @events: the events.
 * @nr_events: number of events.
 * @cut: the file is cut off: records or headers are missing.
 * @damaged: number of invalid records.
 * @private: state of the reader.
 */
struct perfdata {
	const char *path;
	int arch;
	char machine[65];
	char release[65];
	struct perfdata_event events[PERFDATA_MAX_EVENTS];
	unsigned int nr_events;
	bool cut;
	uint64_t damaged;
	struct perfdata_file *private;
};

/**
 * perfdata_open() - open a file, read its headers, and put its records in order
 * @path: the file. "-" is standard input, which may be a pipe and is read to its end.
 * @ret: receives the file. perfdata_close() releases it.
 * @why: receives the reason of a failure, which names @path.
 *
 * Return: 0 or a negative errno.
 */
int perfdata_open(const char *path, struct perfdata **ret, struct reason *why);

/**
 * perfdata_open_fd() - do what perfdata_open() does with a file that is already open
 * @path: its name.
 * @fd: its file descriptor, which the function takes over, also on failure.
 * @ret: receives the file. perfdata_close() releases it.
 * @why: receives the reason of a failure, which names @path.
 *
 * Return: 0 or a negative errno.
 */
int perfdata_open_fd(const char *path, int fd, struct perfdata **ret, struct reason *why);

/**
 * perfdata_read() - hand out all records in the order of time
 * @pd: the file.
 * @handler: receives the records.
 * @arg: passed to the functions of @handler.
 *
 * Return: 0, -EIO, or what a function of @handler returned.
 */
int perfdata_read(struct perfdata *pd, const struct perfdata_handler *handler, void *arg);

/**
 * perfdata_build_id() - find the build id that perf noted for a file
 * @pd: the perf.data file.
 * @path: path of the mapped file.
 *
 * Return: a build id, of size 0 if none is known.
 */
const struct build_id *perfdata_build_id(const struct perfdata *pd, const char *path);

/**
 * perfdata_close() - release a file
 * @pd: a file, or NULL.
 */
void perfdata_close(struct perfdata *pd);

#endif
