// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vma.c - finds one mapping of this process; see vma.h.
 */
#include <sys/ioctl.h>

#include "scratch.h"
#include "sys.h"
#include "vma.h"

/* From the kernel's include/uapi/linux/fs.h; installed headers may be older. */
struct vma_ioctl {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};

#define VMA_IOCTL _IOWR('f', 17, struct vma_ioctl)

static int by_ioctl(int fd, uint64_t addr, struct vma *ret, char *path, size_t size)
{
	struct vma_ioctl q = {
		.size = sizeof(q),
		.query_addr = addr,
		.name_size = path ? size : 0,
		.name_addr = (uintptr_t)path,
	};

	int err = sys_ioctl(fd, VMA_IOCTL, &q);

	if (err)
		return err;
	ret->range = (struct range){ q.start, q.end };
	ret->prot = q.flags & (VMA_READ | VMA_WRITE | VMA_EXEC);
	ret->offset = q.offset;
	ret->inode = q.inode;
	if (path && !q.name_size)
		path[0] = '\0';
	return 0;
}

/* A reader of /proc/self/maps, a byte at a time from a small buffer. */
struct maps_reader {
	int fd;
	int pos, len;
	char buf[512];
};

static int next_char(struct maps_reader *t)
{
	if (t->pos == t->len) {
		do {
			t->len = sys_read(t->fd, t->buf, sizeof(t->buf));
		} while (t->len == -EINTR);
		t->pos = 0;
		if (t->len <= 0) {
			t->len = 0;
			return -1;
		}
	}
	return (unsigned char)t->buf[t->pos++];
}

/* Reads a number and the character behind it. */
static uint64_t number(struct maps_reader *t, unsigned int base)
{
	uint64_t v = 0;

	for (;;) {
		int c = next_char(t);

		if (c >= '0' && c <= '9')
			v = v * base + (c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			v = v * base + (c - 'a' + 10);
		else
			return v;
	}
}

/* Reads the rest of the line into @path and decodes \012, the only escape there is. */
static void name(struct maps_reader *t, char *path, size_t size)
{
	size_t n = 0;
	int c;

	do {
		c = next_char(t);
	} while (c == ' ');
	for (; c >= 0 && c != '\n'; c = next_char(t)) {
		if (n + 1 >= size)
			continue;
		path[n++] = c;
		if (n >= 4 && !memcmp(path + n - 4, "\\012", 4)) {
			n -= 4;
			path[n++] = '\n';
		}
	}
	path[n] = '\0';
}

/* The arguments of vma_query(), and the open file. */
struct query {
	int fd;
	uint64_t addr;
	struct vma *ret;
	char *path;
	size_t size;
};

static int by_text(void *mem, void *arg)
{
	const struct query *q = arg;
	struct vma *ret = q->ret;
	struct maps_reader *t = mem;
	char none[1];
	int c;

	t->fd = q->fd;
	t->pos = 0;
	t->len = 0;
	for (;;) {
		ret->range.lo = number(t, 16);
		ret->range.hi = number(t, 16);
		if (!ret->range.hi)
			return -ENOENT;
		if (range_has(&ret->range, q->addr))
			break;
		while ((c = next_char(t)) != '\n') {
			if (c < 0)
				return -ENOENT;
		}
	}
	ret->prot = next_char(t) == 'r' ? VMA_READ : 0;
	ret->prot |= next_char(t) == 'w' ? VMA_WRITE : 0;
	ret->prot |= next_char(t) == 'x' ? VMA_EXEC : 0;
	next_char(t);
	next_char(t);
	ret->offset = number(t, 16);
	number(t, 16);
	number(t, 16);
	ret->inode = number(t, 10);
	name(t, q->path ? q->path : none, q->path ? q->size : sizeof(none));
	return 0;
}

static bool sealed;

void vma_seal(void)
{
	store_relaxed(&sealed, true);
}

bool vma_sealed(void)
{
	return load_relaxed(&sealed);
}

int vma_query(uint64_t addr, struct vma *ret, char *path, size_t size)
{
	int fd, err;

	if (vma_sealed())
		return -ECANCELED;
	fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = by_ioctl(fd, addr, ret, path, size);
	if (err && err != -ENOENT) { /* the kernel is older or emulated, and lacks the ioctl */
		struct query q = { fd, addr, ret, path, size };

		err = scratch_call(sizeof(struct maps_reader), by_text, &q);
	}
	sys_close(fd);
	return err;
}
