/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorded_files.h - finds the files that processes had mapped when a perf.data file was recorded,
 * as they are on this machine now, or below a folder. living_files.h does so for living processes.
 */
#ifndef TOOLS_CONVERT_RECORDED_FILES_H
#define TOOLS_CONVERT_RECORDED_FILES_H

#include "tools/convert/mappings.h"
#include "tools/elf/image.h"
#include "tools/perf/data.h"

/**
 * struct past - where files of a perf.data file are found
 * @files: how files of mappings are found; valid as long as the struct is not moved.
 * @images: the files that were opened.
 * @pd: the perf.data file.
 */
struct past {
	struct mappings_files files;
	struct images images;
	const struct perfdata *pd;
};

/**
 * past_init() - prepare to find files
 * @past: receives the state, which past_deinit() releases.
 * @pd: the perf.data file, of a machine that is supported.
 * @sysroot: the folder below which the files are, or NULL.
 *
 * Return: 0, or a negative errno if @sysroot cannot be opened.
 */
int past_init(struct past *past, const struct perfdata *pd, const char *sysroot);
void past_deinit(struct past *past);

#endif
