// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps.c - tell the recorder which code is mapped.
 *
 * The recorder reads /proc/PID/maps itself whenever it sees an address it does
 * not know. That is too late for a process that has ended, so the agent sends
 * the executable lines of /proc/self/maps when it starts, before a module is
 * closed, and at exit if modules came since.
 */
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "agent.h"

#define CHUNK 3840

struct writer {
	struct thread *t;
	bool first;
	bool failed;
	uint32_t bytes;
	uint64_t time;
	char text[CHUNK];
};

static void flush(struct writer *w, bool last)
{
	uint32_t size = (sizeof(struct rec_maps) + w->bytes + 7) & ~7u;
	struct rec_maps *m;

	if (w->failed)
		return;
	m = ring_reserve(w->t, size);
	if (!m) {
		w->failed = true;
		return;
	}
	m->record.size = size;
	m->record.type = REC_MAPS;
	m->record.flags = (w->first ? REC_MAPS_FIRST : 0) | (last ? REC_MAPS_LAST : 0);
	m->bytes = w->bytes;
	m->pad = 0;
	m->time = w->time;
	memcpy(m->text, w->text, w->bytes);
	ring_commit(w->t, size);
	w->first = false;
	w->bytes = 0;
}

/* "start-end rwxp ...": only what can be executed is of use. */
static bool executable(const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n);

	return space && line + n - space > 4 && space[3] == 'x';
}

static void add_line(struct writer *w, const char *line, size_t n)
{
	if (!executable(line, n) || n > CHUNK)
		return;
	if (w->bytes + n > CHUNK)
		flush(w, false);
	memcpy(w->text + w->bytes, line, n);
	w->bytes += n;
}

static void send_all(struct writer *w, int fd)
{
	char in[8192];
	size_t have = 0;
	long n;

	while ((n = sys3(SYS_read, fd, in + have, sizeof(in) - have)) > 0) {
		char *line = in;
		char *end;

		have += n;
		while ((end = memchr(line, '\n', in + have - line))) {
			add_line(w, line, end + 1 - line);
			line = end + 1;
		}
		have -= line - in;
		if (have == sizeof(in))
			have = 0;
		memmove(in, line, have);
	}
	flush(w, true);
}

static unsigned long long sent_adds, sent_subs;

struct counts {
	unsigned long long adds, subs;
};

static int take_counts(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct counts *c = arg;

	(void)size;
	c->adds = info->dlpi_adds;
	c->subs = info->dlpi_subs;
	return 1;
}

/* Not from a signal handler: asks the loader how many modules there were. */
void maps_send(struct thread *t)
{
	struct writer w = { .t = t, .first = true };
	struct counts c = { 0, 0 };
	ksigset old;
	long fd;

	dl_iterate_phdr(take_counts, &c);
	sent_adds = c.adds;
	sent_subs = c.subs;
	fd = sys4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* The handler writes to the same ring. */
	old = block_signals();
	w.time = now(CLOCK_MONOTONIC);
	send_all(&w, fd);
	restore_signals(old);
	sys1(SYS_close, fd);
}

void maps_send_if_changed(void)
{
	struct thread *t = agent_self();
	struct counts c = { 0, 0 };

	if (!t)
		return;
	dl_iterate_phdr(take_counts, &c);
	if (c.adds != sent_adds || c.subs != sent_subs)
		maps_send(t);
}
