/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * native_walk.h - reads the frames of a language that has them on the native stack (native.h).
 *
 * Each frame has the frame pointer of its caller. A frame of the language has its function, of which
 * the name, the file, the text and the tables of positions are read while the thread stands still,
 * as its objects may be elsewhere, or be other ones, a moment later. Functions are known by the
 * words of enum native_word, and get numbers, as in language_walk.h. What frame belongs to which
 * native one is found out later, by its address (tools/language/place.c).
 *
 * While objects are moved nothing is read. Nothing of the process is trusted: each object's type is
 * looked at, frames have rising addresses, each list ends after a number of elements.
 */
#ifndef BPF_NATIVE_WALK_H
#define BPF_NATIVE_WALK_H

#include "native.h"
#include "variable_walk.h"

#define SCAN 1024 /* places at which the beginning of a frame's machine code is looked for */
#define SCANS 1024 /* places of one sample */
#define CHUNK 64 /* words of text that are read at once */
#define ENTERED 1 /* numbers of the two kinds of frames in which the language was entered */
#define ENTERED_NEW 2

#define CALL_REGISTER 0xd1ff /* call *%rcx */

#define STRING_TYPES 128 /* types of strings are smaller */
#define STRING_FORM 7 /* bits of the type */
#define STRING_FLAT 0
#define STRING_PAIR 1
#define STRING_OUTSIDE 2
#define STRING_OTHER 5 /* stands for another one */
#define STRING_BYTES 8 /* bit of the type: a character has one byte */

/* A function that a sample met: as long as that lasts, its objects stay what they are. */
struct native_repeat {
	u64 shared;
	u64 bytecode;
	u64 id;
	u64 sample;
};

/**
 * struct native_state - the state of a walk, in a map
 * @fp: frame pointer of the frame that is next.
 * @pc: place of that frame.
 * @built_in: address of code that was made beforehand, or of a copy of it.
 * @built_in_size: its size.
 * @leaf: the frame is the one that runs.
 * @fast: the frame is the first one, and has called native code that makes no frame.
 * @called: @pc is where a call returns to.
 * @function: the function of the frame.
 * @shared: what it shares.
 * @code: address of the object of machine code that was found.
 * @code_start: address of its first instruction.
 * @literals: address of the functions that are inlined.
 * @found: address of the text of the function that was described; 0: it is not known.
 * @found_size: its bytes.
 * @text: address of the text that is read.
 * @text_left: bytes of it that are left.
 * @text_lines: lines that have ended.
 * @text_carry: the character before was a carriage return.
 * @wide: a character has two bytes.
 * @read: bytes of text that this sample has read.
 * @scanned: places at which it has looked for the beginning of machine code.
 * @failed: an inlined function is not known.
 * @baseline: the code is of the first compiler.
 * @middle: it is of the compiler between the first and the last one.
 * @table: address of the table of the code of functions; 0: there is none.
 * @parts: numbers of the inlined functions.
 * @chunk: a part of a text.
 * @repeats: functions that samples met, by the address of what they share.
 */
struct native_state {
	u64 fp;
	u64 pc;
	u64 built_in;
	u64 built_in_size;
	u64 leaf;
	u64 fast;
	u64 called;
	u64 function;
	u64 shared;
	u64 code;
	u64 code_start;
	u64 literals;
	u64 found;
	u64 found_size;
	u64 text;
	u64 text_left;
	u64 text_lines;
	u64 text_carry;
	u64 wide;
	u64 read;
	u64 scanned;
	u64 failed;
	u64 baseline;
	u64 middle;
	u64 table;
	u64 parts[NATIVE_PARTS];
	u64 chunk[CHUNK];
	struct native_repeat repeats[REPEATS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct native_state);
} native_states SEC(".maps");

/* Returns the word at an address, 0 if none is there: the helper clears it then. No branch. */
static __always_inline u64 peek(u64 at)
{
	u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)at);
	return value;
}

/* Returns the address of the object that a word points to; 0 if the word is a number. No branch. */
static __always_inline u64 object(u64 word)
{
	u64 mask = word & 1;

	asm volatile("%0 = -%0" : "+r"(mask));
	return word & ~3ull & mask;
}

static __always_inline u64 member(u64 at, u32 offset)
{
	return object(peek(at + offset));
}

/* Returns a number that a word of an object has. */
static __always_inline u64 number(u64 at, u32 offset)
{
	return peek(at + offset) >> 32;
}

static __always_inline u64 type_of(const struct native_target *n, u64 at)
{
	return peek(member(at, 0) + n->at.map_type) & 0xffff;
}

