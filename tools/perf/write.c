// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * write.c - writes a perf.data file: a header of 16 bytes, the attributes of each event as a
 * record, then the other records. See the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "tools/perf/write.h"

#define USER_HEADER_ATTR 64
#define MAX_PATH_BYTES 4096

struct perf_writer {
	FILE *out;
	int err; /* the first error as a negative errno, or 0 */
	uint64_t vdso_size;
	struct build_id vdso;
};

/* The body of PERF_RECORD_MMAP2. */
struct mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, offset;
	uint8_t file[24]; /* device and inode, or the build id */
	uint32_t prot, flags;
	char name[];
};

/* The end of every record but samples. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint64_t id;
};

static void put(struct perf_writer *w, const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, w->out) != size && !w->err)
		w->err = errno ? -errno : -EIO;
}

static void put_header(struct perf_writer *w, uint32_t type, uint16_t misc, size_t size)
{
	struct perf_event_header head = { .type = type, .misc = misc, .size = size };

	put(w, &head, sizeof(head));
}

static void put_attr(struct perf_writer *w, const struct perf_opts *opts, int which)
{
	struct perf_event_attr attr;

	perf_rings_attr(opts, which, &attr);
	/*
	 * Build ids are not asked for, but some mappings in the file have them: see
	 * perf_writer_map().
	 */
	attr.build_id = 1;
	put_header(w, USER_HEADER_ATTR, 0, sizeof(struct perf_event_header) + sizeof(attr));
	put(w, &attr, sizeof(attr));
}

int perf_writer_create(const char *path, const struct perf_opts *opts, struct perf_writer **ret)
{
	static const char magic[] = "PERFILE2";
	static const uint64_t size = 16;
	struct perf_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->out = fopen(path, "we");
	if (!w->out) {
		int err = -errno;

		free(w);
		return err;
	}
	put(w, magic, strlen(magic));
	put(w, &size, sizeof(size));
	put_attr(w, opts, opts->main ? PERF_MAIN : PERF_OFF);
	*ret = w;
	return 0;
}

void perf_writer_vdso(struct perf_writer *w, uint64_t size, const struct build_id *id)
{
	w->vdso_size = size;
	w->vdso = *id;
}

static void put_id(struct mmap2 *body, const struct build_id *id)
{
	memset(body->file, 0, sizeof(body->file));
	body->file[0] = id->size;
	memcpy(body->file + 4, id->data, id->size);
}

/* Returns whether the mapping is that of the vdso whose build id is known. */
static bool is_vdso(const struct perf_writer *w, const struct perf_record *r)
{
	const struct mmap2 *m = r->body;
	const char name[] = "[vdso]";

	return w->vdso.size && w->vdso.size <= 20 && r->size >= sizeof(*m) + sizeof(name) &&
	       !memcmp(m->name, name, sizeof(name)) && m->len == w->vdso_size;
}

void perf_writer_add(struct perf_writer *w, const struct perf_record *record)
{
	struct perf_event_header head = *(const struct perf_event_header *)record->raw;
	const uint8_t *rest = (const uint8_t *)record->raw + sizeof(head);
	size_t size = head.size - sizeof(head);
	struct mmap2 body;

	if (head.type != PERF_RECORD_MMAP2) {
		put(w, record->raw, head.size);
		return;
	}
	/*
	 * The kernel may have set this flag for another recording: see perf_record_map() in
	 * records.c.
	 */
	head.misc &= ~PERF_RECORD_MISC_MMAP_BUILD_ID;
	if (!is_vdso(w, record)) {
		put(w, &head, sizeof(head));
		put(w, rest, size);
		return;
	}
	head.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	memcpy(&body, rest, sizeof(body));
	put_id(&body, &w->vdso);
	put(w, &head, sizeof(head));
	put(w, &body, sizeof(body));
	put(w, rest + sizeof(body), size - sizeof(body));
}

/* Writes a text with zeros up to @size bytes, a multiple of 8, and the end of the record. */
static void put_end(struct perf_writer *w, const char *text, size_t size,
		    const struct trailer *trailer)
{
	static const char zeros[8];

	put(w, text, strlen(text));
	for (size_t n = strlen(text); n < size; n += sizeof(zeros) - n % sizeof(zeros))
		put(w, zeros, sizeof(zeros) - n % sizeof(zeros));
	put(w, trailer, sizeof(*trailer));
}

static size_t text_size(const char *text)
{
	return (strlen(text) + 8) & ~7ul;
}

void perf_writer_map(struct perf_writer *w, uint64_t time, const struct perf_map *map)
{
	struct mmap2 body = {
		.pid = map->pid,
		.tid = map->pid,
		.addr = map->start,
		.len = map->end - map->start,
		.offset = map->offset,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
	};
	struct trailer trailer = { map->pid, map->pid, time, 0 };
	uint32_t dev[2] = { major(map->dev), minor(map->dev) };
	uint16_t misc = PERF_RECORD_MISC_USER;
	size_t size = text_size(map->path);

	if (size > MAX_PATH_BYTES)
		return;
	if (map->id.size && map->id.size <= 20) {
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		put_id(&body, &map->id);
	} else {
		memcpy(body.file, dev, sizeof(dev));
		memcpy(body.file + 8, &map->inode, sizeof(map->inode));
	}
	put_header(w, PERF_RECORD_MMAP2, misc,
		   sizeof(struct perf_event_header) + sizeof(body) + size + sizeof(trailer));
	put(w, &body, sizeof(body));
	put_end(w, map->path, size, &trailer);
}

void perf_writer_comm(struct perf_writer *w, uint64_t time, pid_t pid, pid_t tid, const char *comm)
{
	uint32_t body[2] = { pid, tid };
	struct trailer trailer = { pid, tid, time, 0 };
	size_t size = text_size(comm);

	put_header(w, PERF_RECORD_COMM, 0,
		   sizeof(struct perf_event_header) + sizeof(body) + size + sizeof(trailer));
	put(w, body, sizeof(body));
	put_end(w, comm, size, &trailer);
}

int perf_writer_close(struct perf_writer *w)
{
	int err;

	if (!w)
		return 0;
	err = w->err;
	if (fclose(w->out) && !err)
		err = -errno;
	free(w);
	return err;
}
