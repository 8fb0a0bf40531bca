/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * data_private.h - what the files of the reader of perf.data files (data.h) share: its state, and
 * functions that they call of each other.
 */
#ifndef TOOLS_PERF_DATA_PRIVATE_H
#define TOOLS_PERF_DATA_PRIVATE_H

#include <linux/perf_event.h>
#include <string.h>

#include "tools/perf/data.h"

#define PERFDATA_WINDOW (1u << 18) /* bytes that are read at a time */

struct perfdata_section {
	uint64_t offset;
	uint64_t size;
};

/* The time of a record and its position in the file. */
struct record {
	uint64_t time;
	uint64_t offset;
};

/* The event of the samples with this ID. */
struct event_id {
	uint64_t id;
	unsigned int event;
};

/* The build id of a file. */
struct named_id {
	char *path;
	struct build_id id;
};

/**
 * struct perfdata_file - state of the reader of an open file
 * @fd: the file, or a temporary file of nothing but records.
 * @size: bytes of the file.
 * @window_at: position of @window in the file.
 * @window_size: bytes in @window.
 * @window: the part of the file that was read last.
 * @data: where the records are.
 * @pipe: the file was written to a pipe, so its headers are records.
 * @unpacked: the records were unpacked to a temporary file.
 * @asked_ids: mappings have build ids where their flag says so.
 * @records: positions of the records that are handed out.
 * @nr_records: number of @records.
 * @max_records: number of records for which @records has room.
 * @ids: IDs and their events, sorted by ID.
 * @nr_ids: number of @ids.
 * @build_ids: build ids of files, sorted by path once all headers are read.
 * @nr_build_ids: number of @build_ids.
 * @why: receives the reason why the file cannot be opened.
 * @record: the body of the record that is being handled.
 */
struct perfdata_file {
	int fd;
	uint64_t size;
	uint64_t window_at;
	size_t window_size;
	uint8_t *window;
	struct perfdata_section data;
	bool pipe;
	bool unpacked;
	bool asked_ids;
	struct record *records;
	size_t nr_records;
	size_t max_records;
	struct event_id *ids;
	size_t nr_ids;
	struct named_id *build_ids;
	size_t nr_build_ids;
	struct reason *why;
	uint64_t record[65536 / 8 + 1];
};

/*
 * The part of a record's body that was not taken yet; @bad is set when more is taken than there is.
 */
struct body {
	const uint8_t *p;
	size_t left;
	bool bad;
};

/* Returns whether @n bytes are left. If not, @b is bad. */
static inline bool has_left(struct body *b, uint64_t n)
{
	if (n > b->left)
		b->bad = true;
	return n <= b->left;
}

static inline const uint8_t *take(struct body *b, uint64_t n)
{
	const uint8_t *p = b->p;

	if (!has_left(b, n))
		return NULL;
	b->p += n;
	b->left -= n;
	return p;
}

/*
 * Takes a value of @size bytes. It is 0 if there are not enough bytes. That is asked of @b, not of
 * the pointer that take() returns: else gcc also thinks of a body that begins at NULL, and warns of
 * the value behind its first one.
 */
static inline void take_value(struct body *b, void *ret, size_t size)
{
	if (has_left(b, size))
		memcpy(ret, take(b, size), size);
	else
		memset(ret, 0, size);
}

static inline uint64_t take64(struct body *b)
{
	uint64_t v;

	take_value(b, &v, sizeof(v));
	return v;
}

static inline uint32_t take32(struct body *b)
{
	uint32_t v;

	take_value(b, &v, sizeof(v));
	return v;
}

/* Returns the text at the beginning of @b without taking it; it must end within the record. */
static inline const char *take_text(struct body *b)
{
	const char *text = (const char *)b->p;

	if (!b->left || !memchr(text, '\0', b->left)) {
		b->bad = true;
		return "";
	}
	return text;
}

/* ---- data_bytes.c ---- */

/* Sets the reason why the file cannot be opened. Returns @err. */
int perfdata_fail(struct perfdata_file *f, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads @len bytes at @offset of the file. Returns false unless all of them can be read. */
bool perfdata_read_at(const struct perfdata_file *f, uint64_t offset, void *buf, size_t len);

/*
 * Reads as perfdata_read_at() does, but through a window: faster for reading from beginning to end.
 */
bool perfdata_read_next(struct perfdata_file *f, uint64_t offset, void *buf, size_t len);

/* ---- data_header.c ---- */

/*
 * Reads what stands before the records, and the header features behind them. Returns 0 or a
 * negative errno.
 */
int perfdata_read_header(struct perfdata *pd);

/*
 * Takes a record that is a header, as a file written to a pipe has them. Ignores other records.
 * Returns 0 or a negative errno.
 */
int perfdata_take_header(struct perfdata *pd, const struct perf_event_header *h, struct body b);

/* Sets the architecture by the machine's name. Called after all headers are read. */
void perfdata_set_arch(struct perfdata *pd);

/* Sorts the build ids by path. Called after all headers are read. */
void perfdata_sort_build_ids(struct perfdata_file *f);

void perfdata_free_build_ids(struct perfdata_file *f);

/* Returns the event of samples with that ID, or NULL. */
const struct perfdata_event *perfdata_event_of(const struct perfdata *pd, uint64_t id);

/* ---- data_sample.c ---- */

/*
 * Returns the event of a sample, by the ID that all samples have at the same place; NULL if it is
 * unknown.
 */
const struct perfdata_event *perfdata_sample_event(const struct perfdata *pd, struct body b);

/* Takes the fields of a sample of @event. Returns false if the sample is invalid. */
bool perfdata_take_sample(const struct perfdata *pd, const struct perfdata_event *event,
			  struct body *b, struct perf_sample *s);

#endif
