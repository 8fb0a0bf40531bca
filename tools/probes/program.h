/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program.h - the BPF programs of bpf/heap.bpf.c, loaded into the kernel with their maps.
 *
 * The file is read by libelf and made into what bpf(2) takes here: it has three
 * programs and its maps are few and plain, so libbpf would be a dependency for little.
 */
#ifndef TOOLS_PROBES_PROGRAM_H
#define TOOLS_PROBES_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "tools/probes/bpf/event.h"
#include "tools/reason.h"

/* The programs, in the order of their names in program.c. */
enum probe_program {
	PROBE_ENTER,
	PROBE_LEAVE,
	PROBE_RELEASE,
	PROBE_PROGRAMS,
};

/**
 * struct programs - loaded
 * @maps: descriptors of the maps, by enum probe_map.
 * @programs: those of the programs, by enum probe_program.
 * @ring_size: bytes of the ring.
 */
struct programs {
	int maps[PROBE_MAPS];
	int programs[PROBE_PROGRAMS];
	size_t ring_size;
};

/**
 * programs_load() - load all
 * @path: the object file.
 * @ring_size: bytes of the ring, a power of two; it is halved as long as the kernel has
 *	not that much.
 * @ret: receives them, for programs_unload(), also on failure.
 * @why: receives why not.
 *
 * Return: 0 or a negative errno.
 */
int programs_load(const char *path, size_t ring_size, struct programs *ret, struct reason *why);

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
