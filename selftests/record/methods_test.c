// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * methods_test.c - tests what is made of frames of Java's interpreter: a method has a name only if all
 * that points to it fits together.
 *
 * The memory of the process is made here, with the members at places of its own. Prints KTAP.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "libshstk/symbol/symbol.h"
#include "selftests/language/no_program.h"
#include "tools/java/codecache.h"
#include "tools/java/inlined.h"
#include "tools/java/jit_code.h"
#include "tools/java/method.h"
#include "tools/java/methods.h"

#include "kselftest_harness.h"

#define SECOND 1000000000ull
#define INTERPRETER 0x5000 /* address of the code */
#define STUB 0x7000 /* address of HotSpot's own code */
#define COMPILED 0x7100 /* address of a compiled method, of which nothing is known */
#define STACK 0x9000
#define FP (STACK + 0x100)
#define CODE 8 /* bytes of bytecode */
#define LINES 40 /* bytes behind it */
#define MANY 120 /* methods with long tables of lines, in a process */

/* The memory of the process, at the address where it is here. */
static struct {
	struct {
		uint64_t start;
		int32_t size;
	} queue, *code;
	int32_t version;
	struct {
		uint16_t length;
		char text[30];
	} symbols[3];
	struct class {
		void *pool;
		void *name;
	} class;
	struct pool {
		void *cache;
		struct class *holder;
		int32_t length;
		uint16_t source;
		void *entries[3];
	} pool;
	struct const_method {
		struct pool *pool;
		int32_t words;
		uint16_t flags;
		uint16_t code_size;
		uint16_t name;
		uint8_t code[CODE + METHOD_LINES];
	} constant;
	struct method {
		struct const_method *constant;
	} method, more[MANY];
} memory;

/* A compiled method, and what belongs to it. */
static struct compiled {
	uint64_t scopes_begin, fixed, variable;
	uint32_t fixed_size, variable_size, relocations_size;
	uint32_t places, places_end, scopes, metadata;
	struct {
		uint32_t relocations[3]; /* which are filled up to whole words */
		uint32_t unused;
		uint64_t methods[2];
	} variable_data;
	struct {
		uint8_t scopes_before[16];
		int32_t places[5][4];
		uint8_t scopes[16];
	} fixed_data;
} compiled;

/* An option, and the table of options. */
static struct {
	struct option {
		const void *value;
		const void *name;
		uint32_t origin;
	} table[2];
	const void *start;
	uint64_t nr;
	char names[2][VM_TEXT];
	uint8_t values[2];
} options;

/* HotSpot's name for the code at STUB. */
static char stub_name[VM_TEXT];

static struct vmstructs vm;
static uint64_t the_time = SECOND;
static bool gone; /* the process cannot be read */
static bool refuses; /* no look-up may be made */
static unsigned int reads;

static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct {
		const void *start;
		size_t size;
	} pieces[] = { { &memory, sizeof(memory) },
		       { &compiled, sizeof(compiled) },
		       { &options, sizeof(options) },
		       { stub_name, sizeof(stub_name) } };

	(void)arg;
	reads++;
	if (gone)
		return -ESRCH;
	for (unsigned int i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		const uint64_t at = addr - (uint64_t)pieces[i].start;

		if (at > pieces[i].size || size > pieces[i].size - at)
			continue;
		memcpy(buf, (const void *)addr, size);
		return 0;
	}
	return -EFAULT;
}

/* There is no other language. */
const struct language language_php, language_python, language_ruby, language_v8;

/* ---- What tools/java/jit_code.c does otherwise ---- */

const struct vmstructs *jit_tables(const struct jit *jit)
{
	(void)jit;
	return &vm;
}

uint64_t jit_time(const struct jit *jit)
{
	(void)jit;
	return the_time;
}

bool jit_begin_look_up(struct jit *jit, struct jit_look_up *look_up)
{
	(void)jit, (void)look_up;
	return !refuses;
}

