// SPDX-License-Identifier: GPL-2.0-or-later
/* read.c - reads an interpreter's frames from a process that is stopped. See read.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/language_ranks.h"
#include "libshstk/symbol/budget.h"
#include "tools/language/middle.h"
#include "tools/language/read.h"
#include "tools/language/thread_variable.h"

#define STOP_SHIFT 48 /* addresses of user space are smaller */

/**
 * struct language_reading - the state of reading
 * @all: receives what is read.
 * @t: how frames are found.
 * @thread: the thread.
 * @end: address at which a row of frames ends.
 * @moment: the frames, as the BPF program would write them.
 * @entries: its entries; they follow it.
 * @code: a function.
 */
struct language_reading {
	struct languages *all;
	const struct language_target *t;
	const struct language_thread *thread;
	uint64_t end;
	struct language_moment moment;
	struct language_entry entries[LANGUAGE_ENTRIES];
	struct language_code code;
};

static bool read_bytes(const struct language_reading *r, uint64_t at, void *buf, size_t size)
{
	return !r->thread->read(r->thread->arg, at, buf, size);
}

static uint64_t word(const struct language_reading *r, uint64_t at)
{
	uint64_t value;

	return read_bytes(r, at, &value, sizeof(value)) ? value : 0;
}

static uint64_t thread_word(const void *arg, uint64_t at)
{
	return word(arg, at);
}

static uint64_t find_base(const struct language_reading *r)
{
	const struct language_target *t = r->t;
	const uint64_t thread = r->thread->pointer - t->thread_below;
	uint64_t base = t->base;
	uint32_t key;

	if (t->by_variable) {
		base = thread_variable_at(&t->variable, r->thread->pointer, thread_word, r);
		base = base ? word(r, base) : 0;
	}

	if (t->key_at) {
		if (!read_bytes(r, t->key_at, &key, sizeof(key)) || key >= 32)
			return 0;
		base = word(r, thread + t->slot + key * 16);
	}
	return base && t->thread_at && word(r, base + t->thread_at) != thread ? 0 : base;
}

static uint64_t find_first(const struct language_reading *r, const struct language_chain *chain,
			   uint64_t base)
{
	uint64_t at = base;

	for (uint32_t i = 0; i < LANGUAGE_STEPS; i++)
		if (i < chain->nr_steps && at)
			at = word(r, at + chain->steps[i]);
	return chain->nr_steps ? at : 0;
}

/* Returns the address of the characters of the object at @at, and their number, 0 if it is no text. */
static uint64_t find_characters(const struct language_reading *r, uint64_t at, uint64_t *size)
{
	const struct language_strings *s = &r->t->strings;
	uint64_t head = word(r, at);

	if (s->list && (head & s->kind_mask) == s->list) {
		at = word(r, at + s->first_at);
		head = word(r, at);
	}
	*size = 0;
	if ((head & s->kind_mask) != s->string)
		return at;
	*size = s->inside_mask && !(head & s->outside) ? head >> s->inside_shift & s->inside_mask :
							 word(r, at + s->length_at);
	return head & s->outside ? word(r, at + s->address_at) : at + s->inside_at;
}

/* Returns the address of a text of less than @room bytes at @at, and how many are to be copied. */
static uint64_t find_bytes(const struct language_reading *r, const struct language_text *text,
			   uint64_t at, uint64_t room, uint64_t *size)
{
	if (r->t->strings.kind_mask)
		return find_characters(r, at, size);
	*size = word(r, at + text->length_at);
	*size = (*size < room ? *size : room) * text->unit + text->head;
	return at;
}

/* Copies a text of less than @room bytes. Returns how many bytes were copied. */
static uint32_t copy_text(const struct language_reading *r, const struct language_text *text,
			  uint8_t *to, uint64_t room)
{
	uint64_t at = r->code.words[text->word], size, part;
	uint32_t done = 0;

	if (text->via)
		at = word(r, at + text->via);
	at = find_bytes(r, text, at, room, &size);
	if (size >= room)
		size = room - 1;
	/* Memory may end behind it. */
	while (done < size) {
		part = LANGUAGE_PAGE - (at + done) % LANGUAGE_PAGE;
		part = part < size - done ? part : size - done;
		if (!read_bytes(r, at + done, to + done, part))
			break;
		done += part;
	}
	return done;
}

/*
 * Keeps the function that was read. Returns false if the account has no memory for it. For each
 * byte of the table of lines there may be a line.
 */
