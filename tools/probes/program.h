/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program.h - the BPF programs of a file in bpf/, loaded into the kernel with their maps.
 *
 * The file is read by libelf and made into what bpf(2) takes here: it has a few
 * programs and its maps are few and plain, so libbpf would be a dependency for little.
 */
#ifndef TOOLS_PROBES_PROGRAM_H
#define TOOLS_PROBES_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "tools/probes/bpf/event.h"
#include "tools/reason.h"

/* The programs of heap.bpf.c, in the order of their names in program.c. */
enum probe_program {
	PROBE_ENTER,
	PROBE_LEAVE,
	PROBE_RELEASE,
	PROBE_PROGRAMS,
};

/**
 * struct program_file - what a file has
 * @type: BPF_PROG_TYPE_* of its programs.
 * @names: the sections of these,
 * @programs: so many.
 * @maps: so many maps.
 * @ring: number of the map that is a ring.
 */
struct program_file {
	uint32_t type;
	const char *const *names;
	unsigned int programs;
	unsigned int maps;
	unsigned int ring;
};

/* Of heap.bpf.c, with the maps of enum probe_map; and of goroutine.bpf.c, which has one of each. */
extern const struct program_file heap_programs, goroutine_programs;

/**
 * struct programs - loaded
 * @file: what file they are of.
 * @maps: descriptors of the maps, as many as the file with the most has.
 * @programs: those of the programs, likewise.
 * @ring_size: bytes of the ring.
 */
struct programs {
	const struct program_file *file;
	int maps[PROBE_MAPS];
	int programs[PROBE_PROGRAMS];
	size_t ring_size;
};

/**
 * programs_load() - load all
 * @file: what is in the object file.
 * @path: its path.
 * @ring_size: bytes of the ring, a power of two; it is halved as long as the kernel has
 *	not that much.
 * @ret: receives them, for programs_unload(), also on failure.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int programs_load(const struct program_file *file, const char *path, size_t ring_size,
		  struct programs *ret, struct reason *why);

/* @p is all zero, or was handed to programs_load(). */
void programs_unload(struct programs *p);

/* Writes entry @i of an array. Returns 0 or a negative errno. */
int programs_set(const struct programs *p, enum probe_map map, uint32_t i, const void *value);

/* Reads entry 0 of an array. Returns 0 or a negative errno. */
int programs_get(const struct programs *p, enum probe_map map, void *value);

/* Does the kernel still have the block as one that is in use? */
int programs_has_block(const struct programs *p, const struct probe_block *block);

/* Attaches a program to perf event @fd. Returns a descriptor or a negative errno. */
int programs_attach(const struct programs *p, enum probe_program which, int fd, uint64_t cookie);

#endif
