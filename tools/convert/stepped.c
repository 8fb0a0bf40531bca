// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stepped.c - finds which instruction of a process is stepped outside of its function. See stepped.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/epilogue.h"
#include "libshstk/machine.h"
#include "tools/convert/stepped.h"
#include "tools/shstk.h"

#define AGAIN 1000000000 /* ns after which probed instructions are looked for again */
#define INSN_MAX 15 /* bytes of an instruction */
#define PART 4096 /* bytes that are compared at a time: no page is smaller */
#define ENTRIES 512 /* entries of /proc/PID/pagemap that are read at a time */
#define MOST_PAGES (1u << 20) /* pages of code that are looked at, of all mappings together */
#define MOST_COPIES 16384 /* pages that are compared with their file, of all mappings together */

#define PRESENT (1ull << 63) /* bits of an entry of /proc/PID/pagemap */
#define OF_FILE (1ull << 61)

/* How many pages may still be looked at, and how many of these compared. */
struct rest {
	size_t pages;
	size_t copies;
};

/**
 * struct stepping - how the kernel probes and steps instructions
 * @breakpoint: what it writes in the place of a probed instruction.
 * @breakpoint_size: bytes of @breakpoint. It lies at multiples of that.
 * @slot: bytes of a slot.
 */
struct stepping {
	uint8_t breakpoint[4];
	uint8_t breakpoint_size;
	uint8_t slot;
};

static const struct stepping *stepping_of(int arch)
{
	static const struct stepping x86 = { { 0xcc }, 1, 128 };
	static const struct stepping arm64 = { { 0xa0, 0x00, 0x20, 0xd4 }, 4, 4 }; /* brk #5 */

	return arch == SHSTK_ARCH_X86 ? &x86 : arch == SHSTK_ARCH_ARM64 ? &arm64 : NULL;
}

bool stepped_is_known(int arch)
{
	return stepping_of(arch);
}

void stepped_add(struct stepped *s, uint64_t address, uint8_t length)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->sites[i].address == address)
			return;
	if (s->nr < STEPPED_SITES)
		s->sites[s->nr++] = (struct stepped_site){ address, length };
}

/* Returns the bytes of the instruction that a file has at @offset; 0 if that is not known. */
static uint8_t length_of(int arch, int fd, uint64_t offset)
{
	const struct machine *m = machine_by_arch(arch);
	uint8_t code[INSN_MAX];
	struct effect e = { .len = 0 };
	const ssize_t n = pread(fd, code, sizeof(code), (off_t)offset);

	return n > 0 && m->decode && m->decode(code, (size_t)n, 0, &e) ? e.len : 0;
}

/* Adds the places of a part of a page where memory has a breakpoint and the file has none. */
static void compare_part(struct stepped *s, const struct mappings_files *files, pid_t pid, int fd,
			 uint64_t addr, uint64_t offset)
{
	const struct stepping *how = stepping_of(files->arch);
	const size_t size = how->breakpoint_size;
	uint8_t here[PART], there[PART];

	if (files->read(files->arg, pid, addr, there, PART) ||
	    pread(fd, here, PART, (off_t)offset) != PART)
		return;
	for (size_t i = 0; i < PART && s->nr < STEPPED_SITES; i += size)
		if (!memcmp(there + i, how->breakpoint, size) && memcmp(here + i, there + i, size))
			stepped_add(s, addr + i, length_of(files->arch, fd, offset + i));
}

/* Returns whether more is to be looked at. */
static bool goes_on(const struct stepped *s, const struct rest *rest)
{
	return s->nr < STEPPED_SITES && rest->pages && rest->copies;
}

/* The kernel copies a page of a file before it writes a breakpoint. Looks at such pages. */
static void find_breakpoints(struct stepped *s, const struct mappings_files *files, pid_t pid,
			     int pagemap, int fd, const struct mappings_map *map, struct rest *rest)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t entries[ENTRIES];
	uint64_t addr = map->start;

	while (addr < map->end && goes_on(s, rest)) {
		size_t want = (map->end - addr) / page;
		ssize_t got;

		want = want < ENTRIES ? want : ENTRIES;
		want = want < rest->pages ? want : rest->pages;
		got = pread(pagemap, entries, want * sizeof(*entries),
			    (off_t)(addr / page * sizeof(*entries)));
		if (got < (ssize_t)sizeof(*entries))
			return;
		rest->pages -= got / sizeof(*entries);
		for (size_t i = 0; i < got / sizeof(*entries) && rest->copies; i++, addr += page) {
			if ((entries[i] & (PRESENT | OF_FILE)) != PRESENT)
				continue;
			rest->copies--;
			for (uint64_t at = addr; at < addr + page; at += PART)
				compare_part(s, files, pid, fd, at,
					     map->offset + (at - map->start));
		}
	}
}

