/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/unpack.h - the records of perf.data files that are compressed
 * (perf record -z).
 */
#ifndef TOOLS_PERF_UNPACK_H
#define TOOLS_PERF_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct perf_unpacked - where the records are then
 * @fd: a file without name, of nothing but records.
 * @size: its bytes.
 * @damaged: something was left out because it makes no sense.
 */
struct perf_unpacked {
	int fd;
	uint64_t size;
	bool damaged;
};

/**
 * perf_unpack() - copy records to a temporary file, all of them unpacked
 * @fd: the perf.data file.
 * @offset: its first record.
 * @end: behind its last one.
 * @ret: receives the result; its file is to be closed.
 *
 * The file is in $TMPDIR or /var/tmp. What unpacks to more than 256 times its
 * size is refused.
 *
 * Return: 0, -E2BIG for that, or a negative errno.
 */
int perf_unpack(int fd, uint64_t offset, uint64_t end, struct perf_unpacked *ret);

/* Opens a file without a name in $TMPDIR or /var/tmp. Returns it, or a negative errno. */
int perf_temporary(void);

/* Whether records of that type have others in them. */
bool perf_compressed(uint32_t type);

/**
 * perf_payload() - what comes behind a record without being counted in its size
 * @type: of the record.
 * @body: the record without its header.
 * @size: bytes of @body.
 *
 * Return: bytes.
 */
uint64_t perf_payload(uint32_t type, const void *body, size_t size);

#endif
