// SPDX-License-Identifier: LGPL-2.1-or-later
/* lives.c - when the processes of a profile began and ended, as lives.h describes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lives.h"

static const char *const words[] = { "began", "ended" };

int shstk_profile_live(struct shstk_profile *profile, const struct shstk_life *life)
{
	return profile->moments.most || profile->keep ? shstk_lives_add(profile, life) : 0;
}

int shstk_lives_add(struct shstk_profile *profile, const struct shstk_life *life)
{
	struct shstk_life *list, new = *life;

	if (profile->nr_lives >= SHSTK_LIVES_MOST)
		return 0;
	new.comm = shstk_pool_text(profile->text, life->comm, strlen(life->comm));
	list = shstk_grow(profile->lives, profile->nr_lives, &profile->max_lives, sizeof(*list));
	if (list)
		profile->lives = list;
	if (!list || !new.comm)
		return -ENOMEM;
	list[profile->nr_lives++] = new;
	return 0;
}

/* ---- Lines in files ---- */

const char *shstk_life_name(const struct shstk_life *life)
{
	return life->ended ? "process ended" : "process began";
}

void shstk_life_format(const struct shstk_life *life, int64_t clock, char text[SHSTK_LIFE_TEXT])
{
	snprintf(text, SHSTK_LIFE_TEXT, "%s %d %" PRIu64 " %s", words[life->ended], life->pid,
		 life->time + (uint64_t)clock, life->comm);
}

bool shstk_life_parse(const char *text, int64_t clock, struct shstk_life *life)
{
	const size_t length = strlen(words[0]);
	uint64_t pid;
	char *end;

	life->ended = !strncmp(text, words[1], length);
	if ((!life->ended && strncmp(text, words[0], length)) || text[length] != ' ')
		return false;
	pid = strtoull(text + length, &end, 10);
	if (!pid || pid > INT32_MAX || *end != ' ')
		return false;
	life->pid = pid;
	life->time = strtoull(end, &end, 10) - (uint64_t)clock;
	life->comm = end + 1;
	return *end == ' ';
}

/* ---- What formats show ---- */

static int by_number(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct shstk_life *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->ended - y->ended;
}

/* Returns the IDs of the processes that have samples, sorted; NULL when memory runs out. */
static int *list_processes(const struct shstk_profile *profile)
{
	int *pids = calloc(profile->nr_records + 1, sizeof(*pids));

	for (size_t i = 0; pids && i < profile->nr_records; i++)
		pids[i] = shstk_symproc_pid(profile->records[i]->proc);
	if (pids)
		qsort(pids, profile->nr_records, sizeof(*pids), by_number);
	return pids;
}

struct shstk_life *shstk_lives_shown(const struct shstk_profile *profile, uint64_t first,
				     size_t *nr)
{
	struct shstk_life *list = calloc(profile->nr_lives + 1, sizeof(*list));
	int *pids = list_processes(profile);
	size_t n = 0;

	for (size_t i = 0; list && pids && first != UINT64_MAX && i < profile->nr_lives; i++) {
		const struct shstk_life *life = &profile->lives[i];

		if (!bsearch(&life->pid, pids, profile->nr_records, sizeof(*pids), by_number))
			continue;
		list[n] = *life;
		list[n++].time = life->time > first ? life->time - first : 0;
	}
	if (list && pids)
		qsort(list, n, sizeof(*list), by_process_and_time);
	else
		free(list);
	*nr = n;
	list = pids ? list : NULL;
	free(pids);
	return list;
}

const struct shstk_life *shstk_lives_of(const struct shstk_life *list, size_t nr, int pid,
					size_t *count)
{
	size_t from = 0, to = nr, end;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (list[middle].pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	for (end = from; end < nr && list[end].pid == pid;)
		end++;
	*count = end - from;
	return list + from;
}
