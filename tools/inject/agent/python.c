// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * python.c - what Python runs in the sampled thread: its frames are read in the handler.
 *
 * The handler interrupts the thread, which stands still while its frames are read, so they are those of
 * the sample. But that may be at any instruction, also where the interpreter's lists are in the middle of
 * a change, and other threads run on. So nothing is trusted: all but the thread's own block of the C
 * library is read by system calls that bear any address, and everything is bounded. What was read goes to
 * the recorder, which shows it only if it fits together and with the native stack (tools/language/).
 *
 * What is read lies in memory that was mapped before, as the thread's stack may be small. A handler takes
 * one of some workplaces; if all are taken, the frames are not read. From there they go into the sample's
 * record. Functions that are new go to the recorder as records of their own, in front of it.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "../common/peek.h"
#include "../common/python.h"
#include "../common/told.h"
#include "agent.h"

#ifdef PYTHON_IS_READ

#define FUNCTIONS 4096 /* about which the recorder need not be told again, a power of two */
#define WINDOWS 4
#define BATCH 16 /* functions that are read by one system call */
#define BATCHES 4
#define WINDOW (PEEK_PAGE + LANGUAGE_FRAME_BYTES)
#define CODE_BYTES (PYTHON_TYPE + 8 * LANGUAGE_CODE_WORDS) /* of a code object, at most */
#define PLACES 16 /* threads that read at the same time */

/**
 * struct workplace - what is read
 * @windows: memory of the process, from the beginning of a page to the end of what was looked for in it.
 * @codes: code objects, each of code_bytes().
 * @behind: of 3.11, what else the functions are known by: hash of the name; length and beginning of the
 *	table of lines.
 * @at: addresses of the code objects of the frames, each once.
 * @id: numbers of their functions.
 * @moment: the frames.
 * @entries: their entries.
 */
struct workplace {
	uint8_t windows[WINDOWS][WINDOW];
	uint8_t codes[BATCH * CODE_BYTES];
	struct {
		uint64_t hash;
		uint64_t words[(PYTHON_BYTES - PYTHON_LENGTH) / 8 + 1];
	} behind[BATCH];
	uint64_t at[BATCH * BATCHES];
	uint64_t id[BATCH * BATCHES];
	struct language_moment moment;
	struct language_entry entries[LANGUAGE_ENTRIES];
};

/**
 * struct reading - the state of reading
 * @view: how frames are read.
 * @t: the thread.
 * @place: the workplace.
 * @begin: address of the first byte of each window.
 * @end: first address behind it.
 * @next: number of the window that is used next.
 * @nr_new: functions that the recorder was told of.
 */
struct reading {
	struct python_view view;
	struct agent_thread *t;
	struct workplace *place;
	uint64_t begin[WINDOWS];
	uint64_t end[WINDOWS];
	unsigned int next;
	unsigned int nr_new;
};

static struct python_process python;
static bool known;
static _Atomic bool told; /* the recorder knows which Python it is */

/* Numbers of functions about which the recorder was told. */
static _Atomic uint64_t functions[FUNCTIONS];

static struct workplace *places;
static _Atomic uint32_t taken; /* a bit for each of them */

void frames_find(void)
{
	long p;

	if (!python_process_find(&python))
		return;
	p = sys6(SYS_mmap, 0, PLACES * sizeof(*places), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p < 0 && p > -4096)
		return;
	places = (struct workplace *)p;
	known = true;
}

/* Takes a workplace. Returns NULL if there is none. */
static struct workplace *take_place(void)
{
	uint32_t is = atomic_load(&taken);
	int i;

	do {
		i = __builtin_ffs((int)(~is & ((1u << PLACES) - 1)));
		if (!i)
			return NULL;
	} while (!atomic_compare_exchange_weak(&taken, &is, is | 1u << (i - 1)));
	return &places[i - 1];
}

void frames_give(const struct frames *frames)
{
	if (frames->place)
		atomic_fetch_and(&taken, ~(1u << (frames->place - places)));
}

