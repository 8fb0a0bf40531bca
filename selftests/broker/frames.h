/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frames.h - what the broker lends for frames of interpreters, in tests of it: tells it of processes, and
 * looks into the records.
 */
#ifndef SELFTESTS_BROKER_FRAMES_H
#define SELFTESTS_BROKER_FRAMES_H

#include "watch.h"

#include "bpf/lend.h"

#define ENOUGH 20 /* records */
#define NUMBER 7 /* of the interpreter */
#define SECRET_NAME "kept-from-others"

/* ---- Requests ---- */

/* Sends a packet as ask_to() does. Returns 0 if what it asks for is done. */
static int ask_bytes(const void *packet, size_t size)
{
	struct broker_reply reply = { 0 };
	const int ret = ask_packet(packet, size, &reply);

	return ret == -1 && !reply.error && reply.flags & BROKER_DONE ? 0 : ret;
}

static struct broker_process packet_of(pid_t pid, uint32_t lease, const struct lent_process *it)
{
	return (struct broker_process){
		.request = {
			.version = BROKER_VERSION,
			.kind = BROKER_PROCESS,
			.tid = pid,
			.lease = lease,
		},
		.layout = LANGUAGE_LAYOUT,
		.process = *it,
	};
}

static int tell_process(pid_t pid, uint32_t lease, const struct lent_process *it)
{
	const struct broker_process p = packet_of(pid, lease, it);

	return ask_bytes(&p, sizeof(p));
}

/* ---- Records ---- */

/* Returns the next record of that kind behind @at, which becomes its head; NULL: there is none. */
static const void *next_of(struct perf_event_mmap_page *page, const struct perf_event_header **at,
			   uint32_t kind)
{
	while ((*at = next(page, *at))) {
		const struct language_moment *it = (const void *)((const uint64_t *)*at + BODY);

		if ((*at)->type == PERF_RECORD_SAMPLE && it->kind == kind)
			return it;
	}
	return NULL;
}

static int count(struct perf_event_mmap_page *page, uint32_t kind)
{
	const struct perf_event_header *at = NULL;
	int n = 0;

	while (next_of(page, &at, kind))
		n++;
	return n;
}

/* Works until the rings have so many moments and samples. Returns false if they do not come. */
static bool work(struct watch *w, int moments, int samples)
{
	const double until = now() + PATIENCE;
	bool ret = false;

	ioctl(w->event, PERF_EVENT_IOC_ENABLE, 0);
	while (!ret && now() < until) {
		for (volatile int i = 0; i < 1000000; i++)
			;
		ret = count(w->chains, LANGUAGE_MOMENT) >= moments &&
		      count_samples(w->samples) >= samples;
	}
	ioctl(w->event, PERF_EVENT_IOC_DISABLE, 0);
	return ret;
}

/*
 * Returns whether the moments have what they should: most are @right, and none is @wrong. A few may be cut, as
 * reading ends after 5 ms, and the machine may be stopped meanwhile if it is a virtual one.
 */
static bool are_right(int right, int wrong)
{
	return !wrong && right >= ENOUGH / 2;
}

static bool has_bytes(struct perf_event_mmap_page *page, const void *bytes, size_t size)
{
	const char *data = (char *)page + sysconf(_SC_PAGESIZE);

	return memmem(data, page->data_head, bytes, size);
}

/* Has this process watched, and its interpreter told. */
static bool watch_process(struct watch *w, const struct lent_process *it)
{
	stay_on_cpu();
	return watch(w, 0) && !tell_process(getpid(), w->lease, it);
}

#endif
