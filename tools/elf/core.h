/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/elf/core.h - reading core files of x86-64 and arm64, on either machine.
 *
 * A core file may be cut off anywhere and hold anything. What is read of it is
 * bounded by what is there; memory is read when it is asked for.
 */
#ifndef TOOLS_ELF_CORE_H
#define TOOLS_ELF_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshstk/shstk.h"
#include "tools/reason.h"

#define CORE_MAX_THREADS 65536
#define CORE_MAX_MAPS 65536

/**
 * struct core_segment - a range of the process's memory
 * @start: first address.
 * @end: first address behind it.
 * @dumped: bytes from @start that the core was to hold; the others are as in the
 *	mapped file.
 * @held: bytes from @start that it holds: fewer if it is cut off.
 * @offset: where they are in the core file.
 * @exec: it was executable.
 * @write: it was writable.
 */
struct core_segment {
	uint64_t start;
	uint64_t end;
	uint64_t dumped;
	uint64_t held;
	uint64_t offset;
	bool exec;
	bool write;
};

/**
 * struct core_map - a mapped file (NT_FILE)
 * @start: first address.
 * @end: first address behind it.
 * @offset: offset of @start in the file, in bytes.
 * @path: the file.
 */
struct core_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	const char *path;
};

/**
 * struct core_thread - a thread (NT_PRSTATUS and the notes after it)
 * @tid: thread ID.
 * @signo: signal that it had got.
 * @regs: registers.
 * @call: number of the system call that it may have been in.
 * @shadow_on: its shadow stack was on.
 * @shadow: where that is; @shadow.end is the end of the segment that has it, or
 *	0 if no segment does.
 */
struct core_thread {
	int tid;
	int signo;
	struct shstk_regs regs;
	int64_t call;
	bool shadow_on;
	struct shstk_shadow shadow;
};

/**
 * struct core - a core file
 * @path: as given.
 * @fd: open file.
 * @arch: enum shstk_arch.
 * @size: bytes in the file.
 * @wanted: bytes it would have if it were complete.
 * @segments: sorted by address, disjoint.
 * @nr_segments: number of @segments.
 * @maps: sorted by address, disjoint.
 * @nr_maps: number of @maps.
 * @threads: in the order of the file.
 * @nr_threads: number of @threads.
 * @pid: process ID, 0 if not told.
 * @comm: name of the process, "" if not told.
 * @entry: AT_ENTRY, where the program starts; 0 if not told.
 * @vdso: AT_SYSINFO_EHDR, or 0.
 * @damaged: notes that could not be understood.
 * @strings: all that was read of notes, to be freed.
 */
struct core {
	const char *path;
	int fd;
	int arch;
	uint64_t size;
	uint64_t wanted;
	struct core_segment *segments;
	size_t nr_segments;
	struct core_map *maps;
	size_t nr_maps;
	struct core_thread *threads;
	size_t nr_threads;
	int pid;
	char comm[17];
	uint64_t entry;
	uint64_t vdso;
	unsigned int damaged;
	char *strings;
};

/**
 * core_open() - open a core file and read its headers and notes
 * @path: the file.
 * @ret: receives the core; give it to core_close().
 * @why: receives why not, naming @path.
 *
 * Return: 0 or a negative errno.
 */
int core_open(const char *path, struct core **ret, struct reason *why);

/**
 * core_open_fd() - as core_open(), of an open file
 * @path: its name.
 * @fd: the file; taken over, also on failure.
 * @ret: see core_open().
 * @why: see core_open().
 *
 * Return: 0 or a negative errno.
 */
int core_open_fd(const char *path, int fd, struct core **ret, struct reason *why);

/**
 * core_close() - release a core
 * @core: a core, or NULL.
 */
void core_close(struct core *core);

/**
 * core_segment() - the segment that has an address, or NULL
 * @core: the core.
 * @addr: address.
 */
const struct core_segment *core_segment(const struct core *core, uint64_t addr);

/**
 * core_map() - the mapped file at an address, or NULL
 * @core: the core.
 * @addr: address.
 */
const struct core_map *core_map(const struct core *core, uint64_t addr);

/**
 * core_read() - read memory that the core file holds
 * @core: the core.
 * @addr: address.
 * @buf: receives the bytes.
 * @len: bytes wanted.
 *
 * Return: 0, or -EFAULT: not all of it is there.
 */
int core_read(const struct core *core, uint64_t addr, void *buf, size_t len);

#endif
