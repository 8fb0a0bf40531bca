// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * accessors.c - what V8's functions read that only return something.
 *
 * They tell where the virtual machine, and the address of it, are found, for which there are no variables. Where
 * the functions themselves have no symbols, as in a library of Debian, public functions that call them are read.
 *
 * All of it is read from the memory of a process, which may hold anything.
 */
#include <errno.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/v8/v8.h"

#define CODE_BYTES 8
#define JUMP 0xe9 /* jmp rel32 */
#define CALL 0xe8 /* call rel32 */
#define JUMP_BYTES 5
#define LEAVE 0x5d /* pop %rbp */
#define RETURN 0xc3
#define LONGEST 64 /* bytes of a function that are looked at */
#define BEHIND 24 /* the last ones of these begin nothing that is looked for */
#define MAX_MODULES 4096 /* as of what was found by a symbol */
#define ACCESSORS \
	64 /* bytes of the four functions before those that GetEmbeddedCodeRange() calls */
#define ACCESSOR 16 /* bytes of one */

/* ---- Code that was made beforehand ---- */

static bool read_code(const struct language_module *m, uint64_t addr, uint8_t *ret, size_t size)
{
	return addr && !m->read(m->arg, addr, ret, size);
}

/* Returns the offset that code returns the member of its argument at; 0: it does anything else. */
static uint32_t returned(const uint8_t *code, bool wide)
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x87 }; /* mov OFFSET(%rdi),%rax */
	const size_t skip = wide ? 0 : 1;

	if (memcmp(code, load + skip, sizeof(load) - skip) || code[7 - skip] != RETURN)
		return 0;
	return get32(code + sizeof(load) - skip);
}

static uint32_t read_returned(const struct language_module *m, uint64_t addr, bool wide)
{
	uint8_t code[CODE_BYTES];

	return read_code(m, addr, code, sizeof(code)) ? returned(code, wide) : 0;
}

/* Returns the lowest address that a function calls, or 0. */
static uint64_t lowest_callee(uint64_t addr, const uint8_t *code, size_t size)
{
	uint64_t ret = 0;

	for (size_t i = 0; i + JUMP_BYTES <= size; i++) {
		const uint64_t callee = get_relative(code + i + 1, addr + i + JUMP_BYTES);

		if (code[i] == RETURN)
			break;
		if (code[i] != CALL)
			continue;
		if (!ret || callee < ret)
			ret = callee;
		i += JUMP_BYTES - 1;
	}
	return ret;
}

/*
 * Four functions that return members of the virtual machine come before those that return the same of the process:
 * of code its address and size, and of its data. Returns whether they are there, one member behind the other.
 */
static bool read_accessors(const struct language_module *m, const struct v8_symbols *s,
			   struct native_target *ret)
{
	uint8_t code[LONGEST], before[ACCESSORS];
	uint32_t at[ACCESSORS / ACCESSOR];
	uint64_t callee;

	if (!read_code(m, s->range, code, sizeof(code)))
		return false;
	callee = lowest_callee(s->range, code, sizeof(code));
	if (!callee || !read_code(m, callee - ACCESSORS, before, sizeof(before)))
		return false;
	for (size_t i = 0; i < ACCESSORS / ACCESSOR; i++) {
		at[i] = returned(before + i * ACCESSOR, i % 2 == 0);
		if (!at[i] || at[i] != at[0] + 8 * i)
			return false;
	}
	ret->built_in_at = at[0];
	ret->built_in_size_at = at[1];
	return true;
}

bool v8_find_built_in(const struct language_module *m, const struct v8_symbols *s,
		      struct native_target *ret)
{
	ret->built_in_at = read_returned(m, s->blob, true);
	ret->built_in_size_at = read_returned(m, s->blob_size, false);
	return (ret->built_in_at && ret->built_in_size_at) || read_accessors(m, s, ret);
}

/* ---- The thread-local variable ---- */

/* Returns whether a function ends with bytes, in front of or behind which it may leave its frame. */
static bool ends(const uint8_t *code, const void *bytes, size_t size)
{
	code += *code == LEAVE;
	if (memcmp(code, bytes, size))
		return false;
	code += size;
	code += *code == LEAVE;
	return *code == RETURN;
}

/* Reads the words that the loader fills in for a variable of a library. */
static int read_module(const struct language_module *m, uint64_t addr, struct context_variable *ret)
{
	uint64_t words[2];

	if (m->read(m->arg, addr, words, sizeof(words)) || !words[0])
		return -EAGAIN;
	if (words[0] > MAX_MODULES)
		return -ENOENT;
	*ret = (struct context_variable){ .module = words[0], .offset = (int64_t)words[1] };
	return 0;
}

/*
 * Finds the variable whose value a function returns: that of a program lies at a distance from the thread pointer, for
 * that of a library __tls_get_addr() is called.
 */
static int take_variable(const struct language_module *m, uint64_t addr, const uint8_t *code,
			 struct context_variable *ret)
{
	static const uint8_t own[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 }; /* mov %fs:OFFSET,%rax */
	static const uint8_t words[] = { 0x66, 0x48, 0x8d, 0x3d }; /* lea WORDS(%rip),%rdi */
	static const uint8_t call[] = { 0x66, 0x66, 0x48, CALL }; /* call __tls_get_addr */
	static const uint8_t load[] = { 0x48, 0x8b, 0x00 }; /* mov (%rax),%rax */

	for (size_t i = 0; i < LONGEST - BEHIND && code[i] != RETURN; i++) {
		const uint8_t *at = code + i;

		if (!memcmp(at, own, sizeof(own)) && ends(at + sizeof(own) + 4, "", 0)) {
			*ret = (struct context_variable){
				.offset = (int32_t)get32(at + sizeof(own)),
			};
			return 0;
		}
		if (!memcmp(at, words, sizeof(words)) && !memcmp(at + 8, call, sizeof(call)) &&
		    ends(at + 16, load, sizeof(load)))
			return read_module(m, get_relative(at + sizeof(words), addr + i + 8), ret);
	}
	return -ENOENT;
}

/* Finds the variable whose value the function at @addr returns, which may go on in another one. */
static int find_variable(const struct language_module *m, uint64_t addr,
			 struct context_variable *ret)
{
	uint8_t code[LONGEST];

	if (!addr)
		return -ENOENT;
	if (!read_code(m, addr, code, sizeof(code)))
		return -EAGAIN;
	if (*code == JUMP) {
		addr = get_relative(code + 1, addr + JUMP_BYTES);
		if (!read_code(m, addr, code, sizeof(code)))
			return -EAGAIN;
	}
	return take_variable(m, addr, code, ret);
}

int v8_find_current(const struct language_module *m, const struct v8_symbols *s,
		    struct context_variable *ret)
{
	struct context_variable other;
	int err = find_variable(m, s->current, ret);

	if (!err)
		err = find_variable(m, s->try_current, &other);
	if (err)
		return err;
	return ret->module == other.module && ret->offset == other.offset ? 0 : -ENOENT;
}
