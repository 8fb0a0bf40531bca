/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python.h - reads the frames and functions of the Python that this process has, for the agents.
 *
 * Offsets are those of tools/language/python/versions.h. How memory is read is the caller's affair
 * (struct python_view): the heap agent reads what is sure to be there, the sampling one reads in a signal
 * handler, where anything may be anywhere.
 *
 * It is for machines on which the recorder knows Python (PYTHON_IS_READ).
 */
#ifndef INJECT_PYTHON_H
#define INJECT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bpf/context.h"
#include "bpf/language.h"
#include "tools/language/python/versions.h"
#include "tools/language/thread_variable.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define PYTHON_IS_READ
#endif

/**
 * struct python_process - the Python that this process has
 * @version: the offsets.
 * @runtime: address of _PyRuntime.
 * @code_type: address of PyCode_Type.
 * @run: address of the function that runs frames.
 * @run_size: bytes of this function.
 * @current: a function of the interpreter's, which returns the state of the thread that has the lock
 *	(GIL).
 * @thread_below: bytes from what pthread_self() returns to the thread pointer, the same in all threads.
 * @variable: where a thread has the address of its state, if the version has no key.
 */
struct python_process {
	const struct python_version *version;
	uint64_t runtime;
	uint64_t code_type;
	uint64_t run;
	uint64_t run_size;
	uint64_t (*current)(void);
	uint64_t thread_below;
	struct context_variable variable;
};

/*
 * Looks for Python among the objects that are loaded. Returns false if there is none that is known. It
 * takes the loader's lock, and allocates nothing.
 */
bool python_process_find(struct python_process *ret);

#ifdef PYTHON_IS_READ
static inline uint64_t python_thread_pointer(void)
{
	uint64_t pointer;

#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
	return pointer;
}

/* Returns the address of the key, if the version has one. */
static inline uint64_t python_key_at(const struct python_process *p)
{
#ifdef __x86_64__
	return p->runtime + p->version->key;
#else
	return p->runtime + p->version->key + p->version->key_arm64;
#endif
}

/* Returns what pthread_self() returns, without a call: signal handlers ask, too. */
static inline uint64_t python_thread(const struct python_process *p)
{
	return python_thread_pointer() - p->thread_below;
}

/* Returns the value that key @key of pthread_getspecific() has in a thread; @key is less than 32. */
static inline uint64_t python_thread_value(uint64_t thread, uint32_t key)
{
#ifdef __x86_64__
	const uint64_t first = PYTHON_FIRST_VALUE;
#else
	const uint64_t first = PYTHON_FIRST_VALUE_ARM64;
#endif

	return *(const uint64_t *)(thread + first + key * 16ull);
}

/*
 * Returns the address of the thread's variable with its state, if the version has no key; 0: the thread has none
 * yet. The C library's table of variables is read by @word, which returns 0 if that cannot be done. The thread
 * itself makes that table longer, and may be about that.
 */
static inline uint64_t python_variable_at(const struct python_process *p,
					  uint64_t (*word)(const void *unused, uint64_t at))
{
	return thread_variable_at(&p->variable, python_thread_pointer(), word, NULL);
}
#endif

/* Returns the address of what an object that is loaded exports by that name; 0: there is none. */
uint64_t python_address_of(const char *name);

/**
 * struct python_key - what a function is known by
 * @code: address of its code object; the others are members of this.
 * @name: address of its name.
 * @file: address of the name of its file.
 * @table: address of its table of lines.
 * @first_line: its first line.
 * @number: number of the code object.
 * @name_hash: hash of its name, as the interpreter has it; only of 3.11, which has no @number.
 * @table_length: bytes of the table; only of 3.11.
 * @table_begin: its first bytes; only of 3.11.
 */
struct python_key {
	uint64_t code;
	uint64_t name;
	uint64_t file;
	uint64_t table;
	uint32_t first_line;
	uint32_t number;
	uint64_t name_hash;
	uint64_t table_length;
	uint64_t table_begin;
};

static inline uint64_t python_mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xa0761d6478bd642fULL);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/*
 * Returns a number that tells a function from another one that later has the same address. Lower bits
 * are not all used: it is no LANGUAGE_NO_FUNCTION and not 0.
 */
static inline __attribute__((always_inline)) uint64_t python_sum_key(const struct python_version *v,
								     const struct python_key *key)
{
	uint64_t sum =
		python_mix(python_mix(key->code, key->name), python_mix(key->table, key->file));

	sum = python_mix(sum, (uint64_t)key->first_line << 32 | key->number);
	if (v->minor == 11)
		sum = python_mix(sum ^ key->name_hash, key->table_length ^ key->table_begin);
	return sum | LANGUAGE_NO_FUNCTION << 1;
}

/* Returns how many bytes are copied of a table of lines; 0: it cannot be read. */
uint32_t python_table_bytes(uint64_t table);

/*
 * Copies the texts of a function: name, file and table of lines, as far as they can be read. @to has
 * room for as many bytes of the table as python_table_bytes() said, @table_bytes. It makes system calls.
 */
void python_copy_texts(const struct python_version *v, const struct python_key *key,
		       uint32_t table_bytes, struct language_code *to);

/**
 * struct python_view - how the process's memory is read
 * @look: returns where the @size bytes at @at can be read until the next call, or NULL: they cannot be
 *	read. @size is no more than LANGUAGE_FRAME_BYTES.
 */
struct python_view {
	const void *(*look)(struct python_view *view, uint64_t at, size_t size);
};

/*
 * Returns a word of what look() returned. Others may write there meanwhile: the value is read once.
 */
static inline uint64_t python_word(const void *at, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)at + offset, sizeof(value));
	__asm__("" : "+r"(value));
	return value;
}

/**
 * struct python_lists - where a thread's lists begin, and how much of them is to be read
 * @first: what the thread's state says: address of the first mark if there are marks, or else of the
 *	first frame.
 * @max_marks: marks for which there is room.
 * @max_frames: frames for which there is room. If that is LANGUAGE_FRAMES, those in the middle of a
 *	deeper stack are left out.
 * @nr_marks: marks that were read, and
 * @nr_frames: frames. Others may be able to write where the entries are, so this counts here.
 */
struct python_lists {
	uint64_t first;
	uint32_t max_marks;
	uint32_t max_frames;
	uint32_t nr_marks;
	uint32_t nr_frames;
};

/*
 * Reads the marks and frames of a thread to @to, behind which the entries go. The number of an entry is the
 * address of its code object then, 0 if it has none. Target, pc, sp and base_word become 0. Returns whether
 * all were read, but for those in the middle.
 */
bool python_read_lists(struct python_view *view, const struct python_version *v,
		       struct python_lists *lists, struct language_moment *to);

#endif
