/* SPDX-License-Identifier: GPL-2.0-or-later */
/* v8.h - what the files of V8 share. */
#ifndef TOOLS_LANGUAGE_V8_V8_H
#define TOOLS_LANGUAGE_V8_V8_H

#include "tools/language/language.h"

/* What an instruction of a state is, or'ed (states.c). */
enum v8_state_flags {
	V8_STATE_OPERANDS = 7, /* bits of the number of operands */
	V8_STATE_BEGIN = 8, /* a state begins */
	V8_STATE_FRAME = 16, /* a frame begins */
	V8_STATE_FUNCTION =
		32, /* it is one of a function; operands: bytecode, index of a constant */
	V8_STATE_TAKE = 64, /* instructions are taken from an earlier state */
};

/**
 * struct v8_scope - where a scope (ScopeInfo) has what
 * @flags: offset of a word whose upper half is its flags.
 * @first: offset of the name of the first variable.
 * @place: offset of where its text begins and ends; 0: that comes behind the names.
 */
struct v8_scope {
	uint32_t flags;
	uint32_t first;
	uint32_t place;
};

/**
 * struct v8_data - indices in what machine code needs to go back to the interpreter (DeoptimizationData)
 * @literals: of an array that begins with the functions that are inlined.
 * @number: of a number that no other machine code has; its function and the table of inlined calls follow, and
 *	what the code that goes back is and has.
 * @wrapped: the function is in another object, at this offset; 0: it is not.
 */
struct v8_data {
	uint32_t literals;
	uint32_t number;
	uint32_t wrapped;
};

/**
 * struct v8_version - a version of V8 on x86-64 whose pointers are not compressed
 * @major: major version.
 * @minor: minor version.
 * @entry_fp: offset in the virtual machine (Isolate) of the frame pointer of the last call into native
 *	code (ThreadLocalTop::c_entry_fp_).
 * @fast_fp: offset of that of a call without a frame (IsolateData::fast_c_call_caller_fp_).
 * @fast_pc: offset of its place (fast_c_call_caller_pc_).
 * @outermost: offset of the stack pointer of the outermost frame (ThreadLocalTop::js_entry_sp_).
 * @state: offset of the state (ThreadLocalTop::current_vm_state_).
 * @table: offset of the address of the table of the code of functions (external reference
 *	js_dispatch_table_address); 0: functions have it themselves.
 * @stream_head: bytes before the instructions of machine code.
 * @code_start: offset in machine code of the address of the first instruction; 0: these are part of
 *	the object.
 * @code_size: offset in machine code of the number of bytes.
 * @code_behind: offset of the number of bytes that follow these.
 * @code_flags: offset in machine code of its flags.
 * @code_data: offset in machine code of what it needs to go back to the interpreter; the table of positions
 *	follows.
 * @code_align: a first instruction's address is a multiple of it.
 * @middle: the compiler between the first and the last one (Maglev) is known.
 * @bytecode_head: bytes of bytecode before the first instruction.
 * @bytecode_positions: offset in bytecode of its table of positions.
 * @bytecode_frame: offset of the bytes that its frame has for registers.
 * @registers: so far below the frame pointer of a frame of the interpreter lies, below its registers, where the
 *	code of an instruction returns to.
 * @function_code: offset in a function of its code, or of the number of that in the table.
 * @scope: where a scope has what.
 * @data: indices in what machine code needs to go back to the interpreter.
 * @states: the instructions of states (enum v8_state_flags).
 * @nr_states: number of these.
 * @signed_names: their numbers are written as operands with a sign are, and no state takes any from another.
 * @bytecodes: what bytecodes have (versions.c).
 * @nr_bytecodes: number of these.
 */
struct v8_version {
	int32_t major;
	int32_t minor;
	uint32_t entry_fp;
	uint32_t fast_fp;
	uint32_t fast_pc;
	uint32_t outermost;
	uint32_t state;
	uint32_t table;
	uint32_t stream_head;
	uint32_t code_start;
	uint32_t code_size;
	uint32_t code_behind;
	uint32_t code_flags;
	uint32_t code_data;
	uint32_t code_align;
	bool middle;
	uint32_t bytecode_head;
	uint32_t bytecode_positions;
	uint32_t bytecode_frame;
	uint32_t registers;
	uint32_t function_code;
	struct v8_scope scope;
	struct v8_data data;
	const uint8_t *states;
	uint8_t nr_states;
	bool signed_names;
	const uint8_t *bytecodes;
	uint8_t nr_bytecodes;
};

