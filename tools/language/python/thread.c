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

/* The symbols to which a table of relocations refers. */
struct relocated_symbols {
	Elf_Data *symbols;
	Elf *elf;
	size_t names;
};

/* Reads the symbols in that section. Returns false if there are none, or too many. */
static bool find_symbols(Elf *elf, size_t index, struct relocated_symbols *ret)
{
	Elf_Scn *section = elf_getscn(elf, index), *names;
	GElf_Shdr header, of_names;

	if (!section || !gelf_getshdr(section, &header) ||
	    header.sh_size > MAX_SYMBOLS * sizeof(Elf64_Sym))
		return false;
	names = elf_getscn(elf, header.sh_link);
	if (!names || !gelf_getshdr(names, &of_names) || of_names.sh_size > MAX_NAMES ||
	    !elf_names_end(elf, header.sh_link))
		return false;
	*ret = (struct relocated_symbols){ elf_getdata(section, NULL), elf, header.sh_link };
	return ret->symbols;
}

static bool has_name(const struct relocated_symbols *s, size_t symbol, const char *wanted)
{
	const char *name;
	GElf_Sym sym;

	if (symbol > INT32_MAX || !gelf_getsym(s->symbols, (int)symbol, &sym))
		return false;
	name = elf_strptr(s->elf, s->names, sym.st_name);
	return name && !strcmp(name, wanted);
}

/* Returns the place in a table of relocations at which the address of that function is; 0: none. */
static uint64_t find_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *wanted)
{
	struct relocated_symbols symbols;
	Elf_Data *data;
	GElf_Rela r;

	if (header->sh_size > MAX_RELOCATIONS * sizeof(Elf64_Rela) ||
	    !find_symbols(elf, header->sh_link, &symbols))
		return 0;
	data = elf_getdata(section, NULL);
	for (int i = 0; data && i < (int)MAX_RELOCATIONS && gelf_getrela(data, i, &r); i++) {
		const uint64_t type = GELF_R_TYPE(r.r_info);

		if ((type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT) &&
		    has_name(&symbols, GELF_R_SYM(r.r_info), wanted))
			return r.r_offset;
	}
	return 0;
}

/* Returns where the file has the address of pthread_self(); 0: it does not call it. */
static uint64_t find_place(Elf *elf, struct shstk_account *account)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	uint64_t place = 0;

	while (!place && (section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
		    !shstk_account_take(account, header.sh_size))
			continue;
		place = find_in(elf, section, &header, "pthread_self");
		shstk_account_give(account, header.sh_size);
	}
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
