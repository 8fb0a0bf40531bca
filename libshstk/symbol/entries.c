// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * entries.c - finds the functions among the entries of a unit, as entries.h describes.
 *
 * Entries are passed over by their abbreviations, which are read first, into one shape each: what an
 * entry is, and in which steps its attributes are passed over. A step is a number of bytes, and at
 * most one attribute whose own bytes tell how long it is, so most entries take one step.
 *
 * The bytes are foreign. Each entry takes at least one of them, and only their CPU time is not
 * bounded by their number: that is looked at once in CHECK_BYTES.
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "bytes.h"
#include "entries.h"

#define CHECK_BYTES (1u << 20) /* of the tree between two looks at the CPU time */

#define FORM_NONE 0 /* no form has this number */

/**
 * struct step - how a part of the attributes of an entry is passed over
 * @skip: bytes to pass over first.
 * @form: form of the attribute that follows; FORM_NONE: this is the last step.
 * @sibling: that attribute tells where the next entry of the same level is.
 */
struct step {
	uint32_t skip;
	uint16_t form;
	bool sibling;
};

/**
 * struct shape - what an abbreviation says about its entries
 * @code: number of the abbreviation.
 * @first: index of the first step.
 * @tag: what the entry is, 0 if that is not known.
 * @children: entries follow that are inside it.
 * @located: it has addresses.
 */
struct shape {
	uint64_t code;
	uint32_t first;
	uint16_t tag;
	bool children;
	bool located;
};

/**
 * struct search - the state of a search
 * @unit: the unit.
 * @deep: functions are searched for functions, too.
 * @account: memory and time.
 * @take: receives functions.
 * @arg: argument of @take.
 * @shapes: the abbreviations, by code.
 * @nr_shapes: number of @shapes.
 * @max_shapes: number of shapes that there is room for.
 * @steps: the steps of all shapes.
 * @nr_steps: number of @steps.
 * @max_steps: number of steps that there is room for.
 * @from: the entries that were not read yet.
 * @checked: where in the entries CPU time was looked at.
 */
struct search {
	const struct shstk_unit *unit;
	bool deep;
	struct shstk_account *account;
	shstk_take_function *take;
	void *arg;
	struct shape *shapes;
	size_t nr_shapes;
	size_t max_shapes;
	struct step *steps;
	size_t nr_steps;
	size_t max_steps;
	struct shstk_bytes from;
	const uint8_t *checked;
};

/**
 * struct entry - an entry that was passed over
 * @at: its first byte.
 * @shape: what it is; NULL: it ends a level.
 * @next: the next entry of the same level, or NULL if that is not told.
 */
struct entry {
	const uint8_t *at;
	const struct shape *shape;
	const uint8_t *next;
};

bool shstk_is_scope(unsigned int tag, bool deep)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return deep;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	default:
		return false;
	}
}

/* ---- Attributes ---- */

/* Returns how many bytes an attribute takes, or -1 if its own bytes tell. */
static int form_size(const struct shstk_unit *unit, uint64_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_size;
	case DW_FORM_ref_addr:
		return unit->version < 3 ? unit->address_size : unit->offset_size;
	case DW_FORM_sec_offset:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_size;
	default:
		return -1;
	}
}

static bool pass_block(struct shstk_bytes *from, unsigned int size)
{
	uint64_t length;

	return bytes_fixed(from, size, &length) && bytes_skip(from, length);
}

static bool pass_string(struct shstk_bytes *from)
{
	const uint8_t *zero = memchr(from->p, '\0', from->end - from->p);

	from->p = zero ? zero + 1 : from->end;
	return zero;
}

/* Passes over an attribute whose own bytes tell its length. Returns false if that is not known. */
static bool pass_form(uint64_t form, struct shstk_bytes *from)
{
	uint64_t number;

	switch (form) {
	case DW_FORM_string:
		return pass_string(from);
	case DW_FORM_block1:
		return pass_block(from, 1);
	case DW_FORM_block2:
		return pass_block(from, 2);
	case DW_FORM_block4:
		return pass_block(from, 4);
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return bytes_uleb(from, &number) && bytes_skip(from, number);
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return bytes_uleb(from, &number);
	default:
		return false;
	}
}

