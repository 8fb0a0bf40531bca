/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * language_walk.h - reads the frames of an interpreter in the thread that is sampled.
 *
 * The thread stands still while its sample is taken, so what is read is of one moment, and objects
 * that a frame refers to are alive. The name of a function is copied at that moment, too, when the
 * function is met first: later another one may be at the same address. Functions are known by the
 * address space, their address, and all words of their object that never change as long as it
 * exists; each gets a number.
 *
 * Nothing of the process is trusted. Lists end after a number of elements, each sample copies a
 * number of functions at most, and memory is only read by functions that bear any address.
 */
#ifndef BPF_LANGUAGE_WALK_H
#define BPF_LANGUAGE_WALK_H

#include "language.h"
#include "language_ranks.h"
#include "native.h"
#include "program.h"
#include "variable_walk.h"

#ifdef LANGUAGE_PROBED
#include "language_probed.h"
#else
/* At perf events a CPU makes one walk at a time. */
#define LANGUAGE_SLOTS 1
#define slot_of(run) 0
#endif

#define WORDS 32 /* a power of two */
#define NOWHERE 8 /* address at which no memory is */
#define NO_USER ~0ull /* address that is no user's on any machine */
#define LANGUAGE_TASK_ROOM 11 /* entries that have room for copy_text() of a task's name */
#define REPEATS 32 /* functions that a sample remembers, a power of two */
#define CPU_REPEATS 128 /* functions that a CPU remembers, a power of two */

/*
 * Keeps the compiler from testing another value in place of this one: the verifier would not know
 * then that this one is bounded.
 */
#define KNOWN(value) asm volatile("" : "+r"(value))

/**
 * struct language_repeat - a function that a sample on this CPU met
 * @identity: what it was known by, but with all words, not only those of @key_words: as they are
 *	compared in one go, without a mask. @code in it is its address.
 * @id: its number; 0: it got none.
 * @sample: number of that sample: as long as it lasts, the function's object stays what it is.
 */
struct language_repeat {
	struct language_identity identity;
	u64 id;
	u64 sample;
};

/* The functions that samples on a CPU met last, by their address, in a map. */
struct language_repeats {
	struct language_repeat last[CPU_REPEATS];
};

/* The bytes of a text that are to be copied: their address and number. */
struct language_bytes {
	u64 at;
	u64 size;
};

/**
 * struct language_walk - the state of a walk, in a map
 * @at: address of the element of a list that is next.
 * @end: address at which a row of frames ends.
 * @last_id: number that the last function on this CPU got, without that of the CPU.
 * @sample: number of this sample.
 * @live_frame: address of the frame whose instruction is @live; 0: there is none.
 * @live: see &struct language_live.
 * @coroutine: the last frame was that of this coroutine's object; 0: it was another one.
 * @task_name: address of the name of the task that runs; 0: none is known.
 * @until: CLOCK_MONOTONIC in ns, from which on no more frames are read (language_lent.h).
 * @taken: a thread has this state (language_probed.h).
 * @task_passed: the frame that runs a task was passed.
 * @entered: behind the last frame of a function, the interpreter was entered.
 * @met: functions that this sample copied.
 * @frame: bytes of a frame.
 * @identity: the words of its function.
 * @words: words of the function's object.
 * @texts: its texts.
 * @tail: last bytes of a text.
 * @moment: the record.
 * @entries: its entries; they follow it.
 */
struct language_walk {
	u64 at;
	u64 end;
	u64 last_id;
	u64 sample;
	u64 live_frame;
	u64 live;
	u64 coroutine;
	u64 task_name;
#ifdef LANGUAGE_LENT
	u64 until;
#endif
#ifdef LANGUAGE_PROBED
	u64 taken;
#endif
	u32 task_passed;
	u32 entered;
	u32 met;
	u32 reserved;
	u64 frame[LANGUAGE_FRAME_BYTES / 8 + 1];
	struct language_identity identity;
	u64 words[WORDS];
	struct language_bytes texts[LANGUAGE_TEXTS];
	u64 tail[LANGUAGE_TAIL / 8];
	struct language_moment moment;
	struct language_entry entries[LANGUAGE_ENTRIES];
};

/* A frame of a deep stack: its address, its function, and its kind and place in the function. */
struct language_outer {
	u64 at;
	u64 code;
	u64 place;
};

/**
 * struct language_deep - the state of a walk through a deep stack, in a map
 * @nr: number of frames so far.
 * @repeats: as in &struct language_moment, so far.
 * @last: the last frames.
 */
struct language_deep {
	u64 nr;
	u64 repeats;
	struct language_outer last[LANGUAGE_FRAMES];
};

