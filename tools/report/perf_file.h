/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf_file.h - files of perf record, which `shstk report` and `shstk diff` read as profiles. */
#ifndef TOOLS_REPORT_PERF_FILE_H
#define TOOLS_REPORT_PERF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "libshstk/symbol/profile.h"

/* Does what shstk_profile_read() does, also with a file that perf record wrote. Says what failed. */
int report_read(struct shstk_profile *profile, const char *path,
		const struct shstk_read_opts *opts);

#endif
