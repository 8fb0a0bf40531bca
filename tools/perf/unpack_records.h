/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/unpack_records.h - unpacks perf.data files whose records are compressed (perf record
 * -z).
 */
#ifndef TOOLS_PERF_UNPACK_RECORDS_H
#define TOOLS_PERF_UNPACK_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct perf_unpacked - the unpacked records
 * @fd: a file without a name that has nothing but records.
 * @size: bytes of the file.
 * @damaged: something invalid was left out.
 */
struct perf_unpacked {
	int fd;
	uint64_t size;
	bool damaged;
};

/**
 * perf_unpack() - copy all records, unpacked, to a temporary file
 * @fd: the perf.data file.
 * @offset: position of its first record.
 * @end: position behind its last record.
 * @ret: receives the temporary file, which the caller closes.
 *
 * The temporary file is in $TMPDIR or /var/tmp. A file that becomes more than 256 times as large is
 * refused.
 *
 * Return: 0, -E2BIG for a refused file, or another negative errno.
 */
int perf_unpack(int fd, uint64_t offset, uint64_t end, struct perf_unpacked *ret);

/*
 * Opens a file without a name in $TMPDIR or /var/tmp. Returns its file descriptor, or a negative
 * errno.
 */
int perf_temporary(void);

/* Returns whether records of that type are compressed and contain other records. */
bool perf_compressed(uint32_t type);

/**
 * perf_payload() - find how much follows a record without being part of its size
 * @type: type of the record.
 * @body: the record without its header.
 * @size: bytes in @body.
 *
 * Return: number of bytes.
 */
uint64_t perf_payload(uint32_t type, const void *body, size_t size);

#endif
