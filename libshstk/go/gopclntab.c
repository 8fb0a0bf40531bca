// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gopclntab.c - finds Go's table of functions in an image, and reads it; see gopclntab.h.
 *
 * The table is a header, the starts of all functions in ascending order, and several
 * heaps: names, files, descriptions of functions, and strings of pairs (difference of a
 * value, number of instructions), one string for each function and kind of value.
 *
 * The table has a section, but the section's name depends on the release and the linker,
 * and sections may be stripped. Then the table is searched by its first bytes. Other
 * addresses that are needed are in the runtime's moduledata, which is found by its first
 * two words, the addresses of the table and of its names.
 */
#include <elf.h>
#include <errno.h>
#include <sys/mman.h>

#include "gopclntab.h"
#include "unaligned.h"

#define PC_VALUES_MAX (1u << 20) /* most pairs that are read for one address */
#define CANDIDATES_MAX 64 /* most places that are checked because they begin like a table */
#define NAME_MAX_BYTES 65536
#define WORD 8

/* Indexes of words in moduledata, since Go 1.16; MD_OLD_* before that. */
enum {
	MD_NAMES = 1,
	MD_TEXT = 22,
	MD_GOFUNC_1_18 = 38,
	MD_GOFUNC_1_20 = 40,
	MD_GOFUNC_1_27 = 43,
	MD_OLD_NFUNC = 4,
	MD_OLD_TEXT = 12,
};

/* Indexes in the lists of a function's tables. */
enum {
	PCDATA_INLINE = 2,
	FUNCDATA_INLINE = 3,
	FUNCDATA_INLINE_OLD = 4,
};

/* ---- Words of the image ---- */

static bool is_relative(const struct gopclntab *g, const uint8_t *rela)
{
	switch (get64(rela + WORD) & UINT32_MAX) {
	case R_X86_64_RELATIVE:
		return g->img->m->elf_machine == EM_X86_64;
	case R_AARCH64_RELATIVE:
		return g->img->m->elf_machine == EM_AARCH64;
	default:
		return false;
	}
}

static const uint8_t *rela_at(const struct gopclntab *g, size_t i)
{
	return g->rela + i * sizeof(Elf64_Rela);
}

static uint64_t rela_place(const struct gopclntab *g, size_t i)
{
	return get64(rela_at(g, i));
}

static uint64_t rela_addend(const struct gopclntab *g, size_t i)
{
	return get64(rela_at(g, i) + 2 * WORD);
}

/* Returns the index of the relocation of the word at @vaddr, or @g->nrela if there is none. */
static size_t find_rela(const struct gopclntab *g, uint64_t vaddr)
{
	size_t lo = 0, n = g->nrela, half;

	while (g->rela_sorted && n > 1) {
		half = n / 2;
		if (rela_place(g, lo + half) <= vaddr)
			lo += half;
		n -= half;
	}
	for (; lo < g->nrela; lo++) {
		if (rela_place(g, lo) == vaddr)
			return lo;
		if (g->rela_sorted)
			break;
	}
	return g->nrela;
}

bool gopclntab_word(const struct gopclntab *g, uint64_t vaddr, uint64_t *ret)
{
	size_t i = find_rela(g, vaddr), avail;
	const uint8_t *p;

	if (i < g->nrela && is_relative(g, rela_at(g, i))) {
		*ret = rela_addend(g, i);
		return true;
	}
	p = elf_image_at(g->img, vaddr, &avail);
	if (!p || avail < WORD)
		return false;
	*ret = get64(p) - (get64(p) ? g->moved : 0);
	return true;
}

/* Finds the relocations that .dynamic names. */
static void find_relas(struct gopclntab *g)
{
	const struct section *dyn = &g->img->dynamic;
	uint64_t at = 0, size = 0;
	size_t i, avail;

	if (g->img->in_memory)
		return; /* the loader has applied them */
	for (i = 0; dyn->size - i >= sizeof(Elf64_Dyn); i += sizeof(Elf64_Dyn)) {
		uint64_t tag = get64(dyn->data + i), value = get64(dyn->data + i + WORD);

		if (tag == DT_NULL)
			break;
		if (tag == DT_RELA)
			at = value;
		if (tag == DT_RELASZ)
			size = value;
	}
	g->rela = at ? elf_image_at(g->img, at, &avail) : NULL;
	if (!g->rela)
		return;
	g->nrela = min((uint64_t)avail, size) / sizeof(Elf64_Rela);
	g->rela_sorted = true;
	for (i = 1; i < g->nrela && g->rela_sorted; i++)
		g->rela_sorted = rela_place(g, i - 1) <= rela_place(g, i);
}

