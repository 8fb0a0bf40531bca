// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context_variable.c - finds the thread-local variable in which threads publish their trace contexts,
 * or another one.
 *
 * The variable is in the table of dynamic symbols, also of static programs, and is used by one of
 * three models (OTEP 4947, "Thread-Local Variable Resolution"). A program's own variables lie at a
 * fixed distance from the thread pointer. Of a library, the loader fills in words that its code
 * uses, and relocations tell where these are:
 *
 *	TLSDESC		a function and its argument: the distance, or the address of a module's
 *			number, an offset and a generation (struct tlsdesc_dynamic_arg of glibc)
 *	DTPMOD		the module's number
 *	TPOFF		the distance
 *
 * A library that does not let others replace the variable may have relocations without a symbol,
 * which are of the library's block: the symbol's value is the offset in it.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/symbol/elf_names.h"
#include "libshstk/symbol/relocations.h"
#include "tools/convert/context_variable.h"
#include "tools/elf/symbols.h"
#include "tools/language/language.h"

#define MAX_SYMBOLS (1u << 22)
#define MAX_NAMES (1u << 29) /* bytes */
#define MAX_MODULES (1u << 20)
#define MAX_DISTANCE (1ll << 32) /* from the thread pointer */

/* Kinds of relocations; their numbers depend on the machine. */
enum relocation { OTHER, TLSDESC, DTPMOD, TPOFF };

/**
 * struct search - the state of a search
 * @module: the file and the process.
 * @name: name of the variable's symbol.
 * @elf: the file.
 * @bias: what is added to an address in the file to get that in memory.
 * @symbols: section of the dynamic symbols.
 * @index: index of the variable's symbol.
 * @value: its value: its offset in the block of the file.
 * @kind: the relocation that was found.
 * @at: the address of the words that the loader fills in.
 * @addend: what the relocation adds.
 * @own: the relocation has the variable's symbol, not none.
 */
struct search {
	const struct language_module *module;
	const char *name;
	Elf *elf;
	uint64_t bias;
	Elf_Scn *symbols;
	size_t index;
	uint64_t value;
	enum relocation kind;
	uint64_t at;
	int64_t addend;
	bool own;
};

static enum relocation kind_of(GElf_Half machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_TLSDESC	 ? TLSDESC :
		       type == R_X86_64_DTPMOD64 ? DTPMOD :
		       type == R_X86_64_TPOFF64	 ? TPOFF :
						   OTHER;
	if (machine == EM_AARCH64)
		return type == R_AARCH64_TLSDESC    ? TLSDESC :
		       type == R_AARCH64_TLS_DTPMOD ? DTPMOD :
		       type == R_AARCH64_TLS_TPREL  ? TPOFF :
						      OTHER;
	return OTHER;
}

/* Returns the segment of thread-local data. */
static bool find_segment(Elf *elf, GElf_Word type, GElf_Phdr *ret)
{
	size_t nr;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, ret); i++)
		if (ret->p_type == type)
			return true;
	return false;
}

/* ---- Symbols ---- */

