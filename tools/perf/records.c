// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * records.c - takes records about processes apart. Any content of a record is expected, also a
 * hostile one. See records.h.
 */
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "tools/perf/records.h"

/* The body of PERF_RECORD_MMAP2. */
struct mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, offset;
	uint32_t maj, min;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char name[];
};

/* The body of PERF_RECORD_COMM. */
struct comm {
	uint32_t pid, tid;
	char name[];
};

/* The body of PERF_RECORD_FORK and PERF_RECORD_EXIT. */
struct fork {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

/* Returns whether the text at the end of a record ends within the record. */
static bool text_ends(const char *text, const struct perf_record *r)
{
	const char *end = (const char *)r->body + r->size;

	return text < end && memchr(text, '\0', end - text);
}

/*
 * The flag that says that there is a build id instead of an inode is ignored: once the kernel set
 * it for one listener, it sets it for all of them. No build ids are asked for, because perf 6.1
 * trusts that flag and destroys its own stack.
 */
bool perf_record_map(const struct perf_record *r, struct perf_map *ret)
{
	const struct mmap2 *m = r->body;

	if (r->size < sizeof(*m) || !text_ends(m->name, r) || (int)m->pid <= 0 ||
	    !(m->prot & PROT_EXEC) ||
	    (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER ||
	    m->addr + m->len <= m->addr || strlen(m->name) >= PATH_MAX)
		return false;
	*ret = (struct perf_map){
		.pid = m->pid,
		.start = m->addr,
		.end = m->addr + m->len,
		.offset = m->offset,
		.path = m->name,
		.dev = makedev(m->maj, m->min),
		.inode = m->inode,
	};
	return true;
}

bool perf_record_comm(const struct perf_record *r, struct perf_comm *ret)
{
	const struct comm *c = r->body;

	if (r->size < sizeof(*c) || !text_ends(c->name, r) || (int)c->pid <= 0 || (int)c->tid <= 0)
		return false;
	*ret = (struct perf_comm){ c->pid, c->tid, c->name, r->misc & PERF_RECORD_MISC_COMM_EXEC };
	return true;
}

bool perf_record_fork(const struct perf_record *r, struct perf_fork *ret)
{
	const struct fork *f = r->body;

	if (r->size < sizeof(*f) || (int)f->pid <= 0 || (int)f->tid <= 0)
		return false;
	*ret = (struct perf_fork){ f->pid, f->tid, f->ppid, f->ptid };
	return true;
}