/**
 * struct language_run - what all steps of a walk get, on the stack
 * @l: the state.
 * @r: functions that samples on this CPU met.
 * @d: the state in a deep stack; NULL in others.
 * @t: how frames are found.
 * @ctx: context of the program.
 * @lease: the lease for which they are read (language_lent.h).
 * @number: its number, which does not change when it ends.
 * @functions: map of the numbers of its functions.
 * @elsewhere: frames are on the native stack: another program reads them (lend_native.bpf.c).
 * @n: how frames on the native stack are found (native_walk.h).
 * @s: the state of that walk.
 * @slot: number of the state on its CPU (language_probed.h).
 * @written: what became of the record with the frames, enum probe_frames.
 */
struct language_run {
	struct language_walk *l;
	struct language_repeats *r;
	struct language_deep *d;
	const struct language_target *t;
	void *ctx;
#ifdef LANGUAGE_LENT
	struct walk_lease *lease;
	u32 number;
	bool elsewhere;
	void *functions;
#endif
#ifdef LANGUAGE_NATIVE
	const struct native_target *n;
	struct native_state *s;
#endif
#ifdef LANGUAGE_PROBED
	u32 slot;
	u32 written;
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LANGUAGE_SLOTS);
	__type(key, u32);
	__type(value, struct language_walk);
} language_walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LANGUAGE_SLOTS);
	__type(key, u32);
	__type(value, struct language_repeats);
} language_repeats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LANGUAGE_SLOTS);
	__type(key, u32);
	__type(value, struct language_deep);
} language_deeps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LANGUAGE_SLOTS);
	__type(key, u32);
	__type(value, struct language_code);
} language_codes SEC(".maps");

/* Returns the state of a walk. */
static __always_inline struct language_walk *find_walk(const struct language_run *run)
{
	u32 slot = slot_of(run);

	(void)run;
	return bpf_map_lookup_elem(&language_walks, &slot);
}

/*
 * Sets @size bytes at @to to 0. There is no memset() for so many, and a verifier looks at each round of a loop:
 * but what cannot be read is cleared, and here is no user's memory.
 */
static __always_inline void clear(void *to, u32 size)
{
	bpf_probe_read_user(to, size, (void *)NO_USER);
}

#ifdef LANGUAGE_LENT
#include "language_lent.h"
#else
#include "language_own.h"
#endif

static __always_inline u64 user_word(u64 at)
{
	u64 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (void *)at) ? 0 : value;
}

/* Returns the word at @offset of the frame. */
static __always_inline u64 frame_word(const struct language_walk *l, u32 offset)
{
	return l->frame[MASKED(offset / 8, LANGUAGE_FRAME_BYTES / 8)];
}

/* Returns the four bytes of the frame that was read that tell what it is. */
static __always_inline u32 frame_flags(const struct language_target *t,
				       const struct language_walk *l)
{
	u64 word = frame_word(l, t->flags_at);

	return t->flags_behind ? user_word(word) : word >> (t->flags_at & 4) * 8;
}

/* Returns the address of the frame behind the one that was read, or 0. */
static __always_inline u64 next_frame(const struct language_target *t,
				      const struct language_walk *l)
{
	if (!t->stack.stride)
		return frame_word(l, t->frames.link);
	return l->at + t->stack.stride < l->end ? l->at + t->stack.stride : 0;
}

/* Returns the address of the base, or 0. */
static __always_inline u64 find_base(const struct language_target *t, struct task_struct *task)
{
	const u64 pointer = walk_arch_thread(task), thread = pointer - t->thread_below;
	u64 base = t->base;
	u32 key = 0;

	if (t->by_variable) {
		base = find_variable(&t->variable, pointer);
		base = base ? user_word(base) : 0;
	}
	if (t->key_at) {
		if (bpf_probe_read_user(&key, sizeof(key), (void *)t->key_at) || key >= 32)
			return 0;
		base = user_word(thread + t->slot + key * 16);
	}
	if (!base || (t->thread_at && user_word(base + t->thread_at) != thread))
		return 0;
	return base;
}

/* Returns the address of a list's first element, or 0. */
static __always_inline u64 find_first(const struct language_chain *chain, u64 base)
{
	u64 at = base;

	for (u32 i = 0; i < LANGUAGE_STEPS; i++)
		if (i < chain->nr_steps && at)
			at = user_word(at + chain->steps[i]);
	return chain->nr_steps ? at : 0;
}

/* Returns the address of a text of the function that was read last. */
static __always_inline u64 find_text(const struct language_walk *l, const struct language_text *t)
{
	u64 at = l->words[MASKED(t->word, WORDS)];

	return t->via ? user_word(at + t->via) : at;
}

