/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * native.h - how frames are found of a language whose functions run on the native stack, as machine
 * code that is made at run time or by an interpreter that has a native frame for each call.
 *
 * Their objects lie in a heap in which they move. So all of them are read at the sample by
 * native_walk.h, which runs in the kernel. It follows a table of offsets, as language_walk.h does;
 * the command makes it from what the virtual machine exports (tools/language/v8/).
 *
 * A pointer to an object has its lowest bit set; what has it not is a number.
 */
#ifndef BPF_NATIVE_H
#define BPF_NATIVE_H

#include "context.h"
#include "language.h"

#define NATIVE_FRAMES 512 /* frames of a thread that are passed, and so at most read */
#define NATIVE_PARTS 64 /* functions that machine code has inlined have fewer, and so have calls */
#define NATIVE_PART_BYTES 16 /* bytes of an inlined call in the virtual machine's table */
#define NATIVE_TABLE 4096 /* a table of positions has fewer bytes that are copied */
#define NATIVE_TEXT 16384 /* a function's text has fewer bytes that are copied */
#define NATIVE_CODE 8192 /* machine code that is copied as a whole has fewer bytes */
#define NATIVE_CODE_HEAD 1024 /* fewer of its first bytes are copied otherwise */
#define NATIVE_RETURNS \
	4096 /* a table of places to which calls return has fewer bytes that are copied */
#define NATIVE_RETURN_BYTES 24 /* bytes of an element */
#define NATIVE_STATES \
	16384 /* what the interpreter would go on with there: fewer bytes are copied */
#define NATIVE_LESS_STATES 8192 /* as many, if what is copied before that leaves no room for more */
#define NATIVE_BEFORE (512u << 10) /* bytes of text that one sample may read to count lines */

/* Indices of the words that are copied of a function. The first ones are what it is known by. */
enum native_word {
	NATIVE_OBJECT, /* address of what functions share that have the same text */
	NATIVE_KIND, /* enum native_kind */
	NATIVE_SCOPE, /* address of its scope */
	NATIVE_SCRIPT, /* address of its script */
	NATIVE_NAME, /* address of its name */
	NATIVE_NAME_HEAD, /* hash and length of its name */
	NATIVE_FILE, /* address of the script's name */
	NATIVE_FILE_HEAD, /* hash and length of the script's name */
	NATIVE_SCRIPT_ID,
	NATIVE_START, /* number of the first character of its text in the script's */
	NATIVE_END, /* number of the first one behind its text */
	NATIVE_BYTECODE, /* address of the bytecode; 0: there is none */
	NATIVE_BYTECODE_LENGTH,
	NATIVE_SOURCE_HEAD, /* hash and length of the script's text */
	NATIVE_KEYS, /* what follows is no part of what it is known by */
	NATIVE_NAME_TYPE = NATIVE_KEYS,
	NATIVE_FILE_TYPE,
	NATIVE_SOURCE_TYPE,
	NATIVE_LINE, /* line of the first character, from 1 on; 0: not known */
	NATIVE_TEXT_BYTES, /* bytes of its text that are behind the table of positions */
};

/*
 * Indices of the words that are copied of machine code; the first two are as above. Code of the first
 * compiler has its function's bytecode as data and in the place of its instructions, and inlines nothing.
 */
enum native_code_word {
	NATIVE_CODE_POSITIONS = 2, /* address of its table of positions */
	NATIVE_CODE_POSITIONS_LENGTH,
	NATIVE_CODE_DATA, /* address of what it needs to go back to the interpreter */
	NATIVE_CODE_START,
	NATIVE_CODE_SIZE,
	NATIVE_CODE_NUMBER, /* number that the virtual machine gave it */
	NATIVE_CODE_FUNCTION, /* number of its function (struct language_entry) */
	NATIVE_CODE_KEYS,
	NATIVE_CODE_INLINED = NATIVE_CODE_KEYS, /* number of functions that are inlined */
	NATIVE_CODE_CALLS, /* bytes of the table of inlined calls */
	NATIVE_CODE_BYTES, /* bytes of its code, or of what follows it if NATIVE_CODE_MIDDLE, behind the table of positions */
	NATIVE_CODE_EXITS, /* offset in it from which on it goes back to the interpreter */
	NATIVE_CODE_RETURNS, /* bytes of the table of places to which calls return, which follows */
	NATIVE_CODE_CHECKS, /* number of places before these that go back */
	NATIVE_CODE_STATES, /* bytes of what the interpreter would go on with there, which follows */
	NATIVE_CODE_MIDDLE, /* it is of the compiler between the first and the last one */
};