void jit_end_look_up(struct jit *jit, const struct jit_look_up *look_up)
{
	(void)jit, (void)look_up;
}

int jit_find_code(struct jit *jit, uint64_t pc, struct codeblob *ret)
{
	(void)jit;
	if (pc != STUB)
		return -ENOENT;
	*ret = (struct codeblob){ .start = STUB, .end = STUB + 1, .name = (uint64_t)stub_name };
	return 0;
}

bool jit_has_code(const struct jit *jit, uint64_t pc)
{
	(void)jit;
	return pc == STUB || pc == COMPILED;
}

/* ---- The process ---- */

#define PLACE(member, of, name)                             \
	vm.places[member] = (struct vm_place)               \
	{                                                   \
		offsetof(__typeof__(of), name), true, false \
	}

static void set_places(void)
{
	vm.memory.read = read_memory;
	vm.const_size = offsetof(struct const_method, code);
	vm.pool_size = offsetof(struct pool, entries);
	for (int m = VM_NR_NEEDED; m < VM_NR; m++)
		vm.places[m] = (struct vm_place){ 0, true, false };
	vm.places[VM_INTERPRETER].at = (uint64_t)&memory.code;
	PLACE(VM_QUEUE_START, memory.queue, start);
	PLACE(VM_QUEUE_SIZE, memory.queue, size);
	PLACE(VM_METHOD_CONST, memory.method, constant);
	PLACE(VM_CONST_POOL, memory.constant, pool);
	PLACE(VM_CONST_NAME, memory.constant, name);
	PLACE(VM_CONST_SIZE, memory.constant, words);
	PLACE(VM_CONST_FLAGS, memory.constant, flags);
	PLACE(VM_CONST_CODE_SIZE, memory.constant, code_size);
	PLACE(VM_POOL_HOLDER, memory.pool, holder);
	PLACE(VM_POOL_CACHE, memory.pool, cache);
	PLACE(VM_POOL_LENGTH, memory.pool, length);
	PLACE(VM_POOL_SOURCE, memory.pool, source);
	PLACE(VM_CLASS_NAME, memory.class, name);
	PLACE(VM_CLASS_POOL, memory.class, pool);
	PLACE(VM_SYMBOL_LENGTH, memory.symbols[0], length);
	PLACE(VM_SYMBOL_TEXT, memory.symbols[0], text);
}

static void set_symbol(unsigned int i, const char *text)
{
	memory.symbols[i].length = strlen(text);
	memcpy(memory.symbols[i].text, text, strlen(text));
}

/* Makes a method of Java @version, with this table of lines. */
static void make(int version, const char *lines, size_t size)
{
	memset(&memory, 0, sizeof(memory));
	set_places();
	vm.version = version;
	memory.queue.start = INTERPRETER;
	memory.queue.size = 0x100;
	memory.code = (void *)&memory.queue;
	set_symbol(0, "org/Some");
	set_symbol(1, "work");
	set_symbol(2, "Some.java");
	memory.class = (struct class){ &memory.pool, &memory.symbols[0] };
	memory.pool = (struct pool){
		.cache = &memory.symbols,
		.holder = &memory.class,
		.length = 3,
		.source = 2,
		.entries = { NULL, &memory.symbols[1], &memory.symbols[2] },
	};
	memory.constant = (struct const_method){
		.pool = &memory.pool,
		.words = (offsetof(struct const_method, code) + CODE + LINES) / 8,
		.flags = 1,
		.code_size = CODE,
		.name = 1,
	};
	memcpy(memory.constant.code + CODE, lines, size);
	memory.method.constant = &memory.constant;
}

/* ---- A stack ---- */

static uint64_t frame[8]; /* below its frame pointer */
static uint64_t above[2]; /* and from there on */
static unsigned int adapted; /* bytes by which the frame lies lower */
static uint8_t outer_mark; /* mark of the frame, if it is the outer one */

