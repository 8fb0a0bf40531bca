// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * recognise.c - finds out which PHP a program or library is, and where its frames are found.
 *
 * Programs and libphp export what modules of PHP need, also without debug information. A build
 * without threads has one list of frames, in a global variable. The first registered module, which
 * is PHP itself, tells the version and what kind of build it is.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/unaligned.h"
#include "tools/elf/symbols.h"
#include "tools/language/php/cold.h"
#include "tools/language/php/php.h"
#include "tools/language/php/publish.h"

#define PAGE_SIZE_OF_STACK 262144 /* bytes in which the stack of frames grows, in all versions, */
#define PAGE_SIZE_OF_FIBER 16384 /* and that of a fiber */
#define REGISTRY_FIRST 16 /* offset in the registry of the address of its elements */
#define REGISTRY_USED 24 /* offset of their number */
#define MODULE_BYTES 10 /* of a module that are read */
#define MODULE_API 4
#define MODULE_DEBUG 8
#define MODULE_ZTS 9
#define KIND_BYTES 16 /* of zend_vm_kind() that are looked at */
#define KIND_HYBRID 4 /* frame and instruction are in r14 and r15 (ZEND_VM_KIND_HYBRID) */

/* The addresses of symbols, 0: there is none; and of the code. */
struct found {
	uint64_t globals;
	uint64_t registry;
	uint64_t kind;
	uint64_t run;
	uint64_t run_size;
	uint64_t resume;
	uint64_t resume_size;
	struct language_code_range switches[LANGUAGE_SWITCHES];
	uint64_t code;
	uint64_t code_size;
	bool threads;
};

bool php_may_be(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "php", 3) || !strncmp(name, "libphp", 6);
}

static struct language_code_range range_of(const GElf_Sym *sym)
{
	return (struct language_code_range){ sym->st_value, sym->st_value + sym->st_size };
}

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct found *f = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF)
		return 0;
	if (!strcmp(name, "executor_globals"))
		f->globals = sym->st_value;
	else if (!strcmp(name, "executor_globals_offset"))
		f->threads = true;
	else if (!strcmp(name, "module_registry"))
		f->registry = sym->st_value;
	else if (!strcmp(name, "zend_vm_kind"))
		f->kind = sym->st_value;
	else if (!strcmp(name, "execute_ex")) {
		f->run = sym->st_value;
		f->run_size = sym->st_size;
	} else if (!strcmp(name, "zend_generator_resume")) {
		f->resume = sym->st_value;
		f->resume_size = sym->st_size;
	} else if (!strcmp(name, "zend_fiber_switch_context")) {
		f->switches[0] = range_of(sym);
	} else if (!strcmp(name, "jump_fcontext")) {
		f->switches[1] = range_of(sym);
	}
	return 0;
}

static bool is_complete(const struct found *f)
{
	return f->run && f->registry && f->kind && (f->globals || f->threads);
}

/* Finds the code that the function is part of. */
static void find_code(Elf *elf, struct found *f)
{
	GElf_Phdr p;
	size_t nr;

	if (elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &p); i++)
		if (p.p_type == PT_LOAD && p.p_flags & PF_X && f->run - p.p_vaddr < p.p_filesz) {
			f->code = p.p_vaddr;
			f->code_size = p.p_filesz;
		}
}

/*
 * Finds the symbols of the file, and the other part of the function that runs frames. Addresses in
 * @ret are those of the process. Returns false if it is no PHP.
 */
static bool find_symbols(const struct language_module *m, struct found *f,
			 struct language_found *ret)
{
	uint64_t bias = 0, bytes;
	Elf *elf;

	*f = (struct found){ 0 };
	elf = shstk_elf_begin(m->fd);
	if (!elf)
		return false;
	bytes = symbols_bytes(elf) + PHP_COLD_BYTES;
	if (symbols_bias(elf, m->start, m->offset, &bias) &&
	    shstk_account_take(m->account, bytes)) {
		symbols_walk(elf, take_symbol, f);
		find_code(elf, f);
		if (is_complete(f) &&
		    php_cold_part(elf, f->run, f->run_size, &ret->cold_start, &ret->cold_end)) {
			ret->cold_start += bias;
			ret->cold_end += bias;
		}
		shstk_account_give(m->account, bytes);
	}
	elf_end(elf);
	if (!is_complete(f))
		return false;
	f->globals += bias;
	f->registry += bias;
	f->kind += bias;
	f->run += bias;
	f->code += bias;
	f->resume += f->resume ? bias : 0;
	for (unsigned int i = 0; i < LANGUAGE_SWITCHES; i++) {
		f->switches[i].start += bias;
		f->switches[i].end += bias;
	}
	return true;
}

static int refuse(struct reason *why, const char *version, const char *what)
{
	because(why, "PHP %s: %s", version, what);
	return -EINVAL;
}