/* Returns the string at @at, or the one that it stands for. Sets its type. */
VERIFIED_ALONE u64 shstk_find_string(const struct native_target *n, u64 at, u64 *type)
{
	u64 next, form;

	if (!n || !type)
		return 0;
	next = member(at, n->at.string_next);
	*type = type_of(n, at);
	form = *type & STRING_FORM;
	if (*type < STRING_TYPES &&
	    (form == STRING_OTHER ||
	     (form == STRING_PAIR &&
	      peek(next + NATIVE_HEAD) >> 32 == peek(at + NATIVE_HEAD) >> 32))) {
		at = next;
		*type = type_of(n, at);
	}
	return at;
}

/* Reads the words by which a function is known, whose shared part is at @shared. */
static noinline bool describe(struct language_run *r, u64 shared, u64 bytecode)
{
	const struct native_target *n = r->n;
	const struct native_offsets *o = &n->at;
	u64 *w = r->l->words;
	u64 scope = member(shared, o->scope), script = member(shared, o->script);
	u64 flags = number(scope, o->scope_flags), locals = number(scope, o->scope_locals) & 0xffff;
	u64 at = scope + o->scope_first, named = flags >> o->scope_name & 3, inferred;

	at += 8 * (locals + (locals < o->scope_inline ? locals : 1));
	at += 8 * ((flags >> o->scope_saved & 1) + ((flags & 15) == o->scope_module));
	w[NATIVE_OBJECT] = shared;
	w[NATIVE_KIND] = NATIVE_INTERPRETED;
	w[NATIVE_SCOPE] = scope;
	w[NATIVE_SCRIPT] = script;
	w[NATIVE_NAME] = shstk_find_string(n, named ? member(at, 0) : 0, &w[NATIVE_NAME_TYPE]);
	at += 16 * (named != 0);
	inferred = flags >> o->scope_inferred & 1;
	/* A function without a name of its own has that of the variable that it was made for. */
	if (inferred && !(peek(w[NATIVE_NAME] + NATIVE_HEAD) >> 32))
		w[NATIVE_NAME] = shstk_find_string(n, member(at, 0), &w[NATIVE_NAME_TYPE]);
	at += 8 * inferred;
	at = o->scope_place ? scope + o->scope_place : at;
	w[NATIVE_NAME_HEAD] = peek(w[NATIVE_NAME] + NATIVE_HEAD);
	w[NATIVE_FILE] = shstk_find_string(n, member(script, o->script_name), &w[NATIVE_FILE_TYPE]);
	w[NATIVE_FILE_HEAD] = peek(w[NATIVE_FILE] + NATIVE_HEAD);
	w[NATIVE_SCRIPT_ID] = peek(script + o->script_id);
	w[NATIVE_START] = number(at, 0);
	w[NATIVE_END] = number(at, 8);
	w[NATIVE_BYTECODE] = bytecode;
	w[NATIVE_BYTECODE_LENGTH] = peek(bytecode + NATIVE_LENGTH);
	w[NATIVE_SOURCE_HEAD] = peek(member(script, o->script_source) + NATIVE_HEAD) >> 32;
	return type_of(n, scope) == n->types.scope && type_of(n, script) == n->types.script;
}

/* Copies @size bytes, fewer than @room, a power of two. Returns how many could be copied. */
static __always_inline u64 copy_bytes(u8 *to, u64 from, u64 size, u64 room)
{
	if (size >= room)
		size = room - 1;
	size = MASKED(size, room);
	return bpf_probe_read_user(to, size, (void *)from) ? 0 : size;
}

/* Copies a string. Returns how many bytes could be copied. */
static __always_inline u64 copy_string(u8 *to, u64 at, u64 head, u64 type)
{
	if ((type & (STRING_FORM | ~(STRING_TYPES - 1ull))) != STRING_FLAT)
		return 0;
	return copy_bytes(to, at + NATIVE_ELEMENTS, (head >> 32) << !(type & STRING_BYTES),
			  LANGUAGE_SHORT);
}

/* Returns 1 in the lowest bit of each character of a word that is @what. */
static __always_inline u64 matches(u64 word, u64 what, bool wide)
{
	u64 ones = wide ? 0x0001000100010001ull : 0x0101010101010101ull;
	u64 low = wide ? 0x7fff7fff7fff7fffull : 0x7f7f7f7f7f7f7f7full, x = word ^ ones * what;

	return ~(((x & low) + low) | x | low) >> (wide ? 15 : 7);
}