void stepped_find(struct stepped *s, const struct mappings_files *files, pid_t pid,
		  const struct mappings_map *maps, size_t nr)
{
	struct rest rest = { MOST_PAGES, MOST_COPIES };
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	char path[32];
	int pagemap;

	if (!stepped_is_known(files->arch) || (s->read_at && now - s->read_at < AGAIN))
		return;
	s->nr = 0;
	s->read_at = now;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; pagemap >= 0 && i < nr && goes_on(s, &rest); i++) {
		int fd = mappings_is_file(maps[i].path) ? files->open(files->arg, pid, &maps[i]) :
							  -1;

		if (fd < 0)
			continue;
		find_breakpoints(s, files, pid, pagemap, fd, &maps[i], &rest);
		close(fd);
	}
	if (pagemap >= 0)
		close(pagemap);
}

bool stepped_is_trampoline(int arch, uint64_t page, uint64_t pc)
{
	return pc - page < stepping_of(arch)->slot;
}

uint64_t stepped_pc(int arch, uint64_t page, uint64_t pc, const struct stepped_site *site)
{
	const uint64_t done = (pc - page) % stepping_of(arch)->slot;

	return !done || !site->length || done == site->length ? site->address + done : 0;
}

static int32_t distance_at(const uint8_t *code)
{
	int32_t ret;

	memcpy(&ret, code, sizeof(ret));
	return ret;
}

/* A direct call, or one through a word whose distance it has, as -fno-plt makes them. */
static struct stepped_target call_x86(uint64_t ra, const uint8_t code[STEPPED_CALL])
{
	const uint64_t there = ra + (int64_t)distance_at(code + 2);

	if (code[1] == 0xe8)
		return (struct stepped_target){ .address = there };
	return (struct stepped_target){ .slot = code[0] == 0xff && code[1] == 0x15 ? there : 0 };
}

/* BL has the distance from itself, in words, in its lower 26 bits. */
static struct stepped_target call_arm64(uint64_t ra, const uint8_t code[STEPPED_CALL])
{
	const uint32_t bl = (uint32_t)distance_at(code + STEPPED_CALL - 4);
	const int32_t distance = (int32_t)(bl << 6) / 16;

	return (struct stepped_target){ .address = bl >> 26 == 0x25 ? ra - 4 + (int64_t)distance :
								      0 };
}

struct stepped_target stepped_call(int arch, uint64_t ra, const uint8_t code[STEPPED_CALL])
{
	return arch == SHSTK_ARCH_ARM64 ? call_arm64(ra, code) : call_x86(ra, code);
}

/* A jump through a word, perhaps behind ENDBR64 and with a prefix. */
static uint64_t stub_x86(uint64_t at, const uint8_t code[STEPPED_STUB])
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t i = memcmp(code, endbr, sizeof(endbr)) ? 0 : sizeof(endbr);

	i += code[i] == 0xf2;
	return code[i] == 0xff && code[i + 1] == 0x25 ?
		       at + i + 6 + (int64_t)distance_at(code + i + 2) :
		       0;
}

/* ADRP and LDR of a register, perhaps behind BTI. */
static uint64_t stub_arm64(uint64_t at, const uint8_t code[STEPPED_STUB])
{
	const size_t i = (uint32_t)distance_at(code) == 0xd503245f ? 4 : 0;
	const uint32_t adrp = (uint32_t)distance_at(code + i);
	const uint32_t ldr = (uint32_t)distance_at(code + i + 4);
	const uint32_t pages = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);

	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return 0;
	return ((at + i) & ~0xfffull) + ((int64_t)(int32_t)(pages << 11) >> 11) * 4096 +
	       (ldr >> 10 & 0xfff) * 8;
}

uint64_t stepped_stub(int arch, uint64_t at, const uint8_t code[STEPPED_STUB])
{
	return arch == SHSTK_ARCH_ARM64 ? stub_arm64(at, code) : stub_x86(at, code);
}
