// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * symtab.c - sorted function symbols, and function starts without a name.
 *
 * Tens of thousands of symbols are sorted for some dozens of addresses. They are sorted by the
 * bytes of their addresses, which takes an eighth of the time of comparing them.
 */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "../unaligned.h"
#include "budget.h"
#include "demangle.h"
#include "elf_file.h"
#include "elf_names.h"
#include "haskell.h"
#include "starts.h"
#include "symtab.h"

/* Number of entries that a search goes back to find one that encloses the address. */
#define BACK_MAX 64

static bool is_function(const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !name || !*name)
		return false;
	/* Markers of code and data within a section on arm64. */
	if (name[0] == '$' && (name[1] == 'x' || name[1] == 'd') && (!name[2] || name[2] == '.'))
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/*
 * Returns the rank of a name: of several names for one address the highest is shown. It should be
 * the name that a program calls rather than the library's own alias. So a name with a size and a
 * function type comes first, then an exported one before a local one, then one with fewer leading
 * underscores.
 */
static uint8_t rank(const GElf_Sym *sym, const char *name)
{
	unsigned int rank = 0, underscores = 0;

	if (sym->st_size)
		rank |= 64;
	if (GELF_ST_TYPE(sym->st_info) != STT_NOTYPE)
		rank |= 32;
	if (GELF_ST_BIND(sym->st_info) != STB_LOCAL)
		rank |= 16;
	if (!shstk_is_mangled(name))
		while (underscores < 15 && name[underscores] == '_')
			underscores++;
	return rank | (15 - underscores);
}

static int append(struct shstk_symtab *tab, const struct shstk_sym *sym,
		  struct shstk_account *account)
{
	struct shstk_sym *syms;

	syms = shstk_account_grow(account, tab->syms, tab->nr, &tab->max, sizeof(*syms));
	if (!syms)
		return -ENOMEM;
	tab->syms = syms;
	tab->syms[tab->nr++] = *sym;
	return 0;
}

/* Returns the end of the executable section that a symbol is in, or 0. */
static uint64_t section_end(Elf *elf, const GElf_Sym *sym)
{
	GElf_Shdr shdr;

	if (sym->st_shndx >= SHN_LORESERVE ||
	    !gelf_getshdr(elf_getscn(elf, sym->st_shndx), &shdr) ||
	    !(shdr.sh_flags & SHF_EXECINSTR) || sym->st_value < shdr.sh_addr ||
	    sym->st_value - shdr.sh_addr >= shdr.sh_size)
		return 0;
	return shdr.sh_addr + shdr.sh_size;
}

static int add_symbol(struct shstk_symtab *tab, Elf *elf, const GElf_Sym *sym, const char *name,
		      struct shstk_account *account)
{
	uint64_t end = section_end(elf, sym);
	struct shstk_sym new = {
		.addr = sym->st_value,
		.size = sym->st_size,
		.name = name,
		.sized = sym->st_size,
		.rank = rank(sym, name),
	};

	if (!end)
		return 0;
	if (!new.sized || new.size > end - new.addr)
		new.size = end - new.addr;
	return append(tab, &new, account);
}

/*
 * Takes memory for the symbols and their names, which libelf copies whole. Returns false if there
 * is none.
 */
static bool afford(Elf *elf, const GElf_Shdr *shdr, struct shstk_account *account)
{
	GElf_Shdr names;

	return gelf_getshdr(elf_getscn(elf, shdr->sh_link), &names) &&
	       names.sh_size <= SIZE_MAX / 4 && shdr->sh_size <= SIZE_MAX / 4 &&
	       shstk_account_take(account, shdr->sh_size + names.sh_size);
}

static int add_section(struct shstk_symtab *tab, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr,
		       struct shstk_account *account)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	const char *name;
	GElf_Sym sym;
	int i, err;

	if (!elf_names_end(elf, shdr->sh_link))
		return 0;
	for (i = 0; data && gelf_getsym(data, i, &sym); i++) {
		name = elf_strptr(elf, shdr->sh_link, sym.st_name);
		tab->haskell |= name && shstk_is_haskell_runtime(name);
		if (!is_function(&sym, name))
			continue;
		err = add_symbol(tab, elf, &sym, name, account);
		if (err)
			return err;
	}
	return 0;
}

