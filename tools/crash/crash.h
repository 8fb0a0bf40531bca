/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crash.h - `shstk crash`: a report of a process that the kernel is about to write a core file of.
 *
 *   crash.c   the command line, and the order of things
 *   head.c    reads a core file's headers and registers from a pipe
 *   caught.c  reads from /proc what a core file would tell, of a process in its own handler
 *   caught_maps.c  reads the mappings for it
 *   print.c   the report: cause, stacks, registers, mapped files
 *   minidump.c  the same as a minidump file
 *   files.c   finds mapped files, for both
 *   store.c   the folder of reports
 *   pass.c    hands the core file on, to a file or to another program
 *
 * The kernel starts the command as the handler that kernel.core_pattern names, and writes the core
 * file into its standard input. Registers and the list of mappings come first. Memory would follow,
 * gigabytes of it; but as long as nobody reads them the process stands where it was, so that the
 * stacks can be read from its memory instead.
 */
#ifndef TOOLS_CRASH_CRASH_H
#define TOOLS_CRASH_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/elf/core_file.h"
#include "tools/reason.h"
#include "tools/trace/trace.h"

/**
 * struct crash_opts - the options of `shstk crash`
 * @pid: the process that still exists; 0: there is only a core file.
 * @caught: the process waits in a handler of libshstk-crash, and there is no core file.
 * @file: the core file, or NULL for standard input.
 * @output: file to write the report to, "-" for standard output; or NULL: a new file in @dir.
 * @dir: folder of reports.
 * @max: number of reports that are kept in @dir, and of core files in @core_dir.
 * @core_dir: folder to keep core files in, or NULL.
 * @core_size: bytes of a core file that are kept at most.
 * @timeout: seconds after which the report is given up.
 * @minidump: write a minidump file instead of a report.
 * @trace: how the stacks are taken and shown.
 * @command: program that gets the core file afterwards, and its arguments; or NULL.
 */
struct crash_opts {
	int pid;
	bool caught;
	const char *file;
	const char *output;
	const char *dir;
	unsigned int max;
	const char *core_dir;
	uint64_t core_size;
	unsigned int timeout;
	bool minidump;
	struct trace_opts trace;
	char **command;
};

/**
 * struct crash_head - what was read of a core file from a pipe
 * @fd: a file without a name that has these bytes.
 * @size: number of bytes.
 */
struct crash_head {
	int fd;
	uint64_t size;
};

/**
 * crash_read_head() - read a core file from a pipe up to the end of its notes
 * @in: the pipe.
 * @head: receives what was read, also on failure; @head->fd is -1 if nothing can be kept.
 * @why: receives the reason of a failure.
 *
 * A file that hardly has more than that is read to its end: the process may not wait then.
 *
 * Return: 0 or a negative errno.
 */
int crash_read_head(int in, struct crash_head *head, struct reason *why);

/**
 * crash_caught() - describe a process whose handler started this command, as its core file would
 * @pid: the process. It is stopped until this process ends.
 * @ret: receives what is known; give it to core_close().
 * @why: receives the reason of a failure.
 *
 * The message of the handler is read from standard input.
 *
 * Return: 0 or a negative errno.
 */
int crash_caught(int pid, struct core **ret, struct reason *why);

/**
 * crash_read_maps() - read what a stopped process has mapped
 * @core: the process; receives @segments, @maps and @strings, which core_close() frees, also on
 *	failure.
 *
 * Return: 0 or a negative errno.
 */
int crash_read_maps(struct core *core);

/* Tells the handler that the report is written. */
void crash_answer(void);

/**
 * crash_print() - write the report to standard output
 * @opts: the options.
 * @core: the core file, with the memory of the process if it still exists.
 *
 * Return: exit status.
 */
int crash_print(const struct crash_opts *opts, struct core *core);

/**
 * crash_minidump() - write a minidump file
 * @core: the core file, or the process.
 * @fd: where it is written.
 *
 * Of each stack its used part is written, at most 64 KiB, and of all stacks 32 MiB.
 *
 * Return: 0; -EOPNOTSUPP for a machine that such files are not read of; or another negative errno.
 */
int crash_minidump(const struct core *core, int fd);

struct build_id;

/**
 * crash_whole_file() - find the mappings of one file, which are neighbours
 * @core: the core file, or the process.
 * @i: index of the first one in @core->maps.
 * @id: receives the build id, whose size is 0 if there is none.
 *
 * Return: index of the first mapping that follows.
 */
size_t crash_whole_file(const struct core *core, size_t i, struct build_id *id);

/**
 * crash_store() - make a new file in a folder of reports or core files
 * @dir: the folder. It is made if it does not exist, for its owner only.
 * @name: name of the process; bytes that do not belong into a file name are replaced.
 * @pid: its number.
 * @suffix: how the name of the file ends, such as ".txt".
 * @path: receives the path.
 * @size: bytes of @path.
 *
 * Return: a descriptor or a negative errno.
 */
int crash_store(const char *dir, const char *name, int pid, const char *suffix, char *path,
		size_t size);

/**
 * crash_prune() - remove the oldest reports of a folder
 * @dir: the folder.
 * @suffix: how the names of the files end that count.
 * @max: number of files to keep.
 */
void crash_prune(const char *dir, const char *suffix, unsigned int max);

/**
 * crash_keep() - write a core file whose beginning was read
 * @head: the beginning.
 * @in: the pipe with the rest.
 * @out: the file.
 * @max: bytes to write at most.
 *
 * Return: 0; -EFBIG if there was more; or another negative errno.
 */
int crash_keep(const struct crash_head *head, int in, int out, uint64_t max);

/**
 * crash_pass() - start a program that reads the whole core file from its standard input
 * @head: the beginning.
 * @in: the pipe with the rest.
 * @command: the program and its arguments.
 *
 * Return: exit status of the program, or of this command if it cannot be started.
 */
int crash_pass(const struct crash_head *head, int in, char **command);

#endif
