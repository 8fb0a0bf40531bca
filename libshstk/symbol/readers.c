// SPDX-License-Identifier: LGPL-2.1-or-later
/* readers.c - reads debug information by several threads, as readers.h describes. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "dwarf.h"
#include "pool.h"
#include "readers.h"
#include "symbol.h"

/**
 * struct work - the addresses that are still to be read
 * @wanted: all addresses, by unit.
 * @nr: number of elements of @wanted.
 * @next: index of the first one that nobody has taken; the threads change it.
 */
struct work {
	struct shstk_wanted *wanted;
	size_t nr;
	size_t next;
};

/**
 * struct reader - a thread that reads
 * @thread: the thread, if @runs.
 * @runs: the thread was started.
 * @pool: memory of its answers.
 * @budget: its part of the budget.
 * @account: what the file draws from @budget.
 * @dwarf: its reader of the debug information.
 * @work: the addresses.
 */
struct reader {
	pthread_t thread;
	bool runs;
	struct shstk_pool pool;
	struct shstk_budget budget;
	struct shstk_account account;
	struct shstk_dwarf *dwarf;
	struct work *work;
};

/**
 * struct shstk_readers - all threads
 * @work: the addresses.
 * @nr: number of elements of @v.
 * @v: the threads.
 */
struct shstk_readers {
	struct work work;
	unsigned int nr;
	struct reader v[];
};

/* Takes the addresses of the next unit. Returns their number, 0 if none are left. */
static size_t take_unit(struct work *work, size_t *first)
{
	size_t from = __atomic_load_n(&work->next, __ATOMIC_RELAXED), to;

	do {
		if (from >= work->nr)
			return 0;
		for (to = from + 1; to < work->nr; to++)
			if (work->wanted[to].unit != work->wanted[from].unit)
				break;
	} while (!__atomic_compare_exchange_n(&work->next, &from, to, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*first = from;
	return to - from;
}

/*
 * Reads the names of one address. What is found while the reader's part of the budget ends may lack
 * the line or more, so it is left to the first reader.
 */
static void read_names(struct reader *reader, struct shstk_wanted *wanted)
{
	struct shstk_symframe frames[SHSTK_FRAMES_MAX];
	struct shstk_resolved names = { .frames = frames };

	frames[0] = (struct shstk_symframe){ 0 };
	names.nr = shstk_dwarf_find(reader->dwarf, wanted->addr, wanted->sym, &names);
	names.resolved = names.nr;
	names.frames = shstk_pool_alloc(&reader->pool, names.nr * sizeof(*frames));
	if (!names.nr || !names.frames || reader->account.excess)
		return;
	memcpy(names.frames, frames, names.nr * sizeof(*frames));
	wanted->names = names;
}

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	size_t first, nr;

	while (!reader->account.excess && (nr = take_unit(reader->work, &first)))
		for (size_t i = first; i < first + nr; i++)
			read_names(reader, reader->work->wanted + i);
	return NULL;
}

/*
 * Starts a thread that gets no signal: they are for the program's own threads. Those of its own
 * faults come nevertheless: a program may survive that a file is shortened which is mapped here.
 */
static bool start(struct reader *reader)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV };
	sigset_t all, old;
	int err;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&reader->thread, NULL, read_all, reader);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !err;
}

/*
 * Opens the debug information once more for @reader. This looks into the file by libelf, which is
 * not made for several threads, so the caller's thread does it; what a thread does later does not.
 */
static void open_reader(struct reader *reader, const struct shstk_dwarf *dwarf,
			const struct shstk_account *account, unsigned int parts)
{
	uint64_t memory = account->budget->memory / parts, time = account->budget->time / parts;

	shstk_pool_init(&reader->pool);
	/* To a budget 0 means the default. */
	shstk_budget_init(&reader->budget, memory ? memory : 1, time ? time : 1);
	shstk_account_open(&reader->account, &reader->budget, account->name);
	if (shstk_account_begin(&reader->account))
		reader->dwarf = shstk_dwarf_again(dwarf, &reader->pool, &reader->account);
	shstk_account_end(&reader->account);
	reader->runs = reader->dwarf && start(reader);
}

static int by_unit(const void *a, const void *b)
{
	const struct shstk_wanted *one = a, *two = b;

	if (one->unit != two->unit)
		return one->unit < two->unit ? -1 : 1;
	return one->addr < two->addr ? -1 : one->addr > two->addr;
}

/* Waits for all threads, and draws the time that they took from @budget. */
static bool wait_for_all(struct shstk_readers *readers, struct shstk_budget *budget)
{
	bool any = false;
	uint64_t used;

	for (unsigned int i = 0; i < readers->nr; i++) {
		struct reader *reader = &readers->v[i];

		if (reader->runs)
			pthread_join(reader->thread, NULL);
		any |= reader->runs;
		reader->runs = false;
		used = reader->account.time;
		budget->time -= used < budget->time ? used : budget->time;
	}
	return any;
}

struct shstk_readers *shstk_readers_run(const struct shstk_dwarf *dwarf,
					struct shstk_account *account, struct shstk_wanted *wanted,
					size_t nr, unsigned int threads)
{
	struct shstk_readers *readers =
		calloc(1, sizeof(*readers) + threads * sizeof(readers->v[0]));

	if (!readers)
		return NULL;
	qsort(wanted, nr, sizeof(*wanted), by_unit);
	readers->work = (struct work){ .wanted = wanted, .nr = nr };
	for (; readers->nr < threads; readers->nr++) {
		readers->v[readers->nr].work = &readers->work;
		open_reader(&readers->v[readers->nr], dwarf, account, threads);
	}
	if (wait_for_all(readers, account->budget))
		return readers;
	shstk_readers_destroy(readers);
	return NULL;
}

void shstk_readers_destroy(struct shstk_readers *readers)
{
	if (!readers)
		return;
	for (unsigned int i = 0; i < readers->nr; i++) {
		shstk_dwarf_destroy(readers->v[i].dwarf);
		shstk_pool_deinit(&readers->v[i].pool);
	}
	free(readers);
}
