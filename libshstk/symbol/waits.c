// SPDX-License-Identifier: LGPL-2.1-or-later
/* waits.c - what a thread did in a sample, as waits.h describes. */
#include <stdlib.h>
#include <string.h>

#include "waits.h"

const char *shstk_record_label(const struct shstk_record *record, const char *key)
{
	const struct shstk_labels *labels = record->labels;

	for (size_t i = 0; labels && i < labels->nr; i += 2)
		if (!strcmp(labels->text[i], key))
			return labels->text[i + 1];
	return NULL;
}

const char *shstk_record_state(const struct shstk_value_type *type,
			       const struct shstk_record *record)
{
	static const char *const states[] = { "waiting", "preempted" };
	const char *label = shstk_record_label(record, "state");

	if (strcmp(type->unit, "nanoseconds"))
		return NULL;
	for (size_t i = 0; label && i < sizeof(states) / sizeof(*states); i++)
		if (!strcmp(label, states[i]))
			return states[i];
	return !strcmp(type->type, "off-cpu") ? states[0] :
	       !strcmp(type->type, states[1]) ? states[1] :
						NULL;
}

const char *shstk_record_place(const struct shstk_profile *profile,
			       const struct shstk_record *record)
{
	const struct shstk_location *at;
	uint64_t i = 0;

	while (i + 1 < record->nr && profile->locations[record->locations[i]]->pc >> 63)
		i++;
	if (i >= record->nr)
		return shstk_note_name(record->note);
	at = profile->locations[record->locations[i]];
	return shstk_location_symbol(profile, at)->frames[0].function;
}

bool shstk_type_is_level(const struct shstk_profile *profile, unsigned int type)
{
	const char *name = profile->types[type].type;

	return !strncmp(name, "inuse_", 6) || !strncmp(name, "peak_", 5) ||
	       shstk_moments_fall(&profile->moments, type);
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct shstk_moment *x = *(const struct shstk_moment *const *)a;
	const struct shstk_moment *y = *(const struct shstk_moment *const *)b;
	int p = shstk_symproc_pid(x->record->proc), q = shstk_symproc_pid(y->record->proc);

	if (p != q)
		return p < q ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

const struct shstk_moment **shstk_moments_by_process(const struct shstk_profile *profile,
						     uint64_t *first)
{
	const struct shstk_moments *moments = &profile->moments;
	const struct shstk_moment **list = calloc(moments->nr + 1, sizeof(*list));

	*first = UINT64_MAX;
	for (size_t i = 0; list && i < moments->nr; i++) {
		list[i] = shstk_moments_at(moments, i);
		if (list[i]->time < *first)
			*first = list[i]->time;
	}
	if (list)
		qsort(list, moments->nr, sizeof(*list), by_process_and_time);
	return list;
}
