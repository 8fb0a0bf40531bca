// SPDX-License-Identifier: GPL-2.0-or-later
/* python.c - the functions of Python that a thread is in when it allocates. See python.h. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "../common/peek.h"
#include "heap.h"
#include "python.h"
#include "tools/language/middle.h"
#include "tools/language/python/versions.h"

#if defined(__x86_64__)
bool python_known;

/*
 * The table has the offsets; @current is a function of the interpreter's, which returns the state of the
 * thread that has the lock (GIL); the rest are addresses.
 */
static struct {
	const struct python_version *version;
	uint64_t (*current)(void);
	uint64_t runtime;
	uint64_t code_type;
	uint64_t run;
	uint64_t run_size;
} python;

static inline uint64_t word(uint64_t at)
{
	return *(const uint64_t *)at;
}

static inline uint32_t half(uint64_t at)
{
	return *(const uint32_t *)at;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xa0761d6478bd642fULL);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* ---- Which Python the process has ---- */

/* Returns the size of a function that the dynamic symbols name; 0: it is not known. */
static uint64_t size_of(void *fn)
{
	int (*ask)(const void *, Dl_info *, void **, int);
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	*(void **)&ask = dlsym(RTLD_DEFAULT, "dladdr1");
	/* 1 is RTLD_DL_SYMENT, which not every C library has. */
	return ask && ask(fn, &info, (void **)&symbol, 1) && symbol ? symbol->st_size : 0;
}

/* Returns whether the interpreter's own table of offsets, if it has one, is as expected. */
static bool has_offsets(const struct python_version *v, uint64_t runtime)
{
	uint64_t cookie;

	memcpy(&cookie, PYTHON_COOKIE, sizeof(cookie));
	/* The third word says whether it is a free-threaded build. */
	return !v->checks[0].word || (word(runtime) == cookie && !word(runtime + 16) &&
				      !python_differs(v, (const uint64_t *)runtime));
}

/* Finds what the interpreter exports. Returns false if there is none. */
static bool find_symbols(void)
{
	const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version");
	void *run;

	if (!number || *number >> 24 != 3)
		return false;
	run = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	python.runtime = (uintptr_t)dlsym(RTLD_DEFAULT, "_PyRuntime");
	python.code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
	python.version = python_version(*number >> 16 & 255);
	*(void **)&python.current = dlsym(RTLD_DEFAULT, (*number >> 16 & 255) > 12 ?
								"PyThreadState_GetUnchecked" :
								"_PyThreadState_UncheckedGet");
	python.run = (uintptr_t)run;
	python.run_size = run ? size_of(run) : 0;
	return python.version && python.current && python.runtime && python.code_type &&
	       python.run_size;
}

void python_find(void)
{
	/* Where values of pthread_getspecific() lie is known of glibc only. */
	if (!dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))
		return;
	if (find_symbols()) {
		python_known = has_offsets(python.version, python.runtime);
		return;
	}
	/* The program must not find the message of a failure that is not its own. */
	dlerror();
	dlerror();
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

/*
 * Returns the thread's state; 0: the thread has none, as before the interpreter is ready, or it does not
 * have the interpreter's lock. Without the lock, state and frames could be taken away by another thread
 * while they are read, as those of daemon threads are when the interpreter ends. With it, they cannot.
 */