static int read_stack(void *arg, uint64_t addr, void *buf, size_t size)
{
	const uint64_t fp = FP - adapted;

	(void)arg;
	if (addr == fp - sizeof(frame) && size == sizeof(frame))
		memcpy(buf, frame, size);
	else if (addr == fp - 8 && size == 24)
		memcpy(buf, (uint64_t[]){ frame[7], above[0], above[1] }, size);
	else if (addr >= STACK && addr < FP + 16 && size <= 64)
		memset(buf, 0x77, size);
	else
		return -EFAULT;
	return 0;
}

/* Makes the frame of a method that is at byte @at of its code. */
static void make_frame(uint64_t at)
{
	memset(frame, 0x55, sizeof(frame));
	frame[8 - 3] = (uint64_t)&memory.method;
	frame[8 - 6] = (uint64_t)memory.pool.cache;
	frame[8 - 8] = (uint64_t)memory.constant.code + at;
}

FIXTURE(methods)
{
	struct java_methods *methods;
	struct languages *all;
	struct java_entries *out;
	struct shstk_regs regs;
	struct shstk_symframe shown;
	uint64_t bottom; /* stack pointer of the innermost entry */
};

FIXTURE_SETUP(methods)
{
	self->methods = java_methods_create();
	self->all = languages_create(NULL);
	self->out = malloc(sizeof(*self->out));
	memset(&self->regs, 0, sizeof(self->regs));
	self->bottom = STACK;
	gone = false;
	refuses = false;
	adapted = 0;
	outer_mark = 0;
	ASSERT_TRUE(self->methods && self->all && self->out);
}

FIXTURE_TEARDOWN(methods)
{
	java_methods_destroy(self->methods);
	languages_destroy(self->all);
	free(self->out);
}

/* Returns what stands for the frame, which is the outer one of two or the inner one; NULL: nothing. */
static const struct shstk_symframe *shown(FIXTURE_DATA(methods) * self, bool inner)
{
	const uint64_t pcs[3] = { inner ? INTERPRETER : 0x100, inner ? 0x100 : INTERPRETER, 0x100 };
	const uint64_t sps[3] = { self->bottom, inner ? FP + 16 : STACK, FP + 16 };
	const uint8_t marks[3] = { SHSTK_MARK_PC, inner ? 0 : outer_mark, 0 };
	const struct java_stack stack = {
		{ pcs, marks, sps, inner ? 2 : 3, true, NULL, NULL }, &self->regs, read_stack, NULL
	};
	const char *module;

	if (!java_place(self->methods, NULL, self->all, &stack, self->out))
		return NULL;
	return languages_function(self->all, self->out->pcs[!inner], &self->shown, &module) ?
		       &self->shown :
		       NULL;
}

/* Offset 0 is line 10, 2 is line 12, 5 is line 11. */
static const char before_20[] = { 0 << 3, (char)0xff, 0, 20, 2 << 3 | 2, (char)0xff, 6, 1, 0 };
static const char since_20[] = { 0 << 3, (char)0xff, 1, 21, 2 << 3 | 2, (char)0xff, 7, 2, 0 };

TEST_F(methods, a_frame_has_its_method_and_its_line)
{
	static const unsigned int lines[CODE] = { 10, 10, 12, 12, 12, 11, 11, 11 };

	for (unsigned int i = 0; i < CODE; i++) {
		const struct shstk_symframe *f;

		make(17, before_20 + 1, sizeof(before_20) - 1);
		make_frame(i);
		f = shown(self, false);
		ASSERT_NE(NULL, f);
		EXPECT_STREQ("org.Some.work", f->function);
		EXPECT_STREQ("Some.java", f->file);
		EXPECT_EQ(lines[i], f->line);
	}
}

TEST_F(methods, lines_since_java_20_have_no_byte_0)
{
	make(21, since_20 + 1, sizeof(since_20) - 1);
	make_frame(6);
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_EQ(11, self->shown.line);
}

