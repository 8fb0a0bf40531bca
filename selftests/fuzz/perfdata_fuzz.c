// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata_fuzz.c - perf.data files: what is handed out lies in memory that may be read, and
 * reading ends.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/perf/data.h"

static volatile uint8_t sink;

static int on_sample(void *arg, const struct perfdata_event *event, const struct perf_sample *s)
{
	const struct perfdata *pd = arg;

	for (size_t i = 0; i < s->stack_size; i++)
		sink ^= s->stack[i];
	for (uint64_t i = 0; i < s->nr; i++)
		sink ^= s->chain[i];
	if (event < pd->events || event >= pd->events + pd->nr_events ||
	    s->regs.size > sizeof(s->regs))
		abort();
	return 0;
}

static int on_mmap(void *arg, const struct perf_map *m)
{
	const struct build_id *id = perfdata_build_id(arg, m->path);

	if (m->start >= m->end || strlen(m->path) > 65536 || m->pid < 0 || m->id.size > 20 ||
	    id->size > 20)
		abort();
	return 0;
}

static int on_comm(void *arg, const struct perf_comm *c)
{
	(void)arg;
	sink ^= c->pid ^ c->tid ^ c->exec;
	if (strlen(c->comm) > 65536)
		abort();
	return 0;
}

static int on_fork(void *arg, const struct perf_fork *f)
{
	(void)arg;
	sink ^= f->pid ^ f->tid ^ f->parent ^ f->from;
	return 0;
}

static void on_lost(void *arg, uint64_t nr)
{
	(void)arg;
	sink ^= nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct perfdata_handler handler = {
		.sample = on_sample,
		.map = on_mmap,
		.comm = on_comm,
		.fork = on_fork,
		.exit = on_fork,
		.lost = on_lost,
	};
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct perfdata *pd;
	struct reason why;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (perfdata_open_fd("perf.data", fd, &pd, &why)) {
		if (!*why.text || strchr(why.text, '\n'))
			abort();
		return 0;
	}
	for (unsigned int i = 0; i < pd->nr_events; i++)
		if (strlen(pd->events[i].name) >= sizeof(pd->events[i].name))
			abort();
	if (perfdata_read(pd, &handler, pd))
		abort();
	perfdata_close(pd);
	return 0;
}