/* ---- The header ---- */

static bool form_of(uint32_t magic, uint8_t *form)
{
	switch (magic) {
	case 0xfffffffb:
		*form = GO_1_2;
		return true;
	case 0xfffffffa:
		*form = GO_1_16;
		return true;
	case 0xfffffff0:
		*form = GO_1_18;
		return true;
	case 0xfffffff1:
		*form = GO_1_20;
		return true;
	default:
		return false;
	}
}

/* Returns the size of an entry in the starts of functions, in bytes. */
static size_t entry_size(const struct gopclntab *g)
{
	return g->form < GO_1_18 ? 2 * WORD : 8;
}

/* Reads a header up to Go 1.15: there are no heaps, and all offsets are from the table's start. */
static bool parse_old_header(struct gopclntab *g)
{
	size_t end = 2 * WORD + g->nfunc * (size_t)(2 * WORD) + WORD;

	g->functab = 2 * WORD;
	if (end > g->size - 4)
		return false;
	g->files = get32(g->data + end);
	return g->files < g->size;
}

static bool parse_new_header(struct gopclntab *g)
{
	const uint8_t *p = g->data + 3 * WORD + (g->form >= GO_1_18 ? WORD : 0);
	size_t *const heap[] = { &g->names, &g->cutab, &g->files, &g->pctab, &g->funcs };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(heap); i++) {
		uint64_t off = get64(p + i * WORD);

		if (off >= g->size)
			return false;
		*heap[i] = off;
	}
	g->functab = g->funcs;
	return g->nfunc < (g->size - g->functab) / entry_size(g);
}

/* Tells whether @data begins like a table for the image's machine. */
static bool is_magic(const struct gopclntab *g, const uint8_t *data, uint8_t *form)
{
	return form_of(get32(data), form) && !data[4] && !data[5] &&
	       data[6] == g->img->m->insn_align && data[7] == WORD;
}

/*
 * Tells whether the bytes at @vaddr are a table, and if so fills in all of @g that its header
 * tells.
 */
static bool parse_header(struct gopclntab *g, const uint8_t *data, size_t size, uint64_t vaddr)
{
	uint64_t nfunc;

	if (size < 9 * WORD || !is_magic(g, data, &g->form))
		return false;
	nfunc = get64(data + WORD);
	if (!nfunc || nfunc > min(size / 8, (size_t)(1u << 26)))
		return false;
	g->data = data;
	g->size = size;
	g->vaddr = vaddr;
	g->quantum = data[6];
	g->nfunc = nfunc;
	g->names = g->cutab = g->pctab = g->funcs = 0;
	if (g->form == GO_1_2 ? parse_old_header(g) : parse_new_header(g))
		return true;
	g->nfunc = 0;
	return false;
}

/* ---- moduledata ---- */

/* Tells whether the runtime's moduledata for the table lies at @at. */
static bool is_moduledata(const struct gopclntab *g, uint64_t at)
{
	uint64_t v;

	if (!gopclntab_word(g, at, &v) || v != g->vaddr)
		return false;
	if (g->form == GO_1_2) /* this word is a number, so it was not moved */
		return gopclntab_word(g, at + MD_OLD_NFUNC * WORD, &v) &&
		       v + g->moved == g->nfunc + 1ull;
	return gopclntab_word(g, at + MD_NAMES * WORD, &v) && v == g->vaddr + g->names;
}

/* Finds a moduledata whose first word a relocation fills with the table's address. */
static uint64_t moduledata_by_rela(const struct gopclntab *g)
{
	unsigned int tries = CANDIDATES_MAX;
	size_t i;

	for (i = 0; i < g->nrela && tries; i++) {
		if (rela_addend(g, i) != g->vaddr || !is_relative(g, rela_at(g, i)))
			continue;
		tries--;
		if (is_moduledata(g, rela_place(g, i)))
			return rela_place(g, i);
	}
	return 0;
}

