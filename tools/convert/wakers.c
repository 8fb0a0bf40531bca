// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wakers.c - reads the format of the tracepoint sched:sched_waking and its records, and finds the
 * names of threads that wake others. See wakers.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/convert/wakers.h"
#include "tools/perf/event.h"
#include "tools/shstk.h"

#define EVENT "sched:sched_waking"
#define FORMAT "events/sched/sched_waking/format"

#define IN_INTERRUPT 0x18 /* bits of common_flags: in a hard interrupt, or in what follows one */
#define FLAGS 2 /* offset of common_flags in all events, behind common_type */

#define NAMES 256
#define NAME 17 /* bytes of a thread's name with its end */
#define FRESH 1000000000 /* ns for which a name that was read is trusted */

/* The name of a thread that was read. */
struct known_name {
	int tid;
	uint64_t at;
	char name[NAME];
};

/**
 * struct wakers - the tracepoint
 * @event: the event of the tracepoint.
 * @offset: offset of the woken thread's ID in the tracepoint's data, in bytes.
 * @names: names of wakers that are not recorded, by the low bits of their thread IDs.
 */
struct wakers {
	struct perf_event event;
	unsigned int offset;
	struct known_name names[NAMES];
};

static FILE *open_format(void)
{
	FILE *file = fopen("/sys/kernel/tracing/" FORMAT, "re");

	return file ? file : fopen("/sys/kernel/debug/tracing/" FORMAT, "re");
}

/*
 * Finds the offset of the thread ID in the tracepoint's format, which has a line "field:pid_t pid;
 * offset:24; size:4; signed:1;". Returns 0 or a negative errno.
 */
static int find_offset(struct wakers *w)
{
	FILE *file = open_format();
	unsigned int size = 0;
	char line[256], *field;

	if (!file)
		return -errno;
	while (size != sizeof(int) && fgets(line, sizeof(line), file)) {
		field = strstr(line, "field:pid_t pid;");
		if (field &&
		    sscanf(field, "field:pid_t pid; offset:%u; size:%u;", &w->offset, &size) != 2)
			size = 0;
	}
	fclose(file);
	return size == sizeof(int) ? 0 : -EINVAL;
}

int wakers_create(struct wakers **ret, struct reason *why)
{
	struct wakers *w = calloc(1, sizeof(*w));
	int err;

	because(why, "--wakers: %s", strerror(ENOMEM));
	if (!w)
		return -ENOMEM;
	err = find_offset(w);
	if (err)
		because(why,
			"--wakers: tracepoint " EVENT
			" cannot be read (%s): be root, and have tracefs mounted at /sys/kernel/tracing",
			strerror(-err));
	else
		err = perf_event_parse(EVENT, &w->event, why);
	if (err) {
		free(w);
		return err;
	}
	w->event.raw = true;
	*ret = w;
	return 0;
}

void wakers_destroy(struct wakers *w)
{
	free(w);
}

const struct perf_event *wakers_event(const struct wakers *w)
{
	return w ? &w->event : NULL;
}

bool wakers_parse(const struct wakers *w, const struct perf_record *r, struct waking *ret)
{
	const uint8_t *data = (const uint8_t *)r->body + sizeof(uint32_t);
	uint32_t size;

	if (r->type != PERF_RECORD_SAMPLE || r->which != PERF_WAKINGS || r->size < sizeof(size))
		return false;
	memcpy(&size, r->body, sizeof(size));
	if (size > r->size - sizeof(size) || size <= FLAGS || size < sizeof(int) ||
	    w->offset > size - sizeof(int))
		return false;
	memcpy(&ret->tid, data + w->offset, sizeof(ret->tid));
	ret->waker = data[FLAGS] & IN_INTERRUPT || r->tid < 0 ? 0 : r->tid;
	return true;
}

static void read_name(int tid, char *name)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	file = fopen(path, "re");
	if (!file || !fgets(name, NAME, file))
		*name = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

static const char *find_name(struct wakers *w, int tid)
{
	struct known_name *known = &w->names[tid % NAMES];
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (known->tid == tid && now - known->at < FRESH)
		return known->name;
	known->tid = tid;
	known->at = now;
	read_name(tid, known->name);
	return known->name;
}

size_t wakers_label(struct wakers *w, int waker, const char *name, char *buf)
{
	static const char key[] = "waker";
	char *value = buf + sizeof(key);
	size_t room = WAKERS_LABEL - sizeof(key);

	memcpy(buf, key, sizeof(key));
	if (waker && !name)
		name = find_name(w, waker);
	if (!waker)
		snprintf(value, room, "[interrupt]");
	else
		snprintf(value, room, "%.16s (%d)", *name ? name : "[ended]", waker);
	return sizeof(key) + strlen(value) + 1;
}
