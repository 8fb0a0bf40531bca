// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * demangle.c - readable names of linker symbols (C++, both schemes of Rust, and D), and of places
 * without a symbol.
 *
 * libiberty is the demangler of binutils and gdb and knows these languages. Its demangler of D has
 * no bound, so D is read in dlang.c. A short mangled name can stand for a name of astronomic
 * length; libiberty's callback interface lets us stop in the middle.
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

struct demangled_text {
	jmp_buf full;
	bool cplusplus;
	size_t len;
	char text[SHSTK_TEXT_MAX];
};

static void append(const char *text, size_t len, void *arg)
{
	struct demangled_text *out = arg;

	/* The text of an empty name is NULL, which memcpy() may not get. */
	if (!len)
		return;
	if (len > sizeof(out->text) - out->len)
		longjmp(out->full, 1);
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

bool shstk_is_mangled(const char *name)
{
	return (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R')) || shstk_is_dlang(name);
}

static bool demangle(const char *linkage, struct demangled_text *out)
{
	/*
	 * The only state that changes between setjmp() and longjmp() is in @out. The demanglers
	 * keep their data on the stack; only the Rust demangler allocates a small block for a
	 * non-ASCII identifier, which may be lost here.
	 */
	out->len = 0;
	out->cplusplus = false;
	if (shstk_is_dlang(linkage))
		return shstk_dlang(linkage, out->text, sizeof(out->text), &out->len);
	if (setjmp(out->full))
		return false;
	if (rust_demangle_callback(linkage, DMGL_NO_OPTS, append, out))
		return out->len;
	out->len = 0;
	out->cplusplus = true;
	return cplus_demangle_v3_callback(linkage, DMGL_PARAMS | DMGL_ANSI, append, out) &&
	       out->len;
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
