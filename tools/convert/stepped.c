// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stepped.c - finds which instruction of a living process is stepped outside of its function. See
 * stepped.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/convert/stepped.h"
#include "tools/shstk.h"

#define AGAIN 1000000000 /* ns after which probed instructions are looked for again */
#define SLOT 128 /* bytes of a slot on x86 */
#define PAGE 4096
#define ENTRIES 512 /* entries of /proc/PID/pagemap that are read at a time */
#define MOST_PAGES (1u << 20) /* pages of code that are looked at, of all mappings together */
#define MOST_COPIES 16384 /* pages that are compared with their file, of all mappings together */
#define BREAKPOINT 0xcc
#define CALL 0xe8
#define CALL_SIZE 5

#define PRESENT (1ull << 63) /* bits of an entry of /proc/PID/pagemap */
#define OF_FILE (1ull << 61)

/* How many pages may still be looked at, and how many of these compared. */
struct rest {
	size_t pages;
	size_t copies;
};

/* Adds the places of a page where memory has a breakpoint and the file has none. */
static void compare_page(struct stepped *s, const struct layout_files *files, pid_t pid, int fd,
			 uint64_t addr, uint64_t offset)
{
	uint8_t here[PAGE], there[PAGE];

	if (files->read(files->arg, pid, addr, there, PAGE) ||
	    pread(fd, here, PAGE, (off_t)offset) != PAGE)
		return;
	for (size_t i = 0; i < PAGE && s->nr < STEPPED_SITES; i++)
		if (there[i] == BREAKPOINT && here[i] != BREAKPOINT)
			s->sites[s->nr++] = addr + i;
}

/* Returns whether more is to be looked at. */
static bool goes_on(const struct stepped *s, const struct rest *rest)
{
	return s->nr < STEPPED_SITES && rest->pages && rest->copies;
}

/* The kernel copies a page of a file before it writes a breakpoint. Looks at such pages. */
static void find_breakpoints(struct stepped *s, const struct layout_files *files, pid_t pid,
			     int pagemap, int fd, const struct layout_map *map, struct rest *rest)
{
	uint64_t entries[ENTRIES];
	uint64_t addr = map->start;

	while (addr < map->end && goes_on(s, rest)) {
		size_t want = (map->end - addr) / PAGE;
		ssize_t got;

		want = want < ENTRIES ? want : ENTRIES;
		want = want < rest->pages ? want : rest->pages;
		got = pread(pagemap, entries, want * sizeof(*entries),
			    (off_t)(addr / PAGE * sizeof(*entries)));
		if (got < (ssize_t)sizeof(*entries))
			return;
		rest->pages -= got / sizeof(*entries);
		for (size_t i = 0; i < got / sizeof(*entries) && rest->copies; i++, addr += PAGE) {
			if ((entries[i] & (PRESENT | OF_FILE)) != PRESENT)
				continue;
			rest->copies--;
			compare_page(s, files, pid, fd, addr, map->offset + (addr - map->start));
		}
	}
}

void stepped_find(struct stepped *s, const struct layout_files *files, pid_t pid,
		  const struct layout_map *maps, size_t nr)
{
	struct rest rest = { MOST_PAGES, MOST_COPIES };
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	char path[32];
	int pagemap;

	if (s->read_at && now - s->read_at < AGAIN)
		return;
	s->nr = 0;
	s->read_at = now;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; pagemap >= 0 && i < nr && goes_on(s, &rest); i++) {
		int fd = layout_is_file(maps[i].path) ? files->open(files->arg, pid, &maps[i]) : -1;

		if (fd < 0)
			continue;
		find_breakpoints(s, files, pid, pagemap, fd, &maps[i], &rest);
		close(fd);
	}
	if (pagemap >= 0)
		close(pagemap);
}

uint64_t stepped_pc(uint64_t page, uint64_t pc, uint64_t site)
{
	return site + (pc - page) % SLOT;
}

bool stepped_is_called(const struct layout_files *files, pid_t pid, uint64_t ra, uint64_t site)
{
	uint8_t code[CALL_SIZE];
	int32_t distance;

	if (ra < CALL_SIZE || files->read(files->arg, pid, ra - CALL_SIZE, code, CALL_SIZE) ||
	    *code != CALL)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	return ra + (int64_t)distance == site;
}
