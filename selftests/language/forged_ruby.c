// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forged_ruby.c - a program that looks like Ruby 3.1 to who reads its memory, and lies.
 *
 *	forged_ruby KIND
 *
 * It exports the symbols of the interpreter, has an execution context where the interpreter has it, and
 * runs for ever in a function that counts as the one that runs frames. KIND says what is wrong with the
 * frames, see kinds[].
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 1500 /* more than are read */
#define FUNCTIONS 8
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

static const struct kind {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "deep", deep },     { "endless", endless },	  { "lengths", lengths },
	{ "kernel", kernel }, { "unflagged", unflagged }, { "lines", lines },
};

/* Runs as the interpreter would. */
__attribute__((noinline)) int rb_vm_exec(const struct kind *kind)
{
	volatile int go_on = 1;
	uint64_t sum = 0;

	kind->make();
	ruby_current_ec = &context;
	for (unsigned int i = 0; go_on; i++)
		sum += i;
	return (int)sum;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 1;
	main_context.machine = (uintptr_t)argv[0];
	in_a_row();
	thread[THREAD_CONTEXT] = (uintptr_t)&main_context;
	machine[MAIN_THREAD] = (uintptr_t)thread;
	ruby_current_vm_ptr = machine;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			return rb_vm_exec(&kinds[i]);
	return 1;
}