/* Finds the version. Returns 0, -EAGAIN if PHP has not started yet, or -EINVAL with the reason. */
static int find_version(const struct language_module *m, uint64_t registry,
			const struct php_version **ret, struct reason *why)
{
	uint8_t module[MODULE_BYTES];
	uint64_t first, at;
	uint32_t used;

	if (m->read(m->arg, registry + REGISTRY_USED, &used, sizeof(used)) || !used ||
	    m->read(m->arg, registry + REGISTRY_FIRST, &first, sizeof(first)) ||
	    m->read(m->arg, first, &at, sizeof(at)) || m->read(m->arg, at, module, sizeof(module)))
		return -EAGAIN;
	*ret = php_version(get32(module + MODULE_API));
	if (!*ret) {
		because(why, "PHP whose modules have the number %u is not known",
			get32(module + MODULE_API));
		return -EINVAL;
	}
	if (module[MODULE_DEBUG])
		return refuse(why, (*ret)->name, "a build for debugging, which is not known");
	if (module[MODULE_ZTS])
		return refuse(why, (*ret)->name, "a build with threads, which is not known");
	return 0;
}

/* Checks an offset by a number that the globals have beside the frames, as soon as they have it. */
static int check_globals(const struct language_module *m, const struct php_version *v,
			 uint64_t globals, struct reason *why)
{
	uint64_t size;

	if (m->read(m->arg, globals + v->page_size, &size, sizeof(size)))
		return -EAGAIN;
	if (!size)
		return -EAGAIN;
	if (size == PAGE_SIZE_OF_STACK || size == PAGE_SIZE_OF_FIBER)
		return 0;
	return refuse(why, v->name, "its variable executor_globals has other members");
}

/* Returns what zend_vm_kind() returns: mov $KIND,%eax; ret. 0: it is another function. */
static uint32_t vm_kind(const struct language_module *m, uint64_t addr)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[KIND_BYTES];
	const uint8_t *at = code;

	if (m->read(m->arg, addr, code, sizeof(code)))
		return 0;
	if (!memcmp(at, landing, sizeof(landing)))
		at += sizeof(landing);
	return at[0] == 0xb8 && at[5] == 0xc3 ? get32(at + 1) : 0;
}

static uint32_t bit(uint32_t offset)
{
	return 1u << (offset / 8 - 1);
}

/*
 * A function is known by what it is made of, by its name's hash and by the end of its file's name.
 * Code of eval() has no name, and its file's name, which tells the line of the eval(), has no hash:
 * all of its memory may be where that of other code of eval() was.
 */
static void set_identity(const struct php_version *v, struct language_target *t)
{
	t->key_words = bit(PHP_FUNCTION_NAME) | bit(PHP_FUNCTION_CLASS) |
		       bit(PHP_FUNCTION_ARGUMENTS) | bit(v->instructions) | bit(v->variables);
	t->behind[t->nr_behind++] =
		(struct language_behind){ PHP_FUNCTION_NAME / 8, PHP_STRING_HASH };
	t->behind[t->nr_behind++] =
		(struct language_behind){ v->instructions / 8, PHP_INSTRUCTION_LINE };
	t->tail = (struct language_tail){ v->file / 8, PHP_STRING_LENGTH, PHP_STRING_TEXT };
}

static void set_target(const struct php_version *v, uint64_t globals, struct language_target *t)
{
	const struct language_text text = {
		.length_at = PHP_STRING_LENGTH,
		.head = PHP_STRING_TEXT,
		.unit = 1,
	};

	t->base = globals;
	t->base_word_at = v->fiber;
	t->frames = (struct language_chain){ 1, { (int)v->current }, PHP_FRAME_CALLER };
	t->frame_bytes = PHP_FRAME_BYTES;
	t->code_at = PHP_FRAME_FUNCTION;
	t->flags_at = PHP_FRAME_FLAGS;
	t->kind_bits = PHP_CALL_TOP;
	t->code_mask = UINT64_MAX;
	/* The first byte is a kind of function, of which there are few. */
	t->type_mask = 0xf8;
	for (size_t i = 0; i < LANGUAGE_TEXTS; i++)
		t->texts[i] = text;
	t->texts[PHP_TEXT_NAME].word = PHP_FUNCTION_NAME / 8;
	t->texts[PHP_TEXT_FILE].word = v->file / 8;
	t->texts[PHP_TEXT_CLASS].word = PHP_FUNCTION_CLASS / 8;
	t->texts[PHP_TEXT_CLASS].via = PHP_CLASS_NAME;
	t->lines = (struct language_lines){ PHP_INSTRUCTION_BYTES, v->instructions / 8, v->count,
					    PHP_INSTRUCTION_LINE };
	set_identity(v, t);
}

int php_recognise(const struct language_module *m, struct language_found *ret, struct reason *why)
{
	const struct php_version *v;
	struct found f;
	int err;

	if (!find_symbols(m, &f, ret))
		return -ENOENT;
	if (f.threads)
		return refuse(why, "8", "a build with threads, which is not known");
	err = find_version(m, f.registry, &v, why);
	if (!err)
		err = check_globals(m, v, f.globals, why);
	if (err)
		return err;
	ret->version = v;
	ret->run_start = f.run;
	ret->run_end = f.run + f.run_size;
	ret->unsure_start = f.resume;
	ret->unsure_end = f.resume + f.resume_size;
	memcpy(ret->switches, f.switches, sizeof(ret->switches));
	ret->counted = true;
	php_find_publishing(m, f.code, f.code_size, f.globals + v->current, v->current, ret);
	set_target(v, f.globals, &ret->target);
	if (vm_kind(m, f.kind) == KIND_HYBRID)
		ret->target.live = (struct language_live){ f.run, f.run + f.run_size };
	return 0;
}
