// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * native_frames_test.c - as frames_test.c, of a language whose frames are on the native stack: what
 * `shstk broker` lends for them (bpf/lend_native.bpf.c), as users see it, and as attackers do. The virtual
 * machine is this program's own, and so is the table that says how its frames are found.
 *
 *   native_frames_test [SHSTK]
 *
 * It starts the broker and becomes several ordinary users. Prints KTAP.
 */
#include <stddef.h>
#include <stdint.h>

#include "frames.h"

#define FRAME_WORDS 16
#define FP 12 /* index in a frame of the word to which its frame pointer points */
#define WORDS 16 /* of an object */
#define PARTS 40 /* functions that are inlined */
#define STRING 8 /* a type, which all objects have */
#define BASELINE 11 /* kinds of code */
#define MIDDLE 12
#define OPTIMIZED 13
#define ENTERED 2 /* mark of the frame in which the language was entered */
#define NR_FRAMES 2 /* of the language */

/* What the target below says of objects: the first word of each leads to its type. */
struct heap {
	uint64_t types[WORDS];
	uint64_t function[WORDS], shared[WORDS], scope[WORDS], script[WORDS], bytecode[WORDS];
	uint64_t code[WORDS], data[WORDS], literals[2 + PARTS], name[WORDS], text[WORDS];
	uint64_t table[2][2]; /* of the code of functions */
	uint8_t instructions[64];
};

/* Indices of words of the virtual machine. */
enum {
	NOTHING,
	ENTRY,
	FAST,
	FAST_PC,
	OUTERMOST,
	STATE,
	BUILT_IN,
	BUILT_IN_SIZE,
	TABLE,
	MACHINE_WORDS
};

/* The outermost frame, in which the language was entered, and two of it: machine code, and the interpreter. */
typedef uint64_t all_frames[NR_FRAMES + 1][FRAME_WORDS];

static struct heap heap;
static uint64_t machine[MACHINE_WORDS];
static __thread uint64_t *machine_of_thread;

static uint64_t tagged(const void *object)
{
	return (uintptr_t)object | 1;
}

/* A number as objects have it. */
static uint64_t small(uint32_t value)
{
	return (uint64_t)value << 32;
}

static void make_text(uint64_t *object, const char *text)
{
	object[1] = small(strlen(text));
	strcpy((char *)&object[2], text);
}

/* Makes a function with that name, and machine code of it with so many inlined ones. */
static void make_heap(const char *called, int parts)
{
	uint64_t *const objects[] = { heap.function, heap.shared, heap.scope, heap.script,
				      heap.bytecode, heap.code,	  heap.data,  heap.literals,
				      heap.name,     heap.text };

	heap.types[1] = STRING;
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++)
		objects[i][0] = tagged(heap.types);
	heap.function[1] = tagged(heap.shared);
	heap.function[2] = 1 << NATIVE_ENTRY_SHIFT;
	heap.table[1][1] = tagged(heap.code) << NATIVE_ENTRY_CODE;
	heap.shared[1] = heap.bytecode[3] = tagged(heap.bytecode);
	heap.shared[2] = tagged(heap.scope);
	heap.shared[3] = tagged(heap.script);
	heap.scope[1] = small(1 << 4); /* it has a name */
	heap.scope[3] = tagged(heap.name);
	heap.script[1] = tagged(heap.text);
	heap.script[2] = tagged(heap.name);
	heap.bytecode[2] = tagged(heap.text);
	heap.code[1] = (uintptr_t)heap.instructions;
	heap.code[2] = sizeof(heap.instructions);
	heap.code[3] = OPTIMIZED;
	heap.code[4] = tagged(heap.text);
	heap.code[5] = tagged(heap.data);
	heap.data[2] = small(parts);
	heap.data[3] = tagged(heap.literals);
	heap.data[5] = tagged(heap.shared);
	heap.data[6] = tagged(heap.text);
	for (int i = 0; i < PARTS; i++)
		heap.literals[2 + i] = tagged(heap.shared);
	make_text(heap.name, called);
	make_text(heap.text, called);
}

static void make_frames(all_frames frames)
{
	uint64_t *fp[NR_FRAMES + 1];

	memset(frames, 0, sizeof(all_frames));
	for (int i = 0; i <= NR_FRAMES; i++)
		fp[i] = &frames[i][FP];
	for (int i = 0; i < NR_FRAMES; i++) {
		fp[i][0] = (uintptr_t)fp[i + 1];
		fp[i][-1] = fp[i][-2] = tagged(heap.function);
		fp[i][-4] = tagged(heap.bytecode);
		fp[i][-5] = small(i);
	}
	fp[0][1] = (uintptr_t)&heap.instructions[8];
	fp[NR_FRAMES][-1] = ENTERED;
	machine[TABLE] = (uintptr_t)heap.table;
	machine[ENTRY] = (uintptr_t)fp[0];
	machine[OUTERMOST] = 1;
	machine[BUILT_IN_SIZE] = 4096; /* has the place of the innermost frame, which is 0 */
	machine_of_thread = machine;
}