/* Counts the lines that end in the next piece of a text. Returns its bytes, 0: the text ends, or cannot be read. */
VERIFIED_ALONE u64 shstk_count_lines(struct native_state *s)
{
	u64 size;

	if (!s || !s->text_left)
		return 0;
	size = s->text_left < sizeof(s->chunk) ? s->text_left : sizeof(s->chunk);
	clear(s->chunk, sizeof(s->chunk));
	KNOWN(size);
	if (size > sizeof(s->chunk) || bpf_probe_read_user(s->chunk, size, (void *)s->text)) {
		s->failed = 1;
		return 0;
	}
	for (u32 i = 0; i < CHUNK; i++) {
		u64 word = s->chunk[i];
		u64 feed = matches(word, '\n', s->wide), back = matches(word, '\r', s->wide);
		u64 behind = back << (s->wide ? 16 : 8) | s->text_carry;

		/* A carriage return ends a line unless a line feed follows. */
		feed += behind & ~feed;
		if (s->wide)
			feed += matches(word | 0x0001000100010001ull, 0x2029, true);
		s->text_lines +=
			(feed * (s->wide ? 0x0001000100010001ull : 0x0101010101010101ull)) >>
			(s->wide ? 48 : 56);
		s->text_carry = back >> (s->wide ? 48 : 56);
	}
	s->text += size;
	s->text_left -= size;
	return size;
}

/* Makes one round of bpf_loop() over a text. */
static long pass_text(u32 round, struct language_run *r)
{
	(void)round;
	return !shstk_count_lines(r->s);
}

/*
 * Finds the line of a function's first character, and its text, whose address is 0 if it is not known.
 * Returns false if this sample has read too much for that. It is a function of its own because of its stack.
 */
static noinline bool find_text_of(struct language_run *r)
{
	const struct native_offsets *o = &r->n->at;
	struct native_state *s = r->s;
	u64 *w = r->l->words;
	u64 source = shstk_find_string(r->n, member(w[NATIVE_SCRIPT], o->script_source),
				       &w[NATIVE_SOURCE_TYPE]);
	u64 form = w[NATIVE_SOURCE_TYPE] & STRING_FORM, characters = w[NATIVE_SOURCE_HEAD];
	u64 at = form == STRING_OUTSIDE ? peek(source + o->string_resource) :
					  source + NATIVE_ELEMENTS;

	s->found = s->found_size = w[NATIVE_LINE] = 0;
	s->wide = !(w[NATIVE_SOURCE_TYPE] & STRING_BYTES);
	s->text_left = w[NATIVE_START] << s->wide;
	if (w[NATIVE_SOURCE_TYPE] >= STRING_TYPES ||
	    (form != STRING_FLAT && form != STRING_OUTSIDE) || w[NATIVE_START] > w[NATIVE_END] ||
	    w[NATIVE_END] > characters || s->text_left > NATIVE_BEFORE)
		return true;
	s->read += s->text_left;
	if (s->read > NATIVE_BEFORE)
		return false;
	s->text = at;
	s->text_lines = s->text_carry = s->failed = 0;
	bpf_loop(NATIVE_BEFORE / sizeof(s->chunk) + 1, pass_text, r, 0);
	if (s->failed)
		return true;
	w[NATIVE_LINE] = number(w[NATIVE_SCRIPT], o->script_line) + s->text_lines + 1;
	s->found = at + (w[NATIVE_START] << s->wide);
	s->found_size = (w[NATIVE_END] - w[NATIVE_START]) << s->wide;
	return true;
}

/* Returns whether this sample has room for something new. */
static __always_inline bool has_room(const struct language_walk *l)
{
	return l->met < LANGUAGE_NEW;
}

/* Begins a record of something new. Returns it, or NULL if this sample has no room for it. */
static __always_inline struct language_code *begin_code(struct language_run *r)
{
	struct language_walk *l = r->l;
	struct language_code *c;
	u32 zero = 0;

	c = bpf_map_lookup_elem(&language_codes, &zero);
	if (!c || !has_room(l))
		return NULL;
	l->met++;
	c->kind = LANGUAGE_CODE;
	c->id = new_id(r);
	c->target = l->moment.target;
	/* All of them are written, also what is not copied. */
	clear(c->shorts, sizeof(c->shorts));
	return c;
}

/* Writes a record with @size bytes of its table. Returns the number of what it describes, or 0. */
static __always_inline u64 end_code(struct language_run *r, struct language_code *c, u64 size)
{
	u64 id = c->id;

	for (u32 i = 0; i < LANGUAGE_CODE_WORDS; i++)
		c->words[i] = r->l->words[i];
	KNOWN(size);
	if (size > sizeof(c->table))
		return 0;
	size += offsetof(struct language_code, table) - sizeof(c->size);
	if (write_record(r, c, size) ||
	    bpf_map_update_elem(functions_of(r), &r->l->identity, &id, BPF_ANY))
		return 0;
	return id;
}

