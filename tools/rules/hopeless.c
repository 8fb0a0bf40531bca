// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hopeless.c - remembers files for which no table could be made, so that they are left alone.
 */
#include <errno.h>

#include "tools/rules/hopeless.h"
#include "tools/shstk.h"

/*
 * What is short now - memory, processes, room in the kernel - may be available again after this
 * time.
 */
#define WAIT_NS (300ull * 1000 * 1000 * 1000)

static size_t place_of(const struct stat *st)
{
	return (st->st_ino ^ st->st_dev) % NR_HOPELESS;
}

bool hopeless_lasts(int err)
{
	return err == -ENOENT || err == -ENOEXEC || err == -EXDEV || err == -E2BIG ||
	       err == -EFBIG || err == -EOPNOTSUPP || err == -ESTALE;
}

void hopeless_add(struct hopeless *h, const struct stat *st, int err)
{
	size_t i = place_of(st);

	h->files[i].dev = st->st_dev;
	h->files[i].ino = st->st_ino;
	h->files[i].changed = st->st_ctim;
	h->files[i].until = hopeless_lasts(err) ? UINT64_MAX : now_ns(CLOCK_BOOTTIME) + WAIT_NS;
}

bool hopeless_has(const struct hopeless *h, const struct stat *st)
{
	size_t i = place_of(st);

	return h->files[i].ino == st->st_ino && h->files[i].dev == st->st_dev &&
	       h->files[i].changed.tv_sec == st->st_ctim.tv_sec &&
	       h->files[i].changed.tv_nsec == st->st_ctim.tv_nsec &&
	       now_ns(CLOCK_BOOTTIME) < h->files[i].until;
}
