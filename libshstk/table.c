// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * table.c - compiles the unwind rules of a section's functions by chunks; see table.h.
 *
 * A chunk has the rows of each of its functions in the bytes of rowcode.h. Functions whose
 * rows are the same bytes share them.
 */
#include <errno.h>

#include "rowcode.h"
#include "scratch.h"
#include "table_index.h"

#define CHUNK_ROWS 16384 /* most bytes of rows in a chunk */
#define INTERPRET 0xffff /* the offset of a function that is not compiled */
#define ASKED_MAX 255 /* most lookups that are counted; pointers are larger */

struct table_chunk {
	uint16_t off[CHUNK_FDES]; /* where the rows of each function begin in @rows */
	uint32_t size; /* bytes of @rows */
	uint8_t rows[];
};

/* Returns the rule for @row, or RULE_FULL if rowcode.h can't express it. */
static uint64_t simple_rule(const struct machine *m, const struct cfi_row *row)
{
	uint64_t rule = rule_from_row(m, row);

	if ((RULE_KIND(rule) == RULE_SP || RULE_KIND(rule) == RULE_FP) &&
	    (rule_fp_off(rule) > 0 || rule_ra_off(rule) > 0))
		return RULE_FULL;
	return rule;
}

static int encode_row(void *arg, uint64_t start, const struct cfi_row *row)
{
	struct rowcode_writer *w = arg;

	rowcode_put(w, start, simple_rule(w->m, row));
	return w->full;
}

/* The large variables of compiling a chunk. */
struct compile_room {
	uint16_t len[CHUNK_FDES]; /* bytes of the rows of each function */
	/* The rest is for the function that is being compiled. */
	struct rowcode_writer w;
	struct sframe_func f;
	struct fde fde;
	struct cfi_run run;
	size_t next;
};

/* Encodes the rows of function @i; *@end receives its end. Returns 0, or -1 if it can't. */
static int encode_function(const struct table *t, size_t i, struct compile_room *room,
			   uint64_t *end)
{
	struct rowcode_writer *w = &room->w;
	struct fde *fde = &room->fde;

	if (t->sf.s.size) {
		if (!sframe_func(&t->sf, index_offset(t, i), &room->f))
			return -1;
		*end = room->f.end;
		return sframe_run(&t->sf, &room->f, encode_row, w);
	}
	if (cfi_entry(&t->sec, index_offset(t, i), fde, &room->next) != 1 || fde->start != w->loc ||
	    fde->end <= fde->start)
		return -1;
	*end = fde->end;
	room->run = (struct cfi_run){
		.sec = &t->sec,
		.fde = fde,
		.limit = fde->end,
		.row = encode_row,
		.arg = w,
	};
	return cfi_run(&room->run);
}

/*
 * Encodes function @i at @p. Returns the bytes used, or 0 if the function must be interpreted. It is
 * not part of its caller's loop, where compilers compute addresses once and keep them all on the stack.
 */
static noinline_for_stack size_t compile_function(struct table *t, size_t i,
						  struct compile_room *room, uint8_t *p,
						  uint8_t *end)
{
	struct rowcode_writer *w = &room->w;
	uint64_t stop;

	rowcode_begin(w, t->img->m, index_start(t, i));
	w->p = p;
	w->end = end;
	if (encode_function(t, i, room, &stop) || w->full || w->loc >= stop)
		return 0;
	rowcode_put(w, stop, RULE_NONE);
	return w->full ? 0 : w->p - p;
}

/*
 * Returns the offset of an earlier function of the chunk that has the same rows as function @n,
 * or @at, the offset of the rows of function @n, if there is none.
 */
static noinline_for_stack uint16_t share(const struct table_chunk *c, const uint16_t *len, size_t n,
					 uint16_t at)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (len[i] == len[n] && c->off[i] != INTERPRET &&
		    !memcmp(c->rows + c->off[i], c->rows + at, len[n]))
			return c->off[i];
	}
	return at;
}

/* The arguments of compile_chunk(), and in @c the result. */
struct compile_args {
	struct table *t;
	size_t first;
	struct table_chunk *c;
};

static int compile_in(void *mem, void *args)
{
	struct compile_args *a = args;
	struct table *t = a->t;
	size_t n = min(t->nfde - a->first, (size_t)CHUNK_FDES);
	size_t most = sizeof(struct table_chunk) + CHUNK_ROWS;
	struct compile_room *room = mem;
	uint16_t *len = room->len;
	struct table_chunk *c;
	size_t i, used = 0;

	c = arena_reserve(&t->arena, most);
	if (!c)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		len[i] = compile_function(t, a->first + i, room, c->rows + used,
					  c->rows + CHUNK_ROWS);
		if (!len[i]) {
			c->off[i] = INTERPRET;
			continue;
		}
		c->off[i] = share(c, len, i, used);
		if (c->off[i] == used)
			used += len[i];
	}
	for (; i < CHUNK_FDES; i++)
		c->off[i] = INTERPRET;
	c->size = used;
	arena_trim(&t->arena, c, most, sizeof(*c) + used);
	a->c = c;
	return 0;
}

static struct table_chunk *compile_chunk(struct table *t, size_t first)
{
	struct compile_args a = { .t = t, .first = first };

	scratch_call(sizeof(struct compile_room), compile_in, &a);
	return a.c;
}

/*
 * Tells whether @c points to a compiled chunk. The pointer to a chunk that is not compiled holds
 * the number of lookups instead.
 */
static bool is_compiled(const struct table_chunk *c)
{
	return (uintptr_t)c > ASKED_MAX;
}