TEST_F(methods, the_innermost_line_is_that_of_the_register)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	self->regs.r[13] = (uint64_t)memory.constant.code + 3;
	ASSERT_NE(NULL, shown(self, true));
	EXPECT_EQ(12, self->shown.line);
	self->regs.r[13] = 0;
	ASSERT_NE(NULL, shown(self, true));
	EXPECT_EQ(0, self->shown.line);
}

TEST_F(methods, a_frame_that_is_being_made_has_the_method_of_the_register)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	self->bottom = FP - 56;
	EXPECT_EQ(NULL, shown(self, true));
	self->regs.r[3] = (uint64_t)&memory.method;
	ASSERT_NE(NULL, shown(self, true));
	EXPECT_STREQ("org.Some.work", self->shown.function);
	EXPECT_EQ(0, self->shown.line);
}

/* Changes one thing, and expects that there is no method any more. */
#define REFUSES(change)                                              \
	do {                                                         \
		make(17, before_20 + 1, sizeof(before_20) - 1);      \
		make_frame(0);                                       \
		the_time += 2 * SECOND;                              \
		ASSERT_NE(NULL, shown(self, false));                 \
		change;                                              \
		the_time += 2 * SECOND;                              \
		EXPECT_EQ(NULL, shown(self, false)) TH_LOG(#change); \
	} while (0)

TEST_F(methods, what_does_not_fit_together_has_no_name)
{
	REFUSES(memory.class.pool = &memory);
	REFUSES(memory.pool.holder = NULL);
	REFUSES(memory.pool.length = 1);
	REFUSES(memory.pool.cache = &memory);
	REFUSES(memory.constant.name = 0);
	REFUSES(memory.constant.name = 3);
	REFUSES(memory.constant.words = 1);
	REFUSES(memory.symbols[0].length = 0);
	REFUSES(memory.method.constant = NULL);
	REFUSES(frame[8 - 6]++);
	REFUSES(frame[8 - 3]++);
	REFUSES(frame[8 - 3] = 0);
	REFUSES(frame[8 - 8] += CODE);
	REFUSES(frame[8 - 8] -= 1);
	REFUSES(memory.constant.code_size = 0);
}

TEST_F(methods, a_frame_that_compiled_code_called_lies_below_its_arguments)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(6);
	adapted = 32;
	EXPECT_EQ(NULL, shown(self, false));
	frame[7] = FP + 16;
	above[1] = 0x100;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_EQ(11, self->shown.line);
	above[1]++;
	EXPECT_EQ(NULL, shown(self, false));
}

TEST_F(methods, a_frame_that_a_signal_interrupted_has_no_line)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(6);
	outer_mark = SHSTK_MARK_PC;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_STREQ("org.Some.work", self->shown.function);
	EXPECT_EQ(0, self->shown.line);
}

TEST_F(methods, a_search_in_a_long_table_of_lines_is_a_look_up)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	memory.constant.words = sizeof(memory.constant) / 8;
	make_frame(6);
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_EQ(11, self->shown.line);
	refuses = true;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_EQ(0, self->shown.line);
}

/* Shows all methods of a process. Returns how many have a line. */
static unsigned int show_many(FIXTURE_DATA(methods) * self)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < MANY; i++) {
		memory.more[i].constant = &memory.constant;
		frame[8 - 3] = (uint64_t)&memory.more[i];
		nr += shown(self, false) && self->shown.line == 11;
	}
	return nr;
}

TEST_F(methods, lines_of_many_processes_take_bounded_memory)
{
	struct java_methods *others[16];

	make(17, before_20 + 1, sizeof(before_20) - 1);
	memory.constant.words = sizeof(memory.constant) / 8;
	make_frame(6);
	for (unsigned int i = 0; i < 16; i++) {
		show_many(self);
		others[i] = self->methods;
		self->methods = java_methods_create();
		ASSERT_NE(NULL, self->methods);
	}
	EXPECT_EQ(0, show_many(self));
	EXPECT_STREQ("org.Some.work", self->shown.function);
	for (unsigned int i = 0; i < 16; i++)
		java_methods_destroy(others[i]);
	the_time += 2 * SECOND;
	EXPECT_EQ(MANY, show_many(self));
}