/* Looks for the variable in a table whose size was counted. */
static bool walk_symbols(struct search *s, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Sym sym;

	if (!nr || !elf_names_end(s->elf, header->sh_link))
		return false;
	for (size_t i = 0; i < nr && i < MAX_SYMBOLS && gelf_getsym(data, (int)i, &sym); i++) {
		const char *name;

		if (GELF_ST_TYPE(sym.st_info) != STT_TLS || sym.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(s->elf, header->sh_link, sym.st_name);
		if (!name || strcmp(name, s->name))
			continue;
		s->symbols = section;
		s->index = i;
		s->value = sym.st_value;
		return true;
	}
	return false;
}

static bool find_symbol(struct search *s)
{
	GElf_Shdr header, names;
	Elf_Scn *section = NULL;
	bool ret = false;
	uint64_t bytes;

	while ((section = elf_nextscn(s->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			break;
	if (!section || !gelf_getshdr(elf_getscn(s->elf, header.sh_link), &names) ||
	    header.sh_size > MAX_SYMBOLS * sizeof(Elf64_Sym) || names.sh_size > MAX_NAMES)
		return false;
	bytes = header.sh_size + names.sh_size;
	if (!shstk_account_take(s->module->account, bytes))
		return false;
	ret = walk_symbols(s, section, &header);
	shstk_account_give(s->module->account, bytes);
	return ret;
}

/* ---- Relocations ---- */

/* Takes a relocation, if it is better than the one that was found. */
static void take_relocation(struct search *s, GElf_Half machine, const GElf_Rela *r)
{
	const enum relocation kind = kind_of(machine, GELF_R_TYPE(r->r_info));
	const size_t symbol = GELF_R_SYM(r->r_info);

	if (kind == OTHER || (symbol && symbol != s->index) || s->own || (!symbol && s->kind))
		return;
	s->kind = kind;
	s->at = r->r_offset + s->bias;
	s->addend = r->r_addend;
	s->own = symbol;
}

static void walk_relocations(struct search *s, const struct shstk_relocation_table *t,
			     GElf_Half machine)
{
	GElf_Rela r;

	for (int i = 0; i < t->nr && gelf_getrela(t->entries, i, &r); i++)
		take_relocation(s, machine, &r);
}

static bool find_relocation(struct search *s)
{
	const size_t symbols = elf_ndxscn(s->symbols);
	struct shstk_relocations relocations;
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(s->elf, &ehdr))
		return false;
	shstk_relocations_read(s->elf, s->module->account, &relocations);
	for (unsigned int i = 0; i < relocations.nr; i++)
		if (relocations.tables[i].symbol_section == symbols)
			walk_relocations(s, &relocations.tables[i], ehdr.e_machine);
	shstk_account_give(s->module->account, relocations.taken);
	return s->kind != OTHER;
}

/* ---- Programs ---- */

/* Returns the flags DT_FLAGS_1 of a file, and whether it has the name of a library. */
static uint64_t read_dynamic(Elf *elf, bool *named)
{
	Elf_Scn *section = NULL;
	uint64_t flags = 0;
	GElf_Shdr header;
	Elf_Data *data;
	GElf_Dyn d;

	*named = false;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			break;
	data = section && header.sh_size < 1u << 16 ? elf_getdata(section, NULL) : NULL;
	for (int i = 0; data && gelf_getdyn(data, i, &d) && d.d_tag != DT_NULL; i++) {
		flags = d.d_tag == DT_FLAGS_1 ? d.d_un.d_val : flags;
		*named |= d.d_tag == DT_SONAME;
	}
	return flags;
}

/* Returns whether a file is a program. Position-independent ones look like libraries. */
static bool is_program(Elf *elf)
{
	uint64_t flags;
	GElf_Ehdr ehdr;
	GElf_Phdr p;
	bool named;

	if (!gelf_getehdr(elf, &ehdr) || ehdr.e_type == ET_EXEC)
		return true;
	flags = read_dynamic(elf, &named);
	return flags & DF_1_PIE || (!named && find_segment(elf, PT_INTERP, &p));
}

/*
 * Returns the distance of a program's block from the thread pointer, as the ABIs and linkers have it:
 * the block ends at the thread pointer of x86-64, and begins behind 16 bytes at that of arm64.
 */
static int64_t program_block(Elf *elf, const GElf_Phdr *p)
{
	const uint64_t mask = p->p_align ? p->p_align - 1 : 0;
	GElf_Ehdr ehdr;

	if (gelf_getehdr(elf, &ehdr) && ehdr.e_machine == EM_AARCH64)
		return (int64_t)(16 + ((p->p_vaddr - 16) & mask));
	return -(int64_t)(p->p_memsz + ((0 - p->p_vaddr - p->p_memsz) & mask));
}

/* ---- What the loader filled in ---- */

static int set_distance(uint64_t distance, struct context_variable *ret)
{
	if ((int64_t)distance > MAX_DISTANCE || (int64_t)distance < -MAX_DISTANCE)
		return -ENOENT;
	*ret = (struct context_variable){ .offset = (int64_t)distance };
	return 0;
}

static int set_module(const struct search *s, uint64_t module, uint64_t generation,
		      struct context_variable *ret)
{
	if (!module)
		return -EAGAIN;
	if (module > MAX_MODULES)
		return -ENOENT;
	*ret = (struct context_variable){ module, (int64_t)s->value, generation };
	return 0;
}

/*
 * The argument of a descriptor is an address if what lies there is what glibc puts there; otherwise
 * it is a distance.
 */
static int take_descriptor(const struct search *s, uint64_t argument, struct context_variable *ret)
{
	const uint64_t offset = s->addend + (s->own ? s->value : 0);
	struct {
		uint64_t module, offset, generation;
	} dynamic;

	if (!s->module->read(s->module->arg, argument, &dynamic, sizeof(dynamic)) &&
	    dynamic.module && dynamic.module <= MAX_MODULES && dynamic.offset == offset)
		return set_module(s, dynamic.module, dynamic.generation, ret);
	return set_distance(argument - offset + s->value, ret);
}

static int read_words(const struct search *s, struct context_variable *ret)
{
	uint64_t words[2] = { 0 };

	if (s->module->read(s->module->arg, s->at, words,
			    s->kind == TLSDESC ? sizeof(words) : sizeof(*words)))
		return -EAGAIN;
	switch (s->kind) {
	case TLSDESC:
		return words[0] && words[1] ? take_descriptor(s, words[1], ret) : -EAGAIN;
	case DTPMOD:
		return set_module(s, words[0], 0, ret);
	default:
		return words[0] ?
			       set_distance(words[0] - (s->own ? 0 : s->addend - s->value), ret) :
			       -EAGAIN;
	}
}

static int find(struct search *s, struct context_variable *ret)
{
	GElf_Phdr p;

	if (!find_segment(s->elf, PT_TLS, &p) || !find_symbol(s))
		return -ENOENT;
	if (is_program(s->elf))
		return set_distance(program_block(s->elf, &p) + s->value, ret);
	if (!symbols_bias(s->elf, s->module->start, s->module->offset, &s->bias) ||
	    !find_relocation(s))
		return -ENOENT;
	return read_words(s, ret);
}

int context_variable_find(const struct language_module *module, const char *name,
			  struct context_variable *ret)
{
	struct search s = { .module = module, .name = name };
	int err;

	s.elf = shstk_elf_begin(module->fd);
	if (!s.elf)
		return -ENOENT;
	err = find(&s, ret);
	elf_end(s.elf);
	return err;
}
