/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source_file.h - reads lines of a source file, whose name and content are untrusted.
 *
 * Only a regular file is opened. It is read from its beginning to the last line that is asked for,
 * but not more than 64 MiB of it, and little of it is in memory at a time.
 */
#ifndef TOOLS_REPORT_SOURCE_FILE_H
#define TOOLS_REPORT_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/reason.h"

struct source_file;

/**
 * source_file_open() - open a source file
 * @path: path of the file, as debug information has it.
 * @dir: folder in which the file is looked for first: there it may have all or only the last parts
 *	of @path; or NULL.
 * @why: receives the reason of a failure, which does not name the file.
 *
 * Return: the file, to be given to source_file_close(); or NULL.
 */
struct source_file *source_file_open(const char *path, const char *dir, struct reason *why);
void source_file_close(struct source_file *file);

/* Returns the time of the file's last change, in ns since 1970. */
int64_t source_file_changed(const struct source_file *file);

/**
 * source_file_line() - read a line
 * @file: the file.
 * @number: number of the line from 1, larger than that of the line before.
 * @ret: receives the bytes of the line without its end, valid until the next call. What a line has
 *	behind the first 8 KiB is left out.
 * @len: receives the number of bytes.
 *
 * Return: false if the file has no such line, or it lies behind the first 64 MiB.
 */
bool source_file_line(struct source_file *file, uint64_t number, const char **ret, size_t *len);

#endif