/* Tells what a function is that was not met before. Returns its number, or 0. */
static noinline u64 introduce_function(struct language_run *r)
{
	u64 *w = r->l->words;
	struct language_code *c = begin_code(r);
	u64 table = member(w[NATIVE_BYTECODE], r->n->at.bytecode_positions), got;

	if (!c)
		return 0;
	c->got[0] =
		copy_string(c->shorts[0], w[NATIVE_NAME], w[NATIVE_NAME_HEAD], w[NATIVE_NAME_TYPE]);
	c->got[1] =
		copy_string(c->shorts[1], w[NATIVE_FILE], w[NATIVE_FILE_HEAD], w[NATIVE_FILE_TYPE]);
	got = type_of(r->n, table) == r->n->types.bytes ?
		      copy_bytes(c->table, table + NATIVE_ELEMENTS, number(table, NATIVE_LENGTH),
				 NATIVE_TABLE) :
		      0;
	c->got[2] = got;
	got = MASKED(got, NATIVE_TABLE);
	w[NATIVE_TEXT_BYTES] =
		copy_bytes(c->table + got, r->s->found, r->s->found_size, NATIVE_TEXT);
	return end_code(r, c, got + MASKED(w[NATIVE_TEXT_BYTES], NATIVE_TEXT));
}

/* Prepares to look for what is known by the first @keys words. */
static __always_inline void begin_identity(struct language_walk *l, u32 keys, u64 tail, u64 length)
{
	l->identity.code = l->words[0];
	for (u32 i = 0; i < LANGUAGE_KEY_WORDS; i++)
		l->identity.words[i] = i + 1 < keys ? l->words[i + 1] : 0;
	for (u32 i = 0; i < LANGUAGE_BEHIND; i++)
		l->identity.behind[i] = 0;
	l->identity.tail = shstk_sum_bytes(l, tail, length);
}

static __always_inline u64 look_up_function(struct language_run *r, u64 shared, u64 bytecode)
{
	const struct native_target *n = r->n;
	struct language_walk *l = r->l;
	u64 data, *id;

	if (type_of(n, shared) != n->types.shared)
		return 0;
	if (!bytecode) {
		data = member(shared, n->at.data);
		if (type_of(n, data) == n->types.code)
			data = member(data, n->at.baseline_data);
		bytecode = type_of(n, data) == n->types.bytecode ? data : 0;
	}
	if (!describe(r, shared, bytecode))
		return 0;
	begin_identity(l, NATIVE_KEYS, l->words[NATIVE_FILE] + NATIVE_ELEMENTS,
		       l->words[NATIVE_FILE_HEAD] >> 32);
	id = bpf_map_lookup_elem(functions_of(r), &l->identity);
	if (id)
		return *id;
	return has_room(l) && find_text_of(r) ? introduce_function(r) : 0;
}

/*
 * Returns the number of a function by what it shares, or 0. @bytecode is what a frame has, or 0. One
 * that this sample met before is not looked up again.
 */
static noinline u64 identify_function(struct language_run *r, u64 shared, u64 bytecode)
{
	struct native_repeat *known = &r->s->repeats[MASKED(shared >> 5, REPEATS)];
	const u64 sample = r->l->sample;

	if (known->sample == sample && known->shared == shared && known->bytecode == bytecode)
		return known->id;
	known->id = look_up_function(r, shared, bytecode);
	known->shared = shared;
	known->bytecode = bytecode;
	known->sample = sample;
	return known->id;
}

/* Makes one round of bpf_loop() over the functions that machine code has inlined. */
static long pass_part(u32 i, struct language_run *r)
{
	struct native_state *s = r->s;
	u64 id = is_late(r->l, i) ?
			 0 :
			 identify_function(r, member(s->literals, NATIVE_ELEMENTS + 8 * i), 0);

	s->parts[MASKED(i, NATIVE_PARTS)] = id;
	s->failed |= !id;
	return !id;
}

/* As describe_code(), of code of the first compiler, which belongs to the function already. */
static noinline bool describe_baseline(struct language_run *r, u64 function_id)
{
	const struct native_target *n = r->n;
	const struct native_state *s = r->s;
	u64 *w = r->l->words;
	u64 bytecode = member(s->code, n->at.baseline_data);
	u64 table = member(s->code, n->at.code_positions);

	w[NATIVE_OBJECT] = s->code;
	w[NATIVE_KIND] = NATIVE_BASELINE;
	w[NATIVE_CODE_POSITIONS] = table;
	w[NATIVE_CODE_POSITIONS_LENGTH] = number(table, NATIVE_LENGTH);
	w[NATIVE_CODE_DATA] = bytecode;
	w[NATIVE_CODE_START] = bytecode + n->bytecode_bias + 1;
	w[NATIVE_CODE_SIZE] = number(bytecode, NATIVE_LENGTH);
	w[NATIVE_CODE_NUMBER] = s->code_start;
	w[NATIVE_CODE_FUNCTION] = function_id;
	w[NATIVE_CODE_INLINED] = 0;
	w[NATIVE_CODE_CALLS] = 0;
	w[NATIVE_CODE_EXITS] = 0;
	w[NATIVE_CODE_MIDDLE] = 0;
	return type_of(n, bytecode) == n->types.bytecode && type_of(n, table) == n->types.bytes;
}

