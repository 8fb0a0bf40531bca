// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * functions.c - entries of stacks that are no code: each stands for a function of a program that an
 * interpreter ran, and a line in it, or for frames that were left out. The caller of the store knows
 * the functions by numbers.
 */
#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "pool.h"
#include "store.h"

/**
 * struct shstk_function - such an entry
 * @hh: link in the store's table.
 * @pc: what stands for it in stacks.
 * @map: a mapping of its own, as no file is mapped there.
 * @frame: its only frame.
 * @symbol: what formats show.
 */
struct shstk_function {
	UT_hash_handle hh;
	uint64_t pc;
	struct shstk_map map;
	struct shstk_symframe frame;
	struct shstk_symbol symbol;
};

void shstk_symbols_set_functions(struct shstk_symbols *symbols, shstk_function_fn fn, void *arg)
{
	symbols->find_function = fn;
	symbols->find_arg = arg;
}

void shstk_functions_clear(struct shstk_symbols *symbols)
{
	/* The elements belong to the pool. */
	HASH_CLEAR(hh, symbols->functions);
}

static const char *keep(struct shstk_symbols *symbols, const char *text)
{
	return text ? shstk_pool_text(&symbols->pool, text, strlen(text)) : NULL;
}

static bool is_left_out(uint64_t pc)
{
	return pc >= SHSTK_FUNCTION_LEFT_OUT &&
	       pc - SHSTK_FUNCTION_LEFT_OUT <= SHSTK_FUNCTION_REPEATED;
}

/*
 * Names an entry that stands for frames that were left out. The name does not say how many: then
 * stacks of a recursion would differ by its depth.
 */
static const char *name_left_out(uint64_t pc, char *buf, size_t size)
{
	const unsigned int calls = (unsigned int)(pc - SHSTK_FUNCTION_LEFT_OUT);

	if (!calls)
		return "[frames left out]";
	snprintf(buf, size, "[recursion of %u call%s]", calls, calls == 1 ? "" : "s");
	return buf;
}

/* Copies what an entry stands for. Returns false if it stands for nothing, or without memory. */
static bool describe(struct shstk_symbols *symbols, struct shstk_function *f)
{
	const char *module = "[folded]";
	char name[32];

	if (is_left_out(f->pc))
		f->frame.function = name_left_out(f->pc, name, sizeof(name));
	else if (!symbols->find_function(symbols->find_arg, f->pc, &f->frame, &module))
		return false;
	f->frame.function = keep(symbols, f->frame.function);
	f->frame.linkage = f->frame.function;
	f->frame.file = keep(symbols, f->frame.file);
	f->map.pub = (struct shstk_symmap){
		.kind = SHSTK_SYMMAP_LANGUAGE,
		.path = "",
		.name = keep(symbols, module),
	};
	f->symbol = (struct shstk_symbol){
		.map = &f->map.pub,
		.resolved = true,
		.nr = 1,
		.frames = &f->frame,
	};
	return f->frame.function && f->map.pub.name;
}

const struct shstk_symbol *shstk_symbols_function(struct shstk_symbols *symbols, uint64_t pc)
{
	struct shstk_function *f;

	if (pc < SHSTK_FUNCTION_BASE || pc >> 63 || (!symbols->find_function && !is_left_out(pc)))
		return NULL;
	HASH_FIND(hh, symbols->functions, &pc, sizeof(pc), f);
	if (f)
		return &f->symbol;
	f = shstk_pool_alloc(&symbols->pool, sizeof(*f));
	if (!f)
		return NULL;
	f->pc = pc;
	if (!describe(symbols, f))
		return NULL;
	HASH_ADD(hh, symbols->functions, pc, sizeof(f->pc), f);
	return f->hh.tbl ? &f->symbol : NULL;
}
