// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_shstk.c - the file that keeps all (keep.h), of a profile that is complete: with the times
 * of samples as far as the profile kept them.
 */
#include <string.h>

#include "keep.h"

static int keep_one(struct shstk_keep *keep, const struct shstk_profile *profile,
		    const struct shstk_record *record, uint64_t time, const int64_t *values)
{
	struct shstk_otlp_sample whole = { .record = record, .time = time, .cpu = -1 };

	memcpy(whole.values, values, profile->nr_types * sizeof(*values));
	return shstk_keep_add(keep, &whole);
}

int shstk_keep_profile(struct shstk_keep *keep, const struct shstk_profile *profile)
{
	const struct shstk_moments *moments = &profile->moments;
	int err = 0;

	for (size_t i = 0; i < moments->nr && !err; i++) {
		const struct shstk_moment *moment = shstk_moments_at(moments, i);

		err = keep_one(keep, profile, moment->record, moment->time, moment->values);
	}
	for (size_t i = 0; !moments->most && i < profile->nr_records && !err; i++)
		err = keep_one(keep, profile, profile->records[i], 0, profile->records[i]->values);
	return err;
}

static int write_shstk(const struct shstk_profile *profile, FILE *out,
		       const struct shstk_write_opts *opts)
{
	const struct shstk_otlp_about about = { .title = opts->title, .type = opts->type };
	struct shstk_keep *keep;
	int err = shstk_keep_create(profile, NULL, out, &about, &keep);

	if (err)
		return err;
	err = shstk_keep_profile(keep, profile);
	if (!err)
		return shstk_keep_finish(keep, opts->type);
	shstk_keep_drop(keep);
	return err;
}

const struct shstk_format shstk_format_shstk = {
	.name = "shstk",
	.suffixes = ".shstk",
	.write = write_shstk,
};
