/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps.h - reads /proc/PID/maps and smaps line by line, or asks the kernel for executable mappings.
 *
 * It is for this command. The objects that are preloaded into programs read their own maps without
 * libc's stdio (tools/inject/), since they do so in signal handlers and before libc is ready.
 */
#ifndef TOOLS_PROC_MAPS_H
#define TOOLS_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/**
 * struct mapping - a line of the file
 * @start: first address.
 * @end: first address behind the mapping.
 * @offset: offset of @start in the file, in bytes.
 * @dev: device of the file, as makedev(3) makes it.
 * @inode: inode number of the file, or 0.
 * @write: the mapping is writable.
 * @exec: the mapping is executable.
 * @path: the file, "[stack]" and the like, or ""; " (deleted)" may follow.
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
 * struct maps - a maps file that is being read
 * @in: the file.
 * @line: the line that was read last, without its end.
 * @room: bytes allocated for @line.
 * @asked: the address up to which maps_next_code() asked.
 * @buffer: what was read of @in at once. The kernel writes a page at a time; by stdio's own buffer of 1024
 *	bytes it looks four times as often where it was. Before anything is read, it has the path that
 *	maps_next_code() returns.
 *
 * It stays where it is while the file is open.
 */
struct maps {
	FILE *in;
	char *line;
	size_t room;
	uint64_t asked;
	char buffer[4096];
};

/**
 * maps_open() - begin to read the mappings of a process
 * @pid: the process, or a thread.
 * @file: "maps" or "smaps".
 * @ret: receives the state, which maps_close() releases.
 *
 * Return: 0, or a negative errno; then nothing is to be closed.
 */
int maps_open(pid_t pid, const char *file, struct maps *ret);

/**
 * maps_next() - read the next mapping
 * @maps: the file.
 * @ret: receives the mapping. @ret->path is valid until the next call.
 *
 * Lines that are no mappings are left out.
 *
 * Return: false if there are no more mappings.
 */
bool maps_next(struct maps *maps, struct mapping *ret);

/**
 * maps_next_code() - ask the kernel for the next executable mapping
 * @maps: a maps file of which no line was read yet.
 * @ret: receives the mapping. @ret->path is valid until the next call of any of these functions.
 *
 * The kernel writes no lines then, which are mostly of other mappings. What it answers is what the lines
 * of executable mappings have, but "[vsyscall]", which belongs to no process. Lines can still be read
 * afterwards, from the first one on.
 *
 * Return: 1; 0 if there are no more such mappings; a negative errno if only lines can tell: -ENOTTY before
 * Linux 6.11, -ESRCH if the thread has ended, -EILSEQ of a path that a line has in another form.
 */
int maps_next_code(struct maps *maps, struct mapping *ret);

/**
 * maps_next_named() - read the next mapping whose line has a text
 * @maps: the file.
 * @text: the text, such as a part of a path.
 * @ret: receives the mapping, as maps_next() has it.
 *
 * Other lines cost little.
 *
 * Return: false if there are no more such mappings.
 */
bool maps_next_named(struct maps *maps, const char *text, struct mapping *ret);

/**
 * maps_next_flagged() - read the next mapping that has a flag in smaps
 * @maps: an smaps file.
 * @flag: two letters, as in the file's lines "VmFlags:", such as "ss".
 * @ret: receives the mapping, without a path.
 *
 * Return: false if there are no more mappings with the flag.
 */
bool maps_next_flagged(struct maps *maps, const char *flag, struct mapping *ret);

/**
 * maps_close() - end reading
 * @maps: the file.
 *
 * Return: 0, or -EIO if the file could not be read to its end.
 */
int maps_close(struct maps *maps);

/* Returns the size of this process's vdso in bytes, 0 if it is not known. */
uint64_t maps_vdso_size(void);

#endif