/* Finds the characters of the object at @at, none if it is no text. */
static __always_inline void find_characters(const struct language_strings *s, u64 at,
					    struct language_bytes *ret)
{
	u64 head = user_word(at);

	if (s->list && (head & s->kind_mask) == s->list) {
		at = user_word(at + s->first_at);
		head = user_word(at);
	}
	ret->size = 0;
	ret->at = at + s->inside_at;
	if ((head & s->kind_mask) != s->string)
		return;
	if (s->inside_mask && !(head & s->outside)) {
		ret->size = head >> (s->inside_shift & 63) & s->inside_mask;
		return;
	}
	ret->size = user_word(at + s->length_at);
	if (head & s->outside)
		ret->at = user_word(at + s->address_at);
}

/* Finds the bytes of the text that is at @at. */
static __always_inline void find_bytes(const struct language_target *t,
				       const struct language_text *text, u64 at,
				       struct language_bytes *ret)
{
	u64 size;

	if (t->strings.kind_mask) {
		find_characters(&t->strings, at, ret);
		return;
	}
	size = user_word(at + text->length_at);
	if (size > LANGUAGE_LONG)
		size = LANGUAGE_LONG;
	ret->size = size * (text->unit & 7) + (text->head & 127);
	ret->at = at;
}

/* Finds all texts of the function that was read last. Returns how many there are. */
VERIFIED_ALONE u32 shstk_find_texts(const struct language_target *t, struct language_walk *l)
{
	if (!t || !l)
		return 0;
	for (u32 i = 0; i < LANGUAGE_TEXTS; i++)
		find_bytes(t, &t->texts[i], find_text(l, &t->texts[i]), &l->texts[i]);
	return LANGUAGE_TEXTS;
}

/*
 * Copies a text of less than @room bytes, a power of two. Memory may end behind it, so it is read
 * up to the end of a page, and then the rest. Returns how many bytes were copied. @most: the
 * smaller one of @room and LANGUAGE_PAGE. @to has room for both.
 */
static __always_inline u32 copy_text(u8 *to, const struct language_bytes *bytes, u32 room, u32 most)
{
	u64 at = bytes->at, size = bytes->size;
	u64 first = LANGUAGE_PAGE - (at & (LANGUAGE_PAGE - 1));

	if (size >= room)
		size = room - 1;
	if (first > size)
		first = size;
	/* The verifier takes the bounds from the masks. A whole page becomes part of the rest. */
	first = MASKED(first, most);
	if (bpf_probe_read_user(to, first, (void *)at))
		return 0;
	size = MASKED(size - first, room);
	if (bpf_probe_read_user(to + first, size, (void *)(at + first)))
		return first;
	return first + size;
}

/*
 * Numbers a function that was not met before, and tells what it is. Returns its number; 0 if it
 * cannot be told.
 */
static noinline u64 introduce(struct language_run *run)
{
	struct language_walk *l = run->l;
	struct language_code *c;
	u32 slot = slot_of(run), size;
	u64 id;

	c = bpf_map_lookup_elem(&language_codes, &slot);
	if (!c || l->met >= LANGUAGE_NEW)
		return 0;
	l->met++;
	id = new_id(run);
	c->kind = LANGUAGE_CODE;
	c->id = id;
	c->target = l->moment.target;
	/* All of them are written, also what is not copied. */
	clear(c->shorts, sizeof(c->shorts));
	for (u32 i = 0; i < LANGUAGE_CODE_WORDS; i++)
		c->words[i] = l->words[i];
#pragma unroll
	for (int i = 0; i < LANGUAGE_TEXTS - 1; i++)
		c->got[i] = copy_text(c->shorts[i], &l->texts[i], LANGUAGE_SHORT, LANGUAGE_SHORT);
	size = copy_text(c->table, &l->texts[LANGUAGE_TEXTS - 1], LANGUAGE_LONG, LANGUAGE_PAGE);
	c->got[LANGUAGE_TEXTS - 1] = size;
	size = offsetof(struct language_code, table) - sizeof(c->size) +
	       MASKED(size, LANGUAGE_LONG);
	if (write_record(run, c, size))
		return 0;
	if (bpf_map_update_elem(functions_of(run), &l->identity, &id, BPF_ANY))
		return 0;
	return id;
}