/*
 * Returns the bytes of a segment from its first whole word on; *@at receives the virtual address of
 * that word. Returns NULL if the file has none of them.
 */
static const uint8_t *segment_words(const struct gopclntab *g, const struct load *l, uint64_t *at,
				    size_t *avail)
{
	*at = ALIGN_UP(l->vaddr, WORD);
	return elf_image_at(g->img, *at, avail);
}

/* Finds a moduledata whose first word holds the table's address. */
static uint64_t moduledata_by_word(const struct gopclntab *g)
{
	unsigned int i, tries = CANDIDATES_MAX;

	for (i = 0; i < g->img->nload; i++) {
		const struct load *l = &g->img->load[i];
		uint64_t at;
		size_t avail, off;
		const uint8_t *p = segment_words(g, l, &at, &avail);

		if (!l->write || !p)
			continue;
		for (off = 0; avail - off >= WORD && tries; off += WORD) {
			if (get64(p + off) != g->vaddr + g->moved)
				continue;
			tries--;
			if (is_moduledata(g, at + off))
				return at + off;
		}
	}
	return 0;
}

static bool is_code_at(const struct gopclntab *g, uint64_t vaddr)
{
	unsigned int i;

	for (i = 0; i < g->img->nload; i++) {
		const struct load *l = &g->img->load[i];

		if (l->exec && vaddr - l->vaddr < l->filesz)
			return true;
	}
	return false;
}

/*
 * Returns the address that inlining trees are relative to, or 0. Its place in moduledata
 * depends on the release. Since Go 1.26, whose table has no text address (@has_text), the
 * address of the end of the table follows it, which shows the right place.
 */
static uint64_t find_gofunc(const struct gopclntab *g, bool has_text)
{
	static const uint8_t later[] = { MD_GOFUNC_1_27, MD_GOFUNC_1_20 };
	uint64_t v, end;
	unsigned int i;
	size_t avail;

	if (g->form >= GO_1_18 && has_text) {
		i = g->form == GO_1_18 ? MD_GOFUNC_1_18 : MD_GOFUNC_1_20;
		if (gopclntab_word(g, g->moduledata + i * WORD, &v) &&
		    elf_image_at(g->img, v, &avail))
			return v;
		return 0;
	}
	for (i = 0; g->form >= GO_1_20 && i < ARRAY_SIZE(later); i++) {
		uint64_t at = g->moduledata + later[i] * WORD;

		if (gopclntab_word(g, at, &v) && elf_image_at(g->img, v, &avail) &&
		    gopclntab_word(g, at + WORD, &end) && end > g->vaddr + g->funcs &&
		    end <= g->vaddr + g->size)
			return v;
	}
	return 0;
}

/* Finds what the header does not tell: where code begins, and where inlining trees lie. */
static int find_bases(struct gopclntab *g)
{
	unsigned int word = g->form == GO_1_2 ? MD_OLD_TEXT : MD_TEXT;
	uint64_t text = 0;

	if (g->form >= GO_1_18)
		gopclntab_word(g, g->vaddr + 3 * WORD, &text);
	g->moduledata = moduledata_by_word(g);
	if (!g->moduledata)
		g->moduledata = moduledata_by_rela(g);
	if (g->moduledata) {
		g->gofunc = find_gofunc(g, text);
		if (!text)
			gopclntab_word(g, g->moduledata + word * WORD, &text);
	}
	g->text = text;
	/* Before Go 1.18 each start of a function is an address, so @text is not needed. */
	return g->form < GO_1_18 || is_code_at(g, text) ? 0 : -ENOENT;
}

/* ---- Starts of functions ---- */

/*
 * Gathers the starts of functions from relocations, as is needed for position-independent programs
 * before Go 1.18.
 */
