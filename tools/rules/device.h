/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * device.h - copies files, and uploads their tables to /dev/shstk_rules.
 */
#ifndef TOOLS_RULES_DEVICE_H
#define TOOLS_RULES_DEVICE_H

#include <stddef.h>
#include <sys/stat.h>

#include "tools/rules/compile.h"

/**
 * struct rules_file - a copy of the bytes of a file, which nobody can change meanwhile
 * @fd: the file; -1 for the vdso.
 * @data: its bytes.
 * @size: number of bytes.
 * @before: status of the file from before it was copied.
 */
struct rules_file {
	int fd;
	const void *data;
	size_t size;
	struct stat before;
};

/*
 * These functions return 0 or a negative errno. They take over @fd, also if they fail.
 * rules_file_from_fd() calls rules_file_begin(), which checks the file, and rules_file_fill(),
 * which copies it. If rules_file_fill() fails, the caller must call rules_file_close()
 * nevertheless.
 */
int rules_file_begin(struct rules_file *file, int fd);
int rules_file_fill(struct rules_file *file);
int rules_file_open(struct rules_file *file, const char *path);
int rules_file_from_fd(struct rules_file *file, int fd);
/* Opens the vdso of this process. Returns -ENOENT if it has none. */
int rules_file_vdso(struct rules_file *file);
void rules_file_close(struct rules_file *file);

/**
 * rules_device() - open /dev/shstk_rules
 *
 * Return: a file descriptor, or -1 after an error message.
 */
int rules_device(void);

/**
 * rules_upload() - give the kernel the table of a file
 * @device: descriptor from rules_device().
 * @file: the file.
 * @path: its name, for SHSTK_RULES_LIST.
 * @table: the table.
 *
 * Return: 0; -ESTALE if the file was written to meanwhile; or another negative errno.
 */
int rules_upload(int device, const struct rules_file *file, const char *path,
		 const struct compiled_table *table);

/* Returns what an error of rules_upload() means. */
const char *rules_upload_error(int err);

/* Returns what an error of rules_compile() means. */
const char *rules_compile_error(int err);

#endif