/* Passes over an attribute that begins with its form. */
static bool pass_indirect(const struct shstk_unit *unit, struct shstk_bytes *from)
{
	uint64_t form;
	int size;

	if (!bytes_uleb(from, &form))
		return false;
	size = form_size(unit, form);
	return size < 0 ? pass_form(form, from) : bytes_skip(from, size);
}

/*
 * Reads a reference into the unit. @ret receives where it points to, or NULL if that is not behind
 * it in the unit.
 */
static bool read_sibling(const struct shstk_unit *unit, uint16_t form, struct shstk_bytes *from,
			 const uint8_t **ret)
{
	uint64_t to;
	bool ok = form == DW_FORM_ref_udata ? bytes_uleb(from, &to) :
					      bytes_fixed(from, form_size(unit, form), &to);

	*ret = ok && to > (uint64_t)(from->p - unit->header) &&
			       to <= (uint64_t)(from->end - unit->header) ?
		       unit->header + to :
		       NULL;
	return ok;
}

static bool is_reference(uint64_t form)
{
	return form == DW_FORM_ref1 || form == DW_FORM_ref2 || form == DW_FORM_ref4 ||
	       form == DW_FORM_ref8 || form == DW_FORM_ref_udata;
}

/* ---- Abbreviations ---- */

static bool add_step(struct search *s, const struct step *step)
{
	struct step *steps = shstk_account_grow(s->account, s->steps, s->nr_steps, &s->max_steps,
						sizeof(*steps));

	if (!steps || s->nr_steps == UINT32_MAX)
		return false;
	s->steps = steps;
	steps[s->nr_steps++] = *step;
	return true;
}

static bool add_shape(struct search *s, const struct shape *shape)
{
	struct shape *shapes = shstk_account_grow(s->account, s->shapes, s->nr_shapes,
						  &s->max_shapes, sizeof(*shapes));

	if (!shapes)
		return false;
	s->shapes = shapes;
	shapes[s->nr_shapes++] = *shape;
	return true;
}

/* Adds an attribute to the steps, of which @step is the one that is not complete. */
static bool add_attribute(struct search *s, uint64_t name, uint64_t form, struct step *step)
{
	bool sibling = name == DW_AT_sibling && is_reference(form);
	int size = form_size(s->unit, form);

	if (size >= 0 && !sibling) {
		step->skip += size;
		return true;
	}
	/* FORM_NONE would be the end. */
	step->form = form && form <= UINT16_MAX ? form : UINT16_MAX;
	step->sibling = sibling;
	if (!add_step(s, step))
		return false;
	*step = (struct step){ .form = FORM_NONE };
	return true;
}

/* Reads the attributes of an abbreviation. Returns false if they are broken, or memory runs out. */
static bool read_attributes(struct search *s, struct shstk_bytes *from, struct shape *shape)
{
	struct step step = { .form = FORM_NONE };
	uint64_t name, form;
	int64_t constant;

	for (;;) {
		if (!bytes_uleb(from, &name) || !bytes_uleb(from, &form))
			return false;
		if (!name && !form)
			return add_step(s, &step);
		if (form == DW_FORM_implicit_const && !bytes_sleb(from, &constant))
			return false;
		shape->located |= name == DW_AT_high_pc || name == DW_AT_ranges;
		if (!add_attribute(s, name, form, &step))
			return false;
	}
}

/*
 * Reads an abbreviation. @end receives whether the table ends instead. Returns false if it is
 * broken, or memory runs out.
 */
static bool read_shape(struct search *s, struct shstk_bytes *from, bool *end)
{
	struct shape shape = { .first = s->nr_steps };
	uint64_t tag, children;

	/* The last table of a section may lack its end. */
	*end = from->p == from->end;
	if (*end)
		return true;
	if (!bytes_uleb(from, &shape.code))
		return false;
	*end = !shape.code;
	if (*end)
		return true;
	if (!bytes_uleb(from, &tag) || !bytes_fixed(from, 1, &children))
		return false;
	shape.tag = tag <= UINT16_MAX ? tag : 0;
	shape.children = children;
	return read_attributes(s, from, &shape) && add_shape(s, &shape);
}

