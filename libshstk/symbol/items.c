// SPDX-License-Identifier: LGPL-2.1-or-later
/* items.c - lists the samples of a profile, thread by thread, as items.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "items.h"
#include "waits.h"

static int compare_threads(const struct shstk_record *x, const struct shstk_record *y)
{
	int a = shstk_symproc_pid(x->proc), b = shstk_symproc_pid(y->proc);

	if (a != b)
		return a < b ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->comm == y->comm ? 0 : strcmp(x->comm, y->comm);
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct shstk_item *x = a, *y = b;
	int ret = compare_threads(x->record, y->record);

	if (ret)
		return ret;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->record->number < y->record->number ? -1 : x->record->number > y->record->number;
}

static void add(struct shstk_items *items, const struct shstk_record *record, uint64_t time,
		int64_t value)
{
	if (value > 0)
		items->v[items->nr++] = (struct shstk_item){ record, time, value };
}

static void add_all(const struct shstk_profile *profile, unsigned int type, bool timed,
		    struct shstk_items *items)
{
	const struct shstk_moments *moments = &profile->moments;

	for (size_t i = 0; timed && i < moments->nr; i++) {
		const struct shstk_moment *moment = shstk_moments_at(moments, i);

		add(items, moment->record, moment->time, moment->values[type]);
	}
	for (size_t i = 0; !timed && i < profile->nr_records; i++)
		add(items, profile->records[i], 0, profile->records[i]->values[type]);
}

static void begin_at_0(struct shstk_items *items)
{
	for (size_t i = 0; i < items->nr; i++)
		if (items->v[i].time < items->first)
			items->first = items->v[i].time;
	for (size_t i = 0; i < items->nr; i++)
		items->v[i].time -= items->first;
}

/*
 * Sets @first of items that have no times because values are changes of a level: counters, and when
 * processes began and ended, have times.
 */
static void find_first(const struct shstk_profile *profile, unsigned int type,
		       struct shstk_items *items)
{
	const struct shstk_moments *moments = &profile->moments;

	if (!moments->nr || !shstk_type_is_level(profile, type))
		return;
	for (size_t i = 0; i < moments->nr; i++)
		if (shstk_moments_at(moments, i)->time < items->first)
			items->first = shstk_moments_at(moments, i)->time;
}

/* Gives the samples of each thread times, as if each had come when those before it had passed. */
static void make_times(struct shstk_items *items)
{
	int64_t time = 0;

	for (size_t i = 0; i < items->nr; i++) {
		if (i && compare_threads(items->v[i - 1].record, items->v[i].record))
			time = 0;
		items->v[i].time = time;
		time = shstk_add(time, items->v[i].value);
	}
}

int shstk_items_make(const struct shstk_profile *profile, unsigned int type,
		     struct shstk_items *ret)
{
	const struct shstk_moments *moments = &profile->moments;
	const bool timed = moments->nr && !shstk_moments_fall(moments, type);

	*ret = (struct shstk_items){ .first = UINT64_MAX };
	ret->v = calloc((timed ? moments->nr : profile->nr_records) + 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	add_all(profile, type, timed, ret);
	if (timed)
		begin_at_0(ret);
	qsort(ret->v, ret->nr, sizeof(*ret->v), by_thread_and_time);
	if (!timed) {
		find_first(profile, type, ret);
		make_times(ret);
	}
	return 0;
}

void shstk_items_deinit(struct shstk_items *items)
{
	free(items->v);
}

size_t shstk_items_end(const struct shstk_items *items, size_t from)
{
	size_t i = from + 1;

	while (i < items->nr && !compare_threads(items->v[from].record, items->v[i].record))
		i++;
	return i;
}

const char *shstk_item_thread(const struct shstk_profile *profile, const struct shstk_item *item)
{
	const struct shstk_record *record = item->record;
	const char *comm = *record->comm ? record->comm : "all", *ret;
	char *text;

	if (record->tid < 0)
		return comm;
	if (asprintf(&text, "%s %d/%d", comm, shstk_symproc_pid(record->proc), record->tid) < 0)
		return NULL;
	ret = shstk_pool_text(profile->text, text, strlen(text));
	free(text);
	return ret;
}