void frames_fork_child(void)
{
	/* Other threads, which are not here, may have been reading. */
	atomic_store(&taken, 0);
	if (!atomic_load(&told))
		return;
	atomic_store(&told, false);
	memset(functions, 0, sizeof(functions));
}

/* ---- Which frames the thread has ---- */

/**
 * struct found_state - what the state of a thread says
 * @frames: address of the first frame or mark.
 * @thread: address of the thread to which it belongs.
 * @top: end of the thread's stack of frames.
 */
struct found_state {
	uint64_t frames;
	uint64_t thread;
	uint64_t top;
};

/* Returns the state of this thread as its value of a key; 0: it has none. */
static uint64_t state_by_key(void)
{
	/* In front of the key a word says whether there is one. */
	const struct iovec from = peek_piece(python_key_at(&python) - 4, 8);
	uint32_t words[2];

	if (!peek_pieces(words, &from, 1) || !words[0] || words[1] >= 32)
		return 0;
	return python_thread_value(python_thread(&python), words[1]);
}

static uint64_t peek_word(const void *unused, uint64_t at)
{
	uint64_t value;

	(void)unused;
	return peek(&value, (const void *)at, sizeof(value)) ? value : 0;
}

/* Returns the state of this thread as a variable has it; 0: it has none. */
static uint64_t state_by_variable(void)
{
	const uint64_t at = python_variable_at(&python, peek_word);

	return at ? peek_word(NULL, at) : 0;
}

/* Returns whether this thread has frames of Python. */
static bool find_state(struct found_state *ret)
{
	const struct python_version *v = python.version;
	const uint64_t state = v->key ? state_by_key() : state_by_variable();
	const struct iovec from[] = {
		peek_piece(state + v->state_frames, 8),
		peek_piece(state + v->state_thread, 8),
		peek_piece(state + v->state_top, 8),
		peek_piece(python.runtime + v->finalizing, 8),
	};
	struct {
		struct found_state state;
		uint64_t finalizing;
	} is;

	if (!state || !peek_pieces(&is, from, 4))
		return false;
	*ret = is.state;
	return ret->frames && ret->thread == python_thread(&python) && !is.finalizing;
}

/*
 * Returns where memory of the process can be read. It is copied by windows, from the beginning of its page
 * on: most frames are behind those of their callers.
 */
static const void *look(struct python_view *view, uint64_t at, size_t size)
{
	struct reading *r = (struct reading *)view;
	const uint64_t begin = at & ~(uint64_t)(PEEK_PAGE - 1), end = at + size;
	struct iovec from = peek_piece(begin, end - begin);
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		if (at >= r->begin[i] && end <= r->end[i] && end > at)
			return r->place->windows[i] + (at - r->begin[i]);
	if (size > LANGUAGE_FRAME_BYTES || end < at)
		return NULL;
	i = r->next++ % WINDOWS;
	r->begin[i] = r->end[i] = 0;
	if (!peek_pieces(r->place->windows[i], &from, 1))
		return NULL;
	r->begin[i] = begin;
	r->end[i] = end;
	return r->place->windows[i] + (at - begin);
}

/* ---- Functions ---- */

/* Returns how much of a code object is read: no more than what comes before its instructions. */
static size_t code_bytes(void)
{
	return python.version->instructions < CODE_BYTES ? python.version->instructions :
							   CODE_BYTES;
}

/* Returns the code object that was read as number @i. */
static const uint8_t *code_read(const struct reading *r, unsigned int i)
{
	return r->place->codes + i * code_bytes();
}

/*
 * Tells the recorder what a function is; @words: its code object. Returns false if it cannot be told now:
 * there must be room for the sample, too, and a sample tells of LANGUAGE_NEW functions at most.
 */
