// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * send_maps.c - tells the recorder which code is mapped.
 *
 * The recorder itself reads /proc/PID/maps when it finds an address that it does not know. That is
 * too late for a process that has ended. So the agent sends the executable lines of /proc/self/maps
 * when it starts, before a module is closed, and at exit if modules were loaded since.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "../common/buffer.h"
#include "../common/loaded.h"
#include "agent.h"

#define LINES 8192 /* bytes of the file that are read at a time */
#define CHUNK 3840 /* bytes of a record */

/**
 * struct writer - writes the lines of the file into records in the ring
 * @t: the thread whose ring is used.
 * @first: no record was sent yet.
 * @failed: the ring is full: the rest of the file is of no use.
 * @time: CLOCK_MONOTONIC in ns before the file was read.
 * @text: lines for the next record.
 */
struct writer {
	struct agent_thread *t;
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

/* Returns whether a line ("start-end rwxp ...") is of a mapping that can be executed. */
static bool executable(const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n);

	return space && line + n - space > 4 && space[3] == 'x';
}

/* Adds a line to the next record. A line that does not fit into a record is left out. */
static void add_line(void *arg, const char *line, size_t n)
{
	struct writer *w = arg;

	if (n > buffer_room(&w->text))
		flush(w, false);
	buffer_add(&w->text, line, n);
}

/*
 * Calls @fn for each executable line of the file. @in has LINES bytes to work with; longer lines
 * are left out.
 */
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
 * struct maps_work - memory for reading the file; the stack may be too small for it
 * @lines: lines of the file.
 * @text: text of the next record.
 */
struct maps_work {
	char lines[LINES];
	char text[CHUNK];
};

static struct maps_work *work_map(void)
{
	long p = sys6(SYS_mmap, 0, sizeof(struct maps_work), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p < 0 && p > -4096 ? NULL : (struct maps_work *)p;
}

static void work_unmap(struct maps_work *work)
{
	sys2(SYS_munmap, work, sizeof(*work));
}

static int open_maps(void)
{
	return sys4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
}

void maps_each(maps_fn fn, void *arg)
{
	struct maps_work *work = work_map();
	int fd = work ? open_maps() : -1;

	if (fd >= 0) {
		each_line(fd, work->lines, fn, arg);
		sys1(SYS_close, fd);
	}
	if (work)
		work_unmap(work);
}

/*
 * The value of loaded() when the maps were sent last; it differs once something was loaded or
 * unloaded.
 */
static uint64_t sent;

static void send(struct agent_thread *t, int fd, struct maps_work *work)
{
	struct writer w = {
		.t = t,
		.first = true,
		.text = buffer_on(work->text, sizeof(work->text)),
	};
	/* The handler writes to the same ring, so signals are blocked. */
	ksigset old = block_signals();

	w.time = now(CLOCK_MONOTONIC);
	each_line(fd, work->lines, add_line, &w);
	flush(&w, true);
	restore_signals(old);
}

/* Sends the maps. Must not be called from a signal handler. */
void maps_send(struct agent_thread *t)
{
	struct maps_work *work = work_map();
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
	struct agent_thread *t = agent_self();

	if (t && loaded() != sent)
		maps_send(t);
}
