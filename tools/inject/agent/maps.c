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
#include <sys/mman.h>

#include "../common/buffer.h"
#include "../common/loaded.h"
#include "agent.h"

#define LINES 8192 /* bytes of the file that are looked at at a time */
#define CHUNK 3840 /* bytes of a record */

/**
 * struct writer - what is sent of the file, until it has its place in the ring
 * @t: the thread whose ring it is.
 * @first: no record was sent.
 * @failed: the ring is full: the rest is of no use.
 * @time: see struct rec_maps.
 * @text: lines for the next record.
 */
struct writer {
	struct thread *t;
	bool first;
	bool failed;
	uint64_t time;
	struct buffer text;
};

static void flush(struct writer *w, bool last)
{
	uint32_t bytes = w->text.used;
	uint32_t size = (sizeof(struct rec_maps) + bytes + 7) & ~7u;
	struct rec_maps *m = w->failed ? NULL : ring_reserve(w->t, size);

	buffer_empty(&w->text);
	if (!m) {
		w->failed = true;
		return;
	}
	m->record.size = size;
	m->record.type = REC_MAPS;
	m->record.flags = (w->first ? REC_MAPS_FIRST : 0) | (last ? REC_MAPS_LAST : 0);
	m->bytes = bytes;
	m->pad = 0;
	m->time = w->time;
	memcpy(m->text, w->text.bytes, bytes);
	ring_commit(w->t, size);
	w->first = false;
}

/* "start-end rwxp ...": only what can be executed is of use. */
static bool executable(const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n);

	return space && line + n - space > 4 && space[3] == 'x';
}

/* A line that no record has room for is left out. */
static void add_line(void *arg, const char *line, size_t n)
{
	struct writer *w = arg;

	if (n > buffer_room(&w->text))
		flush(w, false);
	buffer_add(&w->text, line, n);
}

/* @in: LINES bytes to work with. A line that is longer is left out. */
static void each_line(int fd, char *in, maps_fn fn, void *arg)
{
	bool rest_of_long = false;
	size_t have = 0;
	long n;

	while ((n = sys3(SYS_read, fd, in + have, LINES - have)) > 0) {
		char *line = in;
		char *end;

		have += n;
		while ((end = memchr(line, '\n', in + have - line))) {
			if (!rest_of_long && executable(line, end + 1 - line))
				fn(arg, line, end + 1 - line);
			rest_of_long = false;
			line = end + 1;
		}
		have -= line - in;
		if (have == LINES) {
			have = 0;
			rest_of_long = true;
		}
		memmove(in, line, have);
	}
}

/**
 * struct work - memory for a look at the file; the stack may be a small one
 * @lines: of the file.
 * @text: of the next record.
 */
struct work {
	char lines[LINES];
	char text[CHUNK];
};

static struct work *work_map(void)
{
	long p = sys6(SYS_mmap, 0, sizeof(struct work), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p < 0 && p > -4096 ? NULL : (struct work *)p;
}

static void work_unmap(struct work *work)
{
	sys2(SYS_munmap, work, sizeof(*work));
}

static int open_maps(void)
{
	return sys4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
}

void maps_each(maps_fn fn, void *arg)
{
	struct work *work = work_map();
	int fd = work ? open_maps() : -1;

	if (fd >= 0) {
		each_line(fd, work->lines, fn, arg);
		sys1(SYS_close, fd);
	}
	if (work)
		work_unmap(work);
}

/* What is loaded, when it was sent last: a number that differs once that has changed. */
static uint64_t sent;

static void send(struct thread *t, int fd, struct work *work)
{
	struct writer w = {
		.t = t,
		.first = true,
		.text = buffer_on(work->text, sizeof(work->text)),
	};
	/* The handler writes to the same ring. */
	ksigset old = block_signals();

	w.time = now(CLOCK_MONOTONIC);
	each_line(fd, work->lines, add_line, &w);
	flush(&w, true);
	restore_signals(old);
}

/* Not from a signal handler. */
void maps_send(struct thread *t)
{
	struct work *work = work_map();
	int fd = work ? open_maps() : -1;

	sent = loaded();
	if (fd >= 0) {
		send(t, fd, work);
		sys1(SYS_close, fd);
	}
	if (work)
		work_unmap(work);
}

void maps_send_if_changed(void)
{
	struct thread *t = agent_self();

	if (t && loaded() != sent)
		maps_send(t);
}
