// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data files. See data.h; the layout is described in the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt, that of the records in
 * include/uapi/linux/perf_event.h.
 *
 * Two passes: the first reads all record headers, with their times; then the
 * records are read once more in the order of time, each into one buffer. If some
 * are compressed, all are copied to a temporary file first, which is read instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/perf/data.h"
#include "tools/perf/regs.h"
#include "tools/perf/unpack.h"
#include "tools/shstk.h"

#define MAGIC "PERFILE2"
#define MAX_IDS (1u << 20)
#define MAX_BUILD_IDS (1u << 16)
#define WINDOW (1u << 18) /* bytes read at a time */

/* tools/perf: records that the tool itself adds. */
enum {
	USER_HEADER_ATTR = 64,
	USER_BUILD_ID = 67,
	USER_HEADER_FEATURE = 80,
};

/* tools/perf: header features. */
enum {
	FEAT_TRACING_DATA = 1,
	FEAT_BUILD_ID = 2,
	FEAT_RELEASE = 4,
	FEAT_ARCH = 6,
	FEAT_EVENT_DESC = 12,
	FEAT_BITS = 256,
};

/* include/uapi/linux/perf_event.h; some are newer than Debian 12's. */
#define MISC_BUILD_ID_SIZE (1u << 15) /* of a build id record */
#define FORMAT_LOST_ (1u << 4)
#define BRANCH_HW_INDEX_ (1u << 17)
#define BRANCH_COUNTERS_ (1u << 19)

struct header { /* struct perf_event_header */
	uint32_t type;
	uint16_t misc;
	uint16_t size;
};

struct section {
	uint64_t offset;
	uint64_t size;
};

struct file_header {
	char magic[8];
	uint64_t size;
	uint64_t attr_size;
	struct section attrs;
	struct section data;
	struct section types;
	uint64_t features[FEAT_BITS / 64];
};

struct record {
	uint64_t time;
	uint64_t offset;
};

struct event_id {
	uint64_t id;
	unsigned int event;
};

struct named_id {
	char *path;
	struct build_id id;
};

struct perfdata_file {
	int fd;
	uint64_t size;
	uint64_t window_at;
	size_t window_size;
	uint8_t *window;
	struct section data;
	bool pipe;
	bool unpacked;
	bool asked_ids; /* mappings have build ids, where their flag says so */
	struct record *records;
	size_t nr_records;
	size_t max_records;
	struct event_id *ids;
	size_t nr_ids;
	struct named_id *build_ids;
	size_t nr_build_ids;
	char *err;
	size_t err_size;
	uint64_t record[65536 / 8 + 1];
};

static int fail(struct perfdata_file *f, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct perfdata_file *f, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->err, f->err_size, fmt, ap);
	va_end(ap);
	return err;
}

/* Bytes of the file ---------------------------------------------------- */

static bool read_at(const struct perfdata_file *f, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	if (offset > f->size || len > f->size - offset)
		return false;
	while (len) {
		ssize_t n = pread(f->fd, to, len, offset);

		if (n <= 0)
			return false;
		to += n;
		offset += n;
		len -= n;
	}
	return true;
}

/* As read_at(), for reading on from beginning to end. */
static bool read_next(struct perfdata_file *f, uint64_t offset, void *buf, size_t len)
{
	if (offset < f->window_at || offset + len > f->window_at + f->window_size) {
		size_t want = f->size - offset < WINDOW ? f->size - offset : WINDOW;

		if (offset > f->size || len > want || !read_at(f, offset, f->window, want))
			return false;
		f->window_at = offset;
		f->window_size = want;
	}
	memcpy(buf, f->window + (offset - f->window_at), len);
	return true;
}

/* A record's body that is taken apart from its beginning. */
struct body {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static const uint8_t *take(struct body *b, uint64_t n)
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
static void take_value(struct body *b, void *ret, size_t size)
{
	const uint8_t *p = take(b, size);

	if (p)
		memcpy(ret, p, size);
	else
		memset(ret, 0, size);
}

static uint64_t take64(struct body *b)
{
	uint64_t v;

	take_value(b, &v, sizeof(v));
	return v;
}

static uint32_t take32(struct body *b)
{
	uint32_t v;

	take_value(b, &v, sizeof(v));
	return v;
}

/* A text that ends in the record. */
static const char *take_text(struct body *b)
{
	const char *text = (const char *)b->p;

	if (!b->left || !memchr(text, '\0', b->left)) {
		b->bad = true;
		return "";
	}
	return text;
}

/* Events ---------------------------------------------------------------- */

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
	/* Without that the flag is another recording's, of the same time. */
	if (attr.build_id)
		pd->private->asked_ids = true;
	name_event(e, pd->nr_events);
	pd->nr_events++;
	return 0;
}

