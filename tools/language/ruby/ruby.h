/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ruby.h - what the files of Ruby share. */
#ifndef TOOLS_LANGUAGE_RUBY_RUBY_H
#define TOOLS_LANGUAGE_RUBY_RUBY_H

#include "tools/language/language.h"

/* The texts that are copied of a function. There is no third one. */
enum ruby_text {
	RUBY_TEXT_LABEL,
	RUBY_TEXT_PATH,
	RUBY_TEXT_NONE,
};

/**
 * struct ruby_version - a minor version on a 64-bit machine
 * @name: how its number begins.
 * @main_thread: offset in the virtual machine of the address of the main thread.
 * @thread_context: offset in a thread of the address of its execution context.
 * @frame_bytes: bytes of a frame.
 * @instructions: index of the word of a function that is the address of its first instruction.
 * @path: index of that of its file's name.
 * @label: index of that of its name.
 * @first_line: index of the line at which it begins.
 * @entries: index of the address of its lines.
 * @nr_entries: index of their number.
 * @table: index of the address of what tells which instruction has which line.
 * @entry_bytes: bytes of a line.
 * @stack_begin: offset in an execution context of the address at which its native stack begins.
 * @errinfo: offset in it of the present exception.
 * @thread: offset in it of the address of its thread.
 * @hidden: libruby does not export what is needed (hidden.h).
 * @rows_elsewhere: rows of frames of threads do not lie on their native stacks.
 * @plain_line: the line at which a function begins is no number of Ruby.
 * @string: how strings lie in memory.
 */
struct ruby_version {
	const char *name;
	uint32_t main_thread;
	uint32_t thread_context;
	uint32_t frame_bytes;
	uint32_t instructions;
	uint32_t path;
	uint32_t label;
	uint32_t first_line;
	uint32_t entries;
	uint32_t nr_entries;
	uint32_t table;
	uint32_t entry_bytes;
	uint32_t stack_begin;
	uint8_t errinfo;
	uint8_t thread;
	bool hidden;
	bool rows_elsewhere;
	bool plain_line;
	struct language_strings string;
};

/* Offsets that all versions have. */
#define RUBY_CONTEXT_STACK 0 /* in an execution context: the memory of frames and values */
#define RUBY_CONTEXT_WORDS 8 /* its number of words */
#define RUBY_CONTEXT_FRAME 16 /* the address of the innermost frame */
#define RUBY_FRAME_INSTRUCTION 0 /* in a frame: the instruction that is next */
#define RUBY_FRAME_FUNCTION 16
#define RUBY_FRAME_VARIABLES 32 /* the address of its flags, behind its variables */
#define RUBY_FUNCTION_BODY 16
#define RUBY_BODY_CODE 8 /* in the body of a function: the address of its instructions */
#define RUBY_FRAME_ENTRY 16 /* bytes from the address of a frame's method to its flags */
#define RUBY_HOLDER_ENTRY 8 /* in an object that stands for a method: its address */
#define RUBY_ENTRY_DEFINITION 16 /* in a method: the address of its definition */
#define RUBY_DEFINITION_ADDRESS 8 /* in the definition of one in C: the address of the function */
#define RUBY_DEFINITION_NUMBER 32 /* in a definition: the number of the method's name */
#define RUBY_LIST_ADDRESS 32 /* in an array: the address of its elements */
#define RUBY_BODY_COUNT 4 /* in the body of a function: the number of its words of instructions */

/* Bits of a frame's flags. */
#define RUBY_FRAME_KIND 0x7fff0001u /* what it is */
#define RUBY_FRAME_FUNCTION_IN_C 0x55550001u /* it is that of a method in C */
#define RUBY_FRAME_OUTERMOST 0x79990001u /* it stands behind all others */
#define RUBY_FRAME_FINISH 0x20u /* the interpreter was entered for it */
#define RUBY_FRAME_C 0x80u /* it is that of a C function, or of none */

/* The first word of an object that is a function. */
#define RUBY_FUNCTION_MASK 0xf01full
#define RUBY_FUNCTION_TYPE 0x701aull

/* The same of one that is a method, and of one that may stand for it. */
#define RUBY_ENTRY_TYPE 0x601aull
#define RUBY_ENTRY_HOLDER 0x201aull

/* Bits of the first word of a definition: what kind of method it is. */
#define RUBY_DEFINITION_MASK 15ull
#define RUBY_DEFINITION_IN_C 1ull

#define RUBY_LIST_INSIDE \
	(1ull << 13) /* bit of an array's first word: it has its elements in itself */

/* Returns the table of a version, such as "3.1.2", or NULL. */
const struct ruby_version *ruby_version(const char *version);

/* The functions of struct language. */
bool ruby_may_be(const char *path);
int ruby_recognise(const struct language_module *module, struct language_found *ret,
		   struct reason *why);
int ruby_function(const void *version, const struct language_code *code, size_t size,
		  struct language_function *ret);
unsigned int ruby_line(const struct language_function *function, int at);
unsigned int ruby_kind(const void *version, const struct language_frame *frame);
bool ruby_sound(const void *version, const struct language_frames *frames);

#endif