/* Makes @out of a stack of native frames, the innermost first. Returns whether it has something new. */
static bool shown_of(FIXTURE_DATA(methods) * self, const uint64_t *pcs, unsigned int nr)
{
	const uint8_t marks[4] = { SHSTK_MARK_PC };
	const uint64_t sps[4] = { STACK, STACK + 64, STACK + 128, STACK + 192 };
	const struct java_stack stack = {
		{ pcs, marks, sps, nr, true, NULL, NULL }, &self->regs, read_stack, NULL
	};

	return java_place(self->methods, NULL, self->all, &stack, self->out);
}

/* Returns whether the entry stands for callers in the heap. */
static bool is_in_heap(FIXTURE_DATA(methods) * self, unsigned int at)
{
	const char *module;

	return self->out->pcs[at] >= SHSTK_FUNCTION_BASE &&
	       languages_function(self->all, self->out->pcs[at], &self->shown, &module) &&
	       !strcmp(self->shown.function, "[callers in the heap]");
}

TEST_F(methods, callers_in_the_heap_are_said_to_be_there)
{
	static const uint64_t returns[] = { COMPILED, STUB, 0x100 },
			      thaws[] = { 0x200, STUB, 0x100 };
	struct language_counts counts;

	make(21, since_20 + 1, sizeof(since_20) - 1);
	strcpy(stub_name, "StubRoutines (continuation stub");
	ASSERT_TRUE(shown_of(self, returns, 3));
	ASSERT_EQ(3, self->out->nr);
	EXPECT_EQ(COMPILED, self->out->pcs[0]);
	EXPECT_TRUE(is_in_heap(self, 1));
	EXPECT_EQ(0x100, self->out->pcs[2]);
	languages_count(self->all, &counts);
	EXPECT_EQ(1, counts.in_heap);
	/* The code that runs remains in the stack. */
	ASSERT_TRUE(shown_of(self, thaws, 3));
	ASSERT_EQ(4, self->out->nr);
	EXPECT_EQ(STUB, self->out->pcs[1]);
	EXPECT_TRUE(is_in_heap(self, 2));
	ASSERT_TRUE(shown_of(self, thaws + 1, 2));
	ASSERT_EQ(3, self->out->nr);
	EXPECT_EQ(STUB, self->out->pcs[0]);
	EXPECT_TRUE(is_in_heap(self, 1));
}

TEST_F(methods, other_code_of_hotspot_leads_to_no_heap)
{
	static const uint64_t pcs[] = { COMPILED, STUB, 0x100 };

	make(21, since_20 + 1, sizeof(since_20) - 1);
	strcpy(stub_name, "StubRoutines (initial stubs)");
	EXPECT_FALSE(shown_of(self, pcs, 3));
}

/*
 * Writes descriptions. At 1: byte 5 of method 1, which byte 2 of method 2 has called; at 4: the latter alone;
 * at 7: byte 7 of method 1, which the same byte has called.
 */
static void write_scopes(uint8_t *to, uint8_t lowest)
{
	static const uint8_t numbers[] = { 4, 1, 5 + 1, 0, 2, 2 + 1, 4, 1, 7 + 1 };

	for (unsigned int i = 0; i < sizeof(numbers); i++)
		to[1 + i] = numbers[i] + lowest;
}