/* IDs of the event that was added last. */
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

static const struct perfdata_event *event_of(const struct perfdata *pd, uint64_t id)
{
	const struct perfdata_file *f = pd->private;
	const struct event_id key = { .id = id };
	const struct event_id *found;

	found = f->nr_ids ? bsearch(&key, f->ids, f->nr_ids, sizeof(key), by_id) : NULL;
	return found ? &pd->events[found->event] : NULL;
}

/* Samples --------------------------------------------------------------- */

static void take_regs(const struct perfdata *pd, struct body *b, struct perfdata_sample *s)
{
	uint64_t mask = s->event->regs;

	s->abi = take64(b);
	s->regs.size = sizeof(s->regs);
	if (!s->abi)
		return;
	for (unsigned int i = 0; i < PERF_MAX_REGS; i++)
		if (mask & 1ull << i)
			perf_regs_set(pd->arch, i, take64(b), &s->regs);
}

/* Entries in the user part follow a mark of their own, up to the next one. */
static void take_chain(struct body *b, struct perfdata_sample *s)
{
	uint64_t nr = take64(b), i;
	const uint64_t *ips = (const void *)take(b, nr > 65536 ? UINT64_MAX : 8 * nr);

	if (!ips)
		return;
	for (i = 0; i < nr && ips[i] != PERF_CONTEXT_USER; i++)
		;
	if (i == nr)
		return;
	s->chain = ips + i + 1;
	while (++i < nr && ips[i] < PERF_CONTEXT_MAX)
		s->nr_chain++;
}

static void skip_read(struct body *b, uint64_t format)
{
	unsigned int each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & FORMAT_LOST_);
	uint64_t nr = 1;

	if (format & PERF_FORMAT_GROUP)
		nr = take64(b);
	take(b, 8 * (!!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING)));
	take(b, nr > 65536 ? UINT64_MAX : nr * each * 8);
}

static void skip_branches(struct body *b, uint64_t type)
{
	uint64_t nr = take64(b);

	if (type & BRANCH_HW_INDEX_)
		take64(b);
	take(b, nr > 65536 ? UINT64_MAX : nr * 24);
	if (type & BRANCH_COUNTERS_)
		take(b, nr * 8);
}

static bool take_sample(const struct perfdata *pd, struct body *b, struct perfdata_sample *s)
{
	const struct perfdata_event *e = s->event;
	uint64_t type = e->sample_type, n;

	s->period = e->freq || !e->period ? 1 : e->period;
	if (type & PERF_SAMPLE_IDENTIFIER)
		take64(b);
	if (type & PERF_SAMPLE_IP)
		take64(b);
	if (type & PERF_SAMPLE_TID) {
		s->pid = take32(b);
		s->tid = take32(b);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = take64(b);
	if (type & PERF_SAMPLE_ADDR)
		take64(b);
	if (type & PERF_SAMPLE_ID)
		take64(b);
	if (type & PERF_SAMPLE_STREAM_ID)
		take64(b);
	if (type & PERF_SAMPLE_CPU)
		take64(b);
	if (type & PERF_SAMPLE_PERIOD)
		s->period = take64(b);
	if (type & PERF_SAMPLE_READ)
		skip_read(b, e->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		take_chain(b, s);
	if (type & PERF_SAMPLE_RAW)
		take(b, take32(b));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(b, e->branch_type);
	if (type & PERF_SAMPLE_REGS_USER)
		take_regs(pd, b, s);
	if (type & PERF_SAMPLE_STACK_USER) {
		n = take64(b);
		if (n) {
			uint64_t used;

			s->stack = take(b, n);
			used = take64(b);
			s->stack_size = used < n ? used : n;
		}
	}
	if (b->bad)
		s->stack_size = 0;
	return !b->bad;
}

/* The event of a sample: by the ID that stands at a place that all share. */
static const struct perfdata_event *sample_event(const struct perfdata *pd, struct body b)
{
	uint64_t type = pd->events[0].sample_type;

	if (pd->nr_events == 1)
		return &pd->events[0];
	if (type & PERF_SAMPLE_IDENTIFIER)
		return event_of(pd, take64(&b));
	if (!(type & PERF_SAMPLE_ID))
		return &pd->events[0];
	take(&b, 8 * (!!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) +
		      !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR)));
	return event_of(pd, take64(&b));
}

