/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stepped.h - finds which instruction of a living process is stepped outside of its function.
 *
 * Where another tool has put a probe (uprobe), the kernel writes a breakpoint into the code, and
 * executes the instruction that was there in a slot of a page of its own, which nobody can read.
 * Samples that are taken meanwhile have the address of the slot. The probed instructions are found by
 * comparing code with its file.
 */
#ifndef TOOLS_CONVERT_STEPPED_H
#define TOOLS_CONVERT_STEPPED_H

#include <stddef.h>
#include <stdint.h>

#include "tools/convert/mappings.h"

#define STEPPED_SITES 64

/**
 * struct stepped - the probed instructions of a process
 * @sites: their addresses; of more than STEPPED_SITES, the first ones.
 * @nr: number of @sites.
 * @read_at: CLOCK_MONOTONIC in ns, when they were looked for; 0: never.
 */
struct stepped {
	uint64_t sites[STEPPED_SITES];
	size_t nr;
	uint64_t read_at;
};

/*
 * Finds the probed instructions in @maps, unless that was done a moment ago. @files has to have
 * functions to read processes and open files.
 */
void stepped_find(struct stepped *s, const struct layout_files *files, pid_t pid,
		  const struct layout_map *maps, size_t nr);

/* Returns where @pc of the page @page is if its slot is that of the instruction at @site. */
uint64_t stepped_pc(uint64_t page, uint64_t pc, uint64_t site);

/*
 * Returns whether the call before the return address @ra, in the memory of process @pid, leads to
 * @site.
 */
bool stepped_is_called(const struct layout_files *files, pid_t pid, uint64_t ra, uint64_t site);

#endif
