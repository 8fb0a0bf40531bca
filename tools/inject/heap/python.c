// SPDX-License-Identifier: GPL-2.0-or-later
/* python.c - the functions of Python that a thread is in when it allocates. See python.h. */
#include <string.h>

#include "../common/peek.h"
#include "../common/python.h"
#include "../common/told.h"
#include "heap.h"
#include "python.h"

#ifdef PYTHON_IS_READ
bool python_known;

static struct python_process python;

static inline uint64_t word(uint64_t at)
{
	return *(const uint64_t *)at;
}

static inline uint32_t half(uint64_t at)
{
	return *(const uint32_t *)at;
}

/* ---- Which Python the process has ---- */

void python_find(void)
{
	python_known = python_process_find(&python);
}

void python_begin(void)
{
	struct heap_interpreter *r = python_known ? heap_reserve(sizeof(*r), HEAP_UNIT) : NULL;

	if (!r)
		return;
	r->minor = python.version->minor;
	r->run = python.run;
	r->run_size = python.run_size;
	heap_publish(&r->record, HEAP_PYTHON, sizeof(*r));
}

/* ---- Frames ---- */

/* Returns the state that the thread has as its value of a key; 0: none. */
static inline uint64_t state_by_key(uint64_t thread)
{
	const uint64_t key_at = python_key_at(&python);
	uint32_t key;

	/* In front of the key a word says whether there is one. */
	if (!half(key_at - 4))
		return 0;
	key = half(key_at);
	return key < 32 ? python_thread_value(thread, key) : 0;
}

/* Reads memory that is sure to be there. */
static uint64_t own_word(const void *unused, uint64_t at)
{
	(void)unused;
	return word(at);
}

/*
 * Returns where the thread has its state, as a variable; 0: it has none. A variable stays where it is. While the
 * C library makes its table of them longer, it calls realloc(), and the table is what was there before: so what
 * was found counts only if it is the state of this thread.
 *
 * Looking whether memory is there is a system call. What the table refers to is there for as long as it is in the
 * table, so a thread that has no state, and asks for it at each allocation, looks once.
 */
static uint64_t find_variable(uint64_t thread)
{
	static __thread uint64_t readable;
	const uint64_t at = python_variable_at(&python, own_word);
	uint64_t state, of;

	/* A program's own lies at the same place in all threads. */
	if (!python.variable.module)
		return at;
	if (!at || heap.sandboxed || heap.filtered ||
	    (at != readable && !peek(&state, (const void *)at, sizeof(state))))
		return 0;
	readable = at;
	state = word(at);
	if (!state || !peek(&of, (const void *)(state + python.version->state_thread), sizeof(of)))
		return 0;
	return of == thread ? at : 0;
}

/* Returns the state that the thread has as a variable; 0: none. */
static inline uint64_t state_by_variable(uint64_t thread)
{
	static __thread uint64_t at;

	if (!at)
		at = find_variable(thread);
	return at ? word(at) : 0;
}

/*
 * Returns the thread's state; 0: the thread has none, as before the interpreter is ready, or it does not
 * have the interpreter's lock. Without the lock, state and frames could be taken away by another thread
 * while they are read, as those of daemon threads are when the interpreter ends. With it, they cannot.
 */
static inline uint64_t find_state(void)
{
	const struct python_version *v = python.version;
	const uint64_t thread = python_thread(&python);
	uint64_t state;

	if (word(python.runtime + v->finalizing))
		return 0;
	state = v->key ? state_by_key(thread) : state_by_variable(thread);
	if (!state || python.current() != state)
		return 0;
	return word(state + v->state_thread) == thread ? state : 0;
}

static inline uint64_t first_frame(uint64_t state)
{
	const struct python_version *v = python.version;
	uint64_t at = word(state + v->state_frames);

	return at && v->cframes ? word(at + v->cframe_frame) : at;
}

/* Returns the address of the object that a frame runs, which need not be code; 0: it has none. */
static inline uint64_t object_of(uint64_t frame)
{
	return word(frame + python.version->code) & ~(uint64_t)python.version->code_tags;
}

/* Returns the address of a frame's code object; 0: it has none. */
static inline uint64_t code_of(uint64_t frame)
{
	uint64_t code = object_of(frame);

	return code && word(code + PYTHON_TYPE) == python.code_type ? code : 0;
}

/* Returns what a function is known by. */
static inline struct python_key key_of(uint64_t code)
{
	const struct python_version *v = python.version;
	struct python_key key = {
		.code = code,
		.name = word(code + PYTHON_QUALNAME),
		.file = word(code + PYTHON_FILENAME),
		.table = word(code + PYTHON_LINETABLE),
		.first_line = half(code + v->first_line),
		.number = half(code + PYTHON_CODE_VERSION),
	};

	if (v->minor > 11)
		return key;
	key.name_hash = word(key.name + PYTHON_HASH);
	key.table_length = word(key.table + PYTHON_LENGTH);
	key.table_begin = word(key.table + PYTHON_BYTES);
	return key;
}

