// SPDX-License-Identifier: GPL-2.0-or-later
/* side.c - reads one of the two profiles of a comparison, as side.h describes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/export.h"
#include "tools/report/perf_file.h"
#include "tools/report/side.h"
#include "tools/shstk.h"

/* What take() needs for each sample. */
struct side {
	struct filter filter;
	const double *scale;
};

int64_t side_scaled(int64_t value, double scale)
{
	double ret = round(value * scale);

	return ret >= 0x1p63 ? INT64_MAX : ret <= -0x1p63 ? -INT64_MAX : (int64_t)ret;
}

static bool take(void *arg, struct shstk_profile *profile, struct shstk_sample *sample,
		 int64_t *values)
{
	struct side *side = arg;

	for (unsigned int i = 0; side->scale && i < profile->nr_types; i++)
		values[i] = side_scaled(values[i], side->scale[i]);
	return filter_takes(&side->filter, profile, sample);
}

int side_read(struct shstk_symbols *symbols, const char *path, const struct filter *filter,
	      const double *scale, struct shstk_profile **ret)
{
	struct side side = { .filter = *filter, .scale = scale };
	const struct shstk_read_opts opts = {
		.frames_only = filter->frames_only,
		.take = take,
		.arg = &side,
	};
	int failed;

	*ret = NULL;
	if (shstk_profile_create(symbols, ret)) {
		complain("%s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	filter_fork(&side.filter);
	filter_next_file(&side.filter);
	failed = report_read(*ret, path, &opts);
	filter_forget(&side.filter);
	if (!failed && filter_had_times(&side.filter, path))
		return EXIT_OK;
	shstk_profile_destroy(*ret);
	*ret = NULL;
	return EXIT_FAILED;
}
