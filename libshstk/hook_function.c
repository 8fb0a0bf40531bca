// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hook_function.c - where the function at an address begins, for a hook; see hook.h.
 *
 * The answer is that of libgcc's _Unwind_Find_FDE() for objects that the dynamic loader loaded: the
 * entry that the search table of .eh_frame_hdr names, if it covers the address. The table is found
 * by the map of modules that captures use, so that no lock is taken and nothing is asked of the
 * loader. Whoever asks goes through the same return addresses again and again, and decoding an entry
 * takes longer than libgcc's look-up: so answers are kept.
 */
#include "enter.h"
#include "hook.h"
#include "modmap.h"
#include "rulecache.h"
#include "table_index.h"

#define ANSWERS 256 /* kept, by a hash of the address */
#define DISTANCE 17 /* bits of the distance from a function's beginning in struct answer */

/**
 * struct answer - a kept answer
 * @value: the address asked for, shifted by DISTANCE, and how far it is from its function's beginning.
 * @check: @value, mixed with the number of the generation of rules for which it was found. Two threads
 *	that write at the same time may leave the words of both: such a pair is no answer of any
 *	generation.
 */
struct answer {
	uint64_t value;
	uint64_t check;
};

static struct answer answers[ANSWERS];

static struct answer *answer_of(uint64_t pc)
{
	return &answers[pc * 0x9e3779b97f4a7c15ULL >> 56];
}

static uint64_t check_of(uint64_t value, uint64_t gen)
{
	return value ^ (gen + 1) * 0x9e3779b97f4a7c15ULL;
}

/* Returns the kept beginning of the function at @pc, or 0. */
static inline uint64_t kept(uint64_t pc, uint64_t gen)
{
	const struct answer *a = answer_of(pc);
	uint64_t value = load_relaxed(&a->value);

	if (value >> DISTANCE != pc || load_relaxed(&a->check) != check_of(value, gen))
		return 0;
	return pc - (value & ((1 << DISTANCE) - 1));
}

static void keep(uint64_t pc, uint64_t start, uint64_t gen)
{
	uint64_t value = pc << DISTANCE | (pc - start);
	struct answer *a = answer_of(pc);

	if (value >> DISTANCE != pc || (pc - start) >> DISTANCE)
		return;
	store_relaxed(&a->value, value);
	store_relaxed(&a->check, check_of(value, gen));
}

/* Returns the beginning of the function of @m at @pc, or 0 if .eh_frame_hdr names none. */
static uint64_t function_start(const struct module *m, uint64_t pc)
{
	const struct table *t = &m->eh;
	uint64_t vaddr = pc - m->bias;
	struct fde fde;
	size_t i, next;

	if (!t->hdr)
		return 0;
	i = index_search(t, vaddr);
	if (i >= t->nfde || cfi_entry(&t->sec, index_offset(t, i), &fde, &next) != 1)
		return 0;
	return vaddr - fde.start < fde.end - fde.start ? fde.start + m->bias : 0;
}

/* Looks @pc up, and keeps the answer. */
static __attribute__((noinline)) uint64_t look_up(uint64_t pc)
{
	struct thread *t = thread_get();
	uint64_t start = 0, gen;
	struct module *m;
	bool outermost;

	if (unlikely(!t))
		return 0;
	outermost = enter(t, (uintptr_t)__builtin_frame_address(0));
	if (unlikely(modmap_loads_changed()))
		modmap_revalidate();
	gen = rulecache_number();
	m = modmap_find(pc);
	if (m && module_has(m, pc))
		start = function_start(m, pc);
	leave(t, outermost);
	modmap_tidy(outermost);
	if (start)
		keep(pc, start, gen);
	return start;
}

uint64_t shstk_hook_function(uint64_t pc)
{
	uint64_t start = 0;

	if (likely(modmap_loads_same()))
		start = kept(pc, rulecache_number());
	return likely(start) ? start : look_up(pc);
}
