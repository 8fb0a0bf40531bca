/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * data_private.h - what the files of data.h share.
 */
#ifndef TOOLS_PERF_DATA_PRIVATE_H
#define TOOLS_PERF_DATA_PRIVATE_H

#include <linux/perf_event.h>
#include <string.h>

#include "tools/perf/data.h"

#define PERFDATA_WINDOW (1u << 18) /* bytes read at a time */

struct section {
	uint64_t offset;
	uint64_t size;
};

/* Where a record is. */
struct record {
	uint64_t time;
	uint64_t offset;
};

/* The event of samples with that ID. */
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
 * struct perfdata_file - an open file
 * @fd: it, or another one of nothing but records,
 * @size: and its bytes.
 * @window: what was read last, for what comes next,
 * @window_at: from there in the file,
 * @window_size: and so many bytes.
 * @data: where the records are.
 * @pipe: it was written to a pipe: headers are records.
 * @unpacked: no record is compressed, any more.
 * @asked_ids: mappings have build ids, where their flag says so.
 * @records: those that are handed out,
 * @nr_records: how many,
 * @max_records: with room for so many.
 * @ids: the events of samples, ordered by ID,
 * @nr_ids: and their number.
 * @build_ids: of files, ordered by path when all is read,
 * @nr_build_ids: and their number.
 * @why: receives why the file cannot be opened.
 * @record: the body of the record at hand.
 */
struct perfdata_file {
	int fd;
	uint64_t size;
	uint64_t window_at;
	size_t window_size;
	uint8_t *window;
	struct section data;
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

/* A record's body that is taken apart from its beginning. */
struct body {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static inline const uint8_t *take(struct body *b, uint64_t n)
{
	const uint8_t *p = b->p;

	if (n > b->left) {
		b->bad = true;
		return NULL;
	}
	b->p += n;
	b->left -= n;
	return p;
}

/* What is not there is zero. */
static inline void take_value(struct body *b, void *ret, size_t size)
{
	const uint8_t *p = take(b, size);

	if (p)
		memcpy(ret, p, size);
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

/* A text that ends in the record. */
static inline const char *take_text(struct body *b)
{
	const char *text = (const char *)b->p;

	if (!b->left || !memchr(text, '\0', b->left)) {
		b->bad = true;
		return "";
	}
	return text;
}

/* data_bytes.c */

/* Says why the file cannot be opened. Returns @err. */
int perfdata_fail(struct perfdata_file *f, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

bool perfdata_read_at(const struct perfdata_file *f, uint64_t offset, void *buf, size_t len);

/* As perfdata_read_at(), for reading on from beginning to end. */
bool perfdata_read_next(struct perfdata_file *f, uint64_t offset, void *buf, size_t len);

/* data_header.c */

/* What stands before the records, and behind them. */
int perfdata_read_header(struct perfdata *pd);

/* In a pipe's file the headers are records. */
int perfdata_take_header(struct perfdata *pd, const struct perf_event_header *h, struct body b);

/* When all headers are read: which machine the file is of. */
void perfdata_set_arch(struct perfdata *pd);

/* When all headers are read. */
void perfdata_sort_build_ids(struct perfdata_file *f);

void perfdata_free_build_ids(struct perfdata_file *f);

/* The event with that ID, or NULL. */
const struct perfdata_event *perfdata_event_of(const struct perfdata *pd, uint64_t id);

/* data_sample.c */

/* The event of a sample: by the ID that stands at a place that all share. */
const struct perfdata_event *perfdata_sample_event(const struct perfdata *pd, struct body b);

/* Takes the fields of a sample of that event. Returns false if it makes no sense. */
bool perfdata_take_sample(const struct perfdata *pd, const struct perfdata_event *event,
			  struct body *b, struct perf_sample *s);

#endif
