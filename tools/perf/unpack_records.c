// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * unpack_records.c - unpacks the compressed records of perf.data files. See unpack_records.h.
 *
 * All compressed records of a file are one stream of zstd, which is cut at any place: a record may
 * begin in one of them and end in the next, with other records between. So the output is put
 * together to whole records before it is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "tools/perf/unpack_records.h"

/* Types of records that tools/perf itself adds. */
enum {
	USER_TRACING_DATA = 66,
	USER_AUXTRACE = 71,
	USER_COMPRESSED = 81,
	USER_COMPRESSED2 = 83,
};

#define MAX_RATIO 256
#define MAX_RECORD 65536

/**
 * struct unpacker - a file that is being unpacked
 * @in: the perf.data file.
 * @out: the temporary file.
 * @stream: state of zstd.
 * @written: bytes in @out.
 * @max: most bytes that @out may have.
 * @have: bytes in @record.
 * @record: the record that is being put together.
 * @packed: the record that is being unpacked.
 * @piece: output of zstd.
 */
struct unpacker {
	FILE *in;
	FILE *out;
	ZSTD_DStream *stream;
	uint64_t written;
	uint64_t max;
	size_t have;
	uint8_t record[MAX_RECORD];
	uint8_t packed[MAX_RECORD];
	uint8_t piece[MAX_RECORD];
};

bool perf_compressed(uint32_t type)
{
	return type == USER_COMPRESSED || type == USER_COMPRESSED2;
}

uint64_t perf_payload(uint32_t type, const void *body, size_t size)
{
	uint64_t n = 0;

	if (type == USER_TRACING_DATA && size >= 4) {
		memcpy(&n, body, 4);
		n = (n + 7) & ~7ull;
	} else if (type == USER_AUXTRACE && size >= 8) {
		memcpy(&n, body, 8);
	}
	return n;
}

static int put(struct unpacker *u, const void *bytes, size_t n)
{
	if (n > u->max - u->written)
		return -E2BIG;
	u->written += n;
	return fwrite(bytes, 1, n, u->out) == n ? 0 : -EIO;
}

/*
 * Returns the size of the record that is being put together; of its header while that is not
 * complete.
 */
static size_t wanted(const struct unpacker *u)
{
	struct perf_event_header h;

	if (u->have < sizeof(h))
		return sizeof(h);
	memcpy(&h, u->record, sizeof(h));
	return h.size;
}

static int put_records(struct unpacker *u, const uint8_t *bytes, size_t n)
{
	while (n) {
		size_t part = wanted(u) - u->have;
		int err;

		if (part > n)
			part = n;
		memcpy(u->record + u->have, bytes, part);
		u->have += part;
		bytes += part;
		n -= part;
		/* Then the beginning of the next record is unknown. */
		if (wanted(u) < sizeof(struct perf_event_header))
			return -EINVAL;
		if (u->have < wanted(u))
			continue;
		err = put(u, u->record, u->have);
		if (err)
			return err;
		u->have = 0;
	}
	return 0;
}

/*
 * Unpacks the body of a compressed record, which is @n bytes in @packed. Returns 0 or a negative
 * errno.
 */
static int unpack_record(struct unpacker *u, const struct perf_event_header *h, size_t n)
{
	ZSTD_inBuffer in = { u->packed, n, 0 };
	ZSTD_outBuffer out;

	if (h->type == USER_COMPRESSED2) {
		uint64_t size;

		if (n < sizeof(size))
			return -EINVAL;
		memcpy(&size, u->packed, sizeof(size));
		in.pos = sizeof(size);
		if (size > n - in.pos)
			return -EINVAL;
		in.size = in.pos + size;
	}
	do {
		int err;

		out = (ZSTD_outBuffer){ u->piece, sizeof(u->piece), 0 };
		if (ZSTD_isError(ZSTD_decompressStream(u->stream, &out, &in)))
			return -EINVAL;
		err = put_records(u, u->piece, out.pos);
		if (err)
			return err;
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

/* Copies @n bytes as they are. Returns 0 or a negative errno. */
static int copy(struct unpacker *u, uint64_t n)
{
	while (n) {
		size_t part = n < sizeof(u->piece) ? n : sizeof(u->piece);
		int err;

		if (fread(u->piece, 1, part, u->in) != part)
			return -EIO;
		err = put(u, u->piece, part);
		if (err)
			return err;
		n -= part;
	}
	return 0;
}

/*
 * Copies or unpacks one record from @in. Returns its size, 0 if there are no more, or a negative
 * errno.
 */
static int64_t unpack_next(struct unpacker *u, uint64_t left)
{
	struct perf_event_header h;
	uint64_t more;
	size_t n;
	int err;

	if (left < sizeof(h) || fread(&h, 1, sizeof(h), u->in) != sizeof(h))
		return 0;
	n = h.size - sizeof(h);
	if (h.size < sizeof(h) || h.size > left || fread(u->packed, 1, n, u->in) != n)
		return 0;
	if (perf_compressed(h.type)) {
		err = unpack_record(u, &h, n);
		return err ? err : h.size;
	}
	more = perf_payload(h.type, u->packed, n);
	if (more > left - h.size)
		return 0;
	err = put(u, &h, sizeof(h));
	if (!err)
		err = put(u, u->packed, n);
	if (!err)
		err = copy(u, more);
	return err ? err : (int64_t)(h.size + more);
}

int perf_temporary(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static FILE *stream_of(int fd, const char *mode)
{
	int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = other < 0 ? NULL : fdopen(other, mode);

	if (!file && other >= 0)
		close(other);
	return file;
}

int perf_unpack(int fd, uint64_t offset, uint64_t end, struct perf_unpacked *ret)
{
	struct unpacker *u = calloc(1, sizeof(*u));
	int64_t size = 1;
	int err = -ENOMEM;

	*ret = (struct perf_unpacked){ .fd = -1 };
	if (!u)
		return -ENOMEM;
	ret->fd = perf_temporary();
	if (ret->fd < 0) {
		err = ret->fd;
		goto out;
	}
	u->in = stream_of(fd, "r");
	u->out = stream_of(ret->fd, "w");
	u->stream = ZSTD_createDStream();
	u->max = (end - offset) * MAX_RATIO;
	if (!u->in || !u->out || !u->stream)
		goto out;
	err = fseeko(u->in, (off_t)offset, SEEK_SET) ? -errno : 0;
	while (!err && size > 0) {
		size = unpack_next(u, end - offset);
		if (size > 0)
			offset += size;
		else if (size != -EINVAL)
			err = (int)size;
	}
	ret->damaged = offset != end || u->have;
	ret->size = u->written;
	if (!err && fflush(u->out))
		err = -errno;
out:
	if (u->in)
		fclose(u->in);
	if (u->out)
		fclose(u->out);
	ZSTD_freeDStream(u->stream);
	free(u);
	if (err && ret->fd >= 0) {
		close(ret->fd);
		ret->fd = -1;
	}
	return err;
}
