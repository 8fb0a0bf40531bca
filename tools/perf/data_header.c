// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * data_header.c - reads what a perf.data file says of its events, of the machine, and of the files
 * that were mapped. See data_private.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/perf/data_private.h"
#include "tools/shstk.h"

#define MAGIC "PERFILE2"
#define MAX_IDS (1u << 20)
#define MAX_BUILD_IDS (1u << 16)
#define MAX_FEATURE (16u << 20) /* bytes of a header feature, at most */

/* Types of records that tools/perf itself adds. */
enum {
	USER_HEADER_ATTR = 64,
	USER_BUILD_ID = 67,
	USER_HEADER_FEATURE = 80,
};

/* Header features of tools/perf. */
enum {
	FEAT_BUILD_ID = 2,
	FEAT_RELEASE = 4,
	FEAT_ARCH = 6,
	FEAT_EVENT_DESC = 12,
	FEAT_BITS = 256,
};

/* From include/uapi/linux/perf_event.h, newer than Debian 12: a build id record tells its size. */
#define MISC_BUILD_ID_SIZE (1u << 15)

struct file_header {
	char magic[8];
	uint64_t size;
	uint64_t attr_size;
	struct perfdata_section attrs;
	struct perfdata_section data;
	struct perfdata_section types;
	uint64_t features[FEAT_BITS / 64];
};

static void name_event(struct perfdata_event *e, unsigned int number)
{
	static const char *const software[] = {
		"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches",
	};
	static const char *const hardware[] = {
		"cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"ref-cycles",
	};
	const char *name = NULL;

	if (e->type == PERF_TYPE_SOFTWARE && e->config < sizeof(software) / sizeof(software[0]))
		name = software[e->config];
	else if (e->type == PERF_TYPE_HARDWARE &&
		 e->config < sizeof(hardware) / sizeof(hardware[0]))
		name = hardware[e->config];
	if (name)
		snprintf(e->name, sizeof(e->name), "%s", name);
	else
		snprintf(e->name, sizeof(e->name), "event-%u", number);
}

