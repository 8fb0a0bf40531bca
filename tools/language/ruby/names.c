// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * names.c - finds the table in which Ruby has the names of methods by their numbers.
 *
 * A frame of a function in C has its method, and this the number of its name. The table of these,
 * ruby_global_symbols, is not exported, but rb_id2str() is: it turns a number into a place in the table and
 * goes on in a function that reads the table. Only code that is as expected counts, and only if the names of two
 * operators, whose numbers are their characters, are in the table that it leads to.
 */
#include <errno.h>
#include <string.h>

#include "libshstk/unaligned.h"
#include "tools/language/ruby/names.h"

#define CODE_BYTES 48 /* of rb_id2str() */
#define READER_BYTES 96 /* of the function that reads the table */
#define TABLE_BYTES 24 /* of these, that are looked at, at most */
#define LAST_PLAIN 169 /* numbers up to this one are places in the table */
#define SCOPE_BITS 4 /* of other numbers, below the place */
#define PER_LIST 512 /* names that a list of the table has */
#define COUNT_BYTES 16 /* from the number of the last name to the address of the table */

/* ---- Code ---- */

/* Returns the address to which a distance in code leads. It is the end of an instruction. */
static uint64_t led_to(const uint8_t *code, size_t at, uint64_t addr)
{
	return get_relative(code + at, addr + at + 4);
}

/* Returns where the code behind these bytes begins, or NULL. */
static const uint8_t *behind(const uint8_t *code, size_t size, const void *bytes, size_t nr)
{
	const uint8_t *found = memmem(code, size, bytes, nr);

	return found ? found + nr : NULL;
}

/* Returns the function in which rb_id2str() goes on, or 0. */
static uint64_t find_reader(const struct language_module *m, uint64_t id2str)
{
	/* cmp ...,%rdi, or as of Debian 14 cmp ...,%rax */
	static const uint8_t compare_di[] = { 0x48, 0x81, 0xff, LAST_PLAIN, 0, 0, 0 },
			     compare_ax[] = { 0x48, 0x3d, LAST_PLAIN, 0, 0, 0 };
	uint8_t code[CODE_BYTES];
	const uint8_t *at, *jump;

	if (!id2str || m->read(m->arg, id2str, code, sizeof(code)))
		return 0;
	at = behind(code, sizeof(code), compare_di, sizeof(compare_di));
	if (!at)
		at = behind(code, sizeof(code), compare_ax, sizeof(compare_ax));
	if (!at || at > code + sizeof(code) - 4)
		return 0;
	jump = memchr(at, 0xe9, code + sizeof(code) - 4 - at);
	return jump ? led_to(code, jump + 1 - code, id2str) : 0;
}

/*
 * Returns the address of the variable that the code at offset @at reads behind the number of the last name:
 * that with the address of the table; 0: it is other code. There are enough bytes.
 */
static uint64_t table_at(const uint8_t *code, size_t at, uint64_t addr)
{
	/* cmp %edi,...(%rip); jb ...; mov ...(%rip),%rdi; mov ...,%esi; shr $9,%esi */
	const uint64_t last = led_to(code, at + 2, addr);
	uint64_t ret;

	if (memcmp(code + at, "\x39\x3d", 2))
		return 0;
	at += 6;
	if (code[at] == 0x72)
		at += 2;
	else if (!memcmp(code + at, "\x0f\x82", 2))
		at += 6;
	else
		return 0;
	ret = led_to(code, at + 3, addr);
	if (memcmp(code + at, "\x48\x8b\x3d", 3) || code[at + 7] != 0x89 ||
	    (code[at + 8] & 0xc7) != 0xc6 || memcmp(code + at + 9, "\xc1\xee\x09", 3))
		return 0;
	return ret == last + COUNT_BYTES ? ret : 0;
}

/* Returns the address of the variable with the table's address, which that function reads; or 0. */
static uint64_t find_table(const struct language_module *m, uint64_t reader)
{
	uint8_t code[READER_BYTES];
	uint64_t ret = 0;

	if (!reader || m->read(m->arg, reader, code, sizeof(code)))
		return 0;
	for (size_t i = 0; i + TABLE_BYTES <= sizeof(code) && !ret; i++)
		ret = table_at(code, i, reader);
	return ret;
}

/* ---- The table ---- */

static uint64_t word(const struct language_module *m, uint64_t at)
{
	uint64_t ret;

	return at && !m->read(m->arg, at, &ret, sizeof(ret)) ? ret : 0;
}

static uint64_t element(const struct language_module *m, const struct ruby_version *v, uint64_t at,
			uint64_t i)
{
	const uint64_t head = word(m, at);

	if ((head & v->string.kind_mask) != v->string.list)
		return 0;
	return word(m, 8 * i + (head & RUBY_LIST_INSIDE ? at + v->string.first_at :
							  word(m, at + RUBY_LIST_ADDRESS)));
}

/* Returns whether the name of an operator is in the table. It is so short that it lies in its object. */
static bool has_operator(const struct language_module *m, const struct ruby_version *v,
			 uint64_t table, char name)
{
	const uint64_t text = element(m, v, element(m, v, table, 0), 2 * (uint64_t)name);
	char found[2] = "?";

	return (word(m, text) & v->string.kind_mask) == v->string.string &&
	       !(word(m, text) & v->string.outside) &&
	       !m->read(m->arg, text + v->string.inside_at, found, sizeof(found)) &&
	       found[0] == name && !found[1];
}

static void describe(const struct ruby_version *v, uint64_t names, struct language_numbered *ret)
{
	*ret = (struct language_numbered){
		.kind_mask = RUBY_FRAME_KIND,
		.kind = RUBY_FRAME_FUNCTION_IN_C,
		.entry_before = RUBY_FRAME_ENTRY,
		.mask = RUBY_FUNCTION_MASK,
		.entry = RUBY_ENTRY_TYPE,
		.holder = RUBY_ENTRY_HOLDER,
		.entry_at = RUBY_HOLDER_ENTRY,
		.definition_at = RUBY_ENTRY_DEFINITION,
		.type_mask = RUBY_DEFINITION_MASK,
		.type = RUBY_DEFINITION_IN_C,
		.address_at = RUBY_DEFINITION_ADDRESS,
		.number_at = RUBY_DEFINITION_NUMBER,
		.last_plain = LAST_PLAIN,
		.shift = SCOPE_BITS,
		.names = names,
		.lists = { v->string.list, RUBY_LIST_INSIDE, v->string.first_at,
			   RUBY_LIST_ADDRESS },
		.per_list = PER_LIST,
		.address_word = v->first_line,
	};
}

int ruby_names_find(const struct language_module *m, const struct ruby_version *v, uint64_t id2str,
		    struct language_numbered *ret)
{
	const uint64_t names = find_table(m, find_reader(m, id2str));
	uint64_t table;

	memset(ret, 0, sizeof(*ret));
	if (!names)
		return 0;
	table = word(m, names);
	if (!table)
		return -EAGAIN;
	if (has_operator(m, v, table, '+') && has_operator(m, v, table, '-'))
		describe(v, names, ret);
	return 0;
}
