// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread.c - how far what pthread_self() returns lies below the thread pointer.
 *
 * On x86-64 both are the same. On arm64 glibc's block of a thread (struct pthread) ends at the thread
 * pointer, and its size differs between versions. pthread_self() subtracts it, and Python calls that
 * when it begins: so the program's own table of functions of libraries has the address of pthread_self()
 * by then, and the instructions there tell the size. They count only if they are the ones expected.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/symbol/elf_names.h"
#include "tools/elf/symbols.h"
#include "tools/language/python/python.h"

#define MAX_TABLES 4 /* linkers make two: one of functions, and one of all else */
#define MAX_RELOCATIONS (1u << 20)
#define MAX_SYMBOLS (1u << 20)
#define MAX_NAMES (1u << 26) /* bytes */

/* Instructions of arm64. */
#define CODE_BTI 0xd503245f /* bti c */
#define CODE_READ_POINTER 0xd53bd040 /* mrs x0, tpidr_el0 */
#define CODE_SUBTRACT 0xd1000000 /* sub x0, x0, #n, where n are these bits: */
#define CODE_NUMBER 0x003ffc00
#define CODE_NUMBER_SHIFT 10
#define CODE_RETURN 0xd65f03c0 /* ret */

/* A table of relocations: its section, the symbols to which it refers, the section of their names, and all its bytes. */
struct table {
	Elf_Scn *relocations;
	Elf_Scn *symbols;
	size_t names;
	uint64_t bytes;
};

/*
 * Finds what belongs to a section. Returns false if it is no table of relocations that are made when the file
 * is loaded, or one that is too large.
 */
static bool find_table(Elf *elf, Elf_Scn *section, struct table *ret)
{
	GElf_Shdr relocations, symbols, names;

	if (!gelf_getshdr(section, &relocations) || relocations.sh_type != SHT_RELA ||
	    !gelf_getshdr(elf_getscn(elf, relocations.sh_link), &symbols) ||
	    symbols.sh_type != SHT_DYNSYM ||
	    !gelf_getshdr(elf_getscn(elf, symbols.sh_link), &names))
		return false;
	*ret = (struct table){
		.relocations = section,
		.symbols = elf_getscn(elf, relocations.sh_link),
		.names = symbols.sh_link,
		.bytes = relocations.sh_size + symbols.sh_size + names.sh_size,
	};
	return relocations.sh_size <= MAX_RELOCATIONS * sizeof(Elf64_Rela) &&
	       symbols.sh_size <= MAX_SYMBOLS * sizeof(Elf64_Sym) && names.sh_size <= MAX_NAMES;
}

static bool has_name(Elf *elf, size_t names, Elf_Data *symbols, size_t symbol, const char *wanted)
{
	const char *name;
	GElf_Sym sym;

	if (symbol > INT32_MAX || !gelf_getsym(symbols, (int)symbol, &sym))
		return false;
	name = elf_strptr(elf, names, sym.st_name);
	return name && !strcmp(name, wanted);
}

/* Returns the place at which the address of that function is, as a table of relocations says; 0: none. */
static uint64_t find_in(Elf *elf, const struct table *t, const char *wanted)
{
	Elf_Data *data = elf_getdata(t->relocations, NULL);
	Elf_Data *symbols = elf_names_end(elf, t->names) ? elf_getdata(t->symbols, NULL) : NULL;
	GElf_Rela r;

	if (!data || !symbols)
		return 0;
	for (int i = 0; i < (int)MAX_RELOCATIONS && gelf_getrela(data, i, &r); i++) {
		const uint64_t type = GELF_R_TYPE(r.r_info);

		if ((type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT) &&
		    has_name(elf, t->names, symbols, GELF_R_SYM(r.r_info), wanted))
			return r.r_offset;
	}
	return 0;
}

/*
 * Returns where the file has the address of pthread_self(); 0: it does not call it. What libelf has read of
 * one table stays in memory until the file is closed, and a file may say that it has any number of them.
 */
static uint64_t find_place(Elf *elf, struct shstk_account *account)
{
	uint64_t place = 0, taken = 0;
	unsigned int tables = 0;
	Elf_Scn *section = NULL;
	struct table t;

	while (!place && tables < MAX_TABLES && (section = elf_nextscn(elf, section))) {
		if (!find_table(elf, section, &t))
			continue;
		tables++;
		if (!shstk_account_take(account, t.bytes))
			break;
		taken += t.bytes;
		place = find_in(elf, &t, "pthread_self");
	}
	shstk_account_give(account, taken);
	return place;
}

bool python_thread_distance(const uint32_t *code, uint64_t *ret)
{
	const uint32_t *c = code + (*code == CODE_BTI);

	if (c[0] != CODE_READ_POINTER || (c[1] & ~(uint32_t)CODE_NUMBER) != CODE_SUBTRACT ||
	    c[2] != CODE_RETURN)
		return false;
	*ret = (c[1] & CODE_NUMBER) >> CODE_NUMBER_SHIFT;
	return true;
}

int python_find_thread(const struct language_module *m, Elf *elf, uint64_t bias, uint64_t *ret)
{
	uint64_t place = find_place(elf, m->account), at;
	uint32_t code[PYTHON_SELF_CODE];

	if (!place)
		return -ENOENT;
	if (m->read(m->arg, place + bias, &at, sizeof(at)) ||
	    m->read(m->arg, at, code, sizeof(code)))
		return -EAGAIN;
	/* Before the first call there is an address of the program's own. */
	return python_thread_distance(code, ret) ? 0 : -EAGAIN;
}
