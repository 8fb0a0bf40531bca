// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * table.c - compile call frame information to rows, find the row of an address.
 *
 * A compiled function is a string of rows, each with the distance to the row
 * before it:
 *
 *	byte 0	bits 0-2  enum row_op: how the rule differs from the last one
 *		bits 3-7  distance in instructions' alignment; 31: ULEB128 of the
 *			  rest follows
 *	ROW_CFA: ULEB128 cfa_off / 8
 *	ROW_OTHER: one byte, the low bits of the rule; for RULE_SP and RULE_FP
 *		also ULEB128 cfa_off / 8 and, where saved, -fp_off / 8, -ra_off / 8
 *		(this one only on machines with the return address in a register)
 *
 * Functions begin with the rule that holds right after a call, and end with
 * ROW_END. What compilers emit most, pushes, pops and the return to the state
 * before an epilogue, takes one byte a row. Functions whose rows are the same
 * bytes share them.
 */
#include <errno.h>
#include <sys/mman.h>

#include "scratch.h"
#include "table.h"

enum row_op {
	ROW_UP, /* the CFA is 8 bytes further from sp */
	ROW_DOWN, /* 8 bytes nearer */
	ROW_BACK, /* as before the last epilogue */
	ROW_END, /* the end of the function */
	ROW_CFA, /* another distance from sp */
	ROW_PUSH_FP, /* 8 bytes further, where fp is saved now */
	ROW_FRAME, /* fp points at its saved value, below the return address */
	ROW_OTHER,
};

#define DELTA_LONG 31
#define CHUNK_ROWS 16384 /* most bytes of rows in a chunk */
#define INTERPRET 0xffff /* this function is not compiled */
#define ASKED 8 /* lookups in a chunk before it is compiled */

struct chunk {
	uint16_t off[CHUNK_FDES];
	uint32_t size;
	uint8_t rows[];
};

int arena_init(struct arena *a, size_t size)
{
	size = ALIGN_UP(size, 4096);
	a->base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->base == MAP_FAILED) {
		a->base = NULL;
		return -ENOMEM;
	}
	a->size = size;
	a->used = 0;
	return 0;
}

void arena_deinit(struct arena *a)
{
	if (a->base)
		munmap(a->base, a->size);
	a->base = NULL;
}