static int by_code(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static bool read_shapes(struct search *s)
{
	struct shstk_bytes from = s->unit->abbrevs;
	bool end;

	do {
		if (!read_shape(s, &from, &end))
			return false;
		if (!(s->nr_shapes % SHSTK_ACCOUNT_STEPS) && !shstk_account_on(s->account))
			return false;
	} while (!end);
	if (s->nr_shapes)
		qsort(s->shapes, s->nr_shapes, sizeof(*s->shapes), by_code);
	return true;
}

/* Returns the shape with this code, or NULL. Compilers number them from 1 on. */
static const struct shape *find_shape(const struct search *s, uint64_t code)
{
	const struct shape key = { .code = code };

	if (code <= s->nr_shapes && s->shapes[code - 1].code == code)
		return s->shapes + code - 1;
	return s->nr_shapes ? bsearch(&key, s->shapes, s->nr_shapes, sizeof(key), by_code) : NULL;
}

/* ---- Entries ---- */

/* Passes over the attribute of a step that is not the last one. */
static bool pass_attribute(struct search *s, const struct step *step, struct entry *entry)
{
	if (step->sibling)
		return read_sibling(s->unit, step->form, &s->from, &entry->next);
	if (step->form == DW_FORM_indirect)
		return pass_indirect(s->unit, &s->from);
	return pass_form(step->form, &s->from);
}

static bool pass_attributes(struct search *s, struct entry *entry)
{
	const struct step *step = s->steps + entry->shape->first;

	for (; bytes_skip(&s->from, step->skip); step++) {
		if (step->form == FORM_NONE)
			return true;
		if (!pass_attribute(s, step, entry))
			return false;
	}
	return false;
}

static bool has_time(struct search *s)
{
	if (s->from.p - s->checked < CHECK_BYTES)
		return true;
	s->checked = s->from.p;
	return shstk_account_on(s->account);
}

/* Passes over an entry, but not over those inside it. Returns false at the end. */
static bool next_entry(struct search *s, struct entry *ret)
{
	uint64_t code;

	*ret = (struct entry){ .at = s->from.p };
	if (!has_time(s) || !bytes_uleb(&s->from, &code))
		return false;
	if (!code)
		return true;
	ret->shape = find_shape(s, code);
	return ret->shape && pass_attributes(s, ret);
}

/* Passes over what is inside @entry, if it is told where that ends. */
static bool jump(struct search *s, const struct entry *entry)
{
	if (!entry->next || entry->next < s->from.p)
		return false;
	s->from.p = entry->next;
	return true;
}

/* Passes over what is inside @entry. */
static bool pass_inside(struct search *s, const struct entry *entry)
{
	struct entry in;
	size_t levels = 1;

	if (jump(s, entry))
		return true;
	while (levels && next_entry(s, &in)) {
		if (!in.shape)
			levels--;
		else if (in.shape->children && !jump(s, &in))
			levels++;
	}
	return !levels;
}

/* Searches a level of the tree. Returns false if the search is to end. */
static bool search_level(struct search *s, int depth)
{
	struct entry entry;
	const struct shape *shape;
	bool in;

	while (next_entry(s, &entry)) {
		shape = entry.shape;
		if (!shape)
			return true;
		if (shape->tag == DW_TAG_subprogram && shape->located &&
		    !s->take(s->arg, entry.at - s->unit->entries.p))
			return false;
		if (!shape->children)
			continue;
		in = depth < SHSTK_ENTRIES_DEPTH && shstk_is_scope(shape->tag, s->deep);
		if (!(in ? search_level(s, depth + 1) : pass_inside(s, &entry)))
			return false;
	}
	return false;
}

void shstk_functions_each(const struct shstk_unit *unit, bool deep, struct shstk_account *account,
			  shstk_take_function *take, void *arg)
{
	struct search s = {
		.unit = unit,
		.deep = deep,
		.account = account,
		.take = take,
		.arg = arg,
		.from = unit->entries,
		.checked = unit->entries.p,
	};
	struct entry root;

	if (read_shapes(&s) && next_entry(&s, &root) && root.shape && root.shape->children)
		search_level(&s, 0);
	shstk_account_give(account,
			   s.max_shapes * sizeof(*s.shapes) + s.max_steps * sizeof(*s.steps));
	free(s.shapes);
	free(s.steps);
}