/* Reads the words by which machine code is known. Returns false if it is not of the frame's function. */
static noinline bool describe_code(struct language_run *r, u64 function_id)
{
	const struct native_target *n = r->n;
	const struct native_offsets *o = &n->at;
	struct native_state *s = r->s;
	u64 *w = r->l->words;
	u64 data = member(s->code, o->code_data), table = member(s->code, o->code_positions);
	u64 calls = member(data + NATIVE_ELEMENTS, 8 * o->data_calls);
	u64 shared = member(data + NATIVE_ELEMENTS, 8 * o->data_shared);

	w[NATIVE_OBJECT] = s->code;
	w[NATIVE_KIND] = NATIVE_MACHINE;
	w[NATIVE_CODE_POSITIONS] = table;
	w[NATIVE_CODE_POSITIONS_LENGTH] = number(table, NATIVE_LENGTH);
	w[NATIVE_CODE_DATA] = data;
	w[NATIVE_CODE_START] = s->code_start;
	w[NATIVE_CODE_SIZE] = peek(s->code + n->code_size) & 0xffffffff;
	w[NATIVE_CODE_NUMBER] = peek(data + NATIVE_ELEMENTS + 8 * o->data_number);
	w[NATIVE_CODE_FUNCTION] = function_id;
	w[NATIVE_CODE_INLINED] = number(data + NATIVE_ELEMENTS, 8 * o->data_inlined);
	w[NATIVE_CODE_CALLS] = number(calls, NATIVE_LENGTH);
	w[NATIVE_CODE_EXITS] = number(data + NATIVE_ELEMENTS, 8 * o->data_exits);
	w[NATIVE_CODE_MIDDLE] = s->middle;
	s->literals = member(data + NATIVE_ELEMENTS, 8 * o->data_literals);
	shared = o->data_wrapped ? member(shared, o->data_wrapped) : shared;
	return shared == s->shared && type_of(n, table) == n->types.bytes;
}

/* Reads the words by which the code is known that was found. Returns false if it is not of the frame's function. */
static noinline bool describe_any(struct language_run *r, u64 function_id)
{
	return r->s->baseline ? describe_baseline(r, function_id) : describe_code(r, function_id);
}

/* Copies what the interpreter would go on with, behind @at bytes of a table. Returns the number of bytes. */
static __always_inline u64 copy_states(const struct language_run *r, u8 *table, u64 at)
{
	u64 data = r->l->words[NATIVE_CODE_DATA] + NATIVE_ELEMENTS;
	u64 states = member(data, 8 * r->n->at.data_states);
	u64 size = number(states, NATIVE_LENGTH), type = type_of(r->n, states);

	if (type != r->n->types.bytes && type != r->n->types.states)
		return 0;
	KNOWN(at);
	if (at <= sizeof(((struct language_code *)0)->table) - NATIVE_STATES)
		return copy_bytes(table + at, states + NATIVE_ELEMENTS, size, NATIVE_STATES);
	return copy_bytes(table + at, states + NATIVE_ELEMENTS, size, NATIVE_LESS_STATES);
}

/*
 * Copies where calls of machine code return to, and what the interpreter would go on with there, behind
 * @at bytes of a table. Returns the number of bytes in it then.
 */
static noinline u64 copy_returns(struct language_run *r, u8 *table, u64 at)
{
	const struct native_offsets *o = &r->n->at;
	u64 *w = r->l->words;
	u64 data = w[NATIVE_CODE_DATA] + NATIVE_ELEMENTS;
	u64 checks = number(data, 8 * o->data_checks), calls = number(data, 8 * o->data_checks + 8);
	u64 got;

	w[NATIVE_CODE_RETURNS] = w[NATIVE_CODE_STATES] = w[NATIVE_CODE_CHECKS] = 0;
	if (r->s->baseline)
		return at;
	got = copy_bytes(table + at, data + 8 * o->data_places + NATIVE_RETURN_BYTES * checks,
			 NATIVE_RETURN_BYTES * calls, NATIVE_RETURNS);
	w[NATIVE_CODE_RETURNS] = got;
	w[NATIVE_CODE_CHECKS] = checks;
	at += MASKED(got, NATIVE_RETURNS);
	got = copy_states(r, table, at);
	w[NATIVE_CODE_STATES] = got;
	return at + MASKED(got, NATIVE_STATES);
}

/*
 * Copies the instructions of the code that was found, of large code the first ones; of code of the middle
 * compiler the table that follows them. Returns the number of bytes.
 */
