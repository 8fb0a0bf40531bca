/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * past.h - the files that processes had mapped when a perf.data file was recorded, as they are on
 * this machine now, or below a folder. live.h is the same for processes that live.
 */
#ifndef TOOLS_CONVERT_PAST_H
#define TOOLS_CONVERT_PAST_H

#include "tools/convert/layout.h"
#include "tools/elf/image.h"
#include "tools/perf/data.h"

/**
 * struct past - where files are
 * @files: how layouts find them; valid as long as it is not moved.
 * @images: the files that were opened.
 * @pd: what was recorded.
 */
struct past {
	struct layout_files files;
	struct images images;
	const struct perfdata *pd;
};

/**
 * past_init() - begin
 * @past: receives it; give it to past_deinit().
 * @pd: what was recorded, on a machine that is supported.
 * @sysroot: the folder that files are below, or NULL.
 *
 * Return: 0 or a negative errno: @sysroot cannot be opened.
 */
int past_init(struct past *past, const struct perfdata *pd, const char *sysroot);
void past_deinit(struct past *past);

#endif