/* Returns the table of a version, or NULL. */
const struct v8_version *v8_version(int32_t major, int32_t minor);

/**
 * struct v8_position - where something is in a script, and from where on
 * @offset: offset of the first byte of code that has this position.
 * @at: number of the character in the script; -1: none.
 * @call: index of the inlined call; -1: it is in the function itself.
 * @returns: in machine code, where the call returns to that surely has this position; 0: none.
 */
struct v8_position {
	uint32_t offset;
	int32_t at;
	int32_t call;
	uint32_t returns;
};

/**
 * struct v8_call - an inlined call
 * @function: number of the function that is called (struct language_entry).
 * @at: number of the character of the call.
 * @call: index of the inlined call that it is in; -1: it is in the function itself.
 */
struct v8_call {
	uint64_t function;
	int32_t at;
	int32_t call;
};

/**
 * struct v8_frame - a function that machine code runs where a call returns
 * @function: number of the function (struct language_entry).
 * @bytecode: offset in its bytecode.
 */
struct v8_frame {
	uint64_t function;
	int32_t bytecode;
};

/**
 * struct v8_return - where a call of machine code returns to
 * @offset: offset in the code.
 * @first: index of the first one of its frames, which is the outermost.
 * @nr: their number; 0: they are not known.
 */
struct v8_return {
	uint32_t offset;
	uint32_t first;
	uint32_t nr;
};

/**
 * struct v8_code - what is kept of a function, or of machine code
 * @size: bytes of this structure with its tables.
 * @machine: it is machine code.
 * @baseline: it is code of the first compiler, and positions are offsets in its function's bytecode.
 * @detailed: between two positions of the same inlined call all instructions of machine code are of that call.
 * @function: number of the function of the machine code.
 * @start: number in the script of the function's first character.
 * @end: number of the first character that is behind the function, or of which the line is not known.
 * @positions: table of positions.
 * @nr_positions: number of its elements.
 * @calls: inlined calls.
 * @nr_calls: number of its elements.
 * @returns: where calls return to, in order.
 * @nr_returns: number of its elements.
 * @exits: offset in machine code of the places to which these calls return if the interpreter is to go on.
 * @frames: the functions that run there.
 * @lines: numbers of the characters behind the ends of lines, in order.
 * @nr_lines: number of its elements.
 */
struct v8_code {
	size_t size;
	bool machine;
	bool baseline;
	bool detailed;
	uint64_t function;
	int32_t start;
	int32_t end;
	struct v8_position *positions;
	size_t nr_positions;
	struct v8_call *calls;
	size_t nr_calls;
	struct v8_return *returns;
	size_t nr_returns;
	uint64_t exits;
	struct v8_frame *frames;
	int32_t *lines;
	size_t nr_lines;
};

/* Takes a table of positions apart. Returns the number of elements. They are not written to NULL. */
size_t v8_positions(const uint8_t *bytes, size_t size, struct v8_position *ret);

#define V8_BYTECODE \
	(-2) /* a place up to here is offset V8_BYTECODE - place of bytecode, not a character */
#define V8_EXIT_BYTES 4 /* of the code that goes back to the interpreter in one place */

/* Returns the number of the character that a place in code is made of; -1: none is known. */
int32_t v8_character(const struct v8_code *c, int64_t at);

/* Reads a number of as many bytes of seven bits as it needs. Returns false if they end within it. */
bool v8_number(const uint8_t *bytes, size_t size, size_t *at, uint32_t *ret);

/**
 * struct v8_copied_baseline - what was copied of code of the first compiler
 * @version: the version.
 * @table: how many bytes of code bytecodes have.
 * @table_size: number of bytes.
 * @bytecodes: the bytecode of its function.
 * @size: number of bytes.
 */
struct v8_copied_baseline {
	const struct v8_version *version;
	const uint8_t *table;
	size_t table_size;
	const uint8_t *bytecodes;
	size_t size;
};

/*
 * Finds out which code of the first compiler is of which bytecode, whose offset is @at of a position; -1: of
 * none. Returns how many positions there are, which are written to @ret unless that is NULL; 0: table and
 * bytecode do not belong together.
 */