static inline uint64_t sum_code(uint64_t code)
{
	const struct python_key key = key_of(code);

	return python_sum_key(python.version, &key);
}

uint64_t python_sum(void)
{
	const struct python_version *v = python.version;
	uint64_t state = find_state(), at = state ? first_frame(state) : 0, sum = 0;

	for (unsigned int n = 0; at && n < LANGUAGE_DEEPEST; n++) {
		uint64_t code = code_of(at);

		sum = python_mix(sum ^ word(at + v->instruction), code ? sum_code(code) : 1);
		at = word(at + v->previous);
	}
	return sum;
}

struct python_size python_measure(void)
{
	const struct python_version *v = python.version;
	uint64_t state = find_state(), at;
	struct python_size size = { 0, 0, 0 };

	if (!state)
		return size;
	for (at = v->entry ? word(state + v->state_frames) : 0; at && size.marks < LANGUAGE_MARKS;
	     size.marks++)
		at = word(at + v->cframe_previous);
	for (at = first_frame(state); at && size.frames < LANGUAGE_DEEPEST; size.frames++)
		at = word(at + v->previous);
	if (size.frames > LANGUAGE_FRAMES) {
		size.left_out = size.frames - LANGUAGE_FRAMES;
		size.frames = LANGUAGE_FRAMES;
	}
	return size;
}

/* ---- Functions ---- */

/* Tells the recorder what a function is. Returns false if it cannot be told. */
static bool introduce(const struct python_key *key, uint64_t id)
{
	uint32_t words = python.version->instructions - PYTHON_TYPE, table;
	struct heap_code *r;
	size_t bytes;

	/* Reading what may lie at the end of memory is a system call. */
	if (heap.sandboxed || heap.filtered)
		return false;
	table = python_table_bytes(key->table);
	bytes = offsetof(struct heap_code, code.table) + table;
	r = heap_reserve(bytes, HEAP_UNIT);
	if (!r)
		return false;
	words = words < sizeof(r->code.words) ? words : sizeof(r->code.words);
	r->code.kind = LANGUAGE_CODE;
	r->code.id = id;
	memcpy(r->code.words, (const void *)(key->code + PYTHON_TYPE), words);
	python_copy_texts(python.version, key, table, &r->code);
	heap_publish(&r->record, HEAP_CODE, bytes);
	return true;
}

/* Returns the number of a function, which the recorder knows then; 0: it cannot be told. */
static uint64_t identify(uint64_t code)
{
	const struct python_key key = key_of(code);
	const uint64_t id = python_sum_key(python.version, &key);

	if (told_has(heap.unshared->functions, FUNCTIONS, id))
		return id;
	if (!introduce(&key, id))
		return 0;
	told_add(heap.unshared->functions, FUNCTIONS, id);
	return id;
}

/* Returns the number of the function that a frame runs. */
static uint64_t number_of(uint64_t frame)
{
	const uint64_t code = code_of(frame);

	if (code)
		return identify(code);
	return object_of(frame) ? 0 : LANGUAGE_NO_FUNCTION;
}

/*
 * Gives the entries of frames the numbers of their functions. The entries lie where others can write, so
 * the frames themselves are asked again. Those in the middle of a deep stack have no entry.
 */
static void identify_all(uint64_t state, struct python_size size, struct language_entry *to)
{
	const unsigned int all = size.frames + size.left_out;
	uint64_t at = first_frame(state);

	for (unsigned int n = 0; at && n < all; n++) {
		if (n < LANGUAGE_INNER || n >= LANGUAGE_INNER + size.left_out)
			(to++)->id = number_of(at);
		at = word(at + python.version->previous);
	}
}

/* The memory is sure to be there. */
static const void *look(struct python_view *view, uint64_t at, size_t size)
{
	(void)view;
	(void)size;
	return (const void *)at;
}

void python_write(struct python_size size, struct language_moment *to)
{
	const struct python_version *v = python.version;
	const uint64_t state = find_state();
	struct python_lists lists = {
		.first = state ? word(state + v->state_frames) : 0,
		.max_marks = size.marks,
		.max_frames = size.frames,
	};
	struct python_view view = { look };

	if (!python_read_lists(&view, v, &lists, to) || !lists.nr_frames)
		to->end = to->end == LANGUAGE_DEEP ? LANGUAGE_DEEP : LANGUAGE_UNREADABLE;
	if (!state)
		return;
	to->base_word = word(state + v->state_top);
	identify_all(state, size, (struct language_entry *)(to + 1) + lists.nr_marks);
}
#endif
