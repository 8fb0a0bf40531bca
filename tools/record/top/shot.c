// SPDX-License-Identifier: GPL-2.0-or-later
/* shot.c - the samples of one interval of `shstk top`. See shot.h. */
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/export.h"
#include "tools/record/top/shot.h"

static const char *keep(struct top_shot *shot, const char *text)
{
	return shstk_pool_text(&shot->pool, text, strlen(text));
}

/* Returns how many functions a record's stack has, with inlined ones. */
static size_t count_functions(const struct shstk_profile *profile, const struct shstk_record *from)
{
	size_t ret = from->note != SHSTK_NOTE_NONE;

	for (uint64_t i = 0; i < from->nr; i++)
		ret += shstk_location_symbol(profile, profile->locations[from->locations[i]])->nr;
	return ret;
}

/* Copies the names of a record's functions. Returns false when memory runs out. */
static bool take_functions(struct top_shot *shot, const struct shstk_profile *profile,
			   const struct shstk_record *from, struct top_shot_sample *to)
{
	to->functions = shstk_pool_alloc(&shot->pool,
					 (count_functions(profile, from) + 1) * sizeof(char *));
	if (!to->functions)
		return false;
	for (uint64_t i = 0; i < from->nr; i++) {
		const struct shstk_symbol *symbol =
			shstk_location_symbol(profile, profile->locations[from->locations[i]]);

		for (unsigned int k = 0; k < symbol->nr; k++) {
			to->functions[to->nr] = keep(shot, symbol->frames[k].function);
			if (!to->functions[to->nr++])
				return false;
		}
	}
	if (from->note == SHSTK_NOTE_NONE)
		return true;
	to->functions[to->nr] = keep(shot, shstk_note_name(from->note));
	return to->functions[to->nr++];
}

static bool take_sample(struct top_shot *shot, const struct shstk_profile *profile,
			const struct shstk_record *from, int64_t value)
{
	struct top_shot_sample *to = &shot->samples[shot->nr++];

	to->value = value;
	to->pid = shstk_symproc_pid(from->proc);
	to->tid = from->tid;
	to->comm = keep(shot, *from->comm ? from->comm : "[no name]");
	shot->total = shstk_add(shot->total, value);
	return to->comm && take_functions(shot, profile, from, to);
}

static bool take_all(struct top_shot *shot, const struct shstk_profile *profile)
{
	const unsigned int type = shstk_shown_type(profile, &(struct shstk_write_opts){ 0 });

	if (!profile->nr_types)
		return true;
	shot->type = keep(shot, profile->types[type].type);
	shot->unit = keep(shot, profile->types[type].unit);
	if (!shot->type || !shot->unit)
		return false;
	if (profile->nr_cautions)
		shot->caution = keep(shot, profile->cautions[0]);
	for (size_t i = 0; i < profile->nr_records; i++)
		if (!take_sample(shot, profile, profile->records[i],
				 profile->records[i]->values[type]))
			return false;
	return true;
}

struct top_shot *shot_take(const struct shstk_profile *profile)
{
	struct top_shot *shot = calloc(1, sizeof(*shot));

	if (!shot)
		return NULL;
	shstk_pool_init(&shot->pool);
	shot->type = shot->unit = "";
	shot->samples = calloc(profile->nr_records + 1, sizeof(*shot->samples));
	if (shot->samples && take_all(shot, profile))
		return shot;
	shot_drop(shot);
	return NULL;
}

const char *shot_name(const struct top_shot *shot, const char *name)
{
	for (size_t i = 0; i < shot->nr; i++)
		for (size_t k = 0; k < shot->samples[i].nr; k++)
			if (!strcmp(shot->samples[i].functions[k], name))
				return shot->samples[i].functions[k];
	return NULL;
}

void shot_drop(struct top_shot *shot)
{
	if (!shot)
		return;
	shstk_pool_deinit(&shot->pool);
	free(shot->samples);
	free(shot);
}
