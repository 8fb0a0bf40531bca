/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/records.h - what perf events tell of processes, in one form. rings.h hands records out
 * as the kernel wrote them, and the functions here convert them to this form; data.h hands out the
 * records of a file in this form.
 */
#ifndef TOOLS_PERF_RECORDS_H
#define TOOLS_PERF_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/elf/image.h"
#include "tools/perf/rings.h"

/**
 * struct perf_map - a process has mapped code
 * @pid: process ID.
 * @start: first address.
 * @end: first address behind the mapping.
 * @offset: offset of @start in the file, in bytes.
 * @path: the file, or the kernel's name of other memory. It points into the record.
 * @id: build id of the file, of size 0 if the record does not tell it.
 * @dev: device of the file as makedev(3) makes it, 0 if the record does not tell it.
 * @inode: inode number of the file, 0 if the record does not tell it.
 */
struct perf_map {
	int pid;
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	const char *path;
	struct build_id id;
	uint64_t dev;
	uint64_t inode;
};

/**
 * struct perf_comm - a thread has another name
 * @pid: process ID.
 * @tid: thread ID.
 * @comm: the new name. It points into the record.
 * @exec: the name is new because the thread executed a program.
 */
struct perf_comm {
	int pid;
	int tid;
	const char *comm;
	bool exec;
};

/**
 * struct perf_fork - a thread has begun or ended
 * @pid: its process ID.
 * @tid: its thread ID.
 * @parent: process ID of the thread that made it; not @pid if it was made by fork(2).
 * @from: thread ID of the thread that made it.
 */
struct perf_fork {
	int pid;
	int tid;
	int parent;
	int from;
};

/*
 * Take a record of rings.h apart, which must be of the type that the function's name says:
 * PERF_RECORD_MMAP2; PERF_RECORD_COMM; PERF_RECORD_FORK or PERF_RECORD_EXIT. They return false if
 * the record is invalid, or not about code of user space.
 */
bool perf_record_map(const struct perf_record *r, struct perf_map *ret);
bool perf_record_comm(const struct perf_record *r, struct perf_comm *ret);
bool perf_record_fork(const struct perf_record *r, struct perf_fork *ret);

#endif