/* Returns chunk @n, compiling it if needed; or NULL if there is no memory. */
static struct table_chunk *get_chunk(struct table *t, size_t n)
{
	struct table_chunk *c = load_acquire(&t->chunk[n]);
	struct table_chunk *old = c;

	if (likely(is_compiled(c)))
		return c;
	c = compile_chunk(t, n * CHUNK_FDES);
	while (c && !__atomic_compare_exchange_n(&t->chunk[n], &old, c, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
		if (is_compiled(old))
			return old; /* another thread compiled it; its rows are equal */
	}
	return c;
}

/*
 * Returns chunk @n, or NULL and counts the lookup if too few were made in it to be worth
 * compiling: in most chunks only a few addresses are ever looked up.
 */
static struct table_chunk *ask_chunk(struct table *t, size_t n)
{
	uintptr_t asked = (uintptr_t)load_relaxed(&t->chunk[n]);
	struct table_chunk *old = (struct table_chunk *)asked;

	if (asked >= t->asked)
		return get_chunk(t, n);
	__atomic_compare_exchange_n(&t->chunk[n], &old, (struct table_chunk *)(asked + 1), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return NULL;
}

/* The arguments of interpret(), and in @rule the result. */
struct interpret_args {
	struct table *t;
	uint64_t vaddr, rule;
};

static int interpret_in(void *row, void *args)
{
	struct interpret_args *a = args;

	switch (table_row(a->t, a->vaddr, row)) {
	case 0:
		a->rule = simple_rule(a->t->img->m, row);
		break;
	case -SHSTK_END_NO_RULE:
		a->rule = RULE_NONE;
		break;
	default:
		a->rule = RULE_FULL; /* the step will report what is wrong */
	}
	return 0;
}

/* Returns the rule at @vaddr from the section itself, without a compiled chunk. */
static uint64_t interpret(struct table *t, uint64_t vaddr)
{
	struct interpret_args a = { t, vaddr, RULE_NONE };

	scratch_call(sizeof(struct cfi_row), interpret_in, &a);
	return a.rule;
}

uint64_t table_rule(struct table *t, uint64_t vaddr)
{
	size_t i = index_search(t, vaddr);
	struct table_chunk *c;

	if (i == t->nfde)
		return RULE_NONE;
	c = ask_chunk(t, i / CHUNK_FDES);
	if (c && c->off[i % CHUNK_FDES] != INTERPRET)
		return rowcode_find(t->img->m, c->rows + c->off[i % CHUNK_FDES], index_start(t, i),
				    vaddr);
	return interpret(t, vaddr);
}

int table_row(struct table *t, uint64_t vaddr, struct cfi_row *row)
{
	size_t i = index_search(t, vaddr);
	struct sframe_func f;

	if (i == t->nfde)
		return -SHSTK_END_NO_RULE;
	if (t->sf.s.size) {
		if (!sframe_func(&t->sf, index_offset(t, i), &f))
			return -SHSTK_END_BAD_RULE;
		if (vaddr < f.start || vaddr >= f.end)
			return -SHSTK_END_NO_RULE;
		return sframe_row(&t->sf, &f, vaddr, row);
	}
	return cfi_row_at(&t->sec, index_offset(t, i), vaddr, row);
}

void table_compile(struct table *t)
{
	size_t i;

	for (i = 0; i < t->nfde; i += CHUNK_FDES)
		get_chunk(t, i / CHUNK_FDES);
}

size_t table_bytes(const struct table *t)
{
	return load_relaxed(&t->arena.used) + t->index_bytes;
}

/* Reserves room for all chunks as if no rows were shared, and a little more. */
static int init_chunks(struct table *t)
{
	size_t nchunk = (t->nfde + CHUNK_FDES - 1) / CHUNK_FDES;
	size_t room = nchunk * (sizeof(*t->chunk) + sizeof(struct table_chunk)) + t->sec.s.size +
		      4 * CHUNK_ROWS;
	int err;

	err = arena_init(&t->arena, room);
	if (err)
		return err;
	t->chunk = arena_reserve(&t->arena, nchunk * sizeof(*t->chunk));
	return t->chunk ? 0 : -ENOMEM;
}

/* Ends each of the table_init functions: returns @err, or makes room for the chunks if it is 0. */
static int finish(struct table *t, int err)
{
	if (!err)
		err = init_chunks(t);
	if (err)
		table_deinit(t);
	return err;
}

int table_init_eh_frame(struct table *t, const struct elf_image *img)
{
	*t = (struct table){ .img = img, .sec.s = img->eh_frame, .asked = TABLE_ASKED };
	return finish(t, index_use_hdr(t, &img->eh_frame_hdr) ? 0 : index_build(t));
}

int table_init_debug_frame(struct table *t, const struct elf_image *img)
{
	*t = (struct table){
		.img = img,
		.sec.s = img->debug_frame,
		.sec.debug_frame = true,
		.asked = TABLE_ASKED,
	};
	return finish(t, index_build(t));
}

int table_init_sframe(struct table *t, const struct elf_image *img)
{
	*t = (struct table){ .img = img, .sec.s = img->sframe, .asked = TABLE_ASKED };
	if (sframe_parse(&t->sf, &img->sframe, img->m) || !t->sf.nfunc) {
		t->sf.s.size = 0;
		return -ENOENT;
	}
	return finish(t, index_sframe(t));
}

void table_deinit(struct table *t)
{
	index_free(t);
	t->chunk = NULL;
	arena_deinit(&t->arena);
}
