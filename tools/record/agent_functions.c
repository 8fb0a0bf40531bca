// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_functions.c - functions of Python programs in the stacks that agents took. See
 * agent_functions.h.
 *
 * Everything comes from memory that a recorded program can write: it is taken for what it says, as
 * far as it makes sense, and shown in that program's stacks only.
 */
#include <errno.h>
#include <stdlib.h>

#include "libshstk/shstk.h"
#include "tools/elf/object.h"
#include "tools/language/languages.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"
#include "tools/record/agent_functions.h"

#define ID_BITS 46 /* of a function's number; above it stands the number of the owner */

_Static_assert(AGENT_FUNCTIONS_OWNERS == 1u << (64 - ID_BITS), "room for the number of any owner");

/**
 * struct agent_functions - the functions of all processes
 * @languages: what places and names them.
 * @max: entries for which @pcs and @marks have room.
 * @fold: as in &struct language_sample.
 * @pcs: entries of a stack with functions.
 * @marks: their marks.
 */
struct agent_functions {
	struct languages *languages;
	unsigned int max;
	unsigned int fold;
	uint64_t *pcs;
	uint8_t *marks;
};

struct agent_functions *agent_functions_create(uint32_t depth, bool fold)
{
	struct agent_functions *f = calloc(1, sizeof(*f));

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
	agent_functions_destroy(f);
	return NULL;
}

void agent_functions_destroy(struct agent_functions *f)
{
	if (!f)
		return;
	languages_destroy(f->languages);
	free(f->pcs);
	free(f->marks);
	free(f);
}

void agent_functions_name(struct agent_functions *f, struct shstk_symbols *symbols)
{
	shstk_symbols_set_functions(symbols, languages_function, f->languages);
}

int agent_functions_python(struct agent_functions *f, const struct agent_python *it)
{
	const struct python_version *v = it->minor < 256 ? python_version((int)it->minor) : NULL;
	struct language_found found = {
		.version = v,
		.run_start = it->run,
		.run_end = it->run + it->run_size,
		.base_frame = v && v->base_frame,
	};

	if (!v)
		return 0;
	if (it->beginning)
		python_find_unsure(v, machine_own(), it->beginning, &found);
	return languages_add(f->languages, &language_python, &found);
}

/* Returns the number of a function of that owner, in which the agent calls it @id. */
static uint64_t number_of(uint32_t owner, uint64_t id)
{
	if (id <= LANGUAGE_NO_FUNCTION)
		return id;
	return (uint64_t)owner << ID_BITS | (id & ((1ull << ID_BITS) - 1));
}

int agent_functions_take(struct agent_functions *f, int python, uint32_t owner,
			 struct language_code *code, size_t size)
{
	if (size < offsetof(struct language_code, table) || !python)
		return 0;
	code->id = number_of(owner, code->id);
	code->kind = LANGUAGE_CODE;
	code->target = python;
	if (languages_known(f->languages, code->id))
		return 0;
	return languages_take(f->languages, 0, 0, code,
			      size < sizeof(*code) ? size : sizeof(*code));
}

/* Returns the moment behind the stack pointers of @nr entries, and its bytes; NULL: there is none. */
static struct language_moment *moment_of(const struct agent_frames *frames, unsigned int nr,
					 size_t *size)
{
	const size_t sps = nr * sizeof(uint64_t);

	if (!frames->python || !nr || frames->size % 8 ||
	    frames->size < sps + sizeof(struct language_moment))
		return NULL;
	*size = frames->size - sps;
	return (struct language_moment *)((char *)frames->bytes + sps);
}

bool agent_functions_known(const struct agent_functions *f, const struct agent_frames *frames,
			   unsigned int nr)
{
	size_t size;
	const struct language_moment *m = moment_of(frames, nr, &size);
	const struct language_entry *e = m ? (const struct language_entry *)(m + 1) : NULL;

	if (!m)
		return false;
	for (size_t i = m->nr_marks; i < (size - sizeof(*m)) / sizeof(*e); i++)
		if (e[i].id > LANGUAGE_NO_FUNCTION &&
		    !languages_known(f->languages, number_of(frames->owner, e[i].id)))
			return false;
	return true;
}

/* Puts the functions into the stack. Returns the number of entries; 0: they have no sure place. */
static unsigned int place(struct agent_functions *f, const struct agent_frames *frames,
			  struct language_moment *m, size_t size, const struct native_stack *native)
{
	struct language_entry *e = (struct language_entry *)(m + 1);
	const struct language_sample of = {
		.number = frames->python,
		.tid = 1,
		.pc = m->pc,
		.sp = m->sp,
		.fold = f->fold,
	};

	m->kind = LANGUAGE_MOMENT;
	m->target = frames->python;
	for (size_t i = m->nr_marks; i < (size - sizeof(*m)) / sizeof(*e); i++)
		e[i].id = number_of(frames->owner, e[i].id);
	/* Without memory for it, the stack has its native entries. */
	if (languages_take(f->languages, of.tid, 0, m, size))
		return 0;
	return languages_place(f->languages, &of, native, f->pcs, f->marks, f->max);
}

void agent_functions_place(struct agent_functions *f, const struct agent_frames *frames,
			   struct agent_stack *stack)
{
	const struct native_stack native = {
		.pcs = stack->pcs,
		.marks = stack->marks,
		.sps = frames->bytes,
		.nr = stack->nr,
		.complete = frames->complete,
	};
	struct language_moment *m;
	unsigned int nr;
	size_t size;

	m = f ? moment_of(frames, stack->nr, &size) : NULL;
	nr = m ? place(f, frames, m, size, &native) : 0;
	if (nr)
		*stack = (struct agent_stack){ f->pcs, f->marks, nr,
					       languages_folded(f->languages) };
}

void agent_functions_count(const struct agent_functions *f, struct language_counts *ret)
{
	*ret = (struct language_counts){ 0 };
	if (f)
		languages_count(f->languages, ret);
}

const char *agent_functions_refused(const struct agent_functions *f)
{
	return f ? languages_refused(f->languages) : NULL;
}