static inline uint64_t find_state(void)
{
	const struct python_version *v = python.version;
	uint64_t key_at = python.runtime + v->key, state, thread;
	uint32_t key;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	/* In front of the key a word says whether there is one. */
	if (!half(key_at - 4) || word(python.runtime + v->finalizing))
		return 0;
	key = half(key_at);
	state = key < 32 ? word(thread + PYTHON_FIRST_VALUE + key * 16ull) : 0;
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

/* Returns the address of a frame's code object; 0: it has none. */
static inline uint64_t code_of(uint64_t frame)
{
	uint64_t code = word(frame + python.version->code) & ~(uint64_t)python.version->code_tags;

	return code && word(code + PYTHON_TYPE) == python.code_type ? code : 0;
}

/*
 * Returns a number that tells a function from another one that later has the same address. 3.11 has
 * no number of its own for that.
 */
static inline uint64_t sum_code(uint64_t code)
{
	const struct python_version *v = python.version;
	uint64_t name = word(code + PYTHON_QUALNAME), table = word(code + PYTHON_LINETABLE);
	uint64_t sum = mix(mix(code, name), mix(table, word(code + PYTHON_FILENAME)));

	sum = mix(sum,
		  (uint64_t)half(code + v->first_line) << 32 | half(code + PYTHON_CODE_VERSION));
	if (v->minor > 11)
		return sum;
	return mix(sum ^ word(name + PYTHON_HASH),
		   word(table + PYTHON_LENGTH) ^ word(table + PYTHON_BYTES));
}

uint64_t python_sum(void)
{
	const struct python_version *v = python.version;
	uint64_t state = find_state(), at = state ? first_frame(state) : 0, sum = 0;

	for (unsigned int n = 0; at && n < LANGUAGE_DEEPEST; n++) {
		uint64_t code = code_of(at);

		sum = mix(sum ^ word(at + v->instruction), code ? sum_code(code) : 1);
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

/* Copies @size bytes, as far as they can be read. Returns how many were copied. */
static uint32_t copy(uint8_t *to, uint64_t at, uint32_t size)
{
	uint32_t done = 0, part;

	while (done < size) {
		part = PEEK_PAGE - (at + done) % PEEK_PAGE;
		part = part < size - done ? part : size - done;
		if (!peek(to + done, (const void *)(at + done), part))
			break;
		done += part;
	}
	return done;
}

/* Copies a str object, or the part of it for which there is room. Returns the bytes. */
static uint32_t copy_text(uint8_t *to, uint64_t object)
{
	uint64_t unit = half(object + PYTHON_STATE) >> 2 & 7;
	uint64_t size = word(object + PYTHON_LENGTH);

	size = size < LANGUAGE_SHORT ? size * unit : LANGUAGE_SHORT;
	size += python.version->wide;
	return copy(to, object, size < LANGUAGE_SHORT ? size : LANGUAGE_SHORT - 1);
}

/* Returns the bytes of a table of lines that are copied. */
static uint32_t table_size(uint64_t table)
{
	uint64_t size = word(table + PYTHON_LENGTH);

	return size < LANGUAGE_LONG - PYTHON_BYTES ? size + PYTHON_BYTES : LANGUAGE_LONG - 1;
}

/* Tells the recorder what a function is. Returns false if it cannot be told. */
static bool introduce(uint64_t code, uint64_t id)
{
	const uint64_t table = word(code + PYTHON_LINETABLE);
	const uint32_t most = table_size(table);
	const size_t bytes = offsetof(struct heap_code, code.table) + most;
	uint32_t words = python.version->instructions - PYTHON_TYPE;
	struct heap_code *r;

	/* Reading what may lie at the end of memory is a system call. */
	if (heap.sandboxed || heap.filtered)
		return false;
	r = heap_reserve(bytes, HEAP_UNIT);
	if (!r)
		return false;
	words = words < sizeof(r->code.words) ? words : sizeof(r->code.words);
	r->code.kind = LANGUAGE_CODE;
	r->code.id = id;
	memcpy(r->code.words, (const void *)(code + PYTHON_TYPE), words);
	r->code.got[0] = copy_text(r->code.shorts[0], word(code + PYTHON_QUALNAME));
	r->code.got[1] = copy_text(r->code.shorts[1], word(code + PYTHON_FILENAME));
	r->code.got[2] = copy(r->code.table, table, most);
	heap_publish(&r->record, HEAP_CODE, bytes);
	return true;
}

/* Returns the number of a function, which the recorder knows then; 0: it cannot be told. */
static uint64_t identify(uint64_t code)
{
	uint64_t id = sum_code(code) | LANGUAGE_NO_FUNCTION << 1;
	_Atomic uint64_t *known = &heap.unshared->functions[id / 4 % FUNCTIONS];

	if (atomic_load_explicit(known, memory_order_relaxed) == id)
		return id;
	if (!introduce(code, id))
		return 0;
	atomic_store_explicit(known, id, memory_order_relaxed);
	return id;
}

static struct language_entry *write_marks(uint64_t state, unsigned int nr,
					  struct language_entry *to)
{
	const struct python_version *v = python.version;
	uint64_t at = nr ? word(state + v->state_frames) : 0;

	for (; at && nr; nr--) {
		*to++ = (struct language_entry){ .addr = at, .id = word(at + v->cframe_frame) };
		at = word(at + v->cframe_previous);
	}
	return to;
}

static void write_frame(uint64_t at, struct language_entry *to)
{
	const struct python_version *v = python.version;
	uint64_t object = word(at + v->code) & ~(uint64_t)v->code_tags, code = code_of(at);

	*to = (struct language_entry){
		.addr = at,
		.id = code   ? identify(code) :
		      object ? 0 :
			       LANGUAGE_NO_FUNCTION,
		.at = (int32_t)(word(at + v->instruction) - object - v->instructions),
		.flags = half(at + (v->owner & ~3u)),
	};
}

/*
 * Writes the rest of a deep stack, from the frame at @at on, into its outer end, which begins at
 * @outer. Returns the frame that follows.
 */
static uint64_t write_outer_end(struct language_moment *to, struct language_entry *outer,
				unsigned int left_out, uint64_t at)
{
	struct language_middle mid;

	language_begin_middle(&mid, to, outer, python_kind_bits(python.version));
	while (at && to->left_out < left_out) {
		struct language_entry *e = &outer[to->left_out % LANGUAGE_OUTER];

		language_leave_out(&mid, to, e);
		write_frame(at, e);
		at = word(at + python.version->previous);
	}
	language_turn(to, outer);
	return at;
}

void python_write(struct python_size size, struct language_moment *to)
{
	const struct python_version *v = python.version;
	uint64_t state = find_state(), at = state ? first_frame(state) : 0;
	struct language_entry *e = (struct language_entry *)(to + 1);

	to->kind = LANGUAGE_MOMENT;
	to->end = at ? LANGUAGE_WHOLE : LANGUAGE_UNREADABLE;
	if (!at)
		return;
	to->base_word = word(state + v->state_top);
	to->nr_marks = size.marks;
	to->nr_frames = size.frames;
	e = write_marks(state, size.marks, e);
	for (unsigned int i = 0; at && i < size.frames; i++) {
		write_frame(at, &e[i]);
		at = word(at + v->previous);
	}
	if (size.left_out)
		at = write_outer_end(to, e + LANGUAGE_INNER, size.left_out, at);
	if (at || size.marks == LANGUAGE_MARKS)
		to->end = LANGUAGE_DEEP;
}
#endif
