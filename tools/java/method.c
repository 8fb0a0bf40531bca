// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * method.c - read a method of HotSpot from another process. See method.h.
 *
 *	Method --> ConstMethod --> ConstantPool --> the class
 *	           bytecode        <--------------- its constants
 *	           lines
 *
 * The class has the address of its constant pool, which nothing else that lies at the address of a
 * method does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/java/method.h"

#define WORD 8
#define HAS_LINES 1 /* of the flags of a ConstMethod, in all releases that are known */
#define WITHOUT_0 20 /* the first release whose numbers have no byte 0 */
#define PAIR 0xff /* a byte in front of a step that needs numbers, in a table of lines */

/* ---- Names ---- */

/* Appends a Symbol, HotSpot's kind of string. Returns the length of the whole text, or 0. */
static size_t add_symbol(const struct vmstructs *vm, uint64_t symbol, char *buf, size_t size,
			 size_t at)
{
	uint16_t length;

	if (at + 1 >= size || vm_read_member(vm, symbol, VM_SYMBOL_LENGTH, &length, sizeof(length)))
		return 0;
	if (length > size - at - 1)
		length = size - at - 1;
	if (!length || vm_read_member(vm, symbol, VM_SYMBOL_TEXT, buf + at, length))
		return 0;
	for (size_t i = at; i < at + length; i++)
		if (buf[i] == '/' || (unsigned char)buf[i] < ' ')
			buf[i] = buf[i] == '/' ? '.' : '?';
	buf[at + length] = '\0';
	return at + length;
}

/* What is behind a method. */
struct parts {
	uint64_t constant;
	uint64_t pool;
	uint64_t class;
};

/* Finds what is behind a method. Returns 0 or a negative errno. */
static int find_parts(const struct vmstructs *vm, uint64_t method, struct parts *ret)
{
	int err;

	for (int m = VM_METHOD_CONST; m < VM_NR_NAMES; m++)
		if (!vm->places[m].known)
			return -ENOENT;
	if (!vm->pool_size)
		return -ENOENT;
	err = vm_read_member(vm, method, VM_METHOD_CONST, &ret->constant, WORD);
	if (!err)
		err = vm_read_member(vm, ret->constant, VM_CONST_POOL, &ret->pool, WORD);
	if (!err)
		err = vm_read_member(vm, ret->pool, VM_POOL_HOLDER, &ret->class, WORD);
	return err;
}

/* Appends an entry of the constant pool that is a Symbol. Returns what add_symbol() does. */
static size_t add_constant(const struct vmstructs *vm, uint64_t pool, uint16_t index, char *buf,
			   size_t size, size_t at)
{
	uint64_t symbol;

	if (vm_read(vm, pool + vm->pool_size + index * WORD, &symbol, WORD))
		return 0;
	return add_symbol(vm, symbol, buf, size, at);
}

/* Writes the name of the method, which is an entry of its class's constant pool, with the class. */
static bool make_name(const struct vmstructs *vm, const struct parts *parts, char *buf, size_t size)
{
	uint64_t class;
	uint16_t index;
	size_t at;

	if (vm_read_member(vm, parts->constant, VM_CONST_NAME, &index, sizeof(index)) ||
	    vm_read_member(vm, parts->class, VM_CLASS_NAME, &class, WORD))
		return false;
	at = add_symbol(vm, class, buf, size, 0);
	if (!at || at + 2 > size)
		return false;
	buf[at] = '.';
	return add_constant(vm, parts->pool, index, buf, size, at + 1);
}

bool java_method_name(const struct vmstructs *vm, uint64_t method, char *buf, size_t size)
{
	struct parts parts;

	return !find_parts(vm, method, &parts) && make_name(vm, &parts, buf, size);
}

/* ---- Methods ---- */

/* Returns whether all is known that is read of a method. */
static bool is_readable(const struct vmstructs *vm)
{
	for (int m = VM_CONST_SIZE; m < VM_NR_METHODS; m++)
		if (!vm->places[m].known && m != VM_POOL_SOURCE)
			return false;
	return vm->const_size && vm->version >= JAVA_FIRST && vm->version <= JAVA_LAST;
}

/* Checks that it is a method. Returns 0, -ENOENT if it is none, or another negative errno. */
static int check(const struct vmstructs *vm, const struct parts *parts)
{
	uint64_t pool;
	uint16_t index;
	int32_t length;
	int err = vm_read_member(vm, parts->class, VM_CLASS_POOL, &pool, WORD);

	if (!err)
		err = vm_read_member(vm, parts->pool, VM_POOL_LENGTH, &length, sizeof(length));
	if (!err)
		err = vm_read_member(vm, parts->constant, VM_CONST_NAME, &index, sizeof(index));
	if (err)
		return err;
	return pool == parts->pool && index && index < length ? 0 : -ENOENT;
}