/* What a record describes, and how a frame runs: the lower bits of its flags. */
enum native_kind {
	NATIVE_INTERPRETED = 1, /* a function; @at is an offset in its bytecode */
	NATIVE_BASELINE, /* code of the first compiler; @at is an offset in it; or a function */
	NATIVE_MACHINE, /* machine code that may have inlined functions; @at is an offset in it */
};

#define NATIVE_RETURN 0x10 /* flag of a frame: @at is where a call returns to */
#define NATIVE_BEHIND 0x20 /* flag of a frame: it may have come farther than @at tells */

/**
 * struct native_types - the numbers of types of objects
 * @shared: what functions share that have the same text.
 * @scope: a scope.
 * @script: a script.
 * @bytecode: bytecode.
 * @code: machine code.
 * @stream: the instructions of machine code; the same as @code if they are part of it.
 * @bytes: an array of bytes.
 * @states: one of the bytes that tell what the interpreter would go on with, if that is not the same.
 */
struct native_types {
	__u32 shared;
	__u32 scope;
	__u32 script;
	__u32 bytecode;
	__u32 code;
	__u32 stream;
	__u32 bytes;
	__u32 states;
};

/**
 * struct native_offsets - where objects have what is read of them
 * @map_type: type of objects, in what all objects of a kind have.
 * @function_shared: in a function, what it shares with others.
 * @function_code: in a function, the machine code that it runs next, or the number of an entry of a table
 *	that has it (struct native_target).
 * @data: in what is shared, bytecode or machine code.
 * @scope: there, the scope.
 * @script: there, the script.
 * @script_source: in a script, its text.
 * @script_name: in a script, its name.
 * @script_line: in a script, the line at which its text begins.
 * @script_id: in a script, its number.
 * @scope_flags: in a scope, a word whose upper half is its flags.
 * @scope_locals: in a scope, how many variables it has.
 * @scope_first: in a scope, the name of the first variable.
 * @scope_inline: a scope with fewer variables has the names of all.
 * @scope_module: the lower four bits of flags if there is one word more.
 * @scope_saved: number of the bit of flags if there is one word more.
 * @scope_name: number of the lower of two bits, which are 0 if there is no name.
 * @scope_inferred: number of the bit if there is one word more behind the name.
 * @scope_place: in a scope, where its text begins and ends; 0: that is behind these.
 * @bytecode_positions: in bytecode, the table of positions.
 * @baseline_data: in machine code of the first compiler, the bytecode.
 * @code_positions: in other machine code, the table of positions.
 * @code_data: there, an array of what it needs to go back to the interpreter.
 * @data_inlined: index in this array of the number of functions that are inlined.
 * @data_literals: index of an array that begins with these functions.
 * @data_number: index of a number that no other machine code has.
 * @data_shared: index of what its function shares with others.
 * @data_wrapped: that is in another object, at this offset; 0: it is not.
 * @data_calls: index of the table of inlined calls.
 * @data_exits: index of the offset of the code that goes back to the interpreter.
 * @data_states: index of the bytes that tell what the interpreter would go on with.
 * @data_checks: index of the number of places that go back by themselves; the next one is the number of
 *	calls that may have to when they return.
 * @data_places: index of the first place that goes back; those of calls follow the other ones.
 * @string_next: in a string that only stands for another one, that one.
 * @string_resource: in a string outside the heap, the address of its characters.
 */
