/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps.h - reading /proc/PID/maps, and smaps, line by line.
 *
 * For this command. What is preloaded into programs reads its own maps without
 * libc's stdio (tools/inject/), as it does so in signal handlers and before libc is
 * ready.
 */
#ifndef TOOLS_PROC_MAPS_H
#define TOOLS_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/**
 * struct mapping - one line
 * @start: first address.
 * @end: first address behind it.
 * @offset: of @start in the file, in bytes.
 * @dev: device of the file, as makedev(3) has it.
 * @inode: of the file, or 0.
 * @write: it is writable.
 * @exec: it is executable.
 * @path: the file, "[stack]" and the like, or ""; " (deleted)" may follow it.
 */
struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t dev;
	uint64_t inode;
	bool write;
	bool exec;
	const char *path;
};

/**
 * struct maps - a maps file being read
 * @in: the file.
 * @line: the line of the mapping given last, without its end.
 * @room: bytes allocated of @line.
 */
struct maps {
	FILE *in;
	char *line;
	size_t room;
};

/**
 * maps_open() - begin to read the mappings of a process
 * @pid: the process, or a thread.
 * @file: "maps" or "smaps".
 * @ret: receives it; give it to maps_close().
 *
 * Return: 0 or a negative errno; nothing is to be closed then.
 */
int maps_open(pid_t pid, const char *file, struct maps *ret);

/**
 * maps_next() - the next mapping
 * @maps: the file.
 * @ret: receives it; @ret->path is valid until the next call.
 *
 * Lines that are no mappings are left out.
 *
 * Return: false: there is no further one.
 */
bool maps_next(struct maps *maps, struct mapping *ret);

/**
 * maps_next_flagged() - the next mapping that has a flag in smaps
 * @maps: an smaps file.
 * @flag: two letters as in its lines "VmFlags:", such as "ss".
 * @ret: receives it, without a path.
 *
 * Return: false: there is no further one.
 */
bool maps_next_flagged(struct maps *maps, const char *flag, struct mapping *ret);

/**
 * maps_close() - end reading
 * @maps: the file.
 *
 * Return: 0; or -EIO: it could not be read to its end.
 */
int maps_close(struct maps *maps);

/* Bytes of this process's vdso; 0: not known. */
uint64_t maps_vdso_size(void);

#endif