static noinline u64 copy_code(struct language_run *r, u8 *table)
{
	const struct native_state *s = r->s;
	u64 *w = r->l->words;
	u64 from = w[NATIVE_CODE_START], size = w[NATIVE_CODE_SIZE];

	if (s->middle) {
		from += size;
		size = peek(s->code + r->n->code_behind) & 0xffffffff;
	}
	if (size < NATIVE_CODE)
		w[NATIVE_CODE_BYTES] = copy_bytes(table, from, size, NATIVE_CODE);
	else
		w[NATIVE_CODE_BYTES] = s->middle ? 0 :
						   copy_bytes(table, from, size, NATIVE_CODE_HEAD);
	return MASKED(w[NATIVE_CODE_BYTES], NATIVE_CODE);
}

/*
 * Tells what machine code is whose @inlined functions have their numbers in @s->parts. Returns its number, or 0.
 * It is a function of its own because of its stack, which those that number the inlined functions need not share.
 */
static noinline u64 tell_code(struct language_run *r, u64 function_id, u32 inlined)
{
	struct native_state *s = r->s;
	u64 *w = r->l->words;
	struct language_code *c;
	u64 calls, got;

	/* The words are those of the last function now. */
	if (!describe_any(r, function_id))
		return 0;
	begin_identity(r->l, NATIVE_CODE_KEYS, w[NATIVE_CODE_POSITIONS] + NATIVE_ELEMENTS,
		       w[NATIVE_CODE_POSITIONS_LENGTH]);
	c = begin_code(r);
	if (!c)
		return 0;
	calls = member(w[NATIVE_CODE_DATA] + NATIVE_ELEMENTS, 8 * r->n->at.data_calls);
	__builtin_memcpy(c->shorts[0], s->parts, sizeof(s->parts));
	c->got[0] = 8 * inlined;
	c->got[1] = copy_bytes(c->shorts[1], calls + NATIVE_ELEMENTS, w[NATIVE_CODE_CALLS],
			       NATIVE_PARTS * NATIVE_PART_BYTES);
	got = copy_bytes(c->table, w[NATIVE_CODE_POSITIONS] + NATIVE_ELEMENTS,
			 w[NATIVE_CODE_POSITIONS_LENGTH], NATIVE_TABLE);
	c->got[2] = got;
	got = MASKED(got, NATIVE_TABLE);
	got += MASKED(copy_code(r, c->table + got), NATIVE_CODE);
	return end_code(r, c, copy_returns(r, c->table, got));
}

/* Tells what machine code is that was not met before. Returns its number, or 0. */
static __always_inline u64 introduce_code(struct language_run *r, u64 function_id)
{
	struct native_state *s = r->s;
	const u64 *w = r->l->words;
	u32 inlined = w[NATIVE_CODE_INLINED];

	s->failed = 0;
	/* All of them are written, also those of which there are none. */
	clear(s->parts, sizeof(s->parts));
	if (w[NATIVE_CODE_INLINED] >= NATIVE_PARTS ||
	    w[NATIVE_CODE_CALLS] >= NATIVE_PARTS * NATIVE_PART_BYTES)
		return 0;
	bpf_loop(inlined, pass_part, r, 0);
	return s->failed ? 0 : tell_code(r, function_id, inlined);
}

/* Returns the number of the machine code that was found, or 0. */
static noinline u64 identify_code(struct language_run *r, u64 function_id)
{
	struct language_walk *l = r->l;
	u64 *id;

	if (!function_id || !describe_any(r, function_id))
		return 0;
	begin_identity(l, NATIVE_CODE_KEYS, l->words[NATIVE_CODE_POSITIONS] + NATIVE_ELEMENTS,
		       l->words[NATIVE_CODE_POSITIONS_LENGTH]);
	id = bpf_map_lookup_elem(functions_of(r), &l->identity);
	return id ? *id : introduce_code(r, function_id);
}

/* Returns whether an object is machine code that has an instruction, and remembers it then. */
static noinline bool has_instruction(struct language_run *r, u64 code, u64 pc)
{
	const struct native_target *n = r->n;
	u64 start = n->code_start ? peek(code + n->code_start) : code + n->stream_head;
	u64 size = peek(code + n->code_size) & 0xffffffff;

	if (type_of(n, code) != n->types.code || pc - start >= size)
		return false;
	r->s->code = code;
	r->s->code_start = start;
	return true;
}

/* Makes one round of bpf_loop() backwards over the places where machine code may begin. */
static long pass_place(u32 i, struct language_run *r)
{
	const struct native_target *n = r->n;
	struct native_state *s = r->s;
	u64 pc = s->pc - s->called;
	u64 at = (pc & ~((u64)n->code_align - 1)) - (u64)i * n->code_align - n->stream_head;
	u64 code = at;

	if (++s->scanned > SCANS)
		return 1;
	if (type_of(n, at) != n->types.stream)
		return 0;
	if (n->code_start)
		code = member(at, 8);
	if (!has_instruction(r, code, pc) || s->code_start != at + n->stream_head)
		s->code = 0;
	return 1;
}

