/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget.h - bounds on the memory and the CPU time of reading foreign data.
 *
 * Files, tables and memory of other programs can be made so that a few bytes of them take gigabytes
 * or minutes to read. So one budget of memory and of CPU time covers all that is read for a
 * profile, and each file has an account that draws from this budget. No account gets all that is
 * left: some remains for the others. A reader whose account is exhausted falls back to a simpler
 * answer (a function without its line, or a bare address), and the account remembers that, so that
 * the user is told once.
 *
 * Memory is counted when it is requested. Time is counted between shstk_account_begin() and
 * shstk_account_end(), which enclose work that can take long; loops inside call shstk_account_on()
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
 * struct shstk_budget - memory and time that are left for all accounts
 * @whole: bytes that the budget had at the start.
 * @memory: bytes that are left.
 * @time: CPU time that is left, in ns.
 * @over: list of the accounts that were refused something, the last one first.
 */
struct shstk_budget {
	uint64_t whole;
	uint64_t memory;
	uint64_t time;
	struct shstk_account *over;
};

/**
 * struct shstk_account - memory and time that one file or one process has drawn
 * @budget: the budget that the account draws from.
 * @name: name of the file, shown to the user; it must outlive the account.
 * @memory: bytes that the account holds.
 * @time: CPU time that the account has used, in ns.
 * @since: CPU time of the thread when it was last counted, in ns.
 * @depth: number of calls of shstk_account_begin() that have not been ended yet.
 * @excess: enum shstk_excess, or'ed: what the account was refused.
 * @next: next account in the budget's list @over.
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

/*
 * Returns a new account of the store's budget, which belongs to the store; NULL when memory runs
 * out. @name is what the user is told.
 */
struct shstk_account *shstk_symbols_account(struct shstk_symbols *symbols, const char *name);

/*
 * Returns the account of the store's budget for what is read from the memory of process @pid; NULL
 * when memory runs out. It belongs to the store.
 */
struct shstk_account *shstk_symbols_process_account(struct shstk_symbols *symbols, int pid);

/* Sets up a budget of @memory bytes and @time ns. 0 means a default that fits this machine. */
void shstk_budget_init(struct shstk_budget *budget, uint64_t memory, uint64_t time);

/*
 * Opens an account. It must not move while its budget is in use, and must not go away before
 * shstk_account_close().
 */
void shstk_account_open(struct shstk_account *account, struct shstk_budget *budget,
			const char *name);
/* Gives all memory of the account back and removes the account from the budget's list @over. */
void shstk_account_close(struct shstk_account *account);

/* Takes @bytes from the budget. Returns false if they cannot be had; nothing is taken then. */
bool shstk_account_take(struct shstk_account *account, uint64_t bytes);
/* Gives @bytes back to the budget. */
void shstk_account_give(struct shstk_account *account, uint64_t bytes);

/*
 * Records that the reader of this account came to a bound of its own, as if the account had been
 * exhausted.
 */
void shstk_account_exceed(struct shstk_account *account, enum shstk_excess what);

/* Does what shstk_grow() does, with memory that is taken from @account. */
void *shstk_account_grow(struct shstk_account *account, void *array, size_t nr, size_t *max,
			 size_t size);

/*
 * Starts to count time. Returns false if none is left. shstk_account_end() must follow in any case.
 */
bool shstk_account_begin(struct shstk_account *account);
/* Counts the time until now. Returns false if none is left. */
bool shstk_account_on(struct shstk_account *account);
/* Counts the time until now, and ends what the matching shstk_account_begin() started. */
void shstk_account_end(struct shstk_account *account);

#endif /* SHSTK_SYMBOL_BUDGET_H */
