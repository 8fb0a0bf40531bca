// SPDX-License-Identifier: GPL-2.0-or-later
/* spots.c - lines and addresses of a function, as spots.h describes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/spots.h"

/* Returns the spot of a key, made if it is new; NULL when memory runs out. */
static struct spot *get(struct spots *spots, struct spot **table, const struct spot *key)
{
	struct spot *spot;

	HASH_FIND(hh, *table, &key->key, sizeof(key->key), spot);
	if (spot)
		return spot;
	spot = shstk_pool_alloc(&spots->pool, sizeof(*spot));
	if (!spot)
		return NULL;
	spot->key = key->key;
	HASH_ADD(hh, *table, key, sizeof(spot->key), spot);
	return spot->hh.tbl ? spot : NULL;
}

static void add(struct spot *spot, const struct shstk_record *record, int64_t value, bool innermost)
{
	if (innermost)
		spot->self = shstk_add(spot->self, value);
	if (spot->seen != record)
		spot->total = shstk_add(spot->total, value);
	spot->seen = record;
}

/* Adds a record to the line of a frame, and makes the line of the function's declaration. */
static int add_line(struct spots *spots, const struct shstk_symframe *frame,
		    const struct shstk_record *record, int64_t value, bool innermost)
{
	struct spot key = { 0 }, *spot;

	if (frame->file && frame->line) {
		key.key.file = frame->file;
		key.key.number = frame->line;
	}
	spot = get(spots, &spots->lines, &key);
	if (!spot)
		return -ENOMEM;
	add(spot, record, value, innermost);
	if (!key.key.file || !frame->start_line || frame->start_line > frame->line)
		return 0;
	key.key.number = frame->start_line;
	return get(spots, &spots->lines, &key) ? 0 : -ENOMEM;
}

static int add_address(struct spots *spots, const struct shstk_location *location,
		       const struct shstk_record *record, int64_t value, bool innermost)
{
	struct spot key = { 0 }, *spot;

	if (!location->pc || location->map->kind >= SHSTK_SYMMAP_NAMED)
		return 0;
	key.key.map = location->map;
	/* The call before a return address is meant. */
	key.key.number = location->pc - (location->how == SHSTK_SYMADDR_RETURN);
	spot = get(spots, &spots->addresses, &key);
	if (!spot)
		return -ENOMEM;
	add(spot, record, value, innermost);
	return 0;
}

static bool is_named(const struct shstk_symframe *frame, const char *name)
{
	/* Equal strings of the profile's pool are the same pointer. */
	return frame->function == name || frame->linkage == name;
}

/* Adds what one entry of a record's stack has of the function. Returns 0 or -ENOMEM. */
static int add_entry(struct spots *spots, const struct shstk_record *record, uint64_t i)
{
	const struct shstk_location *location = spots->profile->locations[record->locations[i]];
	const struct shstk_symbol *symbol = shstk_location_symbol(spots->profile, location);
	const int64_t value = record->values[spots->type];
	bool any = false, innermost = false;
	int err = 0;

	for (unsigned int k = 0; k < symbol->nr && !err; k++) {
		if (!is_named(&symbol->frames[k], spots->function))
			continue;
		any = true;
		innermost |= !i && !k;
		err = add_line(spots, &symbol->frames[k], record, value, !i && !k);
	}
	if (!any || err)
		return err;
	add(&spots->all, record, value, innermost);
	return add_address(spots, location, record, value, innermost);
}

static int add_record(struct spots *spots, const struct shstk_record *record)
{
	const int64_t value = record->values[spots->type];
	int err = 0;

	spots->whole = shstk_add(spots->whole, value > -INT64_MAX ? llabs(value) : INT64_MAX);
	for (uint64_t i = 0; i < record->nr && !err; i++) {
		spots->used[record->locations[i]] = 1;
		err = add_entry(spots, record, i);
	}
	return err;
}

int spots_find(const struct shstk_profile *profile, const char *function, unsigned int type,
	       struct spots *ret)
{
	int err = 0;