/* Returns the address of the machine code that the frame's function runs next, or of anything. */
static noinline u64 next_code(const struct language_run *r)
{
	const struct native_state *s = r->s;
	u64 word = peek(s->function + r->n->at.function_code);
	u64 entry =
		s->table + (word & 0xffffffff) / (1u << NATIVE_ENTRY_SHIFT) * NATIVE_ENTRY_BYTES;

	return s->table ? peek(entry + 8) >> NATIVE_ENTRY_CODE & ~1ull : object(word);
}

/* Finds the machine code in which the frame is: s->code, 0: it is not found. */
static noinline void find_code(struct language_run *r)
{
	struct native_state *s = r->s;

	s->code = 0;
	if (has_instruction(r, next_code(r), s->pc - s->called) ||
	    has_instruction(r, member(s->shared, r->n->at.data), s->pc - s->called))
		return;
	s->code = 0;
	bpf_loop(SCAN, pass_place, r, 0);
}

/* Returns whether code was made beforehand. */
static __always_inline bool is_built_in(const struct language_run *r, u64 pc)
{
	return pc - r->s->built_in < r->s->built_in_size || pc - r->n->text < r->n->text_size;
}

/*
 * Returns whether an address is where the code of an instruction returns to in the interpreter, which
 * calls it by a register.
 */
static __always_inline bool returns_to_interpreter(const struct language_run *r, u64 at)
{
	return is_built_in(r, at) && (peek(at - 2) & 0xffff) == CALL_REGISTER;
}

/*
 * Returns the bytecode that the interpreter runs in a frame whose place is in code that was made
 * beforehand, or 0. The innermost frame may be of other code that has called it, and have words of a
 * frame that was there before. But in a frame of the interpreter, the place to which its code
 * returns lies below the registers.
 */
static noinline u64 find_bytecode(struct language_run *r)
{
	const struct native_target *n = r->n;
	struct native_state *s = r->s;
	u64 bytecode = member(s->fp - 32, 0);
	u64 registers = peek(bytecode + n->bytecode_frame) & 0xffffffff;

	if (type_of(n, bytecode) != n->types.bytecode || peek(s->fp - 40) & 1 ||
	    ((s->leaf || s->fast) &&
	     !returns_to_interpreter(r, peek(s->fp - n->registers_at - registers))))
		return 0;
	return bytecode;
}

/* Fills in an entry whose frame is in machine code. */
static __always_inline void enter_code(struct language_run *r, struct language_entry *e)
{
	const struct native_target *n = r->n;
	struct native_state *s = r->s;
	u32 kind;
	u64 id;

	find_code(r);
	kind = peek(s->code + n->code_flags) & 15;
	s->baseline = kind == n->kind_baseline;
	s->middle = kind == n->kind_middle;
	if (!s->code || !(s->baseline | s->middle | (kind == n->kind_optimized)))
		return;
	e->id = identify_function(r, s->shared, 0);
	if (s->baseline && s->code != member(s->shared, n->at.data) && s->code != next_code(r))
		e->id = 0;
	id = identify_code(r, e->id);
	/* A sample has room for so many new ones only. A function without its code has no line. */
	if (id || !s->baseline)
		e->id = id;
	e->at = s->pc - s->code_start;
	/* Code that has no frame may be the one that replaces the frame by those of the interpreter. */
	e->flags = (s->baseline ? NATIVE_BASELINE : NATIVE_MACHINE) |
		   (s->called ? NATIVE_RETURN | (s->leaf ? NATIVE_BEHIND : 0) : 0);
}

/* Fills in the entry of a frame of the language. Returns false if it is none. */
static __always_inline bool enter(struct language_run *r, struct language_entry *e)
{
	const struct native_target *n = r->n;
	struct native_state *s = r->s;
	u64 bytecode;

	s->function = member(s->fp - 16, 0);
	s->shared = member(s->function, n->at.function_shared);
	e->addr = s->fp;
	e->id = 0;
	e->at = 0;
	e->flags = 0;
	/* Functions of the virtual machine's own have a number there, and no text. */
	if (type_of(n, s->shared) == n->types.shared && !(peek(s->shared + n->at.data) & 1))
		return false;
	if (!is_built_in(r, s->pc)) {
		enter_code(r, e);
		return true;
	}
	bytecode = find_bytecode(r);
	if (bytecode) {
		e->id = identify_function(r, s->shared, bytecode);
		e->at = (s32)number(s->fp - 40, 0) - (s32)n->bytecode_bias;
		/* The interpreter stores its place at calls only. */
		e->flags = NATIVE_INTERPRETED | (s->leaf ? NATIVE_BEHIND : 0);
	}
	return true;
}

/*
 * The thread may be in code that has no frame yet or needs none: where it returns to is the last word
 * on the stack then. The frame that was found is that of its caller.
 */