size_t v8_baseline(const struct v8_copied_baseline *c, struct v8_position *ret);

/* Takes apart what 64 bits say of a position (SourcePosition), apart from its offset. */
struct v8_position v8_position(uint64_t word);

/*
 * Finds out which calls of machine code surely have which of its positions, and whether other instructions have
 * positions, too. @code: its instructions, of which those from @exits on go back to the interpreter. @whole: all
 * of them; otherwise the first ones, which tell nothing about calls.
 */
void v8_find_calls(struct v8_code *c, const uint8_t *code, size_t size, size_t exits, bool whole);

/* As v8_find_calls(), of code of the middle compiler, in which positions tell nothing about calls. */
void v8_find_operations(struct v8_code *c);

/**
 * struct v8_copied_states - what was copied of machine code of where its calls return to
 * @version: the version.
 * @returns: the table of these places.
 * @nr_returns: number of its elements.
 * @states: what the interpreter would go on with there.
 * @states_size: number of bytes.
 * @ids: numbers of the functions that are inlined.
 * @nr_ids: how many.
 * @own: number of the function of the code itself.
 */
struct v8_copied_states {
	const struct v8_version *version;
	const uint8_t *returns;
	size_t nr_returns;
	const uint8_t *states;
	size_t states_size;
	const uint8_t *ids;
	size_t nr_ids;
	uint64_t own;
};

/*
 * Finds out which functions run where calls return. Returns how many these are in all. @returns has room for
 * as many elements as there are, @frames for that many; either may be NULL.
 */
size_t v8_returns(const struct v8_copied_states *c, struct v8_return *returns,
		  struct v8_frame *frames);

/*
 * Finds out where calls of code of the middle compiler return to: what was copied of them (&struct v8_return)
 * has instead where the interpreter is to go on. @bytes: what follows the code, a table of all calls. @checks: so many
 * places go back by themselves.
 */
void v8_take_calls(struct v8_code *c, const uint8_t *bytes, size_t size, uint64_t checks);

/*
 * Returns the place to which a call returns at an offset, or NULL. @left: not if that is where the
 * interpreter is to go on, as that may be under way.
 */
const struct v8_return *v8_find_return(const struct v8_code *c, int64_t at, bool left);

/**
 * struct v8_symbols - addresses of functions of V8 that only return something; 0: there is none
 * @current: v8::Isolate::GetCurrent(), which returns the thread's virtual machine.
 * @try_current: v8::Isolate::TryGetCurrent(), which returns the same.
 * @blob: Isolate::embedded_blob_code(), which returns the address of code that was made beforehand.
 * @blob_size: Isolate::embedded_blob_code_size(), which returns its size.
 * @range: v8::Isolate::GetEmbeddedCodeRange(), which calls functions that lie behind these two.
 */
struct v8_symbols {
	uint64_t current;
	uint64_t try_current;
	uint64_t blob;
	uint64_t blob_size;
	uint64_t range;
};

/**
 * v8_find_current() - find the thread-local variable that has the address of the virtual machine, by code that reads it
 * @module: the file, and the memory of the process.
 * @s: the functions.
 * @ret: receives where it is.
 *
 * Return: 0; -ENOENT: the code is not as it is known, or the functions differ; -EAGAIN: it cannot be read, or was not prepared yet.
 */
int v8_find_current(const struct language_module *module, const struct v8_symbols *s,
		    struct context_variable *ret);

/*
 * Finds where the virtual machine has the address and the size of code that was made beforehand. Returns whether
 * that is known.
 */
bool v8_find_built_in(const struct language_module *module, const struct v8_symbols *s,
		      struct native_target *ret);

/* The functions of struct language. */
bool v8_may_be(const char *path);
int v8_recognise(const struct language_module *module, struct language_found *ret,
		 struct reason *why);
int v8_function(const void *version, const struct language_code *code, size_t size,
		struct language_function *ret);
unsigned int v8_line(const struct language_function *function, int at);
unsigned int v8_kind(const void *version, const struct language_frame *frame);
bool v8_sound(const void *version, const struct language_frames *frames);
unsigned int v8_expand(const struct language_frame *frame, struct language_part *parts,
		       unsigned int max);

#endif
