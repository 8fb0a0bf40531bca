// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * core_fuzz.c - core files: whatever they contain, the segments and maps that are found lie in the
 * file and are in order, and threads can be traced.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/elf/core_file.h"

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	return core_read(arg, addr, buf, len);
}

static void check_order(const struct core *core)
{
	uint64_t last = 0;

	for (size_t i = 0; i < core->nr_segments; i++) {
		const struct core_segment *s = &core->segments[i];

		if (s->start >= s->end || s->start < last || s->held > s->dumped ||
		    s->dumped > s->end - s->start ||
		    (s->held && s->offset + s->held > core->size) ||
		    core_segment(core, s->start) != s || core_segment(core, s->end - 1) != s)
			abort();
		last = s->end;
	}
	last = 0;
	for (size_t i = 0; i < core->nr_maps; i++) {
		const struct core_map *m = &core->maps[i];

		if (m->start >= m->end || m->start < last || strlen(m->path) > core->size ||
		    core_map(core, m->start) != m)
			abort();
		last = m->end;
	}
}

static void trace(struct core *core, const struct core_thread *t)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_space *space;
	uint64_t pcs[64];

	if (t->shadow_on) {
		int n = shstk_unwind_shadow(&t->shadow, read_memory, core, pcs, 64, NULL, &info);

		if (n < 1 || n > 64 || pcs[0] != t->regs.pc)
			abort();
	}
	if (shstk_space_create(core->arch, &space))
		abort();
	for (size_t i = 0; i < core->nr_segments && i < 64; i++)
		if (core->segments[i].exec)
			shstk_space_add_code(space, core->segments[i].start, core->segments[i].end);
	if (shstk_unwind(space, &t->regs, read_memory, core, pcs, 64, NULL, &info) < 0)
		abort();
	shstk_space_destroy(space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("core", MFD_CLOEXEC);
	struct core *core;
	struct reason why;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (core_open_fd("core", fd, &core, &why)) {
		if (!*why.text || strchr(why.text, '\n'))
			abort();
		return 0;
	}
	check_order(core);
	for (size_t i = 0; i < core->nr_threads && i < 4; i++)
		trace(core, &core->threads[i]);
	core_close(core);
	return 0;
}
