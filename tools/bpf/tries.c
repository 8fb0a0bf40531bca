// SPDX-License-Identifier: GPL-2.0-or-later
/* tries.c - remembers files whose table could not be made for a reason that may pass. See tries.h. */
#include <limits.h>
#include <string.h>

#include "tools/bpf/tries.h"

static struct tried *find(struct tries *t, const struct walk_file *file)
{
	for (unsigned int i = 0; i < TRIES_FILES; i++)
		if (t->files[i].nr && !memcmp(&t->files[i].file, file, sizeof(*file)))
			return &t->files[i];
	return NULL;
}

/* Returns a place for another file: a free one, else the one whose file is tried last. */
static struct tried *find_place(struct tries *t)
{
	struct tried *last = &t->files[0];

	for (unsigned int i = 0; i < TRIES_FILES; i++) {
		if (!t->files[i].nr)
			return &t->files[i];
		if (t->files[i].again > last->again)
			last = &t->files[i];
	}
	return last;
}

void tries_failed(struct tries *t, const struct walk_file *file, void *user, uint64_t now)
{
	struct tried *f = find(t, file);
	uint64_t wait = TRIES_LONGEST;

	if (!f) {
		f = find_place(t);
		*f = (struct tried){ .file = *file };
	}
	if (f->nr < 10)
		wait = TRIES_FIRST << f->nr;
	f->nr++;
	f->user = user;
	f->again = now + wait;
}

void tries_done(struct tries *t, const struct walk_file *file)
{
	struct tried *f = find(t, file);

	if (f)
		f->nr = 0;
}

const struct tried *tries_take(struct tries *t, uint64_t now)
{
	for (unsigned int i = 0; i < TRIES_FILES; i++) {
		struct tried *f = &t->files[i];

		if (f->nr && f->again <= now) {
			f->again = UINT64_MAX;
			return f;
		}
	}
	return NULL;
}

int tries_wait(const struct tries *t, uint64_t now)
{
	uint64_t next = UINT64_MAX, ms;

	for (unsigned int i = 0; i < TRIES_FILES; i++)
		if (t->files[i].nr && t->files[i].again < next)
			next = t->files[i].again;
	if (next == UINT64_MAX)
		return -1;
	ms = next > now ? (next - now + 999999) / 1000000 : 0;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
