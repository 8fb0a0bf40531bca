// SPDX-License-Identifier: GPL-2.0-or-later
/* awaits_find.c - where a Python keeps its tasks. See awaits.h. */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stddef.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/symbols.h"
#include "tools/language/python/awaits.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

#define TASK_WORDS 13 /* of _AsyncioDebug */
#define TASK_SECTION ".AsyncioDebug"
#define MAX_OFFSET (1u << 24) /* an interpreter is the largest of these structures */

#define VERSIONS 2 /* from AWAITS_SINCE on */

/*
 * Which word of a table, by the minor version, is which member of struct awaits_layout, and how large it is at
 * most.
 */
struct awaits_word {
	uint16_t words[VERSIONS];
	uint16_t member;
	uint32_t max;
};

#define MEMBER(name) offsetof(struct awaits_layout, name)
#define SMALL 4096 /* no other structure is as large */

/* clang-format off */
/* Of _Py_DebugOffsets. */
static const struct awaits_word runtime_words[] = {
	{ { 5, 5 }, MEMBER(interpreters), MAX_OFFSET },
	{ { 8, 8 }, MEMBER(interpreter_next), MAX_OFFSET },
	{ { 9, 9 }, MEMBER(interpreter_threads), MAX_OFFSET },
	{ { 23, 23 }, MEMBER(thread_prev), SMALL },
	{ { 24, 24 }, MEMBER(thread_next), SMALL },
	{ { 28, 31 }, MEMBER(thread_id), SMALL },
	{ { 31, 39 }, MEMBER(frame_bytes), 128 },
	{ { 33, 41 }, MEMBER(frame_code), SMALL },
	{ { 34, 42 }, MEMBER(frame_instruction), SMALL },
	{ { 37, 45 }, MEMBER(frame_stack), SMALL },
	{ { 51, 59 }, MEMBER(object_type), SMALL },
	{ { 53, 61 }, MEMBER(type_name), SMALL },
	{ { 55, 63 }, MEMBER(type_flags), SMALL },
	{ { 63, 75 }, MEMBER(set_used), SMALL },
	{ { 64, 76 }, MEMBER(set_table), SMALL },
	{ { 65, 77 }, MEMBER(set_mask), SMALL },
	{ { 72, 84 }, MEMBER(long_tag), SMALL },
	{ { 73, 85 }, MEMBER(long_digits), SMALL },
	{ { 85, 101 }, MEMBER(generator_frame), SMALL },
	{ { 86, 102 }, MEMBER(generator_state), SMALL },
	{ { 87, 103 }, MEMBER(node_next), SMALL },
	{ { 88, 104 }, MEMBER(node_prev), SMALL },
};

/* Of _AsyncioDebug, which is the same in all versions. */
static const struct awaits_word task_words[] = {
	{ { 0 }, MEMBER(task_bytes), AWAITS_TASK_BYTES },
	{ { 1 }, MEMBER(task_name), SMALL },
	{ { 2 }, MEMBER(task_awaited_by), SMALL },
	{ { 3 }, MEMBER(task_is_task), SMALL },
	{ { 4 }, MEMBER(task_by_set), SMALL },
	{ { 5 }, MEMBER(task_coroutine), SMALL },
	{ { 6 }, MEMBER(task_node), SMALL },
	{ { 8 }, MEMBER(interpreter_tasks), MAX_OFFSET },
	{ { 11 }, MEMBER(thread_task), SMALL },
	{ { 12 }, MEMBER(thread_tasks), SMALL },
};
/* clang-format on */

/* Takes members from a table's words. Returns false if one cannot be right. */
static bool take_words(const struct awaits_word *list, size_t nr, int minor, const uint64_t *words,
		       struct awaits_layout *ret)
{
	for (size_t i = 0; i < nr; i++) {
		const uint64_t value = words[list[i].words[minor - AWAITS_SINCE]];

		if (value > list[i].max)
			return false;
		*(uint32_t *)((char *)ret + list[i].member) = (uint32_t)value;
	}
	return true;
}

/* Returns whether @nr members lie within a structure of @size bytes. */
static bool lie_within(const uint32_t *const *members, size_t nr, uint32_t size)
{
	for (size_t i = 0; i < nr; i++)
		if (*members[i] + sizeof(uint64_t) > size)
			return false;
	return true;
}

/* ---- Python ---- */

/**
 * struct awaits_symbols - addresses of a file's symbols; 0: there is none
 * @version: that of Py_Version.
 * @layout: the others.
 */
struct awaits_symbols {
	uint64_t version;
	struct awaits_layout layout;
};

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct awaits_symbols *s = arg;
	const struct {
		const char *name;
		uint64_t *to;
	} wanted[] = {
		{ "Py_Version", &s->version },
		{ "_PyRuntime", &s->layout.runtime },
		{ "PyCoro_Type", &s->layout.coroutine_type },
		{ "PyGen_Type", &s->layout.generator_type },
		{ "PyAsyncGen_Type", &s->layout.async_generator_type },
		{ "PySet_Type", &s->layout.set_type },
	};

	(void)table;
	for (size_t i = 0; sym->st_shndx != SHN_UNDEF && i < sizeof(wanted) / sizeof(*wanted); i++)
		if (!strcmp(name, wanted[i].name))
			*wanted[i].to = sym->st_value;
	return 0;
}

