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
#include <stdatomic.h>
#include <string.h>

#include "../common/loaded.h"
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

static void add_line(void *arg, const char *line, size_t n)
{
	struct writer *w = arg;

	if (n > CHUNK)
		return;
	if (w->bytes + n > CHUNK)
		flush(w, false);
	memcpy(w->text + w->bytes, line, n);
	w->bytes += n;
}

static void each_line(int fd, maps_fn fn, void *arg)
{
	char in[8192];
	size_t have = 0;
	long n;

	while ((n = sys3(SYS_read, fd, in + have, sizeof(in) - have)) > 0) {
		char *line = in;
		char *end;

		have += n;
		while ((end = memchr(line, '\n', in + have - line))) {
			if (executable(line, end + 1 - line))
				fn(arg, line, end + 1 - line);
			line = end + 1;
		}
		have -= line - in;
		if (have == sizeof(in))
			have = 0;
		memmove(in, line, have);
	}
}

static int open_maps(void)
{
	return sys4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
}

void maps_each(maps_fn fn, void *arg)
{
	int fd = open_maps();

	if (fd < 0)
		return;
	each_line(fd, fn, arg);
	sys1(SYS_close, fd);
}

/* What is loaded, when it was sent last: a number that differs once that has changed. */
static uint64_t sent;

/* Not from a signal handler. */
void maps_send(struct thread *t)
{
	struct writer w = { .t = t, .first = true };
	ksigset old;
	int fd;

	sent = loaded();
	fd = open_maps();
	if (fd < 0)
		return;
	/* The handler writes to the same ring. */
	old = block_signals();
	w.time = now(CLOCK_MONOTONIC);
	each_line(fd, add_line, &w);
	flush(&w, true);
	restore_signals(old);
	sys1(SYS_close, fd);
}

void maps_send_if_changed(void)
{
	struct thread *t = agent_self();

	if (t && loaded() != sent)
		maps_send(t);
}
