// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * core_fuzz.c - core files: whatever they contain, the segments and maps that are found lie in the
 * file and are in order, threads can be traced, and what is in a minidump lies in that file.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/crash/crash.h"
#include "tools/elf/core_file.h"
#include "tools/shstk.h"

/* Files that cannot be used are not told of here. */
void complain(const char *format, ...)
{
	(void)format;
}

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

/* ---- Minidumps ---- */

#define THREADS 3 /* the stream of threads */
#define THREAD_SIZE 48

/* Reads a number of a minidump. */
static uint32_t number(const uint8_t *at)
{
	uint32_t ret;

	memcpy(&ret, at, sizeof(ret));
	return ret;
}

/* Checks that a part whose size and place are at @at lies in the file of @size bytes. */
static void check_part(const uint8_t *at, size_t size)
{
	if (number(at) > size || number(at + 4) > size - number(at))
		abort();
}

/* Checks the stacks and registers of a list of threads. */
static void check_threads(const uint8_t *dump, const uint8_t *stream, size_t size)
{
	const uint8_t *list = dump + number(stream + 8);

	if (number(stream + 4) != 4 + number(list) * THREAD_SIZE)
		abort();
	for (uint32_t i = 0; i < number(list); i++) {
		check_part(list + 4 + i * THREAD_SIZE + 32, size);
		check_part(list + 4 + i * THREAD_SIZE + 40, size);
	}
}

static void check_dump(const uint8_t *dump, size_t size)
{
	const uint8_t *directory = dump + number(dump + 12);

	for (uint32_t i = 0; i < number(dump + 8); i++) {
		check_part(directory + 12 * i + 4, size);
		if (number(directory + 12 * i) == THREADS)
			check_threads(dump, directory + 12 * i, size);
	}
}

static void write_dump(const struct core *core)
{
	int fd = memfd_create("minidump", MFD_CLOEXEC), err;
	uint8_t *dump;
	off_t size;

	if (fd < 0)
		abort();
	err = crash_minidump(core, fd);
	size = lseek(fd, 0, SEEK_END);
	dump = malloc(size + 1);
	if ((err && err != -EOPNOTSUPP) || !dump || pread(fd, dump, size, 0) != size)
		abort();
	if (!err)
		check_dump(dump, size);
	free(dump);
	close(fd);
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
	write_dump(core);
	core_close(core);
	return 0;
}
