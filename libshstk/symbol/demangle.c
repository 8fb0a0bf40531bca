// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * demangle.c - readable names of linker symbols (C++, both schemes of Rust, and D), and of places
 * without a symbol.
 *
 * libiberty is the demangler of binutils and gdb and knows these languages. Its demangler of D has
 * no bound, so D is read in dlang.c. Names of Haskell, which only the file tells from others, are read in
 * haskell.c. A short mangled name can stand for a name of astronomic length; libiberty's callback interface
 * lets us stop in the middle. Of a name that is too long, the arguments of templates within those of others
 * are left out, or all.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "dlang.h"
#include "pool.h"
#include "shorten.h"

#define LINKAGE_MAX 8192
#define READ_MAX (1u << 20) /* bytes of a name that are looked at */
#define BRACKETS_MAX 128
#define TAIL 10 /* bytes: those of "operator()" */
#define KEEP_ALL BRACKETS_MAX

/**
 * struct demangled_text - the name that is being made
 * @full: where to go on when it is too long.
 * @cplusplus: the name is of C++.
 * @too_long: it did not fit.
 * @keep: how many template arguments within each other are kept.
 * @read: bytes that the demangler gave.
 * @tail: the last of these.
 * @open: the brackets that are open.
 * @nr: number of brackets in @open.
 * @angles: how many of them are angle brackets.
 * @len: bytes in @text.
 * @text: the name.
 */
struct demangled_text {
	jmp_buf full;
	bool cplusplus;
	bool too_long;
	unsigned int keep;
	size_t read;
	char tail[TAIL];
	char open[BRACKETS_MAX];
	unsigned int nr;
	unsigned int angles;
	size_t len;
	char text[SHSTK_TEXT_MAX];
};

