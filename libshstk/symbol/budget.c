// SPDX-License-Identifier: LGPL-2.1-or-later
/* budget.c - counts the memory and CPU time of reading foreign data, as budget.h describes. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "pool.h"

/*
 * Defaults of a budget. Debug information of the largest programs (browsers) unpacks to nearly 2
 * GiB, and takes some seconds of CPU time. On a machine whose memory is less than twice MEMORY, the
 * budget is half of that memory.
 */
#define MEMORY (3ull << 30)
#define TIME (120ull * 1000000000)

/* The largest part of what is left that one account gets. */
#define MEMORY_SHARE(left) ((left) / 4 * 3)
#define TIME_SHARE(left) ((left) / 4)

static uint64_t machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * size : UINT64_MAX;
}

void shstk_budget_init(struct shstk_budget *budget, uint64_t memory, uint64_t time)
{
	uint64_t half = machine_memory() / 2;

	budget->memory = memory ? memory : half < MEMORY ? half : MEMORY;
	budget->whole = budget->memory;
	budget->time = time ? time : TIME;
	budget->over = NULL;
}

void shstk_account_open(struct shstk_account *account, struct shstk_budget *budget,
			const char *name)
{
	*account = (struct shstk_account){ .budget = budget, .name = name };
}

void shstk_account_close(struct shstk_account *account)
{
	struct shstk_account **at = account->budget ? &account->budget->over : NULL;

	if (!at)
		return;
	account->budget->memory += account->memory;
	account->memory = 0;
	while (*at && *at != account)
		at = &(*at)->next;
	if (*at)
		*at = account->next;
}

void shstk_account_exceed(struct shstk_account *account, enum shstk_excess what)
{
	if (!account->excess) {
		account->next = account->budget->over;
		account->budget->over = account;
	}
	account->excess |= what;
}

bool shstk_account_take(struct shstk_account *account, uint64_t bytes)
{
	uint64_t left = account->budget->memory;

	if (bytes > left || account->memory + bytes > MEMORY_SHARE(left + account->memory)) {
		shstk_account_exceed(account, SHSTK_EXCESS_MEMORY);
		return false;
	}
	account->budget->memory -= bytes;
	account->memory += bytes;
	return true;
}

void shstk_account_give(struct shstk_account *account, uint64_t bytes)
{
	if (bytes > account->memory)
		bytes = account->memory;
	account->memory -= bytes;
	account->budget->memory += bytes;
}

void *shstk_account_grow(struct shstk_account *account, void *array, size_t nr, size_t *max,
			 size_t size)
{
	size_t before = *max;
	void *more;

	if (nr < before)
		return array;
	/* Until the old array is freed, both the old and the new one exist. */
	if (!shstk_account_take(account, (before ? 2 * before : 64) * size))
		return NULL;
	more = shstk_grow(array, nr, max, size);
	shstk_account_give(account, (more ? before : before ? 2 * before : 64) * size);
	return more;
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static bool has_time(struct shstk_account *account)
{
	uint64_t left = account->budget->time;

	if (left && account->time <= TIME_SHARE(left + account->time))
		return true;
	shstk_account_exceed(account, SHSTK_EXCESS_TIME);
	return false;
}

bool shstk_account_begin(struct shstk_account *account)
{
	if (!account->depth++)
		account->since = cpu_time();
	return has_time(account);
}

bool shstk_account_on(struct shstk_account *account)
{
	uint64_t now = cpu_time(), used = now - account->since;

	account->since = now;
	account->time += used;
	account->budget->time -= used < account->budget->time ? used : account->budget->time;
	return has_time(account);
}

void shstk_account_end(struct shstk_account *account)
{
	if (!--account->depth)
		shstk_account_on(account);
}
