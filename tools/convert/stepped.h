/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stepped.h - finds which instruction of a process is stepped outside of its function.
 *
 * Where another tool has put a probe (uprobe), the kernel writes a breakpoint into the code, and
 * executes the instruction that was there in a slot of a page of its own, which nobody can read.
 * Samples that are taken meanwhile have the address of the slot. The probed instructions are found by
 * comparing code with its file. Of a process that is gone only its files are there: then the
 * functions that were called last are tried, as most probes are at the beginning of a function.
 */
#ifndef TOOLS_CONVERT_STEPPED_H
#define TOOLS_CONVERT_STEPPED_H

#include <stddef.h>
#include <stdint.h>

#include "tools/convert/mappings.h"

#define STEPPED_SITES 64

/**
 * struct stepped_site - an instruction that may be probed
 * @address: its address.
 * @length: its bytes; 0: not known.
 */
struct stepped_site {
	uint64_t address;
	uint8_t length;
};

/**
 * struct stepped - the probed instructions of a process
 * @sites: the instructions; of more than STEPPED_SITES, the first ones.
 * @nr: number of @sites.
 * @read_at: CLOCK_MONOTONIC in ns, when they were looked for; 0: never.
 */
struct stepped {
	struct stepped_site sites[STEPPED_SITES];
	size_t nr;
	uint64_t read_at;
};

/* Returns whether the kernel's way to step instructions is known for an enum shstk_arch. */
bool stepped_is_known(int arch);

/*
 * Finds the probed instructions in @maps, unless that was done a moment ago. @files has to have
 * functions to read processes and open files.
 */
void stepped_find(struct stepped *s, const struct mappings_files *files, pid_t pid,
		  const struct mappings_map *maps, size_t nr);

/*
 * Adds an instruction of @length bytes (0: not known) that may be probed, unless it is there or there
 * is no room.
 */
void stepped_add(struct stepped *s, uint64_t address, uint8_t length);

/*
 * Returns whether @pc of the page @page is in the first slot, which has the trampoline of probed
 * returns, and no instruction.
 */
bool stepped_is_trampoline(int arch, uint64_t page, uint64_t pc);

/*
 * Returns where @pc of the page @page is if its slot is that of the instruction at @site; 0 if that is
 * neither the beginning nor the end of the instruction.
 */
uint64_t stepped_pc(int arch, uint64_t page, uint64_t pc, const struct stepped_site *site);

#define STEPPED_CALL 6 /* bytes of the longest call that names what it calls */
#define STEPPED_STUB 16 /* bytes of the longest stub of a linker, up to its jump */

/**
 * struct stepped_target - where a call or a jump leads to
 * @address: the address; 0: it is not in the code.
 * @slot: where the address lies in memory; 0: nowhere that is known.
 */
struct stepped_target {
	uint64_t address;
	uint64_t slot;
};

/*
 * Returns where the call before the return address @ra leads to. @code is what lies before @ra,
 * STEPPED_CALL bytes.
 */
struct stepped_target stepped_call(int arch, uint64_t ra, const uint8_t code[STEPPED_CALL]);

/*
 * Returns the slot by which the code at @at jumps, if it is a stub of a linker, or 0. @code is what
 * lies at @at, STEPPED_STUB bytes.
 */
uint64_t stepped_stub(int arch, uint64_t at, const uint8_t code[STEPPED_STUB]);

#endif