/* Returns how its frames are found. */
static struct lent_process true_process(void)
{
	const char *thread = __builtin_thread_pointer();

	return (struct lent_process){
		.number = NUMBER,
		.target = { .native = 1 },
		.native = {
			.machine = { .offset = (const char *)&machine_of_thread - thread },
			.entry_fp_at = 8 * ENTRY,
			.fast_fp_at = 8 * FAST,
			.fast_pc_at = 8 * FAST_PC,
			.outermost_at = 8 * OUTERMOST,
			.state_at = 8 * STATE,
			.moving = 1,
			.built_in_at = 8 * BUILT_IN,
			.built_in_size_at = 8 * BUILT_IN_SIZE,
			.entered_at = 16,
			.code_start = 8,
			.code_size = 16,
			.code_flags = 24,
			.code_align = 1,
			.kind_baseline = BASELINE,
			.kind_middle = MIDDLE,
			.kind_optimized = OPTIMIZED,
			.registers_at = 48,
			.table_at = 8 * TABLE,
			.types = { STRING, STRING, STRING, STRING, STRING, STRING, STRING, STRING },
			.at = {
				.map_type = 8,
				.function_shared = 8,
				.function_code = 16,
				.data = 8,
				.scope = 16,
				.script = 24,
				.script_source = 8,
				.script_name = 16,
				.script_line = 24,
				.script_id = 32,
				.scope_flags = 8,
				.scope_locals = 16,
				.scope_first = 24,
				.scope_inline = 75,
				.scope_module = 16,
				.scope_saved = 8,
				.scope_name = 4,
				.scope_inferred = 10,
				.bytecode_positions = 16,
				.baseline_data = 24,
				.code_positions = 32,
				.code_data = 40,
				.data_literals = 1,
				.data_number = 2,
				.data_shared = 3,
				.data_calls = 4,
				.data_exits = 5,
				.data_states = 6,
				.data_checks = 7,
				.data_places = 9,
				.string_next = 16,
				.string_resource = 16,
			},
		},
	};
}

/* Has this process watched, and its virtual machine told. */
static bool watch_frames(struct watch *w)
{
	const struct lent_process it = true_process();

	return watch_process(w, &it);
}

/* ---- What is given ---- */

/* Returns whether a moment has the frames that there are. */
static bool is_true(const struct language_moment *m)
{
	const struct language_entry *e = (const void *)(m + 1);

	return m->nr_frames == NR_FRAMES && !m->nr_marks && m->target == NUMBER &&
	       m->end == LANGUAGE_WHOLE && !m->base_word && !m->truth && !m->task_size &&
	       e[0].addr == machine[ENTRY] && e[0].flags == NATIVE_INTERPRETED && !e[0].at &&
	       e[1].addr == *(uint64_t *)machine[ENTRY] && e[1].at == 8 &&
	       e[1].flags == (NATIVE_MACHINE | NATIVE_RETURN) && e[0].id > LANGUAGE_NO_FUNCTION &&
	       e[1].id > LANGUAGE_NO_FUNCTION && e[0].id != e[1].id;
}

/* Returns whether reading took too long: frames are missing, or one has not all functions that are inlined. */
static bool is_cut(const struct language_moment *m)
{
	const struct language_entry *e = (const void *)(m + 1);

	return m->end == LANGUAGE_DEEP || (m->nr_frames == NR_FRAMES && !e[1].id);
}

/* Returns whether a record of something new has nothing behind what it says that it has. */
static bool ends_clean(const struct language_code *c)
{
	for (int i = 0; i < LANGUAGE_TEXTS - 1; i++)
		for (size_t k = c->got[i]; k < sizeof(c->shorts[i]); k++)
			if (c->shorts[i][k])
				return false;
	return true;
}

/* Returns whether the machine code has the inlined functions that it has. */
static bool has_parts(const struct language_code *c, int parts)
{
	const uint64_t *ids = (const void *)c->shorts[0];

	for (int i = 0; i < parts; i++)
		if (ids[i] != c->words[NATIVE_CODE_FUNCTION])
			return false;
	return c->got[0] == 8u * parts;
}