/* Makes a compiled method that has called at byte 0x10 of its code, and describes others. */
static void make_compiled(void)
{
	static const int32_t places[5][4] = {
		{ -1 }, { 0x10, 1 }, { 0x20, 7 }, { 0x30, 4 }, { 0x1000 }
	};

	memset(&compiled, 0, sizeof(compiled));
	compiled.variable_data.methods[0] = 0x11;
	compiled.variable_data.methods[1] = 0x22;
	memcpy(compiled.fixed_data.places, places, sizeof(places));
	PLACE(VM_PLACES, compiled, places);
}

/* Makes one as Java 10 to 22 has them: all offsets are from its beginning. */
static void make_behind(void)
{
	make_compiled();
	vm.version = 17;
	write_scopes(compiled.fixed_data.scopes_before, 0);
	compiled.scopes_begin = (uint64_t)compiled.fixed_data.scopes_before;
	compiled.metadata = offsetof(struct compiled, variable_data.methods);
	compiled.places = offsetof(struct compiled, fixed_data.places);
	compiled.places_end = offsetof(struct compiled, fixed_data.scopes);
	PLACE(VM_SCOPES, compiled, scopes_begin);
	PLACE(VM_PLACES_END, compiled, places_end);
	PLACE(VM_METADATA, compiled, metadata);
	vm.places[VM_FIXED].known = false;
}

/* Makes one as Java 25 has them: in two pieces of memory. */
static void make_apart(void)
{
	make_compiled();
	vm.version = 25;
	write_scopes(compiled.fixed_data.scopes, 1);
	compiled.fixed = (uint64_t)&compiled.fixed_data;
	compiled.fixed_size = sizeof(compiled.fixed_data);
	compiled.places = offsetof(__typeof__(compiled.fixed_data), places);
	compiled.scopes = offsetof(__typeof__(compiled.fixed_data), scopes);
	compiled.variable = (uint64_t)&compiled.variable_data;
	compiled.variable_size = sizeof(compiled.variable_data);
	compiled.relocations_size = sizeof(compiled.variable_data.relocations);
	PLACE(VM_FIXED, compiled, fixed);
	PLACE(VM_FIXED_SIZE, compiled, fixed_size);
	PLACE(VM_SCOPES_AT, compiled, scopes);
	PLACE(VM_VARIABLE, compiled, variable);
	PLACE(VM_VARIABLE_SIZE, compiled, variable_size);
	PLACE(VM_RELOCATION_SIZE, compiled, relocations_size);
	vm.places[VM_SCOPES].known = false;
}

static const struct codeblob compiled_code = {
	.address = (uint64_t)&compiled,
	.start = COMPILED,
	.method = 0x22,
};

/* Returns how many methods there are at a byte of the code, behind a call. */
static unsigned int methods_at(uint64_t at, struct java_scope scopes[INLINED_MAX])
{
	return java_inlined(&vm, &compiled_code, COMPILED + at, scopes);
}

/* Returns how many there are at a byte where an instruction begins. */
static unsigned int methods_between(uint64_t at, struct java_scope scopes[INLINED_MAX])
{
	return java_inlined_between(&vm, &compiled_code, COMPILED + at, scopes);
}

static const struct {
	const char *name;
	void (*make)(void);
} layouts[] = { { "Java 10 to 22", make_behind }, { "Java 25", make_apart } };

#define NR_LAYOUTS (sizeof(layouts) / sizeof(*layouts))

TEST_F(methods, compiled_code_tells_at_calls_which_methods_it_runs)
{
	struct java_scope scopes[INLINED_MAX];

	for (unsigned int i = 0; i < NR_LAYOUTS; i++) {
		make(17, "", 1);
		layouts[i].make();
		ASSERT_EQ(2, methods_at(0x10, scopes)) TH_LOG("%s", layouts[i].name);
		EXPECT_EQ(0x11, scopes[0].method);
		EXPECT_EQ(5, scopes[0].at);
		EXPECT_EQ(0x22, scopes[1].method);
		EXPECT_EQ(2, scopes[1].at);
		EXPECT_EQ(0, methods_at(0x11, scopes));
		EXPECT_EQ(0, methods_at(0xf, scopes));
	}
}