struct native_offsets {
	__u32 map_type;
	__u32 function_shared;
	__u32 function_code;
	__u32 data;
	__u32 scope;
	__u32 script;
	__u32 script_source;
	__u32 script_name;
	__u32 script_line;
	__u32 script_id;
	__u32 scope_flags;
	__u32 scope_locals;
	__u32 scope_first;
	__u32 scope_inline;
	__u32 scope_module;
	__u32 scope_saved;
	__u32 scope_name;
	__u32 scope_inferred;
	__u32 scope_place;
	__u32 bytecode_positions;
	__u32 baseline_data;
	__u32 code_positions;
	__u32 code_data;
	__u32 data_inlined;
	__u32 data_literals;
	__u32 data_number;
	__u32 data_shared;
	__u32 data_wrapped;
	__u32 data_calls;
	__u32 data_exits;
	__u32 data_states;
	__u32 data_checks;
	__u32 data_places;
	__u32 string_next;
	__u32 string_resource;
};

/* What all versions have. */
#define NATIVE_LENGTH 8 /* in an array, the number of elements, as a number */
#define NATIVE_ELEMENTS 16 /* in an array or a string, the first element */
#define NATIVE_HEAD 8 /* in a string, its hash and length */
#define NATIVE_ENTRY_SHIFT \
	8 /* lower bits of the number of an entry of the table of code that do not count */
#define NATIVE_ENTRY_BYTES \
	16 /* of an entry, of which the second word is, shifted, the address of code */
#define NATIVE_ENTRY_CODE 16 /* by so many bits */

/**
 * struct native_target - how frames are found in processes that have the same virtual machine
 * @key_at: address of a key of pthread_getspecific(3) by which the thread's machine is found; 0:
 *	@machine.
 * @slot: offset from the thread pointer of the value that key 0 has.
 * @machine: the thread-local variable that has the machine's address.
 * @text: address of the code of its file, which has what was made beforehand, too.
 * @text_size: its size.
 * @entry_fp_at: offset in the machine of the frame pointer of the last call into native code; 0:
 *	code of the language runs.
 * @fast_fp_at: offset of the frame pointer of a call into native code that makes no frame.
 * @fast_pc_at: offset of its place.
 * @outermost_at: offset of the stack pointer of the outermost frame; 0: there is none.
 * @state_at: offset of the state, four bytes of which the lower two count.
 * @moving: the state in which objects are moved: nothing is read.
 * @built_in_at: offset of the address of code that was made beforehand, or of a copy of it.
 * @built_in_size_at: offset of its size.
 * @entered_at: offset from the frame pointer of a frame in which code of the language was entered of
 *	the last value at @entry_fp_at.
 * @bytecode_bias: value of a bytecode offset in a frame for the first one.
 * @bytecode_frame: offset in bytecode of the bytes that its frame has for registers.
 * @stream_head: bytes of machine code before the first instruction.
 * @code_start: offset in an object of machine code of the address of its first instruction; 0: it is
 *	@stream_head bytes behind the object.
 * @code_size: offset in an object of machine code of the number of bytes.
 * @code_behind: offset of the number of bytes that follow these.
 * @code_flags: offset of four bytes, of which the lower four tell the kind of code.
 * @code_align: a first instruction's address is a multiple of it.
 * @kind_baseline: kind of code of the first compiler.
 * @kind_middle: that of the compiler between the first and the last one; larger than any: there is none.
 * @kind_optimized: that of the last compiler.
 * @registers_at: so far below the frame pointer of a frame of the interpreter lies, below its registers,
 *	where the code of an instruction returns to.
 * @table_at: offset in the machine of the address of a table of the code of functions; 0: functions have it
 *	themselves.
 * @types: see &struct native_types.
 * @at: see &struct native_offsets.
 */
struct native_target {
	__u64 key_at;
	struct context_variable machine;
	__u64 text;
	__u64 text_size;
	__u32 slot;
	__u32 entry_fp_at;
	__u32 fast_fp_at;
	__u32 fast_pc_at;
	__u32 outermost_at;
	__u32 state_at;
	__u32 moving;
	__u32 built_in_at;
	__u32 built_in_size_at;
	__s32 entered_at;
	__u32 bytecode_bias;
	__u32 bytecode_frame;
	__u32 stream_head;
	__u32 code_start;
	__u32 code_size;
	__u32 code_behind;
	__u32 code_flags;
	__u32 code_align;
	__u32 kind_baseline;
	__u32 kind_middle;
	__u32 kind_optimized;
	__u32 registers_at;
	__u32 table_at;
	struct native_types types;
	struct native_offsets at;
};

#endif /* BPF_NATIVE_H */