/* Reads the bytecode's place, and the table of lines behind it. Returns 0 or a negative errno. */
static int read_code(const struct vmstructs *vm, const struct parts *parts, struct java_method *ret)
{
	uint16_t size, flags;
	uint32_t words;
	uint64_t lines, left;
	int err = vm_read_member(vm, parts->constant, VM_CONST_CODE_SIZE, &size, sizeof(size));

	if (!err)
		err = vm_read_member(vm, parts->constant, VM_CONST_FLAGS, &flags, sizeof(flags));
	if (!err)
		err = vm_read_member(vm, parts->constant, VM_CONST_SIZE, &words, sizeof(words));
	if (err)
		return err;
	ret->code = parts->constant + vm->const_size;
	ret->code_size = size;
	lines = vm->const_size + size;
	if ((uint64_t)words * WORD < lines)
		return -ENOENT;
	left = (uint64_t)words * WORD - lines;
	if (!(flags & HAS_LINES) || !left)
		return 0;
	ret->lines_size = left < METHOD_LINES ? left : METHOD_LINES;
	ret->lines = malloc(ret->lines_size);
	if (!ret->lines)
		return -ENOMEM;
	return vm_read(vm, parts->constant + lines, ret->lines, ret->lines_size);
}

/* Reads the name of the source file, if the class has one. */
static void read_file(const struct vmstructs *vm, const struct parts *parts,
		      struct java_method *ret)
{
	uint16_t index;

	if (!vm->places[VM_POOL_SOURCE].known ||
	    vm_read_member(vm, parts->pool, VM_POOL_SOURCE, &index, sizeof(index)) || !index ||
	    !add_constant(vm, parts->pool, index, ret->file, sizeof(ret->file), 0))
		*ret->file = '\0';
}

int java_method_read(const struct vmstructs *vm, uint64_t method, struct java_method *ret)
{
	struct parts parts;
	int err = is_readable(vm) && method && !(method % WORD) ? find_parts(vm, method, &parts) :
								  -ENOENT;

	*ret = (struct java_method){ .without_0 = java_without_0(vm->version) };
	if (!err)
		err = check(vm, &parts);
	if (!err)
		err = vm_read_member(vm, parts.pool, VM_POOL_CACHE, &ret->cache, WORD);
	if (!err && !make_name(vm, &parts, ret->name, sizeof(ret->name)))
		err = -ENOENT;
	if (!err)
		err = read_code(vm, &parts, ret);
	if (err) {
		java_method_deinit(ret);
		return err;
	}
	read_file(vm, &parts, ret);
	return 0;
}

void java_method_deinit(struct java_method *method)
{
	free(method->lines);
	method->lines = NULL;
	method->lines_size = 0;
}

/* ---- Lines ---- */

bool java_without_0(int version)
{
	return version >= WITHOUT_0;
}

/*
 * A number has up to 5 bytes: all but the last are among the highest 64 values, and each
 * counts 64 times as much as the one before it.
 */
bool java_number(struct java_numbers *rest, uint32_t *ret)
{
	const uint32_t lowest = rest->without_0;

	*ret = 0;
	for (unsigned int i = 0; i < 5; i++) {
		uint32_t byte;

		if (rest->at == rest->end || *rest->at < lowest)
			return false;
		byte = *rest->at++ - lowest;
		*ret += byte << 6 * i;
		if (byte < 256 - 64 - lowest)
			break;
	}
	return true;
}

/* Reads a number with a sign, which is its lowest bit, and adds it to @sum. */
static bool add_number(struct java_numbers *rest, uint32_t *sum)
{
	uint32_t n;

	if (!java_number(rest, &n))
		return false;
	*sum += n >> 1 ^ -(n & 1);
	return true;
}

/* Goes on to the next entry of a table, from the one before it. Returns false at the end. */
static bool next_line(struct java_numbers *rest, uint32_t *at, uint32_t *line)
{
	uint8_t step;

	if (rest->at == rest->end || !*rest->at)
		return false;
	step = *rest->at++;
	if (step == PAIR)
		return add_number(rest, at) && add_number(rest, line);
	*at += step >> 3;
	*line += step & 7;
	return true;
}

unsigned int java_method_line(const struct java_method *method, uint32_t at)
{
	uint32_t start = 0, line = 0, best = 0, ret = 0;
	struct java_numbers rest;

	if (at >= method->code_size || !method->lines)
		return 0;
	rest = (struct java_numbers){ method->lines, method->lines + method->lines_size,
				      method->without_0 };
	while (next_line(&rest, &start, &line)) {
		if (start > at || start < best)
			continue;
		best = start;
		ret = line;
	}
	return ret <= UINT16_MAX ? ret : 0;
}
