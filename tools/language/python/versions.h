/* SPDX-License-Identifier: GPL-2.0-or-later */
/* versions.h - offsets in the structures of CPython, one table for each minor version. */
#ifndef TOOLS_LANGUAGE_PYTHON_VERSIONS_H
#define TOOLS_LANGUAGE_PYTHON_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#define PYTHON_WORDS 112 /* of _Py_DebugOffsets; more than any version needs */
#define PYTHON_CHECKS 21
#define PYTHON_COOKIE "xdebugpy" /* begins _Py_DebugOffsets */

/**
 * struct python_version - a minor version on a 64-bit machine, without debugging code
 * @minor: 11 for Python 3.11.
 * @cframes: the thread state refers to a list of struct _PyCFrame on the native stack, which refer
 *	to frames; otherwise it refers to the frames.
 * @base_frame: the list of frames ends with one that lies in the thread state and is no call.
 * @key: offset of the key of pthread_getspecific() in _PyRuntime; the word in front of it is not 0 if
 *	there is a key. 0: the thread state is in a thread-local variable (PYTHON_STATE_READER).
 * @key_arm64: so many bytes more it is on arm64, where locks are larger.
 * @finalizing: offset in _PyRuntime of a word that is not 0 once the interpreter ends.
 * @state_frames: offset in the thread state of the address of the frame, or of the cframe.
 * @state_thread: offset in the thread state of what pthread_self() returns.
 * @cframe_frame: offset in a cframe of the address of the frame.
 * @cframe_previous: offset in a cframe of the address of the next one.
 * @frame_bytes: bytes of a frame up to the last member that is used.
 * @previous: offset in a frame of the caller's.
 * @code: offset in a frame of the address of the code.
 * @code_tags: low bits of that address that are none of it.
 * @instruction: offset in a frame of the address of an instruction.
 * @owner: offset in a frame of the byte that says what the frame lies in.
 * @entry: offset in a frame of the byte that says whether the interpreter was entered for it; 0: an
 *	own frame on the native stack says it.
 * @first_line: offset in a code object.
 * @size_words: offset in a code object of the number of words of its frame; 0: there is none.
 * @first_traceable: offset in a code object.
 * @instructions: offset in a code object of the first instruction.
 * @ascii: offset in a str of characters that are all ASCII.
 * @wide: offset in a str of other characters.
 * @state_top: offset in the thread state of the end of its stack of frames.
 * @locals: offset in a frame of its first variable.
 * @generator_frame: offset in the object of a generator or coroutine of its frame.
 * @task_coroutine: offset in a task of asyncio's module _asyncio of the address of its coroutine; its
 *	name's is behind it.
 * @waits: numbers of the instructions SEND and SEND_GEN; none in 3.11, where no task begins at once.
 * @arm64: it is known on arm64, too.
 * @checks: what _Py_DebugOffsets must have: index of a word, and its value. The last one has the
 *	index 0.
 */
struct python_version {
	int minor;
	bool cframes;
	bool base_frame;
	uint32_t key;
	uint32_t key_arm64;
	uint32_t finalizing;
	uint32_t state_frames;
	uint32_t state_thread;
	uint32_t cframe_frame;
	uint32_t cframe_previous;
	uint32_t frame_bytes;
	uint32_t previous;
	uint32_t code;
	uint32_t code_tags;
	uint32_t instruction;
	uint32_t owner;
	uint32_t entry;
	uint32_t first_line;
	uint32_t size_words;
	uint32_t first_traceable;
	uint32_t instructions;
	uint32_t ascii;
	uint32_t wide;
	uint32_t state_top;
	uint32_t locals;
	uint32_t generator_frame;
	uint32_t task_coroutine;
	uint8_t waits[2];
	bool arm64;
	struct python_check {
		uint16_t word;
		uint16_t value;
		const char *name;
	} checks[PYTHON_CHECKS];
};

/* An exported function that returns the state of the thread, whether or not it has the GIL. */
#define PYTHON_STATE_READER "PyGILState_GetThisThreadState"

/* Offsets that all versions have. */
#define PYTHON_TYPE 8
#define PYTHON_STACK_SIZE 68 /* in a code object of 3.11 */
#define PYTHON_LOCALS 76 /* in a code object of 3.11 */
#define PYTHON_FILENAME 112
#define PYTHON_QUALNAME 128
#define PYTHON_LINETABLE 136
#define PYTHON_LENGTH 16 /* of str and bytes */
#define PYTHON_HASH 24 /* of str */
#define PYTHON_STATE 32 /* of str */
#define PYTHON_BYTES 32 /* offset of the bytes in a bytes object */
#define PYTHON_CALLBACK 24 /* in asyncio.Handle, whose __slots__ are sorted */
#define PYTHON_STEP_TASK 16 /* in what a task's first step is called by (TaskStepMethWrapper) */
#define PYTHON_METHOD_SELF 24 /* in a method of a built-in type, such as a task's wake-up */
#define PYTHON_CODE_VERSION 92 /* in a code object from 3.12 on: a number that no other one gets */

/* What a frame lies in (owner). All above it are frames on the native stack. */
enum python_owner {
	PYTHON_OWNER_THREAD,
	PYTHON_OWNER_GENERATOR,
	PYTHON_OWNER_FRAME_OBJECT,
};

/*
 * Offset in a thread, which is what pthread_self() returns, of glibc's value that key 0 of
 * pthread_getspecific() has. On x86-64 the thread pointer is that, too.
 */
#define PYTHON_FIRST_VALUE (0x310 + 8)
#define PYTHON_FIRST_VALUE_ARM64 (0x110 + 8)

/* Returns the table of a version (3.@minor), or NULL. */
const struct python_version *python_version(int minor);

/* Returns what differs in the words of _Py_DebugOffsets from the table of a version; or NULL. */
const struct python_check *python_differs(const struct python_version *v, const uint64_t *words);

/* Returns the bits of a frame's flags that tell what kind of frame it is. */
uint32_t python_kind_bits(const struct python_version *v);

#endif
