// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forged_ruby.c - a program that looks like Ruby 3.1 to who reads its memory, and lies.
 *
 *	forged_ruby KIND [FILE]
 *
 * It exports the symbols of the interpreter, has an execution context where the interpreter has it, and
 * runs for ever in a function that counts as the one that runs frames. KIND says what is wrong with the
 * frames, see kinds[]. It maps FILE, as truth.c prints stacks of programs that do.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FRAMES 1500 /* more than are read */
#define FUNCTIONS 8
#define PAGE 4096
#define IN_KERNEL 0xffff888000000000ull

/* Offsets of 3.1 (tools/language/ruby/versions.c, ruby.h), in words. */
#define MAIN_THREAD 5
#define THREAD_CONTEXT 5
#define FUNCTION_BODY 2
#define BODY_INSTRUCTIONS 1
#define BODY_PATH 8
#define BODY_LABEL 10
#define BODY_ENTRIES 15
#define BODY_NR_ENTRIES 17
#define BODY_TABLE 18
#define BODY_WORDS 32

#define OUTERMOST 0x799900a1u /* flags of the outermost frame: entered, of no function */
#define CALL 0x11110001u
#define ENTERED 0x11110021u
#define FUNCTION \
	0x701a /* first word of a function, and of strings with six bytes in or outside of them */
#define SHORT_STRING (5 | 6 << 14)
#define LONG_STRING (5 | 1 << 13)

/* Methods that are functions in C, and the table of their names. */
#define IN_C 0x55550081u /* flags of a frame of such a function */
#define ENTRY 0x601a
#define HOLDER 0x201a /* stands for a method */
#define DEFINITION 1
#define LIST 7
#define LIST_INSIDE (1 << 13)
#define PER_LIST 512 /* names */
#define NUMBER(place) ((uint64_t)(place) << 4) /* of the name that is there in the table */
#define NOWHERE 0x1000

struct frame {
	uint64_t instruction;
	uint64_t values;
	uint64_t function;
	uint64_t self;
	uint64_t flags;
	uint64_t rest[3];
};

struct context {
	uint64_t memory;
	uint64_t words;
	uint64_t frame;
	uint64_t others[15];
	uint64_t machine;
};

struct method {
	uint64_t entry[3], definition[5];
	struct {
		uint64_t entry, block, flags;
	} frame;
};

const char ruby_version[16] = "3.1.2";
uint64_t *ruby_current_vm_ptr;
_Thread_local struct context *ruby_current_ec;

static struct frame frames[FRAMES];
static uint64_t flags[3] = { CALL, ENTERED, OUTERMOST };
static uint64_t functions[FUNCTIONS][3], body[BODY_WORDS];
static uint64_t entries[64], table[16];
static uint64_t name[5] = { SHORT_STRING };
static uint64_t machine[8], thread[8];
static struct context main_context, context;

/* What ends in front of the table's address, the table, and the list of names in it. */
struct {
	uint64_t last, other;
	uint64_t *table;
} symbols;
static uint64_t lists[2 + 4] = { LIST | LIST_INSIDE }, names[5] = { LIST };
static uint64_t name_of[2 * PER_LIST];
static uint64_t plus[3] = { SHORT_STRING }, minus[3] = { SHORT_STRING }, in_c_name[3];
static uint64_t endless_name[4] = { LONG_STRING, 0, 1ull << 60 };
static uint64_t kernel_name[4] = { LONG_STRING, 0, 100, IN_KERNEL };

/* rb_id2str(), and the function that it goes on in, as Debian compiles them. */
__asm__(".text\n"
	".globl rb_id2str\n"
	".type rb_id2str, @function\n"
	"rb_id2str:\n"
	"	mov %rdi,%rax\n"
	"	xor %esi,%esi\n"
	"	shr $4,%rax\n"
	"	cmp $169,%rdi\n"
	"	cmova %rax,%rdi\n"
	"	.byte 0xe9\n"
	"	.long reader - . - 4\n"
	"reader:\n"
	"	cmp %edi,symbols(%rip)\n"
	"	jb 1f\n"
	"	mov symbols+16(%rip),%rdi\n"
	"	mov %ebx,%esi\n"
	"	shr $9,%esi\n"
	"1:	ret\n");

/* Frames in a row, of some functions; the interpreter was entered for the last but one. */
static void in_a_row(void)
{
	memcpy(&name[2], "forged", 6);
	body[0] = 100ull << 32;
	body[BODY_INSTRUCTIONS] = 0x1000;
	body[BODY_ENTRIES] = (uintptr_t)entries;
	body[BODY_NR_ENTRIES] = 2;
	body[BODY_TABLE] = (uintptr_t)table;
	table[0] = 1;
	body[BODY_PATH] = body[BODY_LABEL] = (uintptr_t)name;
	for (unsigned int i = 0; i < FRAMES; i++) {
		functions[i % FUNCTIONS][0] = FUNCTION;
		functions[i % FUNCTIONS][FUNCTION_BODY] = (uintptr_t)body;
		frames[i].instruction = 0x1008;
		frames[i].function = (uintptr_t)functions[i % FUNCTIONS];
		frames[i].flags = (uintptr_t)&flags[0];
	}
	frames[FRAMES - 2].flags = (uintptr_t)&flags[1];
	frames[FRAMES - 1].flags = (uintptr_t)&flags[2];
	main_context.memory = (uintptr_t)frames - 8;
	main_context.words = sizeof(frames) / 8 + 1;
	main_context.frame = (uintptr_t)&frames[FRAMES - 3];
	context = main_context;
}