static bool introduce(struct reading *r, const struct python_key *key, const uint8_t *words,
		      uint64_t id)
{
	const uint32_t table = python_table_bytes(key->table);
	const uint32_t size = (offsetof(struct rec_code, code.table) + table + 7) & ~7u;
	struct rec_code *record = NULL;

	if (table && r->nr_new++ < LANGUAGE_NEW)
		record = ring_reserve(r->t, size + rec_sample_room(agent.max_depth));
	if (!record)
		return false;
	memset(record, 0, offsetof(struct rec_code, code.shorts));
	record->record = (struct rec_record){ .size = size, .type = REC_CODE };
	record->code.kind = LANGUAGE_CODE;
	record->code.id = id;
	memcpy(record->code.words, words + PYTHON_TYPE, code_bytes() - PYTHON_TYPE);
	python_copy_texts(python.version, key, table, &record->code);
	ring_commit(r->t, size);
	return true;
}

/* Returns the number of a function, which the recorder knows then; 0: it cannot be told. */
static uint64_t identify(struct reading *r, const struct python_key *key, const uint8_t *words)
{
	const uint64_t id = python_sum_key(python.version, key);

	if (told_has(functions, FUNCTIONS, id))
		return id;
	if (!introduce(r, key, words, id))
		return 0;
	told_add(functions, FUNCTIONS, id);
	return id;
}

/* Returns what the function whose code object was read as number @i is known by. */
static struct python_key key_of(const struct reading *r, unsigned int i, uint64_t code)
{
	const uint8_t *words = code_read(r, i);

	return (struct python_key){
		.code = code,
		.name = python_word(words, PYTHON_QUALNAME),
		.file = python_word(words, PYTHON_FILENAME),
		.table = python_word(words, PYTHON_LINETABLE),
		.first_line = (uint32_t)python_word(words, python.version->first_line),
		.number = (uint32_t)python_word(words, PYTHON_CODE_VERSION),
	};
}

/* Reads what else functions of 3.11 are known by. */
static bool read_behind(struct reading *r, const uint64_t *at, unsigned int nr)
{
	struct iovec from[BATCH];
	unsigned int half;

	for (unsigned int i = 0; i < nr; i += half) {
		half = nr - i < BATCH / 2 ? nr - i : BATCH / 2;
		for (unsigned int k = 0; k < half; k++) {
			const struct python_key key = key_of(r, i + k, at[i + k]);

			from[2 * k] = peek_piece(key.name + PYTHON_HASH, 8);
			from[2 * k + 1] = peek_piece(key.table + PYTHON_LENGTH,
						     sizeof(r->place->behind->words));
		}
		if (!peek_pieces(&r->place->behind[i], from, 2 * half))
			return false;
	}
	return true;
}

/* Returns the number of the function whose code object was read as number @i; 0: it cannot be told. */
static uint64_t identify_read(struct reading *r, unsigned int i, uint64_t code)
{
	struct python_key key = key_of(r, i, code);

	if (python.version->minor == 11) {
		key.name_hash = r->place->behind[i].hash;
		key.table_length = r->place->behind[i].words[0];
		key.table_begin = r->place->behind[i].words[(PYTHON_BYTES - PYTHON_LENGTH) / 8];
	}
	return identify(r, &key, code_read(r, i));
}

/*
 * Finds the numbers of the functions of up to BATCH code objects. What is none, as frames on the native
 * stack have it from 3.13 on, gets 0. Returns false if one cannot be told.
 */
static bool identify_batch(struct reading *r, const uint64_t *at, uint64_t *id, unsigned int nr)
{
	struct iovec from[BATCH];
	bool all = true;

	for (unsigned int i = 0; i < nr; i++)
		from[i] = peek_piece(at[i], code_bytes());
	if (!peek_pieces(r->place->codes, from, nr))
		return false;
	for (unsigned int i = 0; i < nr; i++) {
		id[i] = python_word(code_read(r, i), PYTHON_TYPE) == python.code_type;
		all &= id[i];
	}
	if (python.version->minor == 11 && !(all && read_behind(r, at, nr)))
		return false;
	for (unsigned int i = 0; i < nr; i++) {
		if (!id[i])
			continue;
		id[i] = identify_read(r, i, at[i]);
		if (!id[i])
			return false;
	}
	return true;
}

/* Returns the index of an address among the first @nr ones, @nr: it is not there. */
static unsigned int index_of(const struct workplace *place, unsigned int nr, uint64_t at)
{
	unsigned int i = 0;

	while (i < nr && place->at[i] != at)
		i++;
	return i;
}