	*ret = (struct spots){ .profile = profile, .type = type };
	shstk_pool_init(&ret->pool);
	ret->function = shstk_pool_text(profile->text, function, strlen(function));
	ret->used = calloc(profile->nr_locations + 1, 1);
	if (!ret->function || !ret->used)
		return -ENOMEM;
	for (size_t i = 0; i < profile->nr_records && !err; i++)
		err = add_record(ret, profile->records[i]);
	return err ? err : ret->all.seen ? 0 : -ENOENT;
}

void spots_deinit(struct spots *spots)
{
	HASH_CLEAR(hh, spots->lines);
	HASH_CLEAR(hh, spots->addresses);
	shstk_pool_deinit(&spots->pool);
	free(spots->used);
}

void spots_put(const struct spots *spots, int64_t self, int64_t total)
{
	const char *unit = spots->profile->types[spots->type].unit;
	char own[32], sum[32];

	if (!self && !total) {
		printf("%*s", SPOTS_COLUMNS, "");
		return;
	}
	shstk_format_value(own, sizeof(own), self, unit);
	shstk_format_value(sum, sizeof(sum), total, unit);
	printf("%10s %6.2f %10s ", own, spots->whole ? 100.0 * self / spots->whole : 0, sum);
}

/* ---- Names that are like another one ---- */

#define LIKE 3 /* names that are shown */
#define LIKE_LEN 64 /* bytes of names that are compared */
#define LIKE_WORK 200000 /* frames that are compared */

/* Returns how many letters of @a must be changed, added or dropped to get @b. */
static size_t distance(const char *a, const char *b)
{
	size_t row[LIKE_LEN + 1], la = strnlen(a, LIKE_LEN), lb = strnlen(b, LIKE_LEN);

	for (size_t k = 0; k <= lb; k++)
		row[k] = k;
	for (size_t i = 0; i < la; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t k = 0; k < lb; k++) {
			size_t change = diagonal + (a[i] != b[k]);

			diagonal = row[k + 1];
			if (row[k] + 1 < change)
				change = row[k] + 1;
			row[k + 1] = diagonal + 1 < change ? diagonal + 1 : change;
		}
	}
	return row[lb];
}

/* Returns how far @name is from @wanted, SIZE_MAX if it is not like it at all. */
static size_t unlike(const char *name, const char *wanted)
{
	const size_t len = strlen(name), want = strlen(wanted);
	const size_t most = want / 3 + 1, apart = len > want ? len - want : want - len;
	size_t ret;

	if (len >= 4 * LIKE_LEN)
		return SIZE_MAX;
	if (apart <= most) {
		ret = distance(name, wanted);
		if (ret <= most)
			return ret;
	}
	return want > 2 && strcasestr(name, wanted) ? most + apart : SIZE_MAX;
}

/* The names that are most like another one, the best first. */
struct like {
	const char *name[LIKE];
	size_t unlike[LIKE];
	size_t nr;
};

static void put_like(struct like *like, const char *name, const char *wanted)
{
	size_t rank, i;

	for (i = 0; i < like->nr; i++)
		if (like->name[i] == name)
			return;
	rank = unlike(name, wanted);
	if (rank == SIZE_MAX)
		return;
	if (like->nr < LIKE)
		like->nr++;
	else if (rank >= like->unlike[LIKE - 1])
		return;
	for (i = like->nr - 1; i && like->unlike[i - 1] > rank; i--) {
		like->name[i] = like->name[i - 1];
		like->unlike[i] = like->unlike[i - 1];
	}
	like->name[i] = name;
	like->unlike[i] = rank;
}

char *spots_like(const struct spots *spots, const char *function)
{
	const struct shstk_profile *profile = spots->profile;
	struct like like = { 0 };
	char *ret = NULL;
	size_t work = 0;

	for (size_t i = 0; i < profile->nr_locations && work < LIKE_WORK; i++) {
		const struct shstk_symbol *symbol;

		if (!spots->used[i])
			continue;
		symbol = shstk_location_symbol(profile, profile->locations[i]);
		for (unsigned int k = 0; k < symbol->nr; k++, work++)
			put_like(&like, symbol->frames[k].function, function);
	}
	if (!like.nr || asprintf(&ret, "%s%s%s%s%s", like.name[0], like.nr > 1 ? ", " : "",
				 like.nr > 1 ? like.name[1] : "", like.nr > 2 ? ", " : "",
				 like.nr > 2 ? like.name[2] : "") < 0)
		return NULL;
	return ret;
}