void *arena_reserve(struct arena *a, size_t size)
{
	size_t old = load_relaxed(&a->used);

	size = ALIGN_UP(size, 8);
	do {
		if (size > a->size - old)
			return NULL;
	} while (!__atomic_compare_exchange_n(&a->used, &old, old + size, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return a->base + old;
}

void arena_trim(struct arena *a, void *reserved, size_t size, size_t keep)
{
	size_t start = (uint8_t *)reserved - a->base;
	size_t end = start + ALIGN_UP(size, 8);

	__atomic_compare_exchange_n(&a->used, &end, start + ALIGN_UP(keep, 8), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static int32_t read_s32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Start address of function @i, and the offset of its FDE in the section. */
static uint64_t entry_start(const struct table *t, size_t i)
{
	if (t->hdr)
		return t->hdr_vaddr + read_s32(t->hdr + 8 * i);
	if (!t->index)
		return sframe_start(&t->sf, i);
	return t->img->lo + t->index[i].start;
}

static uint64_t entry_offset(const struct table *t, size_t i)
{
	if (t->hdr)
		return t->hdr_vaddr + read_s32(t->hdr + 8 * i + 4) - t->sec.s.vaddr;
	return t->index ? t->index[i].offset : i;
}

/* The last function that starts at or below @vaddr; nfde if there is none. */
static size_t search(const struct table *t, uint64_t vaddr)
{
	size_t lo = 0, n = t->nfde;

	while (n) {
		size_t half = n / 2;

		if (entry_start(t, lo + half) <= vaddr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo ? lo - 1 : t->nfde;
}

/**
 * struct state - what both sides know after a row
 * @rule: the rule in force.
 * @body: the one before the last epilogue, which ROW_BACK returns to.
 * @down: an epilogue is going on: the frame has been getting smaller.
 */
struct state {
	uint64_t rule;
	uint64_t body;
	bool down;
};

#define RULE_SAVED_FP(off) (RULE_FP_SAVED | RULE_FP_AT(off))
#define RULE_ALL_FP (RULE_FP_SAVED | RULE_FP_AT_ALL)
#define RULE_ALL_CFA RULE_CFA(-8)

static uint64_t saved_ra(const struct machine *m)
{
	return RULE_RA_SAVED | RULE_RA_AT(8 * m->ra_off);
}

/* Right after a call instruction. */
static struct state state_at_entry(const struct machine *m)
{
	uint64_t rule = RULE_SP;

	if (!m->ra_in_reg)
		rule |= RULE_CFA(8) | saved_ra(m);
	return (struct state){ .rule = rule, .body = rule };
}

static void state_next(struct state *s, uint64_t rule)
{
	bool down = RULE_KIND(rule) == RULE_SP &&
		    (RULE_KIND(s->rule) == RULE_FP || rule_cfa_off(rule) < rule_cfa_off(s->rule));

	if (down && !s->down)
		s->body = s->rule;
	s->down = down;
	s->rule = rule;
}

static uint64_t rule_push_fp(uint64_t rule)
{
	rule += RULE_CFA(8);
	return (rule & ~RULE_ALL_FP) | RULE_SAVED_FP(-rule_cfa_off(rule));
}

static uint64_t rule_frame(const struct machine *m)
{
	return RULE_FP | RULE_CFA(16) | saved_ra(m) | RULE_SAVED_FP(-16);
}

struct encoder {
	const struct machine *m;
	uint8_t *p, *end;
	uint64_t loc; /* of the last row */
	struct state s;
	bool full;
};

static void put(struct encoder *e, uint8_t byte)
{
	if (e->p == e->end)
		e->full = true;
	else
		*e->p++ = byte;
}

static void put_uleb(struct encoder *e, uint64_t v)
{
	while (v >= 0x80) {
		put(e, v | 0x80);
		v >>= 7;
	}
	put(e, v);
}

/* The shortest row that turns the last rule into @rule. */
static enum row_op choose_op(const struct encoder *e, uint64_t rule)
{
	uint64_t last = e->s.rule;

	if (rule == RULE_NONE)
		return ROW_END;
	if (rule == e->s.body)
		return ROW_BACK;
	if (!e->m->ra_in_reg && rule == rule_frame(e->m))
		return ROW_FRAME;
	if (RULE_KIND(last) != RULE_SP)
		return ROW_OTHER;
	if (rule == last + RULE_CFA(8))
		return ROW_UP;
	if (rule == last - RULE_CFA(8))
		return ROW_DOWN;
	if (rule == rule_push_fp(last))
		return ROW_PUSH_FP;
	return (rule ^ last) & ~RULE_ALL_CFA ? ROW_OTHER : ROW_CFA;
}

static void put_other(struct encoder *e, uint64_t rule)
{
	put(e, RULE_FORM(rule));
	if (RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP)
		return;
	put_uleb(e, rule_cfa_off(rule) / 8);
	if (rule & RULE_FP_SAVED)
		put_uleb(e, -rule_fp_off(rule) / 8);
	if (rule & RULE_RA_SAVED && e->m->ra_in_reg)
		put_uleb(e, -rule_ra_off(rule) / 8);
}

static void put_rule(struct encoder *e, uint64_t loc, uint64_t rule)
{
	uint64_t delta = (loc - e->loc) / e->m->insn_align;
	enum row_op op;

	if (rule == e->s.rule)
		return;
	if ((loc - e->loc) % e->m->insn_align)
		e->full = true; /* not between two instructions */
	op = choose_op(e, rule);
	put(e, op | min(delta, (uint64_t)DELTA_LONG) << 3);
	if (delta >= DELTA_LONG)
		put_uleb(e, delta - DELTA_LONG);
	if (op == ROW_CFA)
		put_uleb(e, rule_cfa_off(rule) / 8);
	if (op == ROW_OTHER)
		put_other(e, rule);
	e->loc = loc;
	state_next(&e->s, rule);
}

/* What rows can express. */
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
	struct encoder *e = arg;

	put_rule(e, start, simple_rule(e->m, row));
	return e->full;
}

/* What is needed to compile a chunk: for each function its length; then for one. */
struct compile_room {
	uint16_t len[CHUNK_FDES];
	struct encoder e;
	struct sframe_func f;
	struct fde fde;
};

/* Encode the rows of function @i, which ends at *@end. */
static int encode_function(const struct table *t, size_t i, struct compile_room *room,
			   uint64_t *end)
{
	struct encoder *e = &room->e;
	struct fde *fde = &room->fde;
	size_t next;

	if (t->sf.s.size) {
		if (!sframe_func(&t->sf, entry_offset(t, i), &room->f))
			return -1;
		*end = room->f.end;
		return sframe_run(&t->sf, &room->f, encode_row, e);
	}
	if (cfi_entry(&t->sec, entry_offset(t, i), fde, &next) != 1 || fde->start != e->loc ||
	    fde->end <= fde->start)
		return -1;
	*end = fde->end;
	return cfi_run(&(struct cfi_run){
		.sec = &t->sec,
		.fde = fde,
		.limit = fde->end,
		.row = encode_row,
		.arg = e,
	});
}

/* Encode function @i behind @p. Returns bytes used, 0 if it must be interpreted. */
static size_t compile_function(struct table *t, size_t i, struct compile_room *room, uint8_t *p,
			       uint8_t *end)
{
	struct encoder *e = &room->e;
	uint64_t stop;

	memset(e, 0, sizeof(*e));
	e->m = t->img->m;
	e->p = p;
	e->end = end;
	e->s = state_at_entry(t->img->m);
	e->loc = entry_start(t, i);
	if (encode_function(t, i, room, &stop) || e->full || e->loc >= stop)
		return 0;
	put_rule(e, stop, RULE_NONE);
	return e->full ? 0 : e->p - p;
}

/* Has an earlier function of the chunk the same rows? Its offset, or @at. */
static uint16_t share(const struct chunk *c, const uint16_t *len, size_t n, uint16_t at)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (len[i] == len[n] && c->off[i] != INTERPRET &&
		    !memcmp(c->rows + c->off[i], c->rows + at, len[n]))
			return c->off[i];
	}
	return at;
}

/* What compile_chunk() is given, and what it makes. */
struct compile_args {
	struct table *t;
	size_t first;
	struct chunk *c;
};

static int compile_in(void *mem, void *args)
{
	struct compile_args *a = args;
	struct table *t = a->t;
	size_t n = min(t->nfde - a->first, (size_t)CHUNK_FDES);
	size_t most = sizeof(struct chunk) + CHUNK_ROWS;
	struct compile_room *room = mem;
	uint16_t *len = room->len;
	struct chunk *c;
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

static struct chunk *compile_chunk(struct table *t, size_t first)
{
	struct compile_args a = { .t = t, .first = first };

	scratch_call(sizeof(struct compile_room), compile_in, &a);
	return a.c;
}

/* Instead of a chunk that is not compiled its pointer has the number of lookups. */
static bool is_compiled(const struct chunk *c)
{
	return (uintptr_t)c > ASKED;
}

static struct chunk *get_chunk(struct table *t, size_t n)
{
	struct chunk *c = load_acquire(&t->chunk[n]);
	struct chunk *old = c;

	if (likely(is_compiled(c)))
		return c;
	c = compile_chunk(t, n * CHUNK_FDES);
	while (c && !__atomic_compare_exchange_n(&t->chunk[n], &old, c, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
		if (is_compiled(old))
			return old; /* of another thread; its rows are equal */
	}
	return c;
}

/* The chunk, if it is worth being compiled: most are asked for a few addresses only. */
static struct chunk *ask_chunk(struct table *t, size_t n)
{
	uintptr_t asked = (uintptr_t)load_relaxed(&t->chunk[n]);
	struct chunk *old = (struct chunk *)asked;

	if (asked >= ASKED)
		return get_chunk(t, n);
	__atomic_compare_exchange_n(&t->chunk[n], &old, (struct chunk *)(asked + 1), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return NULL;
}

static uint64_t get_uleb(const uint8_t **p)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		byte = *(*p)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

static uint64_t get_other(const struct machine *m, const uint8_t **p)
{
	uint64_t rule = *(*p)++;

	if (RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP)
		return rule;
	rule |= RULE_CFA(8 * get_uleb(p));
	if (rule & RULE_FP_SAVED)
		rule |= RULE_FP_AT(-8 * (int64_t)get_uleb(p));
	if (!m->ra_in_reg)
		rule |= saved_ra(m);
	else if (rule & RULE_RA_SAVED)
		rule |= RULE_RA_AT(-8 * (int64_t)get_uleb(p));
	return rule;
}

static uint64_t get_rule(const struct machine *m, const struct state *s, enum row_op op,
			 const uint8_t **p)
{
	switch (op) {
	case ROW_UP:
		return s->rule + RULE_CFA(8);
	case ROW_DOWN:
		return s->rule - RULE_CFA(8);
	case ROW_BACK:
		return s->body;
	case ROW_CFA:
		return (s->rule & ~RULE_ALL_CFA) | RULE_CFA(8 * get_uleb(p));
	case ROW_PUSH_FP:
		return rule_push_fp(s->rule);
	case ROW_FRAME:
		return rule_frame(m);
	case ROW_OTHER:
		return get_other(m, p);
	case ROW_END:
		break;
	}
	return RULE_NONE;
}

/* Find the row of @vaddr in rows that start at @start. Our own bytes: trusted. */
static uint64_t decode(const struct machine *m, const uint8_t *p, uint64_t start, uint64_t vaddr)
{
	struct state s = state_at_entry(m);

	for (;;) {
		uint8_t b = *p++;
		uint64_t delta = b >> 3;

		if (delta == DELTA_LONG)
			delta += get_uleb(&p);
		start += delta * m->insn_align;
		if (start > vaddr)
			return s.rule;
		if ((b & 7) == ROW_END)
			return RULE_NONE;
		state_next(&s, get_rule(m, &s, b & 7, &p));
	}
}

/* What interpret() is given, and what it makes. */
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
		a->rule = RULE_FULL; /* stepping will say what is wrong */
	}
	return 0;
}

static uint64_t interpret(struct table *t, uint64_t vaddr)
{
	struct interpret_args a = { t, vaddr, RULE_NONE };

	scratch_call(sizeof(struct cfi_row), interpret_in, &a);
	return a.rule;
}

uint64_t table_rule(struct table *t, uint64_t vaddr)
{
	size_t i = search(t, vaddr);
	struct chunk *c;

	if (i == t->nfde)
		return RULE_NONE;
	c = ask_chunk(t, i / CHUNK_FDES);
	if (c && c->off[i % CHUNK_FDES] != INTERPRET)
		return decode(t->img->m, c->rows + c->off[i % CHUNK_FDES], entry_start(t, i),
			      vaddr);
	return interpret(t, vaddr);
}

int table_row(struct table *t, uint64_t vaddr, struct cfi_row *row)
{
	size_t i = search(t, vaddr);
	struct sframe_func f;

	if (i == t->nfde)
		return -SHSTK_END_NO_RULE;
	if (t->sf.s.size) {
		if (!sframe_func(&t->sf, entry_offset(t, i), &f))
			return -SHSTK_END_BAD_RULE;
		if (vaddr < f.start || vaddr >= f.end)
			return -SHSTK_END_NO_RULE;
		return sframe_row(&t->sf, &f, vaddr, row);
	}
	return cfi_row_at(&t->sec, entry_offset(t, i), vaddr, row);
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

/* Use the linker's search table if it has the usual form. */
static bool use_hdr(struct table *t, const struct section *h)
{
	enum { VERSION = 1, TABLE_ENC = 0x3b, COUNT_ENC = 0x03 };
	const uint8_t *p, *end;
	uint64_t frame, count;

	if (h->size < 4 || h->data[0] != VERSION)
		return false;
	end = h->data + h->size;
	p = cfi_pointer(h->data + 4, end, h->data[1], h->vaddr + 4, h->vaddr, &frame);
	if (!p)
		return false;
	if (!t->sec.s.size) { /* stripped of section headers */
		size_t avail;

		t->sec.s.data = elf_image_at(t->img, frame, &avail);
		if (!t->sec.s.data)
			return false;
		t->sec.s.size = avail;
		t->sec.s.vaddr = frame;
	}
	if (h->data[2] != COUNT_ENC || h->data[3] != TABLE_ENC || frame != t->sec.s.vaddr)
		return false;
	p = cfi_pointer(p, end, h->data[2], 0, 0, &count);
	if (!p || !count || count > (size_t)(end - p) / 8)
		return false;
	t->hdr = p;
	t->hdr_vaddr = h->vaddr;
	t->nfde = count;
	return true;
}

static void sift_down(struct index_entry *e, size_t i, size_t n)
{
	struct index_entry v = e[i];
	size_t child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && e[child].start < e[child + 1].start)
			child++;
		if (e[child].start <= v.start)
			break;
		e[i] = e[child];
		i = child;
	}
	e[i] = v;
}

/* Heapsort: qsort() may allocate. */
static void sort_index(struct index_entry *e, size_t n)
{
	size_t i;

	for (i = n / 2; i--;)
		sift_down(e, i, n);
	while (n > 1) {
		struct index_entry v = e[--n];

		e[n] = e[0];
		e[0] = v;
		sift_down(e, 0, n);
	}
}

/* Go through the section: count its functions; list them too unless @list is
 * NULL. Entries of discarded functions have no length or lie outside.
 */
static size_t scan(const struct table *t, struct index_entry *list)
{
	size_t off = 0, next, n = 0;
	struct fde fde;
	int kind;

	while ((kind = cfi_entry(&t->sec, off, &fde, &next)) >= 0) {
		uint64_t rel = fde.start - t->img->lo;

		if (kind == 1 && fde.end > fde.start && rel <= UINT32_MAX) {
			if (list)
				list[n] = (struct index_entry){ rel, off };
			n++;
		}
		off = next;
	}
	return n;
}

static int index_alloc(struct table *t, size_t n)
{
	size_t bytes = ALIGN_UP(n * sizeof(*t->index), 4096);
	void *p;

	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	t->index = p;
	t->index_bytes = bytes;
	t->nfde = n;
	return 0;
}

static int build_index(struct table *t)
{
	size_t n;
	int err;

	if (!t->sec.s.size || t->sec.s.size > UINT32_MAX)
		return -ENOENT;
	n = scan(t, NULL);
	if (!n)
		return -ENOENT;
	err = index_alloc(t, n);
	if (err)
		return err;
	scan(t, t->index);
	sort_index(t->index, n);
	return 0;
}

/* Room for all chunks as if nothing were shared, and then some. */
static int init_chunks(struct table *t)
{
	size_t nchunk = (t->nfde + CHUNK_FDES - 1) / CHUNK_FDES;
	size_t room = nchunk * (sizeof(*t->chunk) + sizeof(struct chunk)) + t->sec.s.size +
		      4 * CHUNK_ROWS;
	int err;

	err = arena_init(&t->arena, room);
	if (err)
		return err;
	t->chunk = arena_reserve(&t->arena, nchunk * sizeof(*t->chunk));
	return t->chunk ? 0 : -ENOMEM;
}

int table_init_eh_frame(struct table *t, const struct elf_image *img)
{
	int err;

	memset(t, 0, sizeof(*t));
	t->img = img;
	t->sec.s = img->eh_frame;
	if (!use_hdr(t, &img->eh_frame_hdr)) {
		err = build_index(t);
		if (err)
			return err;
	}
	err = init_chunks(t);
	if (err)
		table_deinit(t);
	return err;
}

int table_init_debug_frame(struct table *t, const struct elf_image *img)
{
	int err;

	memset(t, 0, sizeof(*t));
	t->img = img;
	t->sec.s = img->debug_frame;
	t->sec.debug_frame = true;
	err = build_index(t);
	if (err)
		return err;
	err = init_chunks(t);
	if (err)
		table_deinit(t);
	return err;
}

/* The section is an index of its own, if it is sorted. */
static int index_sframe(struct table *t)
{
	struct sframe_func f;
	size_t i, n = 0;
	int err;

	if (t->sf.sorted) {
		t->nfde = t->sf.nfunc;
		return 0;
	}
	err = index_alloc(t, t->sf.nfunc);
	if (err)
		return err;
	for (i = 0; i < t->sf.nfunc; i++) {
		uint64_t rel = sframe_start(&t->sf, i) - t->img->lo;

		if (sframe_func(&t->sf, i, &f) && rel <= UINT32_MAX)
			t->index[n++] = (struct index_entry){ rel, i };
	}
	t->nfde = n;
	sort_index(t->index, n);
	return 0;
}

int table_init_sframe(struct table *t, const struct elf_image *img)
{
	int err;

	memset(t, 0, sizeof(*t));
	t->img = img;
	t->sec.s = img->sframe;
	if (sframe_parse(&t->sf, &img->sframe, img->m) || !t->sf.nfunc) {
		t->sf.s.size = 0;
		return -ENOENT;
	}
	err = index_sframe(t);
	if (!err)
		err = init_chunks(t);
	if (err)
		table_deinit(t);
	return err;
}

void table_deinit(struct table *t)
{
	if (t->index)
		munmap(t->index, t->index_bytes);
	t->index = NULL;
	t->chunk = NULL;
	t->nfde = 0;
	arena_deinit(&t->arena);
}