static void deep(void)
{
	context.frame = (uintptr_t)frames;
}

/* Frames that go on to the end of all addresses. */
static void endless(void)
{
	context.words = 1ull << 59;
}

/* A text says that it is longer than memory. */
static void lengths(void)
{
	name[0] = LONG_STRING;
	name[2] = 1ull << 60;
	name[3] = (uintptr_t)name;
}

/* A text whose characters are in the kernel, and a function there. */
static void kernel(void)
{
	name[0] = LONG_STRING;
	name[2] = 100;
	name[3] = IN_KERNEL;
	frames[FRAMES - 3].function = IN_KERNEL;
}

/* Flags of a frame are in the kernel, so it is none for which the interpreter was entered. */
static void unflagged(void)
{
	frames[FRAMES - 2].flags = IN_KERNEL;
}

/* Lines that are nowhere, and more than memory has room for. */
static void lines(void)
{
	body[0] = ~0ull;
	body[BODY_ENTRIES] = IN_KERNEL;
	body[BODY_NR_ENTRIES] = ~0ull;
	body[BODY_TABLE] = ~0ull - 4;
	frames[FRAMES - 3].instruction = ~7ull;
}

static void set_name(unsigned int place, const uint64_t *text)
{
	name_of[2 * place] = (uintptr_t)text;
}

/* Makes the table of names. Its second list is itself, its third one is in the kernel. */
static void make_names(void)
{
	symbols.table = lists;
	lists[2] = (uintptr_t)names;
	lists[3] = (uintptr_t)lists;
	lists[4] = IN_KERNEL;
	names[4] = (uintptr_t)name_of;
	plus[2] = '+';
	minus[2] = '-';
	in_c_name[0] = 5 | 4 << 14;
	memcpy(&in_c_name[2], "in_c", 4);
	endless_name[3] = (uintptr_t)endless_name;
	set_name('+', plus);
	set_name('-', minus);
	set_name(200, in_c_name);
	set_name(201, endless_name);
	set_name(202, kernel_name);
	set_name(203, names);
}

__attribute__((noinline)) static int in_c(void)
{
	volatile int go_on = 1;
	uint64_t sum = 0;

	for (unsigned int i = 0; go_on; i++)
		sum += i;
	return (int)sum;
}

/* Makes a frame of a function in C, which is called with the frame behind it. Returns its method. */
static struct method *make_in_c(struct frame *at, uint64_t number, uint64_t address)
{
	static struct method methods[16];
	static unsigned int nr;
	struct method *m = &methods[nr++];

	m->entry[0] = ENTRY;
	m->entry[2] = (uintptr_t)m->definition;
	m->definition[0] = DEFINITION;
	m->definition[1] = address;
	m->definition[4] = number;
	m->frame.entry = (uintptr_t)m->entry;
	m->frame.flags = IN_C;
	at->flags = (uintptr_t)&m->frame.flags;
	return m;
}

/* A function in C with its name, which has called others. Of these, nothing is as it should be. */
static void named(void)
{
	static const uint64_t numbers[] = { NUMBER(201), NUMBER(202),	  NUMBER(203), NUMBER(204),
					    NUMBER(512), NUMBER(2 * 512), 0,	       ~0ull };
	struct frame *at = &frames[FRAMES - 4];
	struct method *m;

	make_in_c(at, NUMBER(200), (uintptr_t)in_c);
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		make_in_c(--at, numbers[i], NOWHERE);
	make_in_c(--at, NUMBER(200), NOWHERE)->frame.entry = IN_KERNEL;
	make_in_c(--at, NUMBER(200), NOWHERE)->entry[2] = IN_KERNEL;
	m = make_in_c(--at, NUMBER(200), NOWHERE);
	m->entry[0] = HOLDER;
	m->entry[1] = (uintptr_t)m->entry;
	context.frame = (uintptr_t)at;
}

static const struct kind {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "deep", deep },     { "endless", endless },	  { "lengths", lengths },
	{ "kernel", kernel }, { "unflagged", unflagged }, { "lines", lines },
	{ "named", named },
};

/* Runs as the interpreter would. */
__attribute__((noinline)) int rb_vm_exec(const struct kind *kind)
{
	kind->make();
	ruby_current_ec = &context;
	return in_c() + 1;
}

static int map_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 || mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED;
}

int main(int argc, char **argv)
{
	if (argc < 2 || (argc > 2 && map_file(argv[2])))
		return 1;
	main_context.machine = (uintptr_t)argv[0];
	in_a_row();
	make_names();
	thread[THREAD_CONTEXT] = (uintptr_t)&main_context;
	machine[MAIN_THREAD] = (uintptr_t)thread;
	ruby_current_vm_ptr = machine;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			return rb_vm_exec(&kinds[i]);
	return 1;
}