/* Has this process's frames be read. Returns 0 if they are as they should be. */
static int read_frames(const char *called, int parts)
{
	const struct perf_event_header *at = NULL;
	const struct language_moment *m;
	const struct language_code *c;
	int right = 0, wrong = 0, functions = 0, codes = 0;
	struct watch w = { 0 };
	all_frames frames;

	make_heap(called, parts);
	make_frames(frames);
	if (!watch_frames(&w) || !work(&w, ENOUGH, ENOUGH))
		return 1;
	while ((m = next_of(w.chains, &at, LANGUAGE_MOMENT))) {
		right += is_true(m);
		wrong += !is_true(m) && !is_cut(m);
	}
	at = NULL;
	while ((c = next_of(w.chains, &at, LANGUAGE_CODE))) {
		const bool machine_code = c->words[NATIVE_KIND] == NATIVE_MACHINE;

		functions += !machine_code;
		codes += machine_code;
		wrong += !ends_clean(c);
		wrong += machine_code ? !has_parts(c, parts) :
					c->got[0] != strlen(called) ||
						memcmp(c->shorts[0], called, strlen(called));
	}
	printf("# %d moments, %d functions, %d pieces of machine code, %d wrong\n",
	       count(w.chains, LANGUAGE_MOMENT), functions, codes, wrong);
	fflush(stdout);
	return !are_right(right, wrong) || functions != 1 || codes != 1 ||
	       (strcmp(called, SECRET_NAME) &&
		has_bytes(w.chains, SECRET_NAME, strlen(SECRET_NAME)));
}

static int is_read(void *arg)
{
	(void)arg;
	return read_frames("inner", PARTS);
}

/* Leaves in the memory of the CPU what others must not see. */
static int leaves_secret(void *arg)
{
	(void)arg;
	return read_frames(SECRET_NAME, PARTS);
}

/* The same of an interpreter whose frames are in the heap: the word of its base that is passed on. */
static int leaves_word(void *arg)
{
	const struct lent_process it = {
		.number = NUMBER,
		.target = { .base = (uintptr_t)machine, .base_word_at = 8 * OUTERMOST },
	};
	struct watch w = { 0 };

	(void)arg;
	machine[OUTERMOST] = 1;
	return !watch_process(&w, &it) || !work(&w, 0, ENOUGH);
}

/* Has less to tell than that. */
static int looks_for_secret(void *arg)
{
	(void)arg;
	return read_frames("", 0);
}

/* ---- What is not ---- */

/* Returns 0 if no more frames are read of this process. */
static int is_left_alone(struct watch *w)
{
	const int before = count(w->chains, LANGUAGE_MOMENT);
	const int all = count_samples(w->samples) + count_samples(w->chains);

	while (count_samples(w->samples) + count_samples(w->chains) < all + ENOUGH)
		if (!work(w, 0, 0))
			return 1;
	return count(w->chains, LANGUAGE_MOMENT) != before;
}

/* It is walked as others are from when it is told that there is no interpreter. */
static int ends_with_none(void *arg)
{
	struct lent_process none = true_process();
	struct watch w = { 0 };
	all_frames frames;

	(void)arg;
	make_heap("inner", 0);
	make_frames(frames);
	none.number = 0;
	return !watch_frames(&w) || !work(&w, ENOUGH, 0) ||
	       tell_process(getpid(), w.lease, &none) || is_left_alone(&w);
}

/* A process that nobody may trace any more, with events of before. */
static int is_undumpable(void *arg)
{
	struct watch w = { 0 };
	all_frames frames;

	(void)arg;
	make_heap("inner", 0);
	make_frames(frames);
	return !watch_frames(&w) || !work(&w, ENOUGH, 0) || prctl(PR_SET_DUMPABLE, 0) ||
	       is_left_alone(&w);
}

/* Ends with 2 if the broker reads no such frames. */
static int is_offered(void *arg)
{
	const struct lent_process it = true_process();
	uint32_t lease = 0;
	const int token = ask_lease(0, &lease);

	(void)arg;
	return token < 0 ? 1 : tell_process(getpid(), lease, &it) == -EOPNOTSUPP ? 2 : 0;
}

int main(int argc, char **argv)
{
	prepare(argc, argv);
	start(NULL);
	if (as(FIRST, is_offered, NULL) == 2)
		skip_all("the kernel refuses the program that reads frames on the native stack");
	puts("1..4");
	verdict(!as(FIRST, is_read, NULL), "frames and functions are read as the user says");
	verdict(!as(FIRST, ends_with_none, NULL),
		"none is read of a process that has none any more");
	verdict(!as(FIRST, leaves_secret, NULL) && !as(FIRST, leaves_word, NULL) &&
			!as(SECOND, looks_for_secret, NULL),
		"what is read of one user's process is in no record of another's");
	verdict(!as(FIRST, is_undumpable, NULL),
		"of a process that has made itself undumpable nothing is read");
	return !!failed;
}
