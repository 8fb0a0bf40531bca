/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/data.h - reading perf.data files, as `perf record` writes them, in
 * the order of time.
 *
 * Of the many records only those are handed out that stacks of user space need.
 * A file may be cut off anywhere and hold anything: at most one record is in
 * memory, and 16 bytes for each that is there.
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
 * @name: as perf calls it, or made from type and config.
 * @nanoseconds: its periods are of time (cpu-clock, task-clock).
 * @freq: @period is a frequency in Hz, not a period.
 * @period: what was asked for.
 * @has_stacks: its samples have registers and a copy of the stack.
 * @has_chains: they have callchains.
 * @type: perf_event_attr.type, and
 * @config: .config,
 * @sample_type: .sample_type,
 * @read_format: .read_format,
 * @branch_type: .branch_sample_type,
 * @max_chain: .sample_max_stack,
 * @regs: .sample_regs_user,
 * @id_all: .sample_id_all.
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
 * struct perfdata_handler - receives the records; each returns 0 or what ends
 *	the reading
 * @at: the time of the record that is handed out next, ns; 0 if not told. May be NULL.
 * @sample: a sample of @event, which may be compared with those of &struct perfdata.
 * @map: code was mapped.
 * @comm: a thread has a new name.
 * @fork: a thread has begun.
 * @exit: a thread has ended; may be NULL.
 * @lost: perf lost that many records or samples here.
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
 * struct perfdata - an open file
 * @path: as given.
 * @arch: enum shstk_arch of the machine it was recorded on; 0: not supported.
 * @machine: that machine as the file names it, "" if it does not.
 * @release: of its kernel, "" if the file does not say.
 * @events: the events, and
 * @nr_events: their number.
 * @cut: the file is cut off: records or headers are missing.
 * @damaged: records that make no sense.
 * @private: the rest.
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
 * perfdata_open() - open a file, read its headers, put its records in order
 * @path: the file; "-": standard input, which may be a pipe and is read to its end.
 * @ret: receives the file; give it to perfdata_close().
 * @why: receives why not, naming @path.
 *
 * Return: 0 or a negative errno.
 */
int perfdata_open(const char *path, struct perfdata **ret, struct reason *why);

/**
 * perfdata_open_fd() - as perfdata_open(), of an open file
 * @path: its name.
 * @fd: the file; taken over, also on failure.
 * @ret: see perfdata_open().
 * @why: see perfdata_open().
 *
 * Return: 0 or a negative errno.
 */
int perfdata_open_fd(const char *path, int fd, struct perfdata **ret, struct reason *why);

/**
 * perfdata_read() - hand out all records in the order of time
 * @pd: the file.
 * @handler: receives them.
 * @arg: passed to @handler.
 *
 * Return: 0, -EIO, or what a function of @handler returned.
 */
int perfdata_read(struct perfdata *pd, const struct perfdata_handler *handler, void *arg);

/**
 * perfdata_build_id() - the build id that perf found for a file
 * @pd: the file.
 * @path: the mapped file.
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