static bool keep(const struct language_reading *r)
{
	size_t lines = r->code.got[LANGUAGE_TEXTS - 1] * sizeof(struct language_line);
	size_t most = sizeof(r->code) + lines, before = languages_bytes(r->all), took;

	if (!shstk_account_take(r->thread->account, most))
		return false;
	languages_take(r->all, r->thread->tid, 0, &r->code, sizeof(r->code));
	took = languages_bytes(r->all) - before;
	shstk_account_give(r->thread->account, took < most ? most - took : 0);
	return true;
}

/* Returns the address of a function's object, which is at @code or which that leads to; 0: none. */
static uint64_t object_of(const struct language_reading *r, uint64_t code)
{
	const struct language_holder *h = &r->t->holder;

	if (!h->offset)
		return code;
	return (word(r, code) & h->mask) == h->type ? word(r, code + h->offset) : 0;
}

/* Returns element @i of the list at @at, 0: it is none. */
static uint64_t list_element(const struct language_reading *r, uint64_t at, uint64_t i)
{
	const struct language_lists *lists = &r->t->numbered.lists;
	const uint64_t head = word(r, at);

	if ((head & r->t->strings.kind_mask) != lists->type)
		return 0;
	at = head & lists->inside ? at + lists->inside_at : word(r, at + lists->address_at);
	return word(r, at + 8 * i);
}

/* Returns the address of the name with a number, or 0. */
static uint64_t find_name(const struct language_reading *r, uint64_t number)
{
	const struct language_numbered *n = &r->t->numbered;
	uint64_t list;

	if (number > n->last_plain)
		number = (uint32_t)(number >> n->shift);
	list = list_element(r, word(r, n->names), number / n->per_list);
	return list_element(r, list, 2 * (number % n->per_list));
}

/*
 * Finds the definition of the function of a frame that has no object; @at: address of the frame's flags.
 * Returns its address, or 0.
 */
static uint64_t find_definition(const struct language_reading *r, uint64_t at)
{
	const struct language_numbered *n = &r->t->numbered;
	uint64_t entry = word(r, at - n->entry_before), head = word(r, entry), definition;

	if ((head & n->mask) == n->holder) {
		entry = word(r, entry + n->entry_at);
		head = word(r, entry);
	}
	definition = word(r, entry + n->definition_at);
	if ((head & n->mask) != n->entry || (word(r, definition) & n->type_mask) != n->type)
		return 0;
	return definition;
}

/* Writes what that function is known by in place of the words of an object. Returns false if it has no name. */
static bool read_numbered(struct language_reading *r, uint64_t definition)
{
	const struct language_numbered *n = &r->t->numbered;
	const uint64_t name = find_name(r, word(r, definition + n->number_at));

	memset(r->code.words, 0, sizeof(r->code.words));
	r->code.words[n->address_word] = word(r, definition + n->address_at);
	r->code.words[r->t->texts[0].word] = name;
	return name;
}

/* Tells of a function, of which the words are read. Returns its number; 0: it cannot be told. */
static uint64_t introduce(struct language_reading *r, uint64_t id)
{
	const struct language_target *t = r->t;
	struct language_code *c = &r->code;

	c->kind = LANGUAGE_CODE;
	c->id = id;
	c->target = r->moment.target;
	for (unsigned int i = 0; i < LANGUAGE_TEXTS - 1; i++)
		c->got[i] = copy_text(r, &t->texts[i], c->shorts[i], LANGUAGE_SHORT);
	c->got[LANGUAGE_TEXTS - 1] =
		copy_text(r, &t->texts[LANGUAGE_TEXTS - 1], c->table, LANGUAGE_LONG);
	return keep(r) && languages_known(r->all, id) ? id : 0;
}

/* Returns the number that a function at @code has in this stop of the process; 0: nothing is there. */
static uint64_t number_of(const struct language_reading *r, uint64_t code)
{
	return code >> STOP_SHIFT ? 0 : (uint64_t)r->thread->stop << STOP_SHIFT | code;
}

/*
 * Returns the number of the function that find_definition() finds, LANGUAGE_NO_FUNCTION: it is not known. Its name
 * is looked for once in a stop.
 */
static uint64_t identify_numbered(struct language_reading *r, uint64_t at)
{
	const uint64_t definition = find_definition(r, at);
	uint64_t id = definition ? number_of(r, definition) : 0;

	if (id && !languages_known(r->all, id))
		id = read_numbered(r, definition) ? introduce(r, id) : 0;
	return id ? id : LANGUAGE_NO_FUNCTION;
}

