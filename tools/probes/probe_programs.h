/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probe_programs.h - load the BPF programs of one object file (tools/probes/bpf/) into the kernel,
 * with their maps.
 *
 * libelf reads the file, and the loader here turns it into what bpf(2) takes. The file has few
 * programs and its maps are few and simple, so a dependency on libbpf would bring little.
 */
#ifndef TOOLS_PROBES_PROBE_PROGRAMS_H
#define TOOLS_PROBES_PROBE_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/probes/bpf/event.h"
#include "tools/reason.h"

/* The programs of heap.bpf.c, in the order of their names in probe_programs.c. */
enum probe_program {
	PROBE_ENTER,
	PROBE_LEAVE,
	PROBE_RELEASE,
	PROBE_BEGUN,
	PROBE_TELLS_MAPPED,
	PROBE_PROGRAMS,
};

/**
 * struct program_file - the contents of an object file
 * @type: BPF_PROG_TYPE_* of its programs.
 * @names: section names of the programs.
 * @programs: number of programs.
 * @maps: number of maps.
 * @ring: index of the map that is a ring buffer.
 */
struct program_file {
	uint32_t type;
	const char *const *names;
	unsigned int programs;
	unsigned int maps;
	unsigned int ring;
};

/*
 * The contents of heap.bpf.c, whose maps are those of enum probe_map, and of goroutine.bpf.c, which
 * has one program and one map.
 */
extern const struct program_file heap_programs, goroutine_programs;

/**
 * struct programs - programs that are loaded
 * @file: the contents of their object file.
 * @maps: descriptors of the maps; there is room for those of any file.
 * @programs: descriptors of the programs; there is room for those of any file.
 * @ring_size: bytes of the ring buffer.
 */
struct programs {
	const struct program_file *file;
	int maps[PROBE_MAPS];
	int programs[PROBE_PROGRAMS];
	size_t ring_size;
};

/**
 * programs_load() - load all programs and maps of an object file
 * @file: contents of the object file.
 * @path: path of the object file.
 * @ring_size: bytes of the ring buffer, a power of two. It is halved as long as the kernel does not
 *	have that much memory.
 * @ret: receives the programs; give it to programs_unload(), also after a failure.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int programs_load(const struct program_file *file, const char *path, size_t ring_size,
		  struct programs *ret, struct reason *why);

/* Unloads the programs. @p is all zeros, or was passed to programs_load(). */
void programs_unload(struct programs *p);

/* Writes entry @i of an array map. Returns 0 or a negative errno. */
int programs_set(const struct programs *p, enum probe_map map, uint32_t i, const void *value);

/* Reads entry 0 of an array map. Returns 0 or a negative errno. */
int programs_get(const struct programs *p, enum probe_map map, void *value);

/* Returns 1 if @block is among the blocks that the BPF programs know to be in use, else 0. */
int programs_has_block(const struct programs *p, const struct probe_block *block);

/*
 * Attaches a program to the perf event @fd. Returns a descriptor of the link, or a negative errno.
 */
int programs_attach(const struct programs *p, enum probe_program which, int fd, uint64_t cookie);

#endif