TEST_F(methods, between_calls_are_the_methods_that_are_before_and_behind)
{
	struct java_scope scopes[INLINED_MAX];

	for (unsigned int i = 0; i < NR_LAYOUTS; i++) {
		make(17, "", 1);
		layouts[i].make();
		/* In both is method 1, but at different bytecodes. */
		for (uint64_t at = 0x10; at < 0x20; at += 8) {
			ASSERT_EQ(2, methods_between(at, scopes)) TH_LOG("%s", layouts[i].name);
			EXPECT_EQ(0x11, scopes[0].method);
			EXPECT_EQ(5 + 7, scopes[0].at + scopes[0].or_at);
			EXPECT_EQ(0x22, scopes[1].method);
			EXPECT_EQ(2, scopes[1].at);
			EXPECT_EQ(2, scopes[1].or_at);
		}
		/* Only one has method 1. */
		for (uint64_t at = 0x20; at <= 0x28; at += 8) {
			ASSERT_EQ(1, methods_between(at, scopes));
			EXPECT_EQ(0x22, scopes[0].method);
			EXPECT_EQ(2, scopes[0].at);
			EXPECT_EQ(2, scopes[0].or_at);
		}
		/* In front of the first one, and behind the last one, nothing is known. */
		EXPECT_EQ(0, methods_between(8, scopes));
		EXPECT_EQ(0, methods_between(0x30, scopes));
		EXPECT_EQ(0, methods_between(0x38, scopes));
		EXPECT_EQ(0, methods_between(0x2000, scopes));
	}
}

/* Makes an option that was given by a command, behind another one. */
static void make_options(void)
{
	memset(&options, 0, sizeof(options));
	for (unsigned int i = 0; i < 2; i++)
		options.table[i] = (struct option){
			&options.values[i],
			options.names[i],
			1u << 4 | 1,
		};
	strcpy(options.names[0], "Other");
	strcpy(options.names[1], "Some");
	options.values[1] = 1;
	options.start = options.table;
	options.nr = 2;
	vm.flag_size = sizeof(struct option);
	vm.places[VM_FLAGS] = (struct vm_place){ (uint64_t)&options.start, true, false };
	vm.places[VM_NR_FLAGS] = (struct vm_place){ (uint64_t)&options.nr, true, false };
	PLACE(VM_FLAG_NAME, options.table[0], name);
	PLACE(VM_FLAG_VALUE, options.table[0], value);
	PLACE(VM_FLAG_ORIGIN, options.table[0], origin);
}