/* Returns the number of the function whose object is at @code; 0: it cannot be told. */
static uint64_t identify(struct language_reading *r, uint64_t code)
{
	const struct language_target *t = r->t;
	struct language_code *c = &r->code;
	const uint64_t id = number_of(r, code);
	uint64_t at;

	if (!code)
		return LANGUAGE_NO_FUNCTION;
	if (!id || languages_known(r->all, id))
		return id;
	at = object_of(r, code);
	if (!at || !read_bytes(r, at + t->code_from, c->words, sizeof(c->words)) ||
	    (c->words[t->type_word] & t->type_mask) != t->type)
		return 0;
	return introduce(r, id);
}

/* Returns the word with that index of the function's object at @code. */
static uint64_t code_word(const struct language_reading *r, uint64_t code, uint32_t index)
{
	return word(r, code + r->t->code_from + 8 * index);
}

/* Returns the line of the instruction before the one with that number; 0: it is not known. */
static int32_t ranked_line(const struct language_reading *r, uint64_t code, uint64_t number)
{
	const struct language_ranks *ranks = &r->t->ranks;
	const uint64_t at = number ? number - 1 : 0;
	const uint64_t table = code_word(r, code, ranks->table) + language_rank_at(at);
	const uint32_t count = code_word(r, code, ranks->count);
	const struct language_rank_words w = {
		word(r, table),
		word(r, table + LANGUAGE_RANKS_SUMS),
		word(r, table + language_rank_bits_at(at)),
	};
	const uint64_t rank = count > 1 ? language_rank(&w, at) : 1;
	int32_t line;

	if (!rank || rank > count ||
	    !read_bytes(r, code_word(r, code, ranks->entries) + (rank - 1) * ranks->entry_bytes,
			&line, sizeof(line)))
		return 0;
	return line;
}

/* Returns the line of an instruction of the function at @code; 0: it is none of that function. */
static int32_t line_of(const struct language_reading *r, uint64_t code, uint64_t instruction)
{
	const struct language_lines *lines = &r->t->lines;
	uint64_t behind = instruction - code_word(r, code, lines->word);
	uint32_t count;
	int32_t line;

	if (r->t->ranks.entry_bytes)
		return read_bytes(r, code + lines->count_at, &count, sizeof(count)) &&
				       behind <= count * (uint64_t)lines->unit ?
			       ranked_line(r, code, behind / lines->unit) :
			       0;
	if (!read_bytes(r, code + lines->count_at, &count, sizeof(count)) ||
	    behind >= count * (uint64_t)lines->unit || behind % lines->unit ||
	    !read_bytes(r, instruction + lines->line_at, &line, sizeof(line)))
		return 0;
	return line;
}

static void read_marks(struct language_reading *r, uint64_t at)
{
	struct language_moment *m = &r->moment;

	for (; at; at = word(r, at + r->t->marks.link)) {
		if (m->nr_marks == LANGUAGE_MARKS) {
			m->end = LANGUAGE_DEEP;
			return;
		}
		r->entries[m->nr_marks++] =
			(struct language_entry){ .addr = at, .id = word(r, at + r->t->mark_at) };
	}
}

static uint64_t member(const uint8_t *frame, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, frame + offset, sizeof(value));
	return value;
}

/* Returns the address of the instruction that a frame at @at executes. */
static uint64_t instruction_of(const struct language_reading *r, uint64_t at, const uint8_t *frame)
{
	const struct language_thread *th = r->thread;
	const struct language_live *live = &r->t->live;

	if (th->pc >= live->start && th->pc < live->end && th->live[0] == at)
		return th->live[1];
	return member(frame, r->t->instruction_at);
}

/* Returns the four bytes that tell what a frame is. */
static uint32_t flags_of(const struct language_reading *r, const uint8_t *frame)
{
	const uint64_t flags = member(frame, r->t->flags_at);

	return (uint32_t)(r->t->flags_behind ? word(r, flags) : flags);
}

/* Returns the number of the function of a frame, which has an object at @code, or 0 there. */
static uint64_t function_of(struct language_reading *r, const uint8_t *frame, uint32_t flags,
			    uint64_t code)
{
	const struct language_numbered *n = &r->t->numbered;

	if (n->kind_mask && (flags & n->kind_mask) == n->kind)
		return identify_numbered(r, member(frame, r->t->flags_at));
	return identify(r, code);
}

/* Returns the address of the frame behind the one at @at, or 0. */
static uint64_t frame_behind(const struct language_reading *r, uint64_t at, const uint8_t *frame)
{
	const uint32_t stride = r->t->stack.stride;

	if (!stride)
		return member(frame, r->t->frames.link);
	return at + stride < r->end ? at + stride : 0;
}

