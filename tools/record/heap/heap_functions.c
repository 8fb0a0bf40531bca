// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * heap_functions.c - functions of Python programs in the stacks of allocations. See heap_functions.h.
 *
 * Everything comes from memory that a recorded program can write: it is taken for what it says, as
 * far as it makes sense, and shown in that program's stacks only.
 */
#include <errno.h>
#include <stdlib.h>

#include "libshstk/shstk.h"
#include "tools/language/languages.h"
#include "tools/language/python/versions.h"
#include "tools/record/heap/heap_functions.h"

#define ID_BITS 48 /* of a function's number; above it stands the number of the region */

/**
 * struct heap_functions - the functions of all processes
 * @languages: what places and names them.
 * @max: entries for which @pcs and @marks have room.
 * @fold: as in &struct language_sample.
 * @pcs: entries of a stack with functions.
 * @marks: their marks.
 */
struct heap_functions {
	struct languages *languages;
	unsigned int max;
	unsigned int fold;
	uint64_t *pcs;
	uint8_t *marks;
};

struct heap_functions *heap_functions_create(uint32_t depth, bool fold)
{
	struct heap_functions *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->max = depth + LANGUAGE_FRAMES;
	f->fold = fold ? depth : 0;
	f->languages = languages_create(NULL);
	f->pcs = calloc(f->max, sizeof(*f->pcs));
	f->marks = calloc(f->max, sizeof(*f->marks));
	if (f->languages && f->pcs && f->marks) {
		languages_stopped_only(f->languages);
		return f;
	}
	heap_functions_destroy(f);
	return NULL;
}

void heap_functions_destroy(struct heap_functions *f)
{
	if (!f)
		return;
	languages_destroy(f->languages);
	free(f->pcs);
	free(f->marks);
	free(f);
}

void heap_functions_name(struct heap_functions *f, struct shstk_symbols *symbols)
{
	shstk_symbols_set_functions(symbols, languages_function, f->languages);
}

int heap_functions_interpreter(struct heap_functions *f, const struct heap_interpreter *it)
{
	const struct language_found found = {
		.version = it->minor < 256 ? python_version((int)it->minor) : NULL,
		.run_start = it->run,
		.run_end = it->run + it->run_size,
	};

	return found.version ? languages_add(f->languages, &language_python, &found) : 0;
}

/* Returns the number of a function of that region, in which the agent calls it @id. */
static uint64_t number_of(uint32_t region, uint64_t id)
{
	if (id <= LANGUAGE_NO_FUNCTION)
		return id;
	return (uint64_t)region << ID_BITS | (id & ((1ull << ID_BITS) - 1));
}

int heap_functions_take(struct heap_functions *f, int interpreter, uint32_t region,
			struct heap_code *record, size_t size)
{
	struct language_code *code = &record->code;

	if (size < sizeof(*record) - sizeof(code->table) || !interpreter)
		return 0;
	size -= offsetof(struct heap_code, code);
	code->id = number_of(region, code->id);
	code->kind = LANGUAGE_CODE;
	code->target = interpreter;
	if (languages_known(f->languages, code->id))
		return 0;
	return languages_take(f->languages, 0, 0, code,
			      size < sizeof(*code) ? size : sizeof(*code));
}

/* Puts the functions into the stack. Returns the number of entries; 0: they have no sure place. */
static unsigned int place(struct heap_functions *f, int interpreter, uint32_t region,
			  struct heap_trace *t, const struct native_stack *native)
{
	struct language_moment *m = (struct language_moment *)&t->pcs[2 * t->nr];
	const size_t size = t->frames - t->nr * sizeof(*t->pcs);
	struct language_entry *e = (struct language_entry *)(m + 1);
	const struct language_sample of = {
		.number = interpreter,
		.tid = 1,
		.pc = m->pc,
		.sp = m->sp,
		.fold = f->fold,
	};

	m->kind = LANGUAGE_MOMENT;
	m->target = interpreter;
	for (size_t i = m->nr_marks; i < (size - sizeof(*m)) / sizeof(*e); i++)
		e[i].id = number_of(region, e[i].id);
	/* Without memory for it, the stack has its native entries. */
	if (languages_take(f->languages, of.tid, 0, m, size))
		return 0;
	return languages_place(f->languages, &of, native, f->pcs, f->marks, f->max);
}

void heap_functions_place(struct heap_functions *f, int interpreter, uint32_t region,
			  struct heap_trace *t, struct heap_stack *ret)
{
	const struct native_stack native = {
		.pcs = t->pcs,
		.marks = (const uint8_t *)&t->pcs[t->nr] + t->frames,
		.sps = t->pcs + t->nr,
		.nr = t->nr,
		.complete = t->end == SHSTK_END_COMPLETE,
	};
	unsigned int nr = 0;

	*ret = (struct heap_stack){ native.pcs, native.marks, native.nr, false };
	if (f && interpreter && t->nr && !(t->frames % 8) &&
	    t->frames >= t->nr * sizeof(*t->pcs) + sizeof(struct language_moment))
		nr = place(f, interpreter, region, t, &native);
	if (nr)
		*ret = (struct heap_stack){ f->pcs, f->marks, nr, languages_folded(f->languages) };
}

void heap_functions_count(const struct heap_functions *f, struct language_counts *ret)
{
	*ret = (struct language_counts){ 0 };
	if (f)
		languages_count(f->languages, ret);
}

const char *heap_functions_refused(const struct heap_functions *f)
{
	return f ? languages_refused(f->languages) : NULL;
}