/* Finds the symbols. Returns false if one is missing. */
static bool find_symbols(const struct language_module *m, struct awaits_symbols *ret)
{
	struct awaits_layout *l = &ret->layout;
	uint64_t bias = 0, bytes;
	Elf *elf = shstk_elf_begin(m->fd);

	if (!elf)
		return false;
	bytes = symbols_bytes(elf);
	if (symbols_bias(elf, m->start, m->offset, &bias) &&
	    shstk_account_take(m->account, bytes)) {
		symbols_walk(elf, take_symbol, ret);
		shstk_account_give(m->account, bytes);
	}
	elf_end(elf);
	if (!ret->version || !l->runtime || !l->coroutine_type || !l->generator_type ||
	    !l->async_generator_type || !l->set_type)
		return false;
	ret->version += bias;
	l->runtime += bias;
	l->coroutine_type += bias;
	l->generator_type += bias;
	l->async_generator_type += bias;
	l->set_type += bias;
	return true;
}

/* Takes what the interpreter's own table tells. Returns false if it is not as it is known. */
static bool take_table(const uint64_t *words, const struct python_version *v,
		       struct awaits_layout *ret)
{
	const uint32_t *const members[] = { &ret->frame_code, &ret->frame_instruction,
					    &ret->frame_stack };

	return !memcmp(words, PYTHON_COOKIE, 8) && !python_differs(v, words) &&
	       take_words(runtime_words, sizeof(runtime_words) / sizeof(*runtime_words), v->minor,
			  words, ret) &&
	       lie_within(members, sizeof(members) / sizeof(*members), ret->frame_bytes);
}

int awaits_take_python(const struct language_module *m, struct awaits_layout *ret,
		       struct reason *why)
{
	/* What was taken from its module before stays. */
	struct awaits_symbols found = { .layout = *ret };
	const struct python_version *v;
	uint64_t words[PYTHON_WORDS];
	unsigned long version;

	if (!find_symbols(m, &found))
		return -ENOENT;
	if (m->read(m->arg, found.version, &version, sizeof(version)))
		return -EFAULT;
	v = version >> 24 == 3 ? python_version(version >> 16 & 255) : NULL;
	if (version >> 16 < (3 << 8 | AWAITS_SINCE)) {
		because(why,
			"Python %lu.%lu does not keep who waits for whom: that needs Python 3.%d",
			version >> 24, version >> 16 & 255, AWAITS_SINCE);
		return -EINVAL;
	}
	if (!v) {
		because(why, "Python %lu.%lu is not known", version >> 24, version >> 16 & 255);
		return -EINVAL;
	}
	if (m->read(m->arg, found.layout.runtime, words, sizeof(words)))
		return -EFAULT;
	if (words[2]) {
		because(why, "Python 3.%d: a free-threaded build, which is not known", v->minor);
		return -EINVAL;
	}
	if (!take_table(words, v, &found.layout)) {
		because(why, "Python 3.%d: its table _Py_DebugOffsets is not as it is known",
			v->minor);
		return -EINVAL;
	}
	found.layout.minor = v->minor;
	found.layout.text = v;
	found.layout.instructions = v->instructions;
	found.layout.code_tags = v->code_tags;
	/* From 3.15 on, there is a word behind it, by which an instruction counts what it has taken of an iterator. */
	found.layout.awaited_at = v->minor == 14 ? 8 : 16;
	*ret = found.layout;
	return 0;
}

/* ---- Its module ---- */

bool awaits_may_be_asyncio(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "_asyncio.", 9);
}

/* Returns the address in the file of the section with the table, 0: it has none. */
static uint64_t find_section(Elf *elf)
{
	GElf_Shdr h;

	return shstk_elf_next_named(elf, NULL, TASK_SECTION, &h) ? h.sh_addr : 0;
}

int awaits_take_asyncio(const struct language_module *m, struct awaits_layout *ret,
			struct reason *why)
{
	const uint32_t *const members[] = { &ret->task_name, &ret->task_awaited_by,
					    &ret->task_is_task, &ret->task_by_set,
					    &ret->task_coroutine };
	Elf *elf = shstk_elf_begin(m->fd);
	const uint64_t at = elf ? find_section(elf) : 0;
	uint64_t bias = 0, words[TASK_WORDS];
	bool mapped = at && symbols_bias(elf, m->start, m->offset, &bias);

	elf_end(elf);
	if (!mapped)
		return -ENOENT;
	if (m->read(m->arg, at + bias, words, sizeof(words)))
		return -EFAULT;
	if (!take_words(task_words, sizeof(task_words) / sizeof(*task_words), AWAITS_SINCE, words,
			ret) ||
	    !lie_within(members, sizeof(members) / sizeof(*members), ret->task_bytes)) {
		because(why,
			"its module _asyncio: the table " TASK_SECTION " is not as it is known");
		return -EINVAL;
	}
	ret->asyncio = true;
	return 0;
}