/*
 * Gives frames the numbers of their functions, from the first one on, as many as there is room for at a
 * time. Returns how many frames have theirs then; 0: a function cannot be told.
 */
static unsigned int identify_some(struct reading *r, struct language_entry *frames, unsigned int nr)
{
	struct workplace *place = r->place;
	unsigned int nr_codes = 0, to, i;

	for (to = 0; to < nr; to++) {
		const uint64_t at = frames[to].id;

		i = at ? index_of(place, nr_codes, at) : 0;
		if (!at || i < nr_codes)
			continue;
		if (i == BATCH * BATCHES)
			break;
		place->at[nr_codes++] = at;
	}
	for (i = 0; i < nr_codes; i += BATCH)
		if (!identify_batch(r, place->at + i, place->id + i,
				    nr_codes - i < BATCH ? nr_codes - i : BATCH))
			return 0;
	for (i = 0; i < to; i++) {
		const unsigned int k = index_of(place, nr_codes, frames[i].id);

		frames[i].id = k < nr_codes ? place->id[k] : LANGUAGE_NO_FUNCTION;
	}
	return to;
}

/* ---- All of it ---- */

/* Tells the recorder which Python the process has. Returns false if there is no room. */
static bool tell_python(struct reading *r)
{
	struct rec_python *record;

	if (atomic_load_explicit(&told, memory_order_acquire))
		return true;
	record = ring_reserve(r->t, sizeof(*record));
	if (!record)
		return false;
	*record = (struct rec_python){
		.record = { .size = sizeof(*record), .type = REC_PYTHON },
		.minor = python.version->minor,
		.run = python.run,
		.run_size = python.run_size,
	};
	peek(record->beginning, (const void *)python.run, sizeof(record->beginning));
	ring_commit(r->t, sizeof(*record));
	atomic_store_explicit(&told, true, memory_order_release);
	return true;
}

/*
 * Reads the frames, and tells the recorder about their functions. Sets *@bytes to the bytes of what was
 * read, 0: there are none. Returns false if they cannot be read, or a function cannot be told.
 */
static bool read_frames(struct reading *r, const struct found_state *state, uint32_t *bytes)
{
	struct python_lists lists = {
		.first = state->frames,
		.max_marks = LANGUAGE_MARKS,
		.max_frames = LANGUAGE_FRAMES,
	};
	struct language_moment *to = &r->place->moment;
	struct language_entry *frames = r->place->entries;
	unsigned int done, some;

	if (!python_read_lists(&r->view, python.version, &lists, to)) {
		if (to->end != LANGUAGE_DEEP)
			return false;
		/* It is passed on that there are too many. */
		*to = (struct language_moment){ .end = LANGUAGE_DEEP };
		*bytes = sizeof(*to);
		return true;
	}
	frames += lists.nr_marks;
	for (done = 0; done < lists.nr_frames; done += some) {
		some = identify_some(r, frames + done, lists.nr_frames - done);
		if (!some)
			return false;
	}
	to->base_word = state->top;
	if (lists.nr_frames)
		*bytes = (uint32_t)((uint8_t *)(frames + done) - (uint8_t *)to);
	return true;
}

struct frames frames_take(struct agent_thread *t)
{
	struct reading r = { .view = { look }, .t = t };
	struct frames ret = { .moment = NULL };
	struct found_state state;

	if (!known || in_sandbox() || !find_state(&state))
		return ret;
	ret.unknown = true;
	ret.place = r.place = take_place();
	if (!r.place || !tell_python(&r))
		return ret;
	ret.unknown = !read_frames(&r, &state, &ret.bytes);
	if (ret.bytes)
		ret.moment = &r.place->moment;
	return ret;
}
#else
void frames_find(void)
{
}

void frames_fork_child(void)
{
}

struct frames frames_take(struct agent_thread *t)
{
	(void)t;
	return (struct frames){ .moment = NULL };
}

void frames_give(const struct frames *frames)
{
	(void)frames;
}
#endif