static int add_event(struct perfdata *pd, const uint8_t *bytes, size_t size)
{
	const uint64_t stacks = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	struct perf_event_attr attr = { 0 };
	struct perfdata_event *e;

	if (size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	if (pd->nr_events == PERFDATA_MAX_EVENTS)
		return -E2BIG;
	memcpy(&attr, bytes, size < sizeof(attr) ? size : sizeof(attr));
	e = &pd->events[pd->nr_events];
	*e = (struct perfdata_event){
		.freq = attr.freq,
		.period = attr.sample_period,
		.has_stacks = (attr.sample_type & stacks) == stacks,
		.has_chains = attr.sample_type & PERF_SAMPLE_CALLCHAIN,
		.type = attr.type,
		.config = attr.config,
		.sample_type = attr.sample_type,
		.read_format = attr.read_format,
		.branch_type = attr.branch_sample_type,
		.max_chain = attr.sample_max_stack,
		.regs = attr.sample_regs_user,
		.id_all = attr.sample_id_all,
		.nanoseconds = attr.type == PERF_TYPE_SOFTWARE &&
			       attr.config <= PERF_COUNT_SW_TASK_CLOCK,
	};
	/* Without attr.build_id this flag of a mapping's record means something else. */
	if (attr.build_id)
		pd->private->asked_ids = true;
	name_event(e, pd->nr_events);
	pd->nr_events++;
	return 0;
}

/* Adds IDs of the event that was added last. Returns 0 or a negative errno. */
static int add_ids(struct perfdata *pd, const uint8_t *bytes, size_t nr)
{
	struct perfdata_file *f = pd->private;
	struct event_id *more;

	if (nr > MAX_IDS || f->nr_ids + nr > MAX_IDS)
		return -E2BIG;
	more = reallocarray(f->ids, f->nr_ids + nr + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->ids = more;
	for (size_t i = 0; i < nr; i++) {
		struct event_id *id = &f->ids[f->nr_ids++];

		memcpy(&id->id, bytes + 8 * i, 8);
		id->event = pd->nr_events - 1;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct event_id *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

const struct perfdata_event *perfdata_event_of(const struct perfdata *pd, uint64_t id)
{
	const struct perfdata_file *f = pd->private;
	const struct event_id key = { .id = id };
	const struct event_id *found;

	found = f->nr_ids ? bsearch(&key, f->ids, f->nr_ids, sizeof(key), by_id) : NULL;
	return found ? &pd->events[found->event] : NULL;
}

static int add_build_id(struct perfdata_file *f, const struct perf_event_header *h, struct body b)
{
	struct named_id *more, *n;
	const uint8_t *id;
	const char *path;

	take32(&b); /* process ID, in a guest */
	id = take(&b, 24);
	path = take_text(&b);
	if (b.bad || f->nr_build_ids == MAX_BUILD_IDS)
		return -EINVAL;
	if (!(f->nr_build_ids & (f->nr_build_ids - 1))) {
		more = reallocarray(f->build_ids, f->nr_build_ids ? 2 * f->nr_build_ids : 1,
				    sizeof(*more));
		if (!more)
			return -ENOMEM;
		f->build_ids = more;
	}
	n = &f->build_ids[f->nr_build_ids];
	n->path = strdup(path);
	if (!n->path)
		return -ENOMEM;
	n->id.size = 20;
	if (h->misc & MISC_BUILD_ID_SIZE)
		n->id.size = id[20] <= 20 ? id[20] : 0;
	memcpy(n->id.data, id, 20);
	f->nr_build_ids++;
	return 0;
}

void perfdata_free_build_ids(struct perfdata_file *f)
{
	for (size_t i = 0; i < f->nr_build_ids; i++)
		free(f->build_ids[i].path);
	free(f->build_ids);
	f->build_ids = NULL;
	f->nr_build_ids = 0;
}

static int take_attr(struct perfdata *pd, struct body b)
{
	struct perf_event_attr attr = { 0 };
	const uint8_t *bytes = b.p;
	int err;

	memcpy(&attr, b.p, b.left < PERF_ATTR_SIZE_VER0 ? b.left : PERF_ATTR_SIZE_VER0);
	if (!attr.size)
		attr.size = PERF_ATTR_SIZE_VER0;
	if (!take(&b, attr.size))
		return -EINVAL;
	err = add_event(pd, bytes, attr.size);
	if (!err)
		err = add_ids(pd, b.p, b.left / 8);
	if (!err && pd->private->nr_ids)
		qsort(pd->private->ids, pd->private->nr_ids, sizeof(*pd->private->ids), by_id);
	return err;
}

/* Takes a text that follows its length. What does not fit into @to, of @size bytes, is cut off. */
static int take_string(struct body b, char *to, size_t size)
{
	uint32_t len = take32(&b);
	const uint8_t *text = take(&b, len);

	if (b.bad)
		return -EINVAL;
	if (len > size - 1)
		len = size - 1;
	memcpy(to, text, len);
	to[len] = '\0';
	printable(to);
	return 0;
}

/*
 * Takes the names of events. The record has the number and size of attributes, and for each
 * attribute itself, the number of its IDs, a name and the IDs.
 */
static int take_names(struct perfdata *pd, struct body b)
{
	uint32_t nr = take32(&b), size = take32(&b);

	for (uint32_t i = 0; i < nr && i < pd->nr_events && !b.bad; i++) {
		uint32_t ids, len;
		const uint8_t *name;

		take(&b, size);
		ids = take32(&b);
		len = take32(&b);
		name = take(&b, len);
		take(&b, 8ull * ids);
		if (b.bad || !len || name[len - 1])
			break;
		snprintf(pd->events[i].name, sizeof(pd->events[i].name), "%s", (const char *)name);
		printable(pd->events[i].name);
	}
	return b.bad ? -EINVAL : 0;
}

/* Takes what the file says of the machine and of its events, except build ids. */
static int take_feature(struct perfdata *pd, uint64_t feature, struct body b)
{
	switch (feature) {
	case FEAT_ARCH:
		return take_string(b, pd->machine, sizeof(pd->machine));
	case FEAT_RELEASE:
		return take_string(b, pd->release, sizeof(pd->release));
	case FEAT_EVENT_DESC:
		return take_names(pd, b);
	default:
		return 0;
	}
}

int perfdata_take_header(struct perfdata *pd, const struct perf_event_header *h, struct body b)
{
	uint64_t feature;

	switch (h->type) {
	case USER_BUILD_ID:
		return add_build_id(pd->private, h, b);
	case USER_HEADER_ATTR:
		return take_attr(pd, b);
	case USER_HEADER_FEATURE:
		feature = take64(&b);
		return take_feature(pd, feature, b);
	default:
		return 0;
	}
}

static int by_path(const void *a, const void *b)
{
	const struct named_id *x = a, *y = b;

	return strcmp(x->path, y->path);
}

void perfdata_sort_build_ids(struct perfdata_file *f)
{
	if (f->nr_build_ids)
		qsort(f->build_ids, f->nr_build_ids, sizeof(*f->build_ids), by_path);
}

static int read_build_ids(struct perfdata *pd, struct perfdata_section s)
{
	struct perfdata_file *f = pd->private;
	struct perf_event_header h;
	int err;

	while (s.size >= sizeof(h)) {
		struct body b = { .p = (const uint8_t *)f->record };

		if (!perfdata_read_next(f, s.offset, &h, sizeof(h)) || h.size < sizeof(h) ||
		    h.size > s.size ||
		    !perfdata_read_next(f, s.offset + sizeof(h), f->record, h.size - sizeof(h)))
			return -EINVAL;
		b.left = h.size - sizeof(h);
		err = add_build_id(f, &h, b);
		if (err)
			return err;
		s.offset += h.size;
		s.size -= h.size;
	}
	return 0;
}

/* Reads a header feature of a file into memory and takes it. Returns 0 or a negative errno. */
static int read_feature(struct perfdata *pd, uint64_t feature, struct perfdata_section s)
{
	uint8_t *bytes = s.size <= MAX_FEATURE ? malloc(s.size + 1) : NULL;
	struct body b = { bytes, s.size, false };
	int err = -EINVAL;

	if (bytes && perfdata_read_at(pd->private, s.offset, bytes, s.size))
		err = take_feature(pd, feature, b);
	free(bytes);
	return err;
}

static bool is_read(uint64_t feature)
{
	return feature == FEAT_ARCH || feature == FEAT_RELEASE || feature == FEAT_EVENT_DESC;
}

static int read_features(struct perfdata *pd, const uint64_t *bits)
{
	struct perfdata_file *f = pd->private;
	uint64_t at = f->data.offset + f->data.size;
	struct perfdata_section s;
	int err = 0;

	for (unsigned int i = 0; i < FEAT_BITS && err != -ENOMEM; i++) {
		if (!(bits[i / 64] & 1ull << i % 64))
			continue;
		if (!perfdata_read_at(f, at, &s, sizeof(s)) || s.offset > f->size ||
		    s.size > f->size - s.offset) {
			pd->cut = true;
			return 0;
		}
		at += sizeof(s);
		err = 0;
		if (i == FEAT_BUILD_ID)
			err = read_build_ids(pd, s);
		else if (is_read(i))
			err = read_feature(pd, i, s);
		pd->damaged += !!err;
	}
	return err == -ENOMEM ? err : 0;
}

void perfdata_set_arch(struct perfdata *pd)
{
	if (!strcmp(pd->machine, "x86_64"))
		pd->arch = SHSTK_ARCH_X86;
	else if (!strcmp(pd->machine, "aarch64"))
		pd->arch = SHSTK_ARCH_ARM64;
	else if (!*pd->machine) /* cut off, or an old pipe: assume this machine's */
#ifdef __aarch64__
		pd->arch = SHSTK_ARCH_ARM64;
#else
		pd->arch = SHSTK_ARCH_X86;
#endif
}

/*
 * Reads the attributes of all events, each of which is followed by the place of its IDs. Returns 0
 * or a negative errno.
 */
static int read_attrs(struct perfdata *pd, const struct file_header *h)
{
	struct perfdata_file *f = pd->private;
	struct perfdata_section ids;
	uint8_t bytes[4096];
	uint64_t nr;
	int err = 0;

	if (h->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(ids) || h->attr_size > sizeof(bytes))
		return perfdata_fail(f, -EINVAL, "%s: attributes of %llu bytes make no sense",
				     pd->path, (unsigned long long)h->attr_size);
	nr = h->attrs.size / h->attr_size;
	if (nr > PERFDATA_MAX_EVENTS)
		return perfdata_fail(f, -E2BIG, "%s has more than %d events", pd->path,
				     PERFDATA_MAX_EVENTS);
	for (uint64_t i = 0; i < nr && !err; i++) {
		uint8_t *list;

		if (!perfdata_read_at(f, h->attrs.offset + i * h->attr_size, bytes, h->attr_size))
			return perfdata_fail(f, -EINVAL, "%s ends within its headers", pd->path);
		err = add_event(pd, bytes, h->attr_size - sizeof(ids));
		memcpy(&ids, bytes + h->attr_size - sizeof(ids), sizeof(ids));
		if (err || !ids.size || ids.size / 8 > MAX_IDS)
			continue;
		list = malloc(ids.size);
		if (!list)
			return -ENOMEM;
		if (perfdata_read_at(f, ids.offset, list, ids.size))
			err = add_ids(pd, list, ids.size / 8);
		free(list);
	}
	if (f->nr_ids)
		qsort(f->ids, f->nr_ids, sizeof(*f->ids), by_id);
	return err == -E2BIG ? perfdata_fail(f, err, "%s has too many event IDs", pd->path) : err;
}

int perfdata_read_header(struct perfdata *pd)
{
	struct perfdata_file *f = pd->private;
	struct file_header h;
	int err;

	memset(&h, 0, sizeof(h));
	if (!perfdata_read_at(f, 0, &h, 16))
		return perfdata_fail(f, -EINVAL, "%s is not a perf.data file", pd->path);
	if (!memcmp(h.magic, "2ELIFREP", 8))
		return perfdata_fail(
			f, -EOPNOTSUPP,
			"%s was recorded on a big-endian machine, which is not supported",
			pd->path);
	if (memcmp(h.magic, MAGIC, 8))
		return perfdata_fail(f, -EINVAL, "%s is not a perf.data file", pd->path);
	f->pipe = h.size == 16;
	f->data = (struct perfdata_section){ 16, f->size - 16 };
	if (f->pipe)
		return 0;
	if (h.size != sizeof(h) || !perfdata_read_at(f, 0, &h, sizeof(h)))
		return perfdata_fail(f, -EINVAL,
				     "%s ends within its headers, or is of another format",
				     pd->path);
	if (h.data.offset > f->size)
		return perfdata_fail(f, -EINVAL, "%s is cut off before its records", pd->path);
	f->data = h.data;
	/* The size is 0 while the file is being written. */
	if (!h.data.size || h.data.size > f->size - h.data.offset) {
		f->data.size = f->size - h.data.offset;
		pd->cut = true;
	}
	err = read_attrs(pd, &h);
	if (!err && !pd->cut)
		err = read_features(pd, h.features);
	return err;
}

const struct build_id *perfdata_build_id(const struct perfdata *pd, const char *path)
{
	static const struct build_id none;
	const struct perfdata_file *f = pd->private;
	const struct named_id key = { .path = (char *)path };
	const struct named_id *found;

	found = f->nr_build_ids ?
			bsearch(&key, f->build_ids, f->nr_build_ids, sizeof(key), by_path) :
			NULL;
	return found ? &found->id : &none;
}
