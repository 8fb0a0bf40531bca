/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget.h - what it may cost to read what others wrote.
 *
 * Files, tables and memory of other programs can be made so that a few bytes of them take
 * gigabytes or minutes to read. So one budget, of memory and of CPU time, is for all that is read
 * for a profile, and each file has an account that draws from it. No account gets all that
 * is left: some remains for others. Who gets no more falls back to a simpler answer (a function
 * without its line, an address), and the account remembers it, to be told once.
 *
 * Memory is counted as it is asked for. Time is that between shstk_account_begin() and
 * shstk_account_end(), which stand around what can take long; loops inside ask shstk_account_on()
 * once in SHSTK_ACCOUNT_STEPS steps.
 */
#ifndef SHSTK_SYMBOL_BUDGET_H
#define SHSTK_SYMBOL_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol.h"

#define SHSTK_ACCOUNT_STEPS (1u << 18)

struct shstk_account;

/**
 * struct shstk_budget - what is left for all
 * @whole: bytes that there were.
 * @memory: bytes.
 * @time: ns of CPU time.
 * @over: accounts that did not get what they asked for, the last one first.
 */
struct shstk_budget {
	uint64_t whole;
	uint64_t memory;
	uint64_t time;
	struct shstk_account *over;
};

/**
 * struct shstk_account - what one file, or one process, has drawn
 * @budget: from where.
 * @name: of the file, to be told; must stay.
 * @memory: bytes it has.
 * @time: ns of CPU time that it used.
 * @since: CPU time at which it was last counted, ns.
 * @depth: of shstk_account_begin() without its end.
 * @excess: enum shstk_excess, or'ed.
 * @next: of the budget's list.
 */
struct shstk_account {
	struct shstk_budget *budget;
	const char *name;
	uint64_t memory;
	uint64_t time;
	uint64_t since;
	unsigned int depth;
	unsigned int excess;
	struct shstk_account *next;
};

/* One more account of a store's budget, for what @name says; it is the store's. NULL: memory runs
 * out.
 */
struct shstk_account *shstk_symbols_account(struct shstk_symbols *symbols, const char *name);

/* @memory: bytes; @time: ns. 0: as much as is fit for this machine. */
void shstk_budget_init(struct shstk_budget *budget, uint64_t memory, uint64_t time);

/* An account must not move or go while its budget is in use, but shstk_account_close() it. */
void shstk_account_open(struct shstk_account *account, struct shstk_budget *budget,
			const char *name);
/* Gives all memory back; what it did not get is forgotten. */
void shstk_account_close(struct shstk_account *account);

/* Take so many bytes. False: they are not to be had, and nothing was taken. */
bool shstk_account_take(struct shstk_account *account, uint64_t bytes);
void shstk_account_give(struct shstk_account *account, uint64_t bytes);

/* Who reads it has a bound of its own, and came to it: it is told as if the account had. */
void shstk_account_exceed(struct shstk_account *account, enum shstk_excess what);

/* As shstk_grow(), of memory that is taken from @account. */
void *shstk_account_grow(struct shstk_account *account, void *array, size_t nr, size_t *max,
			 size_t size);

/* From here on time is counted; false: there is none left. To be ended in any case. */
bool shstk_account_begin(struct shstk_account *account);
/* Count the time until now; false: there is none left. */
bool shstk_account_on(struct shstk_account *account);
void shstk_account_end(struct shstk_account *account);

#endif /* SHSTK_SYMBOL_BUDGET_H */