static void put(struct demangled_text *out, const char *text, size_t len)
{
	if (len > sizeof(out->text) - out->len) {
		out->too_long = true;
		longjmp(out->full, 1);
	}
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

/* Returns whether the last bytes that were read are @word. */
static bool ends_with(const struct demangled_text *out, const char *word)
{
	const size_t len = strlen(word);

	return !memcmp(out->tail + TAIL - len, word, len);
}

/* Returns whether the angle bracket @c is one: not an operator, an arrow or a comparison. */
static bool is_bracket(const struct demangled_text *out, char c)
{
	if (ends_with(out, "operator") || ends_with(out, "operator<") ||
	    ends_with(out, "operator>") || ends_with(out, "operator-") ||
	    ends_with(out, "operator<="))
		return false;
	if (c == '<')
		return !ends_with(out, ")") || ends_with(out, "operator()");
	return !ends_with(out, "-") && out->nr && out->open[out->nr - 1] == '<';
}

static void open_bracket(struct demangled_text *out, char c)
{
	if (out->nr == BRACKETS_MAX)
		longjmp(out->full, 1);
	out->open[out->nr++] = c;
	out->angles += c == '<';
}

/* Closes the innermost bracket @c; angle brackets within it were comparisons. */
static void close_bracket(struct demangled_text *out, char c)
{
	while (out->nr && out->open[out->nr - 1] != c) {
		out->nr--;
		out->angles -= out->open[out->nr] == '<';
	}
	if (out->nr) {
		out->nr--;
		out->angles -= c == '<';
	}
}

/* Takes the next byte of the name. What lies in too many angle brackets becomes "..". */
static void take(struct demangled_text *out, char c)
{
	const bool kept = out->angles <= out->keep;
	const bool angle = (c == '<' || c == '>') && is_bracket(out, c);

	if (c == '(' || (c == '<' && angle))
		open_bracket(out, c);
	else if (c == ')' || (c == '>' && angle))
		close_bracket(out, c == ')' ? '(' : '<');
	if (kept || out->angles <= out->keep)
		put(out, &c, 1);
	if (kept && out->angles > out->keep)
		put(out, "..", 2);
	memmove(out->tail, out->tail + 1, TAIL - 1);
	out->tail[TAIL - 1] = c;
}

static void append(const char *text, size_t len, void *arg)
{
	struct demangled_text *out = arg;

	/* The text of an empty name is NULL, which memcpy() may not get. */
	if (!len)
		return;
	out->read += len;
	if (out->read > READ_MAX)
		longjmp(out->full, 1);
	if (out->keep == KEEP_ALL)
		put(out, text, len);
	for (size_t i = 0; out->keep != KEEP_ALL && i < len; i++)
		take(out, text[i]);
}

bool shstk_is_mangled(const char *name)
{
	return (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R')) || shstk_is_dlang(name);
}

static void begin(struct demangled_text *out, bool cplusplus)
{
	out->cplusplus = cplusplus;
	out->read = out->nr = out->angles = out->len = 0;
	memset(out->tail, 0, sizeof(out->tail));
}

static bool demangle_part(const char *linkage, struct demangled_text *out)
{
	/*
	 * The only state that changes between setjmp() and longjmp() is in @out. The demanglers
	 * keep their data on the stack; only the Rust demangler allocates a small block for a
	 * non-ASCII identifier, which may be lost here.
	 */
	begin(out, false);
	if (setjmp(out->full))
		return false;
	if (rust_demangle_callback(linkage, DMGL_NO_OPTS, append, out))
		return out->len;
	begin(out, true);
	return cplus_demangle_v3_callback(linkage, DMGL_PARAMS | DMGL_ANSI, append, out) &&
	       out->len;
}

static bool demangle(const char *linkage, struct demangled_text *out)
{
	static const unsigned int keep[] = { KEEP_ALL, 1, 0 };

	out->len = 0;
	out->cplusplus = false;
	if (shstk_is_dlang(linkage))
		return shstk_dlang(linkage, out->text, sizeof(out->text), &out->len);
	for (size_t i = 0; i < sizeof(keep) / sizeof(*keep); i++) {
		out->keep = keep[i];
		out->too_long = false;
		if (demangle_part(linkage, out))
			return true;
		if (!out->too_long)
			break;
	}
	return false;
}

/*
 * Returns the length of a name without its symbol version ("@@GLIBC_2.2.5") and without LLVM's
 * suffix for symbols that thin LTO made global.
 */
static size_t core_length(const char *linkage)
{
	size_t len = strnlen(linkage, SHSTK_TEXT_MAX + 1);
	const char *cut;

	cut = memchr(linkage, '@', len);
	if (cut > linkage)
		len = cut - linkage;
	cut = memmem(linkage, len, ".llvm.", 6);
	if (cut > linkage)
		len = cut - linkage;
	return len;
}

const char *shstk_demangle(struct shstk_pool *pool, const char *linkage, bool full)
{
	const char *name = NULL;
	struct demangled_text *out;
	char *core;
	size_t len;

	len = core_length(linkage);
	if (!shstk_is_mangled(linkage) || len >= LINKAGE_MAX)
		return shstk_pool_text(pool, linkage, len);
	core = strndup(linkage, len);
	out = malloc(sizeof(*out));
	if (core && out && demangle(core, out))
		name = out->cplusplus && !full ? shstk_shorten(pool, out->text, out->len) :
						 shstk_pool_text(pool, out->text, out->len);
	free(out);
	free(core);
	return name ? name : shstk_pool_text(pool, linkage, len);
}

const char *shstk_place_name(struct shstk_pool *pool, const char *module, uint64_t addr)
{
	unsigned long long value = addr;
	const char *ret;
	char *text;
	int len;

	if (!module)
		len = asprintf(&text, "[0x%llx]", value);
	else if (*module == '[' && module[strlen(module) - 1] == ']')
		len = asprintf(&text, "%.*s+0x%llx]", (int)strlen(module) - 1, module, value);
	else
		len = asprintf(&text, "[%s+0x%llx]", module, value);
	if (len < 0)
		return NULL;
	ret = shstk_pool_text(pool, text, len);
	free(text);
	return ret;
}
