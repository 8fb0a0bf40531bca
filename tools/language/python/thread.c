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
#include "libshstk/symbol/relocations.h"
#include "tools/elf/symbols.h"
#include "tools/language/python/python.h"

/* Instructions of arm64. */
#define CODE_BTI 0xd503245f /* bti c */
#define CODE_READ_POINTER 0xd53bd040 /* mrs x0, tpidr_el0 */
#define CODE_SUBTRACT 0xd1000000 /* sub x0, x0, #n, where n are these bits: */
#define CODE_NUMBER 0x003ffc00
#define CODE_NUMBER_SHIFT 10
#define CODE_RETURN 0xd65f03c0 /* ret */

static bool has_name(Elf *elf, const struct shstk_relocation_table *t, size_t symbol,
		     const char *wanted)
{
	const char *name;
	GElf_Sym sym;

	if (symbol > INT32_MAX || !gelf_getsym(t->symbols, (int)symbol, &sym))
		return false;
	name = elf_strptr(elf, t->names, sym.st_name);
	return name && !strcmp(name, wanted);
}

/* Returns the place at which the address of that function is, as a table of relocations says; 0: none. */
static uint64_t find_in(Elf *elf, const struct shstk_relocation_table *t, const char *wanted)
{
	GElf_Rela r;

	for (int i = 0; i < t->nr && gelf_getrela(t->entries, i, &r); i++) {
		const uint64_t type = GELF_R_TYPE(r.r_info);

		if ((type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT) &&
		    has_name(elf, t, GELF_R_SYM(r.r_info), wanted))
			return r.r_offset;
	}
	return 0;
}

/* Returns where the file has the address of pthread_self(); 0: it does not call it. */
static uint64_t find_place(Elf *elf, struct shstk_account *account)
{
	struct shstk_relocations relocations;
	uint64_t place = 0;

	shstk_relocations_read(elf, account, &relocations);
	for (unsigned int i = 0; !place && i < relocations.nr; i++)
		place = find_in(elf, &relocations.tables[i], "pthread_self");
	shstk_account_give(account, relocations.taken);
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
