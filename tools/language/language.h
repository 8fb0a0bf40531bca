/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * language.h - what a language tells of its interpreter, so that the functions of programs in it are
 * shown where the interpreter ran them. Documentation/languages.rst says how to add a language.
 *
 * The frames of such programs lie in the heap. A BPF program (bpf/language_walk.h) reads them while
 * the thread stands still at its sample. It follows a table of offsets, struct language_target,
 * which is all that it knows of a language.
 */
#ifndef TOOLS_LANGUAGE_LANGUAGE_H
#define TOOLS_LANGUAGE_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/language.h"
#include "bpf/native.h"
#include "tools/reason.h"

struct shstk_account;

/**
 * struct language_module - a file that a process has mapped, and the memory of the process
 * @fd: the open file.
 * @start: address of a mapping of the file that is code.
 * @offset: offset of @start in the file.
 * @read: reads memory of the process, all or nothing. Returns 0 or a negative errno.
 * @arg: first argument of @read.
 * @account: account of the process, from which reading the file draws time and memory.
 */
struct language_module {
	int fd;
	uint64_t start;
	uint64_t offset;
	int (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	struct shstk_account *account;
};

#define LANGUAGE_PUBLISHING 160 /* places at which frames become the innermost ones, at most */
#define LANGUAGE_PUBLISHING_BYTES 192 /* what follows such a place has fewer bytes */

#define LANGUAGE_SWITCHES 2 /* functions that go on with another native stack, at most */

/* Code from an address up to another one. */
struct language_code_range {
	uint64_t start;
	uint64_t end;
};

/**
 * struct language_found - an interpreter
 * @version: what the language needs to know of its version; constant.
 * @target: how its frames are found.
 * @native: how they are found if they are on the native stack (@target.native).
 * @run_start: address of the function that runs frames.
 * @run_end: first address behind the part of it that is known.
 * @unsure_start: address of the first instruction, in this function or another one, at which the lists of
 *	frames may be in the middle of a change.
 * @unsure_end: address of the first one behind it at which they are not.
 * @cold_start: address of another part of the function that runs frames; 0: there is none.
 * @cold_end: first address behind it.
 * @publishes: frames become the innermost ones at known places, before they have their callers.
 * @publishing: addresses behind the instructions that do so, in order; within LANGUAGE_PUBLISHING_BYTES behind them
 *	the innermost frame may have a caller that is not its own. In the function that runs frames, it has its own.
 * @nr_publishing: number of these; more than LANGUAGE_PUBLISHING: it may be so anywhere else.
 * @switches: functions that go on with another native stack, whose frames become those of the thread only
 *	then: in these, and in what they call, frames and native stack are not of one moment. Those behind the last one
 *	are empty.
 * @base_frame: the outermost frame is no call: the list of frames ends with it.
 * @counted: nothing on the native stack tells where the interpreter was entered. Each call of the
 *	function that runs frames has a row of them, so they are counted.
 */
struct language_found {
	const void *version;
	struct language_target target;
	struct native_target native;
	uint64_t run_start;
	uint64_t run_end;
	uint64_t unsure_start;
	uint64_t unsure_end;
	uint64_t cold_start;
	uint64_t cold_end;
	bool publishes;
	uint64_t publishing[LANGUAGE_PUBLISHING];
	unsigned int nr_publishing;
	struct language_code_range switches[LANGUAGE_SWITCHES];
	bool base_frame;
	bool counted;
};

/* Returns whether the code at @pc is part of the function that runs frames. */
static inline bool language_runs_at(const struct language_found *found, uint64_t pc)
{
	return (pc >= found->run_start && pc < found->run_end) ||
	       (pc >= found->cold_start && pc < found->cold_end);
}

/**
 * struct language_line - instructions of a function that are of one line
 * @end: offset of the first instruction behind them, in bytes.
 * @line: the line; 0: none is known.
 */
struct language_line {
	uint32_t end;
	uint32_t line;
};

/**
 * struct language_function - a function of a program
 * @name: its name.
 * @file: file with its source.
 * @line: line at which it begins.
 * @first: offset of its first instruction that belongs to the source, in bytes.
 * @frame_size: bytes of its frame.
 * @address: address of its machine code, if frames of it are LANGUAGE_NATIVE.
 * @native: it is written in another language, as part of the interpreter.
 * @begins_stack: it is none, but stands for where a native stack begins.
 * @lines: the lines of its instructions, in the order of these.
 * @nr_lines: number of elements of @lines.
 * @own: what the language itself keeps of it, malloc'ed in one piece, or NULL.
 * @own_bytes: bytes of that.
 */
struct language_function {
	char *name;
	char *file;
	unsigned int line;
	int first;
	uint64_t frame_size;
	uint64_t address;
	bool native;
	bool begins_stack;
	struct language_line *lines;
	size_t nr_lines;
	void *own;
	size_t own_bytes;
};

/* What a frame is, or'ed. */
enum language_kind {
	LANGUAGE_SHOWN = 1, /* it is a call of a function */
	LANGUAGE_ENTRY = 2, /* it lies on the native stack, where the interpreter was entered */
	LANGUAGE_LAST =
		4, /* the interpreter was entered for it; the next mark or call is the place */
	LANGUAGE_NATIVE =
		8, /* it is a call of a function that has a native frame, where it is shown if that is found */
	LANGUAGE_BEGIN =
		16, /* it is no call: the native stack begins here, and frames behind it are of another one */
};

/*
 * A frame with its function, which is NULL if it is not known. The address of a frame in the middle
 * of a deep stack is 0: it is not known.
 */
struct language_frame {
	const struct language_entry *entry;
	const struct language_function *function;
};

/**
 * struct language_frames - what was read of an interpreter at a sample
 * @marks: the marks, the innermost first.
 * @nr_marks: number of marks.
 * @frames: the frames, the innermost first.
 * @nr: number of frames.
 * @left_out: index of a frame that stands for others that are not known; 0: there is none.
 * @base_word: the word of the base that was passed on.
 * @inner_sp: stack pointer of the innermost native frame.
 * @outer_sp: stack pointer of the outermost one.
 * @begun: the native stack begins behind the last frame (LANGUAGE_BEGIN), and all frames inside are known.
 * @unsure: the lists may be in the middle of a change.
 * @published: the innermost frame may have become that just now.
 */
struct language_frames {
	const struct language_entry *marks;
	unsigned int nr_marks;
	const struct language_frame *frames;
	unsigned int nr;
	unsigned int left_out;
	uint64_t base_word;
	uint64_t inner_sp;
	uint64_t outer_sp;
	bool begun;
	bool unsure;
	bool published;
};

/**
 * struct language_part - a function that a frame runs
 * @id: its number.
 * @at: its place.
 */
struct language_part {
	uint64_t id;
	int at;
};

#define LANGUAGE_PARTS 64 /* functions that a frame can run */

/**
 * struct language - a language
 * @module: its name in brackets, which stands where others have the name of a file.
 * @arm64: it is known on arm64, too, not only on x86-64.
 * @on_stack: its frames lie on the native stack (@native of &struct language_target).
 * @may_be: returns whether a file of that name may be its interpreter.
 * @recognise: finds out what interpreter a file is. Returns 0, -ENOENT if it is none or is too much
 *	to read, -EAGAIN if the process cannot be read yet, or another negative errno with the
 *	reason: it is one that is not known.
 * @function: takes the description of a function apart. Returns 0 or a negative errno; the caller
 *	frees the strings and tables in @ret in either case.
 * @line: returns the line of an instruction at an offset from the first one; 0: none is known.
 * @kind: returns what a frame is (enum language_kind).
 * @sound: returns whether all frames can be those of one moment.
 * @expand: finds the functions that a frame runs, the innermost first: machine code may have inlined
 *	some. Returns their number; 0: it is not known. NULL: a frame runs its function.
 * @task: makes a string of what was copied of a task's name, of at most @max bytes with its 0. Returns
 *	how many; 0: the task was given no name. NULL if its targets tell of no tasks.
 */
struct language {
	const char *module;
	bool arm64;
	bool on_stack;
	bool (*may_be)(const char *path);
	int (*recognise)(const struct language_module *module, struct language_found *ret,
			 struct reason *why);
	int (*function)(const void *version, const struct language_code *code, size_t size,
			struct language_function *ret);
	unsigned int (*line)(const struct language_function *function, int at);
	unsigned int (*kind)(const void *version, const struct language_frame *frame);
	bool (*sound)(const void *version, const struct language_frames *frames);
	unsigned int (*expand)(const struct language_frame *frame, struct language_part *parts,
			       unsigned int max);
	size_t (*task)(const void *version, const uint8_t *name, size_t size, char *buf,
		       size_t max);
};

extern const struct language language_php;
extern const struct language language_python;
extern const struct language language_ruby;
extern const struct language language_v8;

#endif