int shstk_symtab_add(struct shstk_symtab *tab, Elf *elf, bool copied, uint32_t type,
		     struct shstk_account *account)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	int err = 0;

	while (!err && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type)
			continue;
		if (copied && !afford(elf, &shdr, account))
			return -ENOMEM;
		err = add_section(tab, elf, scn, &shdr, account);
	}
	return err;
}

/* Returns whether @x is shown rather than @y, of symbols at one address. */
static bool is_better(const struct shstk_sym *x, const struct shstk_sym *y)
{
	size_t lx, ly;

	if (x->rank != y->rank)
		return x->rank > y->rank;
	lx = strnlen(x->name, 256);
	ly = strnlen(y->name, 256);
	if (lx != ly)
		return lx < ly;
	return strncmp(x->name, y->name, 256) < 0;
}

/* The address of a symbol, and its index in the table. */
struct indexed_address {
	uint64_t addr;
	uint64_t index;
};

/* Copies @nr places from @from to @to, sorted by one byte of their addresses. */
static void sort_by_byte(const struct indexed_address *from, struct indexed_address *to, size_t nr,
			 int shift)
{
	size_t at[256] = { 0 }, sum = 0, n;

	for (size_t i = 0; i < nr; i++)
		at[from[i].addr >> shift & 0xff]++;
	for (int i = 0; i < 256; i++) {
		n = at[i];
		at[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < nr; i++)
		to[at[from[i].addr >> shift & 0xff]++] = from[i];
}

/*
 * Returns all places sorted by address, those of one address in the order of the table. It sorts by
 * each byte, from the lowest to the highest. @room is the memory to free. NULL when memory runs
 * out.
 */
static struct indexed_address *sort_places(const struct shstk_symtab *tab,
					   struct indexed_address **room)
{
	struct indexed_address *places = reallocarray(NULL, tab->nr, 2 * sizeof(*places));
	struct indexed_address *from = places, *to = places + tab->nr, *swap;
	uint64_t bits = 0;

	*room = places;
	if (!places)
		return NULL;
	for (size_t i = 0; i < tab->nr; i++) {
		from[i] = (struct indexed_address){ tab->syms[i].addr, i };
		bits |= from[i].addr;
	}
	for (int shift = 0; shift < 64 && bits >> shift; shift += 8) {
		sort_by_byte(from, to, tab->nr, shift);
		swap = from;
		from = to;
		to = swap;
	}
	return from;
}

/*
 * Returns the best symbol of each address, sorted by address, and their number in @nr. NULL when
 * memory runs out.
 */
static struct shstk_sym *take_best(const struct shstk_symtab *tab, size_t *nr)
{
	struct shstk_sym *ret = reallocarray(NULL, tab->nr, sizeof(*ret)), *last = ret;
	struct indexed_address *room, *places = sort_places(tab, &room);
	const struct shstk_sym *sym;

	if (!ret || !places) {
		free(ret);
		free(room);
		return NULL;
	}
	*last = tab->syms[places[0].index];
	for (size_t i = 1; i < tab->nr; i++) {
		sym = &tab->syms[places[i].index];
		if (sym->addr != last->addr)
			*++last = *sym;
		else if (is_better(sym, last))
			*last = *sym;
	}
	*nr = last - ret + 1;
	free(room);
	return ret;
}

void shstk_symtab_finish(struct shstk_symtab *tab)
{
	struct shstk_sym *syms;
	size_t nr = 0;

	if (!tab->nr)
		return;
	syms = take_best(tab, &nr);
	free(tab->syms);
	tab->syms = syms;
	tab->nr = tab->max = nr;
	for (size_t i = 0; i + 1 < nr; i++) {
		struct shstk_sym *sym = syms + i;

		if (!sym->sized && sym->size > sym[1].addr - sym->addr)
			sym->size = sym[1].addr - sym->addr;
	}
}

void shstk_symtab_deinit(struct shstk_symtab *tab)
{
	free(tab->syms);
	memset(tab, 0, sizeof(*tab));
}

static bool covers(const struct shstk_sym *sym, uint64_t addr)
{
	return addr - sym->addr < sym->size;
}

const struct shstk_sym *shstk_symtab_find(const struct shstk_symtab *tab, uint64_t addr)
{
	const struct shstk_sym *nearest, *sym;
	size_t lo = 0, hi = tab->nr, mid;
	int back;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (tab->syms[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	nearest = tab->syms + lo - 1;
	/* A sized function that encloses the address comes before a label inside it. */
	for (sym = nearest, back = 0; back < BACK_MAX; sym--, back++) {
		if (sym->sized && covers(sym, addr))
			return sym;
		if (sym == tab->syms)
			break;
	}
	return covers(nearest, addr) ? nearest : NULL;
}

/*
 * .eh_frame_hdr has four bytes that say how the rest is encoded, then the address of .eh_frame, the
 * number of entries and the sorted entries: start of a function and address of its description,
 * both as 32-bit distances from the header. Every linker writes this one form.
 */
#define ENC_FORMAT(enc) ((enc)&0x0f)
#define ENC_ABSPTR 0x00
#define ENC_UDATA4 0x03
#define ENC_UDATA8 0x04
#define ENC_SDATA4 0x0b
#define ENC_SDATA8 0x0c
#define ENC_DATAREL_SDATA4 0x3b

static const uint8_t *parse_header(const uint8_t *p, size_t size, bool is64, size_t *nr)
{
	size_t skip;

	if (size < 4 || p[0] != 1 || p[2] != ENC_UDATA4 || p[3] != ENC_DATAREL_SDATA4)
		return NULL;
	switch (ENC_FORMAT(p[1])) {
	case ENC_UDATA4:
	case ENC_SDATA4:
		skip = 4;
		break;
	case ENC_UDATA8:
	case ENC_SDATA8:
		skip = 8;
		break;
	case ENC_ABSPTR:
		skip = is64 ? 8 : 4;
		break;
	default:
		return NULL;
	}
	if (size < 8 + skip)
		return NULL;
	*nr = get32(p + 4 + skip);
	if (*nr > (size - 8 - skip) / 8)
		return NULL;
	return p + 8 + skip;
}

void shstk_starts_init(struct shstk_starts *starts, Elf *elf, int fd, struct shstk_account *account)
{
	const char *ident = elf_getident(elf, NULL);
	Elf_Data *data;
	GElf_Phdr phdr;
	size_t nr, i;

	memset(starts, 0, sizeof(*starts));
	starts->fd = shstk_elf_copied(fd) ? fd : -1;
	if (!ident || ident[EI_DATA] != ELFDATA2LSB || elf_getphdrnum(elf, &nr))
		return;
	for (i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_GNU_EH_FRAME)
			continue;
		if (starts->fd >= 0 &&
		    (phdr.p_filesz > SIZE_MAX / 4 || !shstk_account_take(account, phdr.p_filesz)))
			return;
		data = elf_getdata_rawchunk(elf, phdr.p_offset, phdr.p_filesz, ELF_T_BYTE);
		if (!data)
			return;
		starts->elf = elf;
		starts->hdr = phdr.p_vaddr;
		starts->table = parse_header(data->d_buf, data->d_size,
					     ident[EI_CLASS] == ELFCLASS64, &starts->nr);
		return;
	}
}

static uint64_t start_at(const struct shstk_starts *starts, size_t i)
{
	return starts->hdr + (int32_t)get32(starts->table + 8 * i);
}

#define FDE 16 /* bytes of a description that are read */

/*
 * Copies the first 16 bytes of a description, as they are in almost every file: length, distance of
 * its CIE, start relative to this field, size. The bytes come from the segment that has the
 * address. Returns false if they cannot be had.
 */
static bool description(const struct shstk_starts *starts, uint64_t addr, uint8_t ret[FDE])
{
	GElf_Phdr phdr;
	uint64_t at;
	size_t nr, i;

	if (elf_getphdrnum(starts->elf, &nr))
		return false;
	for (i = 0; i < nr; i++) {
		if (!gelf_getphdr(starts->elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    addr < phdr.p_vaddr || phdr.p_filesz < FDE ||
		    addr - phdr.p_vaddr > phdr.p_filesz - FDE)
			continue;
		at = addr - phdr.p_vaddr;
		return shstk_elf_read(starts->elf, starts->fd, phdr.p_offset + at, ret, FDE);
	}
	return false;
}

uint64_t shstk_starts_find(const struct shstk_starts *starts, uint64_t addr)
{
	size_t lo = 0, hi = starts->nr, mid;
	uint64_t start, where;
	uint8_t fde[FDE];

	if (!starts->table)
		return 0;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (start_at(starts, mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return 0;
	start = start_at(starts, lo - 1);
	where = starts->hdr + (int32_t)get32(starts->table + 8 * (lo - 1) + 4);
	if (!description(starts, where, fde) || where + 8 + (int32_t)get32(fde + 8) != start ||
	    addr - start >= get32(fde + 12))
		return 0;
	return start;
}