/* Order of time --------------------------------------------------------- */

static bool wanted(const struct header *h)
{
	switch (h->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_SAMPLE:
		return true;
	default:
		return false;
	}
}

/*
 * The time of a record: of samples by their layout, of others in the trailer
 * that sample_id_all gives them (the same for all events of a file).
 */
static bool record_time(const struct perfdata *pd, const struct header *h, struct body b,
			uint64_t *ret)
{
	const uint64_t in_trailer = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				    PERF_SAMPLE_IDENTIFIER;
	const struct perfdata_event *e = &pd->events[0];
	uint64_t type;

	if (h->type == PERF_RECORD_SAMPLE)
		e = sample_event(pd, b);
	if (!e)
		return false;
	type = e->sample_type;
	if (!(type & PERF_SAMPLE_TIME))
		return true;
	if (h->type == PERF_RECORD_SAMPLE) {
		take(&b, 8 * (!!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) +
			      !!(type & PERF_SAMPLE_TID)));
	} else {
		size_t size = 8 * __builtin_popcountll(type & in_trailer);

		if (!e->id_all || b.left < size)
			return true;
		take(&b, b.left - size + 8 * !!(type & PERF_SAMPLE_TID));
	}
	*ret = take64(&b);
	return !b.bad;
}

static int add_record(struct perfdata_file *f, uint64_t time, uint64_t offset)
{
	if (f->nr_records == f->max_records) {
		size_t max = f->max_records ? 2 * f->max_records : 1024;
		struct record *more = reallocarray(f->records, max, sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->records = more;
		f->max_records = max;
	}
	f->records[f->nr_records++] = (struct record){ time, offset };
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int add_build_id(struct perfdata_file *f, const struct header *h, struct body b);

/* In a pipe's file the headers are records. */
static int take_header(struct perfdata *pd, const struct header *h, struct body b)
{
	struct perf_event_attr attr = { 0 };
	const uint8_t *bytes = b.p;
	int err;

	if (h->type == USER_BUILD_ID)
		return add_build_id(pd->private, h, b);
	if (h->type != USER_HEADER_ATTR)
		return 0;
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

static void free_build_ids(struct perfdata_file *f)
{
	for (size_t i = 0; i < f->nr_build_ids; i++)
		free(f->build_ids[i].path);
	free(f->build_ids);
	f->build_ids = NULL;
	f->nr_build_ids = 0;
}

/* From here on the file is another one, of nothing but records. */
static int unpack(struct perfdata *pd)
{
	struct perfdata_file *f = pd->private;
	struct perf_unpacked u;
	int err = perf_unpack(f->fd, f->data.offset, f->data.offset + f->data.size, &u);

	if (err == -E2BIG)
		return fail(f, err, "%s unpacks to more than is believable", pd->path);
	if (err)
		return fail(f, err, "cannot unpack %s to $TMPDIR or /var/tmp: %s", pd->path,
			    strerror(-err));
	close(f->fd);
	f->fd = u.fd;
	f->size = u.size;
	f->data = (struct section){ 0, u.size };
	f->window_size = 0;
	f->unpacked = true;
	/* All that was found so far is found again. */
	f->nr_records = 0;
	pd->damaged = 0;
	pd->cut |= u.damaged;
	if (f->pipe) {
		pd->nr_events = 0;
		f->nr_ids = 0;
		free_build_ids(f);
	}
	return 0;
}

/* The headers and times of all records. */
static int find_records(struct perfdata *pd)
{
	struct perfdata_file *f = pd->private;
	uint64_t at = f->data.offset, end = at + f->data.size, last = 0;
	struct header h;
	int err = 0;

	for (; end - at >= sizeof(h);) {
		struct body b = { .p = (const uint8_t *)f->record };
		uint64_t more;

		if (!read_next(f, at, &h, sizeof(h)))
			return -EIO;
		if (h.size < sizeof(h)) {
			pd->damaged++;
			return 0; /* where the next one is, is not known */
		}
		if (h.size > end - at) {
			pd->cut = true;
			return 0;
		}
		if (!read_next(f, at + sizeof(h), f->record, h.size - sizeof(h)))
			return -EIO;
		b.left = h.size - sizeof(h);
		if (perf_compressed(h.type) && !f->unpacked)
			return -EAGAIN;
		if (f->pipe)
			err = take_header(pd, &h, b);
		if (err == -ENOMEM)
			return err;
		pd->damaged += !!err;
		err = 0;
		if (wanted(&h) && pd->nr_events) {
			uint64_t time = last;

			if (!record_time(pd, &h, b, &time))
				pd->damaged++;
			else
				err = add_record(f, time, at);
			if (err)
				return err;
			last = time;
		}
		more = perf_payload(h.type, b.p, b.left);
		at += h.size;
		if (more > end - at) {
			pd->cut = true;
			return 0;
		}
		at += more;
	}
	pd->cut |= at != end;
	return 0;
}

/* Header features ------------------------------------------------------- */

static int add_build_id(struct perfdata_file *f, const struct header *h, struct body b)
{
	struct named_id *more, *n;
	const uint8_t *id;
	const char *path;

	take32(&b); /* process ID, of a guest */
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

static int by_path(const void *a, const void *b)
{
	const struct named_id *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int read_build_ids(struct perfdata *pd, struct section s)
{
	struct perfdata_file *f = pd->private;
	struct header h;
	int err;

	while (s.size >= sizeof(h)) {
		struct body b = { .p = (const uint8_t *)f->record };

		if (!read_next(f, s.offset, &h, sizeof(h)) || h.size < sizeof(h) ||
		    h.size > s.size ||
		    !read_next(f, s.offset + sizeof(h), f->record, h.size - sizeof(h)))
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

/* Into @to, of @size bytes, which are 0. */
static int read_string(struct perfdata *pd, struct section s, char *to, size_t size)
{
	uint32_t len;

	if (s.size < sizeof(len) || !read_at(pd->private, s.offset, &len, sizeof(len)))
		return -EINVAL;
	if (len > s.size - sizeof(len))
		return -EINVAL;
	if (len > size - 1)
		len = size - 1;
	if (!read_at(pd->private, s.offset + sizeof(len), to, len))
		return -EINVAL;
	printable(to);
	return 0;
}

/* Number and size of attributes; of each: itself, number of IDs, name, IDs. */
static int read_names(struct perfdata *pd, struct section s)
{
	uint8_t *bytes = s.size <= 16 << 20 ? malloc(s.size) : NULL;
	struct body b = { bytes, s.size, false };
	uint32_t nr, size;

	if (!bytes || !read_at(pd->private, s.offset, bytes, s.size)) {
		free(bytes);
		return -EINVAL;
	}
	nr = take32(&b);
	size = take32(&b);
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
	free(bytes);
	return b.bad ? -EINVAL : 0;
}

static int read_features(struct perfdata *pd, const uint64_t *bits)
{
	struct perfdata_file *f = pd->private;
	uint64_t at = f->data.offset + f->data.size;
	struct section s;
	int err = 0;

	for (unsigned int i = 0; i < FEAT_BITS && err != -ENOMEM; i++) {
		if (!(bits[i / 64] & 1ull << i % 64))
			continue;
		if (!read_at(f, at, &s, sizeof(s)) || s.offset > f->size ||
		    s.size > f->size - s.offset) {
			pd->cut = true;
			return 0;
		}
		at += sizeof(s);
		err = 0;
		if (i == FEAT_BUILD_ID)
			err = read_build_ids(pd, s);
		else if (i == FEAT_ARCH)
			err = read_string(pd, s, pd->machine, sizeof(pd->machine));
		else if (i == FEAT_RELEASE)
			err = read_string(pd, s, pd->release, sizeof(pd->release));
		else if (i == FEAT_EVENT_DESC)
			err = read_names(pd, s);
		pd->damaged += !!err;
	}
	return err == -ENOMEM ? err : 0;
}

static void set_arch(struct perfdata *pd)
{
	if (!strcmp(pd->machine, "x86_64"))
		pd->arch = SHSTK_ARCH_X86;
	else if (!strcmp(pd->machine, "aarch64"))
		pd->arch = SHSTK_ARCH_ARM64;
	else if (!*pd->machine) /* cut off, or a pipe's: this one */
#ifdef __aarch64__
		pd->arch = SHSTK_ARCH_ARM64;
#else
		pd->arch = SHSTK_ARCH_X86;
#endif
}

/* Opening --------------------------------------------------------------- */

/* Attributes, each followed by where its IDs are. */
static int read_attrs(struct perfdata *pd, const struct file_header *h)
{
	struct perfdata_file *f = pd->private;
	struct section ids;
	uint8_t bytes[4096];
	uint64_t nr;
	int err = 0;

	if (h->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(ids) || h->attr_size > sizeof(bytes))
		return fail(f, -EINVAL, "%s: attributes of %llu bytes make no sense", pd->path,
			    (unsigned long long)h->attr_size);
	nr = h->attrs.size / h->attr_size;
	if (nr > PERFDATA_MAX_EVENTS)
		return fail(f, -E2BIG, "%s has more than %d events", pd->path, PERFDATA_MAX_EVENTS);
	for (uint64_t i = 0; i < nr && !err; i++) {
		uint8_t *list;

		if (!read_at(f, h->attrs.offset + i * h->attr_size, bytes, h->attr_size))
			return fail(f, -EINVAL, "%s ends within its headers", pd->path);
		err = add_event(pd, bytes, h->attr_size - sizeof(ids));
		memcpy(&ids, bytes + h->attr_size - sizeof(ids), sizeof(ids));
		if (err || !ids.size || ids.size / 8 > MAX_IDS)
			continue;
		list = malloc(ids.size);
		if (!list)
			return -ENOMEM;
		if (read_at(f, ids.offset, list, ids.size))
			err = add_ids(pd, list, ids.size / 8);
		free(list);
	}
	if (f->nr_ids)
		qsort(f->ids, f->nr_ids, sizeof(*f->ids), by_id);
	return err == -E2BIG ? fail(f, err, "%s has too many event IDs", pd->path) : err;
}

static int read_file_header(struct perfdata *pd)
{
	struct perfdata_file *f = pd->private;
	struct file_header h;
	int err;

	memset(&h, 0, sizeof(h));
	if (!read_at(f, 0, &h, 16))
		return fail(f, -EINVAL, "%s is no perf.data file", pd->path);
	if (!memcmp(h.magic, "2ELIFREP", 8))
		return fail(f, -EOPNOTSUPP,
			    "%s was recorded on a big-endian machine, which is not supported",
			    pd->path);
	if (memcmp(h.magic, MAGIC, 8))
		return fail(f, -EINVAL, "%s is no perf.data file", pd->path);
	f->pipe = h.size == 16;
	f->data = (struct section){ 16, f->size - 16 };
	if (f->pipe) {
		set_arch(pd);
		return 0;
	}
	if (h.size != sizeof(h) || !read_at(f, 0, &h, sizeof(h)))
		return fail(f, -EINVAL, "%s ends within its headers, or is of another format",
			    pd->path);
	if (h.data.offset > f->size)
		return fail(f, -EINVAL, "%s is cut off before its records", pd->path);
	f->data = h.data;
	/* Zero while it is being written. */
	if (!h.data.size || h.data.size > f->size - h.data.offset) {
		f->data.size = f->size - h.data.offset;
		pd->cut = true;
	}
	err = read_attrs(pd, &h);
	if (!err && !pd->cut)
		err = read_features(pd, h.features);
	set_arch(pd);
	return err;
}

int perfdata_open_fd(const char *path, int fd, struct perfdata **ret, char *err, size_t err_size)
{
	struct perfdata *pd = calloc(1, sizeof(*pd));
	struct perfdata_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int e = -ENOMEM;

	snprintf(err, err_size, "%s: out of memory", path);
	if (!pd || !f) {
		free(pd);
		free(f);
		close(fd);
		return -ENOMEM;
	}
	pd->path = path;
	pd->private = f;
	f->fd = fd;
	f->err = err;
	f->err_size = err_size;
	f->window = malloc(WINDOW);
	if (!f->window)
		goto out;
	e = -EINVAL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		fail(f, e,
		     S_ISDIR(st.st_mode) ?
			     "%s is a folder (perf record --threads), which is not supported" :
			     "%s is no regular file",
		     path);
		goto out;
	}
	f->size = st.st_size;
	e = read_file_header(pd);
	if (!e)
		e = find_records(pd);
	if (e == -EAGAIN) {
		e = unpack(pd);
		if (!e)
			e = find_records(pd);
	}
	if (e == -EIO)
		fail(f, e, "cannot read %s: %s", path, strerror(EIO));
	if (!e && !pd->nr_events)
		e = fail(f, -EINVAL, "%s has no events", path);
	if (!e && f->nr_build_ids)
		qsort(f->build_ids, f->nr_build_ids, sizeof(*f->build_ids), by_path);
	if (!e && f->nr_records)
		qsort(f->records, f->nr_records, sizeof(*f->records), by_time);
out:
	if (e)
		perfdata_close(pd);
	else
		*ret = pd;
	return e;
}

int perfdata_open(const char *path, struct perfdata **ret, char *err, size_t err_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int e = errno;

	if (fd >= 0)
		return perfdata_open_fd(path, fd, ret, err, err_size);
	snprintf(err, err_size, "cannot open %s: %s", path, strerror(e));
	return -e;
}

void perfdata_close(struct perfdata *pd)
{
	struct perfdata_file *f;

	if (!pd)
		return;
	f = pd->private;
	free_build_ids(f);
	free(f->ids);
	free(f->records);
	free(f->window);
	close(f->fd);
	free(f);
	free(pd);
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

/* Handing out ----------------------------------------------------------- */

static bool take_mmap(const struct perfdata *pd, const struct header *h, struct body b,
		      struct perfdata_mmap *m, bool *exec)
{
	const uint8_t *id;
	uint64_t len;

	*m = (struct perfdata_mmap){ .pid = take32(&b) };
	take32(&b);
	m->start = take64(&b);
	len = take64(&b);
	m->offset = take64(&b);
	*exec = !(h->misc & PERF_RECORD_MISC_MMAP_DATA);
	if (h->type == PERF_RECORD_MMAP2) {
		id = take(&b, 24);
		*exec = take32(&b) & 4; /* PROT_EXEC */
		take32(&b);
		if (id && pd->private->asked_ids && h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
		    id[0] <= 20) {
			m->id.size = id[0];
			memcpy(m->id.data, id + 4, id[0]);
		}
	}
	m->path = take_text(&b);
	m->end = m->start + len;
	if (b.bad || m->end <= m->start)
		return false;
	if (!m->id.size)
		m->id = *perfdata_build_id(pd, m->path);
	return true;
}

static int give_mmap(struct perfdata *pd, const struct header *h, struct body b,
		     const struct perfdata_handler *handler, void *arg)
{
	struct perfdata_mmap m;
	bool exec;

	if (!take_mmap(pd, h, b, &m, &exec)) {
		pd->damaged++;
		return 0;
	}
	/* The kernel's own, or data. */
	if (m.pid < 0 || !exec)
		return 0;
	return handler->mmap(arg, &m);
}

static int give_sample(struct perfdata *pd, struct body b, const struct perfdata_handler *handler,
		       void *arg)
{
	struct perfdata_sample s = { .event = sample_event(pd, b) };

	if (!s.event || !take_sample(pd, &b, &s)) {
		pd->damaged++;
		return 0;
	}
	return handler->sample(arg, &s);
}

static int give(struct perfdata *pd, const struct header *h, struct body b,
		const struct perfdata_handler *handler, void *arg)
{
	uint32_t pid, other, tid;
	const char *text;

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		return give_sample(pd, b, handler, arg);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return give_mmap(pd, h, b, handler, arg);
	case PERF_RECORD_COMM:
		pid = take32(&b);
		other = take32(&b);
		text = take_text(&b);
		if (b.bad)
			break;
		return handler->comm(arg, pid, other, text, h->misc & PERF_RECORD_MISC_COMM_EXEC);
	case PERF_RECORD_FORK:
		pid = take32(&b);
		other = take32(&b);
		tid = take32(&b);
		return b.left < 4 ? 0 : handler->fork(arg, pid, tid, other, take32(&b));
	case PERF_RECORD_LOST:
		take64(&b);
		/* fall through */
	default:
		handler->lost(arg, take64(&b));
		return 0;
	}
	pd->damaged++;
	return 0;
}

int perfdata_read(struct perfdata *pd, const struct perfdata_handler *handler, void *arg)
{
	struct perfdata_file *f = pd->private;
	struct header h;

	for (size_t i = 0; i < f->nr_records; i++) {
		uint64_t at = f->records[i].offset;
		struct body b = { .p = (const uint8_t *)f->record };
		int err;

		if (!read_at(f, at, &h, sizeof(h)) || h.size < sizeof(h) ||
		    !read_at(f, at + sizeof(h), f->record, h.size - sizeof(h)))
			return -EIO;
		b.left = h.size - sizeof(h);
		err = give(pd, &h, b, handler, arg);
		if (err)
			return err;
	}
	return 0;
}
