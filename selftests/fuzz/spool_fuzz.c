// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spool_fuzz.c - any files in a spool: a request that is taken is whole, and counts that are written are those that
 * were read.
 *
 * Input: struct head, then the name of a request, the file with counts, and the request's own file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/push/spool.h"

#define SUFFIX ".request"
#define HEAD "shstk-request 1 %08zx %08zx %08lx\n"
#define HEAD_SIZE 43
#define MOST_NAME (NAME_MAX - sizeof(SUFFIX))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is done to the files, or'ed, so that not all inputs end at a checksum. */
enum { SUFFIXED = 1, WITH_HEAD = 2 };

/**
 * struct head - what an input begins with
 * @what: what is done to the files.
 * @name: bytes of the name.
 * @counts: bytes of the counts.
 * @query: bytes of the query, if the file gets a right beginning.
 */
struct head {
	uint8_t what;
	uint8_t name;
	uint16_t counts;
	uint16_t query;
};

/* The bytes that are left of an input. */
struct rest {
	const uint8_t *data;
	size_t size;
};

static char base[] = "/tmp/spool-fuzz-XXXXXX";
static struct spool spool;

/* Removes the spool with what this target leaves in it. */
static void clean(void)
{
	static const char *const files[] = { "counts", ".putting" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		unlinkat(spool.dir, files[i], 0);
	rmdir(spool.path);
	spool_close(&spool);
	rmdir(base);
}

static void open_once(void)
{
	struct reason why;

	if (spool.path)
		return;
	if (!mkdtemp(base) || spool_open(&spool, base, "s", &why))
		abort();
	atexit(clean);
}

/* Takes the next bytes of the input, at most so many. */
static struct rest take(struct rest *from, size_t size)
{
	struct rest ret = { from->data, size < from->size ? size : from->size };

	from->data += ret.size;
	from->size -= ret.size;
	return ret;
}

/* Makes a file. Returns false if it cannot have that name. */
static bool put_file(const char *name, const char *front, const struct rest *bytes)
{
	int fd = openat(spool.dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const size_t size = strlen(front);

	if (fd < 0)
		return false;
	if (write(fd, front, size) != (ssize_t)size ||
	    write(fd, bytes->data, bytes->size) != (ssize_t)bytes->size)
		abort();
	close(fd);
	return true;
}

/* ---- Counts ---- */

static void check_counts(const struct rest *bytes)
{
	uint64_t before[SPOOL_COUNTS], after[SPOOL_COUNTS];

	if (!put_file("counts", "", bytes))
		abort();
	spool_counts(&spool, before);
	if (spool_add(&spool, SPOOL_SENT, 1))
		abort();
	spool_counts(&spool, after);
	before[SPOOL_SENT]++;
	if (memcmp(before, after, sizeof(before)))
		abort();
}

/* ---- Requests ---- */

/* Makes the name of a request. Returns false if no file can have it, or another one here has it. */
static bool make_name(const struct head *h, struct rest bytes, char ret[NAME_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < bytes.size && n < MOST_NAME; i++)
		if (bytes.data[i] && bytes.data[i] != '/')
			ret[n++] = (char)bytes.data[i];
	ret[n] = '\0';
	if (h->what & SUFFIXED)
		strcat(ret, SUFFIX);
	return *ret && strcmp(ret, ".") && strcmp(ret, "..") && strcmp(ret, "counts") &&
	       strcmp(ret, ".putting") && strcmp(ret, ".sending");
}

static void make_head(const struct head *h, const struct rest *bytes, char ret[64])
{
	size_t query = h->query < bytes->size ? h->query : bytes->size;

	*ret = '\0';
	if (h->what & WITH_HEAD)
		snprintf(ret, 64, HEAD, query, bytes->size - query,
			 crc32(0, bytes->data, (uInt)bytes->size));
}

/* Checks a request that was taken of a file with these bytes, behind a head that was made or that they have. */
static void judge(const struct head *h, const struct rest *bytes, const struct spool_request *r)
{
	const size_t head = h->what & WITH_HEAD ? 0 : HEAD_SIZE;

	if (r->query_size > SPOOL_HEAD || (r->query_size && r->query[r->query_size - 1]))
		abort();
	if (head + r->query_size + r->size != bytes->size ||
	    r->body != (uint8_t *)r->query + r->query_size ||
	    memcmp(r->query, bytes->data + head, r->query_size + r->size))
		abort();
}

static void check_names(const char *name)
{
	struct spool_names oldest;
	struct spool_waiting waiting = spool_waiting(&spool);

	spool_oldest(&spool, &oldest);
	if (oldest.nr > 1 || oldest.nr != waiting.nr || (oldest.nr && strcmp(oldest.name[0], name)))
		abort();
	spool_time(name);
	spool_tidy(&spool);
}

static void check_request(const struct head *h, const char *name, const struct rest *bytes)
{
	struct spool_request request;
	char head[64];

	make_head(h, bytes, head);
	if (!put_file(name, head, bytes))
		return;
	check_names(name);
	if (!spool_take(&spool, name, &request)) {
		judge(h, bytes, &request);
		free(request.query);
	}
	if (spool_remove(&spool, name))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rest rest, name_bytes, counts;
	char name[NAME_MAX + 1];
	struct head h;

	if (size < sizeof(h))
		return 0;
	open_once();
	memcpy(&h, data, sizeof(h));
	rest = (struct rest){ data + sizeof(h), size - sizeof(h) };
	name_bytes = take(&rest, h.name);
	counts = take(&rest, h.counts);
	check_counts(&counts);
	if (make_name(&h, name_bytes, name))
		check_request(&h, name, &rest);
	return 0;
}