static __always_inline void enter_caller(struct language_run *r, struct language_entry *e)
{
	struct native_state *s = r->s;

	s->pc = peek(r->l->moment.sp);
	s->called = 1;
	if (!is_built_in(r, s->pc))
		enter_code(r, e);
}

/* Goes on to the frame of the caller. Returns whether there is one. */
static __always_inline bool go_on(struct language_run *r, bool entered)
{
	struct native_state *s = r->s;
	u64 next = peek(s->fp);

	s->pc = peek(s->fp + 8);
	if (entered)
		next = peek(s->fp + r->n->entered_at);
	if (next <= s->fp) {
		if (!entered || next)
			r->l->moment.end = LANGUAGE_UNREADABLE;
		return false;
	}
	s->fp = next;
	s->leaf = 0;
	s->fast = 0;
	s->called = 1;
	return true;
}

/* Makes one round of bpf_loop() over the frames. */
static long pass_native_frame(u32 i, struct language_run *r)
{
	struct language_walk *l = r->l;
	struct native_state *s = r->s;
	struct language_entry *e;
	u64 mark = peek(s->fp - 8), n = l->moment.nr_frames;

	KNOWN(n);
	if (i >= NATIVE_FRAMES || n >= NATIVE_FRAMES || is_late(l, i)) {
		l->moment.end = LANGUAGE_DEEP;
		return 1;
	}
	e = &l->entries[n];
	/* A frame that is being made or left has not all its words. */
	if (mark & 1 && !(s->leaf && l->moment.sp > s->fp - 24) && enter(r, e)) {
		if (!e->id && s->leaf)
			enter_caller(r, e);
		l->moment.nr_frames++;
	}
	mark >>= 1;
	return !go_on(r, mark == ENTERED || mark == ENTERED_NEW);
}

/* Returns the address of the thread's virtual machine, or 0. */
static __always_inline u64 find_machine(const struct native_target *n, struct task_struct *task)
{
	const u64 thread = BPF_CORE_READ(task, thread.fsbase);
	u32 key = 0;

	if (!n->key_at)
		return peek(find_variable(&n->machine, thread));
	if (bpf_probe_read_user(&key, sizeof(key), (void *)n->key_at) || key >= 32)
		return 0;
	return peek(thread + n->slot + key * 16);
}

/*
 * Finds the innermost frame. Returns false if no code of the language is on the stack. It is a function of
 * its own because of its stack.
 */
static noinline bool begin_native(struct language_run *r, struct task_struct *task)
{
	const volatile u64 *registers = (void *)bpf_task_pt_regs((void *)task);
	const struct native_target *n = r->n;
	struct language_walk *l = r->l;
	struct native_state *s = r->s;
	u64 machine = find_machine(n, task), entry, fast;

	if (!machine || !peek(machine + n->outermost_at))
		return false;
	if ((peek(machine + n->state_at) & 0xffff) == n->moving) {
		l->moment.end = LANGUAGE_UNREADABLE;
		return true;
	}
	s->built_in = peek(machine + n->built_in_at);
	s->built_in_size = peek(machine + n->built_in_size_at) & 0xffffffff;
	s->table = n->table_at ? peek(machine + n->table_at) : 0;
	s->read = 0;
	s->scanned = 0;
	s->leaf = 1;
	s->fast = 0;
	s->called = 0;
	s->fp = registers[PT_BP];
	s->pc = l->moment.pc;
	entry = peek(machine + n->entry_fp_at);
	fast = peek(machine + n->fast_fp_at);
	/* A frame below the stack pointer is one that was just left. */
	if (fast >= l->moment.sp) {
		s->fp = fast;
		s->pc = peek(machine + n->fast_pc_at);
		s->called = 1;
		s->leaf = 0;
		s->fast = 1;
	} else if (entry >= l->moment.sp) {
		s->fp = entry;
		s->pc = 0;
		s->leaf = 0;
	}
	return true;
}

/* Writes a record with the frames of the thread. */
static __always_inline void read_native(struct language_run *run, struct task_struct *task, u32 of)
{
	u32 zero = 0;
	u64 nr;

	run->n = native_target_of(run, of);
	run->s = bpf_map_lookup_elem(&native_states, &zero);
	if (!run->n || !run->s || !begin_native(run, task))
		return;
	if (run->l->moment.end == LANGUAGE_WHOLE)
		bpf_loop(NATIVE_FRAMES + 1, pass_native_frame, run, 0);
	nr = run->l->moment.nr_frames;
	KNOWN(nr);
	if (nr <= NATIVE_FRAMES)
		write_record(run, &run->l->moment,
			     sizeof(run->l->moment) - sizeof(run->l->moment.size) +
				     nr * sizeof(run->l->entries[0]));
}

#endif /* BPF_NATIVE_WALK_H */
