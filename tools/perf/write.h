/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/write.h - writes the records of rings.h to a perf.data file, in the form that perf(1)
 * writes to a pipe. tools/perf/data.h and `perf script` read it.
 */
#ifndef TOOLS_PERF_WRITE_H
#define TOOLS_PERF_WRITE_H

#include <stdint.h>
#include <sys/types.h>

#include "tools/perf/records.h"
#include "tools/perf/rings.h"

struct perf_writer;

/**
 * perf_writer_create() - begin a file
 * @path: the file.
 * @opts: options by which the events are opened.
 * @ret: receives the writer, which perf_writer_close() releases.
 *
 * Return: 0 or a negative errno.
 */
int perf_writer_create(const char *path, const struct perf_opts *opts, struct perf_writer **ret);

/*
 * Sets the build id of the "[vdso]" that the kernel maps into processes, if it is @size bytes long.
 * The kernel's own records do not tell it.
 */
void perf_writer_vdso(struct perf_writer *w, uint64_t size, const struct build_id *id);

/* Adds a record as the kernel wrote it, but with the build id of the vdso. */
void perf_writer_add(struct perf_writer *w, const struct perf_record *record);

/* Adds a mapping that existed before recording began, or was seen at @time. */
void perf_writer_map(struct perf_writer *w, uint64_t time, const struct perf_map *map);

/* Adds the name of a thread that existed before recording began, or was seen at @time. */
void perf_writer_comm(struct perf_writer *w, uint64_t time, pid_t pid, pid_t tid, const char *comm);

/*
 * Ends the file and releases @w, which may be NULL. Returns 0, or a negative errno if the file is
 * not complete.
 */
int perf_writer_close(struct perf_writer *w);

#endif