/* Reads the frame at @at, and the address of the next one. Returns false if it cannot be read. */
static bool read_frame(struct language_reading *r, uint64_t at, struct language_entry *e,
		       uint64_t *next)
{
	const struct language_target *t = r->t;
	uint8_t frame[LANGUAGE_FRAME_BYTES + 8] = { 0 };
	uint64_t code, instruction;

	if (!read_bytes(r, at, frame, t->frame_bytes)) {
		r->moment.end = LANGUAGE_UNREADABLE;
		return false;
	}
	code = member(frame, t->code_at) & t->code_mask;
	e->addr = at;
	e->flags = flags_of(r, frame);
	if (e->flags & t->no_function)
		code = 0;
	instruction = instruction_of(r, at, frame);
	e->id = function_of(r, frame, e->flags, code);
	e->at = (int32_t)(instruction - code - t->instructions);
	if (t->lines.unit)
		e->at = code && e->id > LANGUAGE_NO_FUNCTION ?
				line_of(r, object_of(r, code), instruction) :
				0;
	*next = frame_behind(r, at, frame);
	return true;
}

/* Reads the rest of a stack of more than LANGUAGE_FRAMES frames, from the one at @at on. */
static void read_outer_end(struct language_reading *r, uint64_t at)
{
	struct language_moment *m = &r->moment;
	struct language_entry *outer = r->entries + m->nr_marks + LANGUAGE_INNER;
	struct language_middle mid;

	language_begin_middle(&mid, m, outer, r->t->kind_bits);
	while (at) {
		struct language_entry *e = &outer[m->left_out % LANGUAGE_OUTER];

		if (m->left_out == LANGUAGE_DEEPEST - LANGUAGE_FRAMES) {
			m->end = LANGUAGE_DEEP;
			return;
		}
		language_leave_out(&mid, m, e);
		if (!read_frame(r, at, e, &at))
			return;
	}
	language_turn(m, outer);
}

static void read_frames(struct language_reading *r, uint64_t at)
{
	struct language_moment *m = &r->moment;

	for (; at && m->nr_frames < LANGUAGE_FRAMES; m->nr_frames++)
		if (!read_frame(r, at, &r->entries[m->nr_marks + m->nr_frames], &at))
			return;
	if (at)
		read_outer_end(r, at);
}

struct language_reading *language_reading_create(struct languages *all, int number,
						 const struct language_thread *thread)
{
	struct language_reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->all = all;
	r->t = languages_target(all, number);
	r->thread = thread;
	r->moment.kind = LANGUAGE_MOMENT;
	r->moment.target = number;
	return r;
}

void language_reading_destroy(struct language_reading *r)
{
	free(r);
}

/* Returns why a function cannot be told: its object cannot be read, or is none; or there is no room for it. */
static int why_unknown(struct language_reading *r, uint64_t code)
{
	const struct language_target *t = r->t;
	struct language_code *c = &r->code;
	const uint64_t at = number_of(r, code) ? object_of(r, code) : 0;
	int err;

	if (!code)
		return -EAGAIN;
	err = at ? r->thread->read(r->thread->arg, at + t->code_from, c->words, sizeof(c->words)) :
		   -EFAULT;
	if (err)
		return err == -ETIMEDOUT ? err : -EFAULT;
	return (c->words[t->type_word] & t->type_mask) == t->type ? -ENOMEM : -EAGAIN;
}

int language_reading_place(struct language_reading *r, uint64_t code, int at, uint64_t *ret)
{
	const uint64_t id = identify(r, code);

	*ret = id > LANGUAGE_NO_FUNCTION ? languages_position(r->all, id, at) : 0;
	return *ret ? 0 : why_unknown(r, code);
}

static int read_thread(struct languages *all, int number, const struct language_thread *thread)
{
	struct language_reading *r = language_reading_create(all, number, thread);
	uint64_t base;
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->moment.pc = thread->pc;
	r->moment.sp = thread->sp;
	base = find_base(r);
	if (base) {
		r->moment.base_word = word(r, base + r->t->base_word_at);
		r->end = word(r, base + r->t->stack.memory_at) +
			 8 * word(r, base + r->t->stack.words_at);
		read_marks(r, find_first(r, &r->t->marks, base));
		read_frames(r, find_first(r, &r->t->frames, base));
		err = languages_take(all, thread->tid, 0, &r->moment,
				     sizeof(r->moment) + sizeof(r->entries));
	}
	language_reading_destroy(r);
	return err;
}

int language_read(struct languages *all, int number, const struct language_thread *thread)
{
	int err = 0;

	if (shstk_account_begin(thread->account))
		err = read_thread(all, number, thread);
	shstk_account_end(thread->account);
	return err;
}