static int gather_starts(struct gopclntab *g)
{
	uint64_t first = g->vaddr + g->functab;
	size_t i;

	if (g->form >= GO_1_18 || !g->nrela)
		return 0;
	g->start_bytes = ALIGN_UP((g->nfunc + 1ull) * sizeof(*g->start), 4096);
	g->start = mmap(NULL, g->start_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (g->start == MAP_FAILED) {
		g->start = NULL;
		return -ENOMEM;
	}
	for (i = 0; i <= g->nfunc; i++)
		g->start[i] = get64(g->data + g->functab + i * 2 * WORD) - g->img->lo;
	for (i = 0; i < g->nrela; i++) {
		uint64_t at = rela_place(g, i) - first;

		if (at % (2 * WORD) == 0 && at / (2 * WORD) <= g->nfunc &&
		    is_relative(g, rela_at(g, i)))
			g->start[at / (2 * WORD)] = rela_addend(g, i) - g->img->lo;
	}
	return 0;
}

/* Returns where function @i starts. The start of number @g->nfunc is the end of the last one. */
static uint64_t start_of(const struct gopclntab *g, size_t i)
{
	const uint8_t *p = g->data + g->functab + i * entry_size(g);

	if (g->start)
		return g->img->lo + g->start[i];
	return g->form < GO_1_18 ? get64(p) - g->moved : g->text + get32(p);
}

static uint64_t place_of(const struct gopclntab *g, size_t i)
{
	const uint8_t *p = g->data + g->functab + i * entry_size(g);

	return g->funcs + (g->form < GO_1_18 ? get64(p + WORD) : get32(p + 4));
}

/* ---- Finding the table ---- */

static bool try_section(struct gopclntab *g)
{
	const struct section *s = &g->img->gopclntab;

	return s->size && parse_header(g, s->data, s->size, s->vaddr);
}

/* Searches the table by its first bytes in all segments that are not code. */
static bool try_segments(struct gopclntab *g)
{
	unsigned int i, tries = CANDIDATES_MAX;

	for (i = 0; i < g->img->nload; i++) {
		const struct load *l = &g->img->load[i];
		uint64_t at;
		size_t avail, off;
		const uint8_t *p = segment_words(g, l, &at, &avail);
		uint8_t form;

		if (l->exec || !p)
			continue;
		for (off = 0; avail - off >= 9 * WORD && tries; off += WORD) {
			if (!is_magic(g, p + off, &form))
				continue;
			tries--;
			if (parse_header(g, p + off, avail - off, at + off))
				return true;
		}
	}
	return false;
}

/* Tells whether @img may be a Go program: it says so, or it has no sections. */
static bool may_be_go(const struct elf_image *img)
{
	return img->gopclntab.size || img->go_buildinfo.size || !img->nsection;
}

int shstk_gopclntab_init(struct gopclntab *g, const struct elf_image *img, uint64_t moved)
{
	int err;

	memset(g, 0, sizeof(*g));
	if (!may_be_go(img) || (img->m != &machine_x86 && img->m != &machine_arm64))
		return -ENOENT;
	g->img = img;
	g->moved = moved;
	if (!try_section(g) && !try_segments(g))
		return -ENOENT;
	find_relas(g);
	err = find_bases(g);
	if (!err)
		err = gather_starts(g);
	if (err)
		g->nfunc = 0;
	return err;
}

void shstk_gopclntab_deinit(struct gopclntab *g)
{
	if (g->start)
		munmap(g->start, g->start_bytes);
	g->start = NULL;
	g->nfunc = 0;
}

int shstk_gofile_init(struct gofile *f, const void *data, size_t size)
{
	int err = elf_image_parse(&f->img, data, size, false);

	f->tab.nfunc = 0;
	f->tab.start = NULL;
	return err ? err : shstk_gopclntab_init(&f->tab, &f->img, 0);
}

void shstk_gofile_deinit(struct gofile *f)
{
	shstk_gopclntab_deinit(&f->tab);
}

/* ---- One function ---- */

/* Returns the last function that starts at or below @vaddr, or @g->nfunc if there is none. */
static size_t search(const struct gopclntab *g, uint64_t vaddr)
{
	size_t lo = 0, n = g->nfunc;

	while (n) {
		size_t half = n / 2;

		if (start_of(g, lo + half) <= vaddr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo ? lo - 1 : g->nfunc;
}

/* Returns the bytes of a description in front of its lists. */
static size_t fixed_size(const struct gopclntab *g)
{
	static const uint8_t size[] = {
		[GO_1_2] = 40,
		[GO_1_16] = 44,
		[GO_1_18] = 40,
		[GO_1_20] = 44,
	};

	return size[g->form];
}

/*
 * Returns the address of the tree of a function's inlined calls, or 0, from the list of @n entries
 * at offset @at.
 */
static uint64_t tree_of(const struct gopclntab *g, size_t at, unsigned int n)
{
	unsigned int i = g->form == GO_1_2 ? FUNCDATA_INLINE_OLD : FUNCDATA_INLINE;
	uint64_t v;

	if (i >= n)
		return 0;
	if (g->form >= GO_1_18) {
		if (at > g->size || g->size - at < 4 * (i + 1))
			return 0;
		v = get32(g->data + at + 4 * i);
		return g->gofunc && v != UINT32_MAX ? g->gofunc + v : 0;
	}
	at += -(g->vaddr + at) & (WORD - 1);
	return gopclntab_word(g, g->vaddr + at + i * WORD, &v) ? v : 0;
}

/* Decodes the description of a function at offset @at. */
static bool get_func(const struct gopclntab *g, uint64_t at, struct gofunc *f)
{
	size_t head = g->form < GO_1_18 ? WORD : 4, fixed = fixed_size(g);
	const uint8_t *p, *last;
	uint32_t npcdata;

	if (at > g->size || g->size - at < fixed)
		return false;
	p = g->data + at + head;
	last = g->data + at + fixed - 4;
	npcdata = get32(p + 24);
	f->name = get32(p);
	f->pcsp = get32(p + 12);
	f->pcfile = get32(p + 16);
	f->pcln = get32(p + 20);
	f->cu = g->form >= GO_1_16 ? get32(p + 28) : 0;
	f->start_line = g->form >= GO_1_20 ? (int32_t)get32(p + 32) : 0;
	f->id = last[0];
	f->flag = last[1];
	f->pcinline = 0;
	f->tree = 0;
	at += fixed;
	if (npcdata > PCDATA_INLINE && npcdata <= (g->size - at) / 4) {
		f->pcinline = get32(g->data + at + 4 * PCDATA_INLINE);
		f->tree = tree_of(g, at + 4 * (size_t)npcdata, last[3]);
	}
	return true;
}

bool shstk_gopclntab_get(const struct gopclntab *g, size_t i, struct gofunc *f)
{
	f->entry = start_of(g, i);
	f->end = start_of(g, i + 1);
	return f->entry < f->end && get_func(g, place_of(g, i), f);
}

bool shstk_gopclntab_find(const struct gopclntab *g, uint64_t vaddr, struct gofunc *f)
{
	size_t i = search(g, vaddr);

	return i != g->nfunc && shstk_gopclntab_get(g, i, f) && vaddr < f->end;
}

/* Returns the string at offset @at, or NULL if it does not end. */
static const char *text_at(const struct gopclntab *g, uint64_t at)
{
	const uint8_t *p = g->data + at;

	if (at >= g->size || !memchr(p, '\0', min(g->size - at, (uint64_t)NAME_MAX_BYTES)))
		return NULL;
	return (const char *)p;
}

const char *shstk_gopclntab_name(const struct gopclntab *g, const struct gofunc *f)
{
	return text_at(g, g->names + (uint64_t)f->name);
}

/* ---- Values by address ---- */

static bool get_varint(const struct gopclntab *g, size_t *at, uint32_t *ret)
{
	unsigned int shift;
	uint32_t v = 0;

	for (shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (*at >= g->size)
			return false;
		byte = g->data[(*at)++];
		v |= (uint32_t)(byte & 0x7f) << (shift < 32 ? shift : 31);
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* A position in a string of pairs: up to @pc, which is not included, the value is @value. */
struct values {
	size_t at;
	uint64_t pc;
	uint32_t value;
	bool begun;
};

static struct values values_of(const struct gopclntab *g, uint32_t table, const struct gofunc *f)
{
	return (struct values){ g->pctab + (size_t)table, f->entry, UINT32_MAX, false };
}

/* Reads the next pair. Returns false if there is none. */
static bool next_value(const struct gopclntab *g, struct values *v)
{
	uint32_t diff, step;

	if (!get_varint(g, &v->at, &diff) || (!diff && v->begun) || !get_varint(g, &v->at, &step) ||
	    !step)
		return false;
	v->begun = true;
	v->value += diff & 1 ? ~(diff >> 1) : diff >> 1;
	v->pc += (uint64_t)step * g->quantum;
	return true;
}

/*
 * Reads the value at @vaddr from the string of pairs at @table; *@end receives the address at
 * which the next value begins. Returns false if the string does not reach @vaddr.
 */
static bool value_until(const struct gopclntab *g, uint32_t table, const struct gofunc *f,
			uint64_t vaddr, int32_t *ret, uint64_t *end)
{
	struct values v = values_of(g, table, f);
	unsigned int i;

	for (i = 0; table && i < PC_VALUES_MAX && next_value(g, &v); i++)
		if (vaddr < v.pc) {
			*ret = v.value;
			*end = v.pc;
			return true;
		}
	return false;
}

static bool value_at(const struct gopclntab *g, uint32_t table, const struct gofunc *f,
		     uint64_t vaddr, int32_t *ret)
{
	uint64_t end;

	return value_until(g, table, f, vaddr, ret, &end);
}

bool shstk_gopclntab_sp_end(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			    uint64_t *end)
{
	int32_t delta;

	return value_until(g, f->pcsp, f, vaddr, &delta, end);
}

bool shstk_gopclntab_spdelta(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
			     int32_t *ret)
{
	return value_at(g, f->pcsp, f, vaddr, ret) && *ret >= 0 && !(*ret & 7);
}

int32_t shstk_gopclntab_frame_size(const struct gopclntab *g, const struct gofunc *f)
{
	struct values v = values_of(g, f->pcsp, f);
	unsigned int i;

	for (i = 0; f->pcsp && i < PC_VALUES_MAX && next_value(g, &v); i++)
		if (v.value)
			return v.value & 7 ? 0 : (int32_t)v.value;
	return 0;
}

/* ---- Files, lines, inlined calls ---- */

static const char *file_of(const struct gopclntab *g, const struct gofunc *f, int32_t n)
{
	uint64_t at;

	if (n < 0)
		return NULL;
	at = g->form == GO_1_2 ? g->files + 4ull * n : g->cutab + 4 * ((uint64_t)f->cu + n);
	if (at > g->size || g->size - at < 4)
		return NULL;
	at = get32(g->data + at);
	if (g->form == GO_1_2)
		return text_at(g, at);
	return at == UINT32_MAX ? NULL : text_at(g, g->files + at);
}

static void put_place(const struct gopclntab *g, const struct gofunc *f, uint64_t vaddr,
		      struct goline *l)
{
	int32_t v;

	l->file = value_at(g, f->pcfile, f, vaddr, &v) ? file_of(g, f, v) : NULL;
	l->line = value_at(g, f->pcln, f, vaddr, &v) && v > 0 ? v : 0;
}

/*
 * Reads inlined call number @i. *@parent receives where the call lies, relative to the function's
 * entry. Returns false if it can't be read.
 */
static bool get_inlined(const struct gopclntab *g, const struct gofunc *f, int32_t i,
			struct goline *l, int32_t *parent)
{
	bool old = g->form < GO_1_20;
	size_t size = old ? 20 : 16, avail;
	const uint8_t *p = elf_image_at(g->img, f->tree + (uint64_t)i * size, &avail);

	if (!p || avail < size)
		return false;
	l->function = text_at(g, g->names + (uint64_t)get32(p + (old ? 12 : 4)));
	*parent = get32(p + (old ? 16 : 8));
	l->start_line = old ? 0 : get32(p + 12);
	l->inlined = true;
	return l->function;
}

unsigned int shstk_gopclntab_lines(const struct gopclntab *g, uint64_t vaddr, struct goline *ret,
				   unsigned int max)
{
	unsigned int n = 0;
	int32_t i, parent;
	struct gofunc f;

	if (!max || !shstk_gopclntab_find(g, vaddr, &f))
		return 0;
	while (f.tree && n + 1 < max && value_at(g, f.pcinline, &f, vaddr, &i) && i >= 0 &&
	       get_inlined(g, &f, i, &ret[n], &parent)) {
		put_place(g, &f, vaddr, &ret[n++]);
		vaddr = f.entry + parent;
		if (parent < 0 || vaddr >= f.end)
			break;
	}
	ret[n].function = shstk_gopclntab_name(g, &f);
	if (!ret[n].function)
		return 0;
	put_place(g, &f, vaddr, &ret[n]);
	ret[n].start_line = max(f.start_line, 0);
	ret[n].inlined = false;
	return n + 1;
}