/* Changes one thing, and expects that the option is not known to be given. */
#define NOT_GIVEN(change)                                                \
	do {                                                             \
		make(17, "", 1);                                         \
		make_options();                                          \
		EXPECT_TRUE(vm_was_given(&vm, "Some"));                  \
		change;                                                  \
		EXPECT_FALSE(vm_was_given(&vm, "Some")) TH_LOG(#change); \
	} while (0)

TEST_F(methods, only_an_option_that_was_given_at_the_beginning_counts)
{
	make(17, "", 1);
	make_options();
	EXPECT_FALSE(vm_was_given(&vm, "Other"));
	EXPECT_FALSE(vm_was_given(&vm, "Unknown"));
	NOT_GIVEN(options.values[1] = 0);
	NOT_GIVEN(options.table[1].origin = 0); /* by default */
	NOT_GIVEN(options.table[1].origin = 4); /* while it ran */
	NOT_GIVEN(options.table[1].origin = 5); /* by HotSpot */
	NOT_GIVEN(options.table[1].value = NULL);
	NOT_GIVEN(options.table[0].name = NULL; options.table[1].name = NULL);
	NOT_GIVEN(options.nr = 1);
	NOT_GIVEN(options.start = NULL);
	NOT_GIVEN(vm.flag_size = 0);
	NOT_GIVEN(vm.places[VM_FLAG_ORIGIN].known = false);
	vm.flag_size = 0;
}

/* Changes one thing, and expects that no methods are found any more. */
#define REFUSES_CALLS(make_it, change)                                  \
	do {                                                            \
		struct java_scope scopes[INLINED_MAX];                  \
                                                                        \
		make(17, "", 1);                                        \
		make_it();                                              \
		change;                                                 \
		EXPECT_EQ(0, methods_at(0x10, scopes)) TH_LOG(#change); \
	} while (0)

TEST_F(methods, calls_whose_tables_do_not_fit_have_no_methods)
{
	REFUSES_CALLS(make_behind, compiled.variable_data.methods[1] = 0x33);
	REFUSES_CALLS(make_behind, compiled.places_end = compiled.places);
	REFUSES_CALLS(make_behind, compiled.places_end = UINT32_MAX);
	REFUSES_CALLS(make_behind, compiled.places = 0);
	REFUSES_CALLS(make_behind, compiled.metadata = 0);
	REFUSES_CALLS(make_behind,
		      compiled.scopes_begin = (uint64_t)compiled.variable_data.methods - 1);
	REFUSES_CALLS(make_behind, compiled.scopes_begin = (uint64_t)&compiled.fixed_data.scopes);
	REFUSES_CALLS(make_behind, vm.places[VM_METADATA].known = false);
	REFUSES_CALLS(make_apart, compiled.variable_data.methods[1] = 0x33);
	REFUSES_CALLS(make_apart, compiled.fixed = 0);
	REFUSES_CALLS(make_apart, compiled.fixed_size = compiled.scopes - 1);
	REFUSES_CALLS(make_apart, compiled.scopes = compiled.places);
	REFUSES_CALLS(make_apart, compiled.variable_size = compiled.relocations_size);
	REFUSES_CALLS(make_apart, compiled.relocations_size = UINT32_MAX);
	REFUSES_CALLS(make_apart, vm.places[VM_VARIABLE].known = false);
}

TEST_F(methods, a_native_method_has_no_line)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	memory.constant.code_size = 0;
	frame[0] = 0;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_EQ(0, self->shown.line);
}

TEST_F(methods, another_method_at_the_same_address_has_its_own_name)
{
	uint64_t before;

	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	ASSERT_NE(NULL, shown(self, false));
	before = self->out->pcs[1];
	set_symbol(1, "play");
	the_time += 2 * SECOND;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_STREQ("org.Some.play", self->shown.function);
	EXPECT_NE(before, self->out->pcs[1]);
}

TEST_F(methods, a_process_that_has_ended_keeps_its_methods)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	ASSERT_NE(NULL, shown(self, false));
	gone = true;
	the_time += 2 * SECOND;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_STREQ("org.Some.work", self->shown.function);
}

TEST_F(methods, known_methods_are_read_once_in_a_while)
{
	make(17, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	ASSERT_NE(NULL, shown(self, false));
	reads = 0;
	ASSERT_NE(NULL, shown(self, false));
	EXPECT_EQ(0, reads);
}

TEST_F(methods, a_release_that_is_not_known_is_refused_by_name)
{
	make(JAVA_LAST + 1, before_20 + 1, sizeof(before_20) - 1);
	make_frame(0);
	EXPECT_EQ(NULL, shown(self, false));
	ASSERT_NE(NULL, languages_refused(self->all));
	EXPECT_NE(NULL, strstr(languages_refused(self->all), "Java 26"));
}

TEST_F(methods, a_table_of_lines_without_an_end_is_read_to_its_end)
{
	char lines[32];

	memset(lines, 0xff, sizeof(lines));
	make(17, lines, sizeof(lines));
	make_frame(0);
	ASSERT_NE(NULL, shown(self, false));
	make(21, lines, sizeof(lines));
	the_time += 2 * SECOND;
	ASSERT_NE(NULL, shown(self, false));
}

TEST_HARNESS_MAIN
