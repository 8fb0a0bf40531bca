/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata.h - reads the samples of a perf.data file
 *
 * It can read only what stock_test.c asks perf to write: attributes with their ids, then records;
 * no compression, no pipe format.
 */
#ifndef PERFDATA_H
#define PERFDATA_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERFDATA_MAGIC 0x32454c4946524550ULL /* "PERFILE2" */
#define PERFDATA_EVENTS 8

/* The fields before the callchain that are one word each. */
#define PERFDATA_BEFORE_CHAIN                                                                      \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_header {
	uint64_t magic, size, attr_size;
	struct perfdata_section attrs, data, event_types;
};

struct perfdata {
	const char *map;
	uint64_t size;
	const struct perfdata_header *head;
	unsigned int events;
};

struct perfdata_sample {
	unsigned int event; /* index of its attribute */
	bool in_kernel; /* the sample hit the kernel */
	pid_t tid;
	uint64_t time, addr;
	unsigned int nr; /* user entries, innermost first */
	const uint64_t *ip;
};

typedef void (*perfdata_fn)(void *arg, const struct perfdata_sample *sample);

static inline bool perfdata_inside(const struct perfdata *p, struct perfdata_section s)
{
	return s.offset <= p->size && s.size <= p->size - s.offset;
}

static inline const struct perf_event_attr *perfdata_attr(const struct perfdata *p,
							  unsigned int event)
{
	return (const void *)(p->map + p->head->attrs.offset + event * p->head->attr_size);
}

/* Opens a file. Returns 0 or a negative errno; -EINVAL for a file that it does not understand. */
static inline int perfdata_open(struct perfdata *p, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	p->size = st.st_size;
	p->map = mmap(NULL, p->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p->map == MAP_FAILED)
		return -errno;
	p->head = (const void *)p->map;
	if (p->size < sizeof(*p->head) || p->head->magic != PERFDATA_MAGIC ||
	    p->head->attr_size < PERF_ATTR_SIZE_VER0 + 16 || !perfdata_inside(p, p->head->attrs) ||
	    !perfdata_inside(p, p->head->data))
		return -EINVAL;
	p->events = p->head->attrs.size / p->head->attr_size;
	return p->events && p->events <= PERFDATA_EVENTS ? 0 : -EINVAL;
}

static inline void perfdata_close(struct perfdata *p)
{
	munmap((void *)p->map, p->size);
}

/* Returns the event that an id belongs to, or 0 if there is only one event. */
static inline unsigned int perfdata_event(const struct perfdata *p, uint64_t id)
{
	for (unsigned int i = 0; i < p->events; i++) {
		const char *attr = (const char *)perfdata_attr(p, i);
		const struct perfdata_section *ids =
			(const void *)(attr + p->head->attr_size - sizeof(*ids));
		const uint64_t *at = (const void *)(p->map + ids->offset);

		if (!perfdata_inside(p, *ids))
			continue;
		for (uint64_t j = 0; j < ids->size / 8; j++)
			if (at[j] == id)
				return i;
	}
	return 0;
}

/* Reads the fields of a sample, in the order of the kernel's perf_output_sample(). */
static inline bool perfdata_parse(const struct perfdata *p, const struct perf_event_header *rec,
				  struct perfdata_sample *s)
{
	uint64_t type = perfdata_attr(p, 0)->sample_type, nr, skip = 0;
	const uint64_t *at = (const void *)(rec + 1);
	const uint64_t *end = (const void *)((const char *)rec + rec->size);

	memset(s, 0, sizeof(*s));
	if (at < end && (type & PERF_SAMPLE_IDENTIFIER))
		s->event = perfdata_event(p, *at++);
	type = perfdata_attr(p, s->event)->sample_type;
	if (!(type & PERF_SAMPLE_CALLCHAIN) || (type & PERF_SAMPLE_READ) ||
	    end - at < __builtin_popcountll(type & PERFDATA_BEFORE_CHAIN) + 1)
		return false;
	if (type & PERF_SAMPLE_IP)
		at++;
	if (type & PERF_SAMPLE_TID)
		s->tid = *at++ >> 32;
	if (type & PERF_SAMPLE_TIME)
		s->time = *at++;
	if (type & PERF_SAMPLE_ADDR)
		s->addr = *at++;
	/* All events have the same fields if the id is here. */
	if (type & PERF_SAMPLE_ID)
		s->event = perfdata_event(p, *at++);
	if (type & PERF_SAMPLE_STREAM_ID)
		at++;
	if (type & PERF_SAMPLE_CPU)
		at++;
	if (type & PERF_SAMPLE_PERIOD)
		at++;
	nr = *at++;
	if (nr > (uint64_t)(end - at))
		return false;
	s->in_kernel = (rec->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	while (skip < nr && at[skip] != PERF_CONTEXT_USER)
		skip++;
	if (skip < nr) {
		s->ip = at + skip + 1;
		s->nr = nr - skip - 1;
	}
	return true;
}

/* Reads all samples. Returns their number, or -EINVAL. */
static inline int perfdata_read(const struct perfdata *p, perfdata_fn fn, void *arg)
{
	const char *at = p->map + p->head->data.offset;
	const char *end = at + p->head->data.size;
	struct perfdata_sample sample;
	int found = 0;

	while (end - at >= (long)sizeof(struct perf_event_header)) {
		const struct perf_event_header *rec = (const void *)at;

		if (rec->size < sizeof(*rec) || rec->size > end - at)
			return -EINVAL;
		if (rec->type == PERF_RECORD_SAMPLE) {
			if (!perfdata_parse(p, rec, &sample))
				return -EINVAL;
			found++;
			fn(arg, &sample);
		}
		at += rec->size;
	}
	return found;
}

#endif