/* Returns a number that differs where the ends of two texts of @length bytes do. */
VERIFIED_ALONE u64 shstk_sum_bytes(struct language_walk *l, u64 at, u64 length)
{
	u64 size = length < LANGUAGE_TAIL ? length : LANGUAGE_TAIL - 1, sum = length;

	if (!l)
		return 0;
	for (u32 i = 0; i < LANGUAGE_TAIL / 8; i++)
		l->tail[i] = 0;
	KNOWN(size);
	bpf_probe_read_user(l->tail, MASKED(size, LANGUAGE_TAIL), (void *)(at + length - size));
	for (u32 i = 0; i < LANGUAGE_TAIL / 8; i++) {
		sum = (sum ^ l->tail[i]) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum;
}

/* Returns that of the text which belongs to what a function is known by. */
static __always_inline u64 sum_tail(const struct language_run *run)
{
	const struct language_tail *tail = &run->t->tail;
	u64 at = run->l->words[MASKED(tail->word, WORDS)];

	return shstk_sum_bytes(run->l, at + tail->head, user_word(at + tail->length_at));
}

/* Returns a number that differs where texts do that are objects. */
static noinline u64 sum_strings(struct language_run *run)
{
	struct language_walk *l = run->l;
	u64 sum = 0;

	shstk_find_texts(run->t, l);
	for (u32 i = 0; i < LANGUAGE_TEXTS - 1; i++)
		sum = (sum << 1 | sum >> 63) ^ shstk_sum_bytes(l, l->texts[i].at, l->texts[i].size);
	return sum;
}

/* Reads what a function is known by, other than the words of its object. */
static noinline void read_behind(struct language_run *run)
{
	const struct language_target *t = run->t;
	struct language_walk *l = run->l;

	for (u32 i = 0; i < LANGUAGE_BEHIND; i++)
		l->identity.behind[i] =
			i < t->nr_behind ? user_word(l->words[MASKED(t->behind[i].word, WORDS)] +
						     t->behind[i].offset) :
					   0;
	l->identity.tail = t->tail.head ? sum_tail(run) : 0;
	if (t->strings.kind_mask)
		l->identity.tail = sum_strings(run);
}

/*
 * Returns whether the function whose words were read is the one in @r. It is a function of its own because
 * of its stack.
 */
static noinline bool is_same(const struct language_walk *l, const struct language_repeat *r)
{
	u64 differ = (r->identity.lease ^ l->identity.lease) |
		     (r->identity.space ^ l->identity.space) |
		     (r->identity.code ^ l->identity.code) | (r->identity.tail ^ l->identity.tail);

#pragma unroll
	for (int i = 0; i < LANGUAGE_KEY_WORDS; i++)
		differ |= r->identity.words[i] ^ l->words[i + 1];
#pragma unroll
	for (int i = 0; i < LANGUAGE_BEHIND; i++)
		differ |= r->identity.behind[i] ^ l->identity.behind[i];
	return !differ && r->id;
}

/*
 * Takes the number of the function whose words were read, which is at @code, to @r; 0: it is not
 * known. The map of all functions is asked only if this CPU met another one there last: to hash the
 * key takes longer than to compare it.
 */
static noinline void look_up(struct language_run *run, u64 code, struct language_repeat *r)
{
	const u32 key_words = run->t->key_words;
	struct language_walk *l = run->l;
	u64 *id;

	l->identity.code = code;
	read_behind(run);
	if (is_same(l, r))
		return;
	for (u32 i = 0; i < LANGUAGE_KEY_WORDS; i++)
		l->identity.words[i] = l->words[i + 1] * (key_words >> i & 1);
	id = bpf_map_lookup_elem(functions_of(run), &l->identity);
	if (!id)
		shstk_find_texts(run->t, l);
	r->id = id ? *id : introduce(run);
	r->identity = l->identity;
	for (u32 i = 0; i < LANGUAGE_KEY_WORDS; i++)
		r->identity.words[i] = l->words[i + 1];
}

/*
 * Returns the number of the function whose object is at @code, 0: it is not known. One that this
 * sample met before is not looked up again; its words are read where instructions have lines.
 */
static noinline u64 identify(struct language_run *run, u64 code)
{
	const struct language_target *t = run->t;
	struct language_walk *l = run->l;
	struct language_repeat *r = &run->r->last[MASKED(code >> 5, CPU_REPEATS)];
	const bool met = r->sample == l->sample && r->identity.code == code;

	if (!code)
		return LANGUAGE_NO_FUNCTION;
	if (met && !t->lines.unit)
		return r->id;
	if (bpf_probe_read_user(l->words, 8 * LANGUAGE_CODE_WORDS, (void *)(code + t->code_from)))
		return 0;
	if ((l->words[MASKED(t->type_word, WORDS)] & t->type_mask) != t->type)
		return 0;
	if (!met)
		look_up(run, code, r);
	r->sample = l->sample;
	return r->id;
}

/* Returns whether a frame is of a function that has no object, but a number. */
static __always_inline bool is_numbered(const struct language_numbered *n, u32 flags)
{
	return n->kind_mask && (flags & n->kind_mask) == n->kind;
}

/*
 * Returns element @i of the list at @at; 0: it is no list, or another thread has just made it longer.
 */
static __always_inline u64 list_element(const struct language_target *t, u64 at, u64 i)
{
	const struct language_lists *lists = &t->numbered.lists;
	u64 head = user_word(at), first, ret;

	if ((head & t->strings.kind_mask) != lists->type)
		return 0;
	if (head & lists->inside)
		return user_word(at + lists->inside_at + 8 * i);
	first = user_word(at + lists->address_at);
	ret = user_word(first + 8 * i);
	return user_word(at + lists->address_at) == first ? ret : 0;
}

/* Returns the address of the name with a number, or 0. */
static noinline u64 find_name(const struct language_target *t, u64 number)
{
	const struct language_numbered *n = &t->numbered;
	u64 list;

	if (number > n->last_plain)
		number = (u32)(number >> (n->shift & 63));
	list = list_element(t, user_word(n->names), number / n->per_list);
	return list_element(t, list, 2 * (number & (n->per_list - 1)));
}

/*
 * Finds the function of a frame that has no object; @at: address of the frame's flags. Writes what it is
 * known by in place of the words of an object. Returns the address of its definition, or 0.
 */
static noinline u64 find_numbered(struct language_run *run, u64 at)
{
	const struct language_numbered *n = &run->t->numbered;
	u64 *words = run->l->words;
	u64 entry = user_word(at - n->entry_before), definition, name;

	if ((user_word(entry) & n->mask) == n->holder)
		entry = user_word(entry + n->entry_at);
	definition = user_word(entry + n->definition_at);
	if ((user_word(entry) & n->mask) != n->entry ||
	    (user_word(definition) & n->type_mask) != n->type)
		return 0;
	name = find_name(run->t, user_word(definition + n->number_at));
	clear(words, sizeof(run->l->words));
	words[MASKED(n->address_word, WORDS)] = user_word(definition + n->address_at);
	words[MASKED(run->t->texts[0].word, WORDS)] = name;
	return name ? definition : 0;
}

/* Returns the number of the function that find_numbered() finds, LANGUAGE_NO_FUNCTION: it is not known. */
static noinline u64 identify_numbered(struct language_run *run, u64 at)
{
	struct language_walk *l = run->l;
	u64 code = find_numbered(run, at);
	struct language_repeat *r = &run->r->last[MASKED(code >> 5, CPU_REPEATS)];

	if (!code)
		return LANGUAGE_NO_FUNCTION;
	if (r->sample != l->sample || r->identity.code != code)
		look_up(run, code, r);
	r->sample = l->sample;
	return r->id ? r->id : LANGUAGE_NO_FUNCTION;
}

/* Returns the line of the instruction before the one with that number, 0: it is not known. */
static noinline s32 ranked_line(const struct language_run *run, u64 number)
{
	const struct language_ranks *ranks = &run->t->ranks;
	const u64 *words = run->l->words;
	u64 table = words[MASKED(ranks->table, WORDS)], rank = 1, at;
	u32 count = words[MASKED(ranks->count, WORDS)], line = 0;
	struct language_rank_words w;

	if (number)
		number--;
	at = table + language_rank_at(number);
	w.block = user_word(at);
	w.sums = user_word(at + LANGUAGE_RANKS_SUMS);
	w.bits = user_word(at + language_rank_bits_at(number));
	if (count > 1)
		rank = language_rank(&w, number);
	if (!rank || rank > count)
		return 0;
	at = words[MASKED(ranks->entries, WORDS)] + (rank - 1) * ranks->entry_bytes;
	bpf_probe_read_user(&line, sizeof(line), (void *)at);
	return line;
}

/*
 * Returns the line of an instruction of the function that was read last, 0: it is none of that
 * function. A frame that was just made may have any address there.
 */
static noinline s32 line_of(struct language_run *run, u64 instruction)
{
	const struct language_lines *lines = &run->t->lines;
	const struct language_walk *l = run->l;
	u32 in_word = (lines->count_at - run->t->code_from) / 8, line = 0;
	u64 count = l->words[MASKED(in_word, WORDS)] >> (lines->count_at & 4) * 8;
	u64 behind = instruction - l->words[MASKED(lines->word, WORDS)];

	if (run->t->ranks.entry_bytes) {
		behind /= lines->unit;
		return behind <= (u32)count ? ranked_line(run, behind) : 0;
	}
	if (behind >= (u32)count * (u64)lines->unit || behind % lines->unit)
		return 0;
	bpf_probe_read_user(&line, sizeof(line), (void *)(instruction + lines->line_at));
	return line;
}

/*
 * Finds the name of the task that runs: the frame at @at called a coroutine, or a generator. If that is
 * a coroutine, but none of a task that this frame runs, no task is known.
 */
static noinline void find_task(struct language_run *run, u64 at)
{
	const struct language_task *t = &run->t->task;
	struct language_walk *l = run->l;
	u64 callback, task, name;

	l->task_passed = user_word(l->coroutine + t->type_at) == t->type;
	callback = user_word((user_word(at + t->first) & run->t->code_mask) + t->callback);
	for (u32 i = 0; i < LANGUAGE_HOLDERS; i++) {
		task = user_word(callback + t->holders[i]);
		if (!task || user_word(task + t->coroutine) != l->coroutine)
			continue;
		l->task_passed = 1;
		name = user_word(task + t->name);
		if (user_word(name + t->type_at) == t->name_type)
			l->task_name = name;
	}
}

/* Returns whether the instruction at which a frame is waits for another coroutine. */
static __always_inline bool is_waiting(const struct language_task *t, u64 instruction)
{
	u8 operation = 0;

	if (!t->waits[0])
		return true;
	return !bpf_probe_read_user(&operation, sizeof(operation), (void *)instruction) &&
	       (operation == t->waits[0] || operation == t->waits[1]);
}

/* Takes note of a frame for what find_task() has to know. */
static __always_inline void note_frame(struct language_run *run, const struct language_entry *e,
				       u64 instruction)
{
	const struct language_task *t = &run->t->task;
	struct language_walk *l = run->l;
	u32 in = e->flags >> (t->kind & 31) & 255;

	if (!t->type || l->task_passed)
		return;
	l->entered |= in > t->in_object;
	if (in > t->in_object)
		return;
	if (l->coroutine && (in < t->in_object || (l->entered && !is_waiting(t, instruction))))
		find_task(run, e->addr);
	l->entered = 0;
	l->coroutine = in == t->in_object ? e->addr - t->object : 0;
}

/* Makes one round of bpf_loop() over the marks. */
static long pass_mark(u32 i, struct language_run *run)
{
	const struct language_target *t = run->t;
	struct language_walk *l = run->l;

	(void)i;
	if (!l->at)
		return 1;
	if (l->moment.nr_marks >= LANGUAGE_MARKS) {
		l->moment.end = LANGUAGE_DEEP;
		return 1;
	}
	l->entries[MASKED(l->moment.nr_marks, LANGUAGE_MARKS)] =
		(struct language_entry){ .addr = l->at, .id = user_word(l->at + t->mark_at) };
	l->moment.nr_marks++;
	l->at = user_word(l->at + t->marks.link);
	return 0;
}

/* Returns the address of the function's object that @code leads to; one where nothing is: none. */
static noinline u64 find_object(const struct language_holder *h, u64 code)
{
	if (!h->offset || !code)
		return code;
	return (user_word(code) & h->mask) == h->type ? user_word(code + h->offset) : NOWHERE;
}

/* Makes one round of bpf_loop() over the frames. */
static long pass_language_frame(u32 i, struct language_run *run)
{
	const struct language_target *t = run->t;
	struct language_walk *l = run->l;
	struct language_entry *e;
	u64 n = l->moment.nr_marks + l->moment.nr_frames;
	u64 code, instruction;

	if (!l->at)
		return 1;
	if (is_late(l, i)) {
		l->moment.end = LANGUAGE_DEEP;
		return 1;
	}
	KNOWN(n);
	if (n >= LANGUAGE_ENTRIES || l->moment.nr_frames >= LANGUAGE_FRAMES) {
		l->moment.end = LANGUAGE_DEEP;
		return 1;
	}
	if (bpf_probe_read_user(l->frame, MASKED(t->frame_bytes, LANGUAGE_FRAME_BYTES),
				(void *)l->at)) {
		l->moment.end = LANGUAGE_UNREADABLE;
		return 1;
	}
	code = frame_word(l, t->code_at) & t->code_mask;
	e = &l->entries[n];
	e->addr = l->at;
	e->flags = frame_flags(t, l);
	code = find_object(&t->holder, e->flags & t->no_function ? 0 : code);
	instruction = l->at == l->live_frame ? l->live : frame_word(l, t->instruction_at);
	e->at = instruction - code - t->instructions;
	if (is_numbered(&t->numbered, e->flags))
		e->id = identify_numbered(run, frame_word(l, t->flags_at));
	else
		e->id = identify(run, code);
	if (t->lines.unit)
		e->at = code && e->id > LANGUAGE_NO_FUNCTION ? line_of(run, instruction) : 0;
	note_frame(run, e, instruction);
	l->moment.nr_frames++;
	l->at = next_frame(t, l);
	return 0;
}

/* Takes note of which frames before frame @n are not the same as it. */
static __always_inline void compare_frames(struct language_deep *d, u64 n)
{
	const struct language_outer *e = &d->last[MASKED(n, LANGUAGE_FRAMES)];

	for (u32 i = 0; i < LANGUAGE_PERIOD; i++) {
		const struct language_outer *before = &d->last[MASKED(n - 1 - i, LANGUAGE_FRAMES)];

		if (before->code != e->code || before->place != e->place)
			d->repeats &= ~(1ull << i);
	}
}

/*
 * Makes one round of bpf_loop() over the frames of a deep stack. It is not known yet which ones are
 * the last LANGUAGE_FRAMES - LANGUAGE_INNER; all before them are compared.
 */
static long pass_deep_frame(u32 i, struct language_run *run)
{
	const struct language_target *t = run->t;
	struct language_walk *l = run->l;
	struct language_deep *d = run->d;
	struct language_outer *e;
	u64 kind;

	if (!l->at || !d)
		return 1;
	if (d->nr >= LANGUAGE_DEEPEST || is_late(l, i)) {
		l->moment.end = LANGUAGE_DEEP;
		return 1;
	}
	if (bpf_probe_read_user(l->frame, MASKED(t->frame_bytes, LANGUAGE_FRAME_BYTES),
				(void *)l->at)) {
		l->moment.end = LANGUAGE_UNREADABLE;
		return 1;
	}
	e = &d->last[MASKED(d->nr, LANGUAGE_FRAMES)];
	e->at = l->at;
	e->code = frame_word(l, t->code_at) & t->code_mask;
	kind = frame_flags(t, l) & t->kind_bits;
	e->place = (u32)(frame_word(l, t->instruction_at) - e->code) | kind << 32;
	if (d->nr >= LANGUAGE_FRAMES && d->repeats)
		compare_frames(d, d->nr - (LANGUAGE_FRAMES - LANGUAGE_INNER));
	d->nr++;
	l->at = next_frame(t, l);
	return 0;
}

/*
 * Reads the outer end of a stack of more than LANGUAGE_FRAMES frames, of which so many were read. It
 * takes the place of those beyond LANGUAGE_INNER. The first frames are passed once more for what is
 * compared.
 */
static __always_inline void read_outer_end(struct language_run *run)
{
	struct language_walk *l = run->l;
	u64 first = l->moment.nr_marks + LANGUAGE_INNER - LANGUAGE_PERIOD;
	u32 slot = slot_of(run);

	run->d = bpf_map_lookup_elem(&language_deeps, &slot);
	KNOWN(first);
	if (!run->d || first >= LANGUAGE_ENTRIES)
		return;
	l->moment.end = LANGUAGE_WHOLE;
	l->at = l->entries[first].addr;
	run->d->nr = LANGUAGE_INNER - LANGUAGE_PERIOD;
	run->d->repeats = (1ull << LANGUAGE_PERIOD) - 1;
	bpf_loop(LANGUAGE_DEEPEST, pass_deep_frame, run, 0);
	if (l->moment.end != LANGUAGE_WHOLE || run->d->nr <= LANGUAGE_FRAMES)
		return;
	l->moment.left_out = run->d->nr - LANGUAGE_FRAMES;
	l->moment.repeats = run->d->repeats;
	l->moment.nr_frames = LANGUAGE_INNER;
	first = run->d->nr - (LANGUAGE_FRAMES - LANGUAGE_INNER);
	l->at = run->d->last[MASKED(first, LANGUAGE_FRAMES)].at;
	bpf_loop(LANGUAGE_FRAMES - LANGUAGE_INNER + 1, pass_language_frame, run, 0);
}

/* It is a function of its own because of its stack. */
static noinline void begin_moment(struct language_run *run, struct task_struct *task, u32 number)
{
	const volatile u64 *registers = (void *)bpf_task_pt_regs((void *)task);
	struct language_walk *l = run->l;

	l->met = 0;
	l->coroutine = 0;
	l->task_name = 0;
	l->task_passed = 0;
	l->entered = 0;
	l->sample++;
	l->identity.lease = 0;
	l->identity.space = walk_arch_space(task);
	begin_for(run);
	l->moment.kind = LANGUAGE_MOMENT;
	l->moment.target = number;
	l->moment.end = LANGUAGE_WHOLE;
	l->moment.nr_marks = 0;
	l->moment.nr_frames = 0;
	l->moment.left_out = 0;
	l->moment.repeats = 0;
	l->moment.task_size = 0;
	l->moment.base_word = 0;
	l->moment.pc = registers[WALK_PT_PC];
	l->moment.sp = registers[PT_SP];
	l->moment.truth = run->t->truth ? user_word(run->t->truth) : 0;
	l->live_frame = 0;
	l->live = registers[WALK_PT_LIVE];
	if (l->moment.pc >= run->t->live.start && l->moment.pc < run->t->live.end)
		l->live_frame = registers[WALK_PT_LIVE_FRAME];
}

#ifdef LANGUAGE_NATIVE
static __always_inline void read_native(struct language_run *run, struct task_struct *task, u32 of);
#endif

/*
 * Copies the name of the task that runs behind @nr entries, if there is one. Returns how many entries
 * there are with it.
 */
static __always_inline u64 copy_task(struct language_run *run, u64 nr)
{
	struct language_walk *l = run->l;
	u64 at = l->task_name;

	if (!at || nr > LANGUAGE_ENTRIES - LANGUAGE_TASK_ROOM)
		return nr;
	/* All of them are written, also what is not copied. */
	clear(&l->entries[nr], LANGUAGE_TASK_ENTRIES * sizeof(l->entries[0]));
	find_bytes(run->t, &run->t->task.text, at, &l->texts[0]);
	l->moment.task_size =
		copy_text((u8 *)&l->entries[nr], &l->texts[0], LANGUAGE_TASK, LANGUAGE_TASK);
	return l->moment.task_size ? nr + LANGUAGE_TASK_ENTRIES : nr;
}

/* Keeps whether the record with the frames was written: @err is 0 if it was. */
static __always_inline void note_written(struct language_run *run, long err)
{
#ifdef LANGUAGE_PROBED
	run->written = err ? PROBE_FRAMES_MISSED : PROBE_FRAMES_WRITTEN;
#else
	(void)run;
	(void)err;
#endif
}

/*
 * Whether the program reads frames in the heap. For ordinary users, the one that calls lend_native.bpf.c does:
 * so the chain of calls of that has room on the stack of Linux 6.12, where 512 bytes are for all of them.
 */
#if defined(LANGUAGE_LENT) && defined(LANGUAGE_NATIVE)
#define READS_HEAP false
#else
#define READS_HEAP true
#endif

/* Writes a record with the frames of the thread that are in the heap, if there are any. */
static __always_inline void read_heap(struct language_run *run, struct task_struct *task)
{
	u64 base = find_base(run->t, task), nr;

	if (!base)
		return;
	run->l->moment.base_word = user_word(base + run->t->base_word_at);
	run->l->at = find_first(&run->t->marks, base);
	if (run->l->at)
		bpf_loop(LANGUAGE_MARKS + 1, pass_mark, run, 0);
	if (run->t->stack.stride)
		run->l->end = user_word(base + run->t->stack.memory_at) +
			      8 * user_word(base + run->t->stack.words_at);
	run->l->at = find_first(&run->t->frames, base);
	if (run->l->at)
		bpf_loop(LANGUAGE_FRAMES + 1, pass_language_frame, run, 0);
	if (run->l->moment.end == LANGUAGE_DEEP && run->l->moment.nr_frames == LANGUAGE_FRAMES &&
	    run->l->moment.nr_marks < LANGUAGE_MARKS)
		read_outer_end(run);
	nr = run->l->moment.nr_marks + run->l->moment.nr_frames;
	if (!nr)
		return;
	KNOWN(nr);
	nr = copy_task(run, nr);
	KNOWN(nr);
	if (nr <= LANGUAGE_ENTRIES)
		note_written(run,
			     write_record(run, &run->l->moment,
					  sizeof(run->l->moment) - sizeof(run->l->moment.size) +
						  nr * sizeof(run->l->entries[0])));
}

/*
 * Writes a record with the frames of the thread, if its process is one whose frames are to be read.
 * Returns whether it is.
 */
static __always_inline bool read_run(struct language_run *run, const language_source *source)
{
	u32 slot = slot_of(run), number;
	struct task_struct *task = current;

	run->t = find_target(run, source, &number);
	run->l = find_walk(run);
	run->r = bpf_map_lookup_elem(&language_repeats, &slot);
	if (!run->t || !run->l || !run->r || !task->mm)
		return false;
	begin_moment(run, task, number);
#ifdef LANGUAGE_NATIVE
	if (run->t->native) {
		read_native(run, task, number);
		return true;
	}
#elif defined(LANGUAGE_LENT)
	if (run->t->native) {
		run->elsewhere = true;
		return true;
	}
#endif
	if (READS_HEAP)
		read_heap(run, task);
	return true;
}

#if !defined(LANGUAGE_LENT) && !defined(LANGUAGE_PROBED)
static __always_inline bool read_language(void *ctx, const struct walk_config *c)
{
	struct language_run run = { .ctx = ctx };

	return read_run(&run, c);
}
#endif

#ifdef LANGUAGE_NATIVE
#include "native_walk.h"
#endif

#endif /* BPF_LANGUAGE_WALK_H */
