// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * data.c - reads perf.data files. See data.h. Their layout is described in the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt, that of the records in
 * include/uapi/linux/perf_event.h.
 *
 * A file is read in two passes. The first one reads the headers of all records, with their times.
 * Then the records are read once more in the order of time, one at a time, into a buffer. If some
 * are compressed, all records are unpacked to a temporary file first, which is read instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tools/perf/data_private.h"
#include "tools/perf/unpack_records.h"
#include "tools/whole_io.h"

static bool wanted(const struct perf_event_header *h)
{
	switch (h->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_SAMPLE:
		return true;
	default:
		return false;
	}
}

/*
 * Finds the time of a record. Samples have it at a place that depends on their event; other records
 * have it in the trailer that sample_id_all gives them, which is the same for all events of a file.
 * Returns false if the record is invalid.
 */
static bool record_time(const struct perfdata *pd, const struct perf_event_header *h, struct body b,
			uint64_t *ret)
{
	const uint64_t in_trailer = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				    PERF_SAMPLE_IDENTIFIER;
	const struct perfdata_event *e = &pd->events[0];
	uint64_t type;

	if (h->type == PERF_RECORD_SAMPLE)
		e = perfdata_sample_event(pd, b);
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

/*
 * Unpacks the file to a temporary one, which replaces it from here on and has nothing but records.
 * Returns 0 or a negative errno.
 */
static int unpack(struct perfdata *pd)
{
	struct perfdata_file *f = pd->private;
	struct perf_unpacked u;
	int err = perf_unpack(f->fd, f->data.offset, f->data.offset + f->data.size, &u);

	if (err == -E2BIG)
		return perfdata_fail(f, err, "%s unpacks to more data than such a file can have",
				     pd->path);
	if (err)
		return perfdata_fail(f, err, "cannot unpack %s to $TMPDIR or /var/tmp: %s",
				     pd->path, strerror(-err));
	close(f->fd);
	f->fd = u.fd;
	f->size = u.size;
	f->data = (struct perfdata_section){ 0, u.size };
	f->window_size = 0;
	f->unpacked = true;
	/* Forget what was found so far, as all of it is found again. */
	f->nr_records = 0;
	pd->damaged = 0;
	pd->cut |= u.damaged;
	if (f->pipe) {
		pd->nr_events = 0;
		f->nr_ids = 0;
		perfdata_free_build_ids(f);
	}
	return 0;
}

/*
 * Finds the positions and times of all records. Returns 0 or a negative errno: -EAGAIN if the file
 * must be unpacked first.
 */
static int find_records(struct perfdata *pd)
{
	struct perfdata_file *f = pd->private;
	uint64_t at = f->data.offset, end = at + f->data.size, last = 0;
	struct perf_event_header h;
	int err = 0;

	for (; end - at >= sizeof(h);) {
		struct body b = { .p = (const uint8_t *)f->record };
		uint64_t more;

		if (!perfdata_read_next(f, at, &h, sizeof(h)))
			return -EIO;
		if (h.size < sizeof(h)) {
			pd->damaged++;
			return 0; /* the position of the next record is unknown */
		}
		if (h.size > end - at) {
			pd->cut = true;
			return 0;
		}
		if (!perfdata_read_next(f, at + sizeof(h), f->record, h.size - sizeof(h)))
			return -EIO;
		b.left = h.size - sizeof(h);
		if (perf_compressed(h.type) && !f->unpacked)
			return -EAGAIN;
		if (f->pipe)
			err = perfdata_take_header(pd, &h, b);
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

int perfdata_open_fd(const char *path, int fd, struct perfdata **ret, struct reason *why)
{
	struct perfdata *pd = calloc(1, sizeof(*pd));
	struct perfdata_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int e = -ENOMEM;

	because(why, "%s: out of memory", path);
	if (!pd || !f) {
		free(pd);
		free(f);
		close(fd);
		return -ENOMEM;
	}
	pd->path = path;
	pd->private = f;
	f->fd = fd;
	f->why = why;
	f->window = malloc(PERFDATA_WINDOW);
	if (!f->window)
		goto out;
	e = -EINVAL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		perfdata_fail(
			f, e,
			S_ISDIR(st.st_mode) ?
				"%s is a folder (perf record --threads), which is not supported" :
				"%s is not a regular file",
			path);
		goto out;
	}
	f->size = st.st_size;
	e = perfdata_read_header(pd);
	if (!e)
		e = find_records(pd);
	if (e == -EAGAIN) {
		e = unpack(pd);
		if (!e)
			e = find_records(pd);
	}
	if (e == -EIO)
		perfdata_fail(f, e, "cannot read %s: %s", path, strerror(EIO));
	if (!e && !pd->nr_events)
		e = perfdata_fail(f, -EINVAL, "%s has no events", path);
	if (!e)
		perfdata_set_arch(pd);
	if (!e)
		perfdata_sort_build_ids(f);
	if (!e && f->nr_records)
		qsort(f->records, f->nr_records, sizeof(*f->records), by_time);
out:
	if (e)
		perfdata_close(pd);
	else
		*ret = pd;
	return e;
}

/*
 * Copies everything that comes from @from to a file without a name. Returns its file descriptor or
 * a negative errno.
 */
static int copy_of(int from)
{
	static char bytes[1 << 16];
	int to = perf_temporary(), err = to < 0 ? to : 0;
	ssize_t n = 1;

	while (!err && n) {
		n = read(from, bytes, sizeof(bytes));
		err = n < 0 ? -errno : write_whole(to, bytes, n);
	}
	if (err && to >= 0)
		close(to);
	return err ? err : to;
}

/*
 * Opens standard input. If it is not a regular file it is copied to one, because records are read
 * twice and not in the order in which they come.
 */
static int open_input(struct perfdata **ret, struct reason *why)
{
	static const char name[] = "standard input";
	struct stat st;
	int fd;

	if (isatty(STDIN_FILENO)) {
		because(why, "%s is a terminal: give it what perf record -o - writes", name);
		return -EINVAL;
	}
	if (!fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode))
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = copy_of(STDIN_FILENO);
	if (fd >= 0)
		return perfdata_open_fd(name, fd, ret, why);
	because(why, "cannot copy %s to $TMPDIR or /var/tmp: %s", name, strerror(-fd));
	return fd;
}

int perfdata_open(const char *path, struct perfdata **ret, struct reason *why)
{
	int fd, e;

	if (!strcmp(path, "-"))
		return open_input(ret, why);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	e = errno;
	if (fd >= 0)
		return perfdata_open_fd(path, fd, ret, why);
	because(why, "cannot open %s: %s", path, strerror(e));
	return -e;
}

void perfdata_close(struct perfdata *pd)
{
	struct perfdata_file *f;

	if (!pd)
		return;
	f = pd->private;
	perfdata_free_build_ids(f);
	free(f->ids);
	free(f->records);
	free(f->window);
	close(f->fd);
	free(f);
	free(pd);
}

/* Takes the 24 bytes that say which file a mapping is of: its build id, or its device and inode. */
static void take_file(const uint8_t *bytes, bool build_id, struct perf_map *m)
{
	uint32_t device[2];

	if (!build_id) {
		memcpy(device, bytes, sizeof(device));
		memcpy(&m->inode, bytes + sizeof(device), sizeof(m->inode));
		m->dev = makedev(device[0], device[1]);
	} else if (bytes[0] <= 20) {
		m->id.size = bytes[0];
		memcpy(m->id.data, bytes + 4, bytes[0]);
	}
}

static bool take_mmap(const struct perfdata *pd, const struct perf_event_header *h, struct body b,
		      struct perf_map *m, bool *exec)
{
	const uint8_t *file;
	uint64_t len;

	*m = (struct perf_map){ .pid = take32(&b) };
	take32(&b);
	m->start = take64(&b);
	len = take64(&b);
	m->offset = take64(&b);
	*exec = !(h->misc & PERF_RECORD_MISC_MMAP_DATA);
	if (h->type == PERF_RECORD_MMAP2) {
		file = take(&b, 24);
		*exec = take32(&b) & 4; /* PROT_EXEC */
		take32(&b);
		if (file)
			take_file(file,
				  pd->private->asked_ids &&
					  h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID,
				  m);
	}
	m->path = take_text(&b);
	m->end = m->start + len;
	if (b.bad || m->end <= m->start)
		return false;
	if (!m->id.size)
		m->id = *perfdata_build_id(pd, m->path);
	return true;
}

static int give_mmap(struct perfdata *pd, const struct perf_event_header *h, struct body b,
		     const struct perfdata_handler *handler, void *arg)
{
	struct perf_map m;
	bool exec;

	if (!take_mmap(pd, h, b, &m, &exec)) {
		pd->damaged++;
		return 0;
	}
	/* The kernel's own code, or data. */
	if (m.pid < 0 || !exec)
		return 0;
	return handler->map(arg, &m);
}

static int give_sample(struct perfdata *pd, const struct perf_event_header *h, struct body b,
		       const struct perfdata_handler *handler, void *arg)
{
	const struct perfdata_event *event = perfdata_sample_event(pd, b);
	struct perf_sample s = {
		.user_mode = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER,
	};

	if (!event || !perfdata_take_sample(pd, event, &b, &s)) {
		pd->damaged++;
		return 0;
	}
	return handler->sample(arg, event, &s);
}

static int give_comm(struct perfdata *pd, const struct perf_event_header *h, struct body b,
		     const struct perfdata_handler *handler, void *arg)
{
	struct perf_comm c = { .pid = take32(&b) };

	c.tid = take32(&b);
	c.comm = take_text(&b);
	c.exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
	if (!b.bad)
		return handler->comm(arg, &c);
	pd->damaged++;
	return 0;
}

/* Hands out a record of a thread that begins or ends. */
static int give_fork(struct body b, int (*fn)(void *arg, const struct perf_fork *f), void *arg)
{
	struct perf_fork f = { .pid = take32(&b) };

	f.parent = take32(&b);
	f.tid = take32(&b);
	f.from = take32(&b);
	return b.bad || !fn ? 0 : fn(arg, &f);
}

static int give(struct perfdata *pd, const struct perf_event_header *h, struct body b,
		const struct perfdata_handler *handler, void *arg)
{
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		return give_sample(pd, h, b, handler, arg);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return give_mmap(pd, h, b, handler, arg);
	case PERF_RECORD_COMM:
		return give_comm(pd, h, b, handler, arg);
	case PERF_RECORD_FORK:
		return give_fork(b, handler->fork, arg);
	case PERF_RECORD_EXIT:
		return give_fork(b, handler->exit, arg);
	case PERF_RECORD_LOST:
		take64(&b);
		/* fall through */
	default:
		handler->lost(arg, take64(&b));
		return 0;
	}
}

int perfdata_read(struct perfdata *pd, const struct perfdata_handler *handler, void *arg)
{
	struct perfdata_file *f = pd->private;
	struct perf_event_header h;

	for (size_t i = 0; i < f->nr_records; i++) {
		uint64_t at = f->records[i].offset;
		struct body b = { .p = (const uint8_t *)f->record };
		int err;

		if (!perfdata_read_at(f, at, &h, sizeof(h)) || h.size < sizeof(h) ||
		    !perfdata_read_at(f, at + sizeof(h), f->record, h.size - sizeof(h)))
			return -EIO;
		b.left = h.size - sizeof(h);
		if (handler->at)
			handler->at(arg, f->records[i].time);
		err = give(pd, &h, b, handler, arg);
		if (err)
			return err;
	}
	return 0;
}
