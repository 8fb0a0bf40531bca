// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * lines.c - reads source lines of addresses from .debug_line, with bounded memory and time.
 *
 * The lines of a unit are a program for a machine that adds rows to a table: one byte can be a row,
 * and a megabyte of a compressed file can be a thousand million rows. libdw keeps all of them, each
 * in 56 bytes, and its interface has no bound. So they are read here: memory comes from an account,
 * and only those rows that an address can be found in are kept, in 16 bytes each.
 *
 *	header	how the program is to be read; folders; files
 *	program	opcodes that change the machine's address, file and line, and add rows; the rows
 *		of a sequence ascend, and an opcode tells where the last one ends
 *
 * A table is read when the first address needs it, in one pass over its bytes.
 */
#include <dwarf.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "bytes.h"
#include "elf_file.h"
#include "hash.h"
#include "lines.h"
#include "ranges.h"

#define FORMATS_MAX 16 /* formats that describe an entry; compilers write five */

enum line_section { LINE, LINE_STR, STR, SECTIONS };

/* A file or a folder. */
struct file_entry {
	const uint8_t *name;
	uint32_t dir;
	uint8_t section; /* enum line_section that @name lies in */
};

struct file_entries {
	struct file_entry *v;
	size_t nr;
	size_t max;
};

/* A row: the code from @addr up to the next row comes from this file and line. */
struct line_row {
	uint64_t addr;
	uint32_t file;
	uint32_t line;
};

/**
 * struct line_table - the lines of a unit
 * @hh: link in the list of all tables, by @offset.
 * @offset: offset of the table in .debug_line.
 * @bad: the table cannot be read, or the account does not have the memory for it.
 * @was_run: the program was run: @rows and @sequences are filled.
 * @version: version of DWARF.
 * @wide: offsets have 64 bits.
 * @min_length: smallest length of an instruction, in bytes.
 * @line_base: smallest number that a special opcode adds to the line.
 * @line_range: number of different values that a special opcode can add to the line.
 * @opcode_base: the first special opcode.
 * @lengths: number of arguments of each standard opcode, from opcode 1 on.
 * @program: bytes of the program.
 * @dirs: folders, by the numbers that the program gives them, less @first.
 * @files: files, by the numbers that the program gives them, less @first.
 * @first: number of the first file.
 * @rows: rows of all sequences.
 * @nr_rows: number of rows.
 * @max_rows: number of rows that @rows has room for.
 * @sequences: sequences by address; the low 32 bits of the value are the number of rows, the high
 *	32 bits the index of the first row.
 */
struct line_table {
	UT_hash_handle hh;
	uint64_t offset;
	bool bad;
	bool was_run;
	unsigned int version;
	bool wide;
	uint8_t min_length;
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	const uint8_t *lengths;
	struct shstk_bytes program;
	struct file_entries dirs;
	struct file_entries files;
	unsigned int first;
	struct line_row *rows;
	size_t nr_rows;
	size_t max_rows;
	struct shstk_ranges sequences;
};

struct shstk_lines {
	struct shstk_account *account;
	struct shstk_bytes sections[SECTIONS];
	struct line_table *tables;
};

/* ---- Header ---- */

/* Passes over a string. Returns false if it has no end. */
static bool string(struct shstk_bytes *from, const uint8_t **ret)
{
	const uint8_t *zero = memchr(from->p, '\0', from->end - from->p);

	*ret = from->p;
	if (!zero)
		return false;
	from->p = zero + 1;
	return true;
}

static bool add_entry(struct shstk_account *account, struct file_entries *entries,
		      const struct file_entry *new)
{
	struct file_entry *v =
		shstk_account_grow(account, entries->v, entries->nr, &entries->max, sizeof(*v));

	if (!v)
		return false;
	entries->v = v;
	v[entries->nr++] = *new;
	return true;
}

/* Reads the folders of a table before DWARF 5: strings up to an empty one. */
static bool read_dirs(struct shstk_account *account, struct line_table *table,
		      struct shstk_bytes *from)
{
	struct file_entry entry = { .section = LINE };

	while (string(from, &entry.name)) {
		if (!*entry.name)
			return true;
		if (!add_entry(account, &table->dirs, &entry))
			return false;
	}
	return false;
}

static bool read_file(struct shstk_bytes *from, struct file_entry *ret)
{
	uint64_t dir, time, length;

	*ret = (struct file_entry){ .section = LINE };
	if (!string(from, &ret->name))
		return false;
	if (!*ret->name)
		return true;
	if (!bytes_uleb(from, &dir) || !bytes_uleb(from, &time) || !bytes_uleb(from, &length))
		return false;
	ret->dir = dir < UINT32_MAX ? dir : UINT32_MAX;
	return true;
}

static bool read_files(struct shstk_account *account, struct line_table *table,
		       struct shstk_bytes *from)
{
	struct file_entry entry;

	while (read_file(from, &entry)) {
		if (!*entry.name)
			return true;
		if (!add_entry(account, &table->files, &entry))
			return false;
	}
	return false;
}

/* A field that each entry has, since DWARF 5. */
struct format {
	uint64_t type;
	uint64_t form;
};

static bool read_formats(struct shstk_bytes *from, struct format *formats, uint64_t *nr)
{
	if (!bytes_fixed(from, 1, nr) || *nr > FORMATS_MAX)
		return false;
	for (uint64_t i = 0; i < *nr; i++)
		if (!bytes_uleb(from, &formats[i].type) || !bytes_uleb(from, &formats[i].form))
			return false;
	return true;
}

/* Reads the offset of a string in another section, and sets @ret to that string. */
static bool string_at(const struct shstk_lines *lines, enum line_section section, bool wide,
		      struct shstk_bytes *from, struct file_entry *ret)
{
	const struct shstk_bytes *in = &lines->sections[section];
	uint64_t offset;

	if (!bytes_fixed(from, wide ? 8 : 4, &offset))
		return false;
	if (in->p && offset < (uint64_t)(in->end - in->p)) {
		ret->name = in->p + offset;
		ret->section = section;
	}
	return true;
}

/* Reads a name, or passes over what stands in its place. */
static bool read_name(const struct shstk_lines *lines, bool wide, uint64_t form,
		      struct shstk_bytes *from, struct file_entry *ret)
{
	uint64_t number;

	switch (form) {
	case DW_FORM_string:
		ret->section = LINE;
		return string(from, &ret->name);
	case DW_FORM_line_strp:
		return string_at(lines, LINE_STR, wide, from, ret);
	case DW_FORM_strp:
		return string_at(lines, STR, wide, from, ret);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return bytes_skip(from, wide ? 8 : 4);
	case DW_FORM_strx:
		return bytes_uleb(from, &number);
	default:
		return false;
	}
}

static bool read_number(uint64_t form, struct shstk_bytes *from, uint64_t *ret)
{
	*ret = 0;
	switch (form) {
	case DW_FORM_udata:
		return bytes_uleb(from, ret);
	case DW_FORM_data1:
		return bytes_fixed(from, 1, ret);
	case DW_FORM_data2:
		return bytes_fixed(from, 2, ret);
	case DW_FORM_data4:
		return bytes_fixed(from, 4, ret);
	case DW_FORM_data8:
		return bytes_fixed(from, 8, ret);
	case DW_FORM_data16:
		return bytes_skip(from, 16);
	case DW_FORM_block:
		return bytes_uleb(from, ret) && bytes_skip(from, *ret);
	default:
		return false;
	}
}

static bool is_name(uint64_t form)
{
	switch (form) {
	case DW_FORM_string:
	case DW_FORM_line_strp:
	case DW_FORM_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strx:
		return true;
	default:
		return false;
	}
}

static bool read_field(const struct shstk_lines *lines, const struct line_table *table,
		       const struct format *format, struct shstk_bytes *from,
		       struct file_entry *entry)
{
	struct file_entry other;
	uint64_t number;

	if (is_name(format->form))
		return read_name(lines, table->wide, format->form, from,
				 format->type == DW_LNCT_path ? entry : &other);
	if (!read_number(format->form, from, &number))
		return false;
	if (format->type == DW_LNCT_directory_index)
		entry->dir = number < UINT32_MAX ? number : UINT32_MAX;
	return true;
}

/* Reads folders or files, since DWARF 5. Each entry has a field, so each takes at least a byte. */
static bool read_entries(const struct shstk_lines *lines, const struct line_table *table,
			 struct shstk_bytes *from, struct file_entries *ret)
{
	struct format formats[FORMATS_MAX];
	uint64_t nr_formats, nr;

	if (!read_formats(from, formats, &nr_formats) || !bytes_uleb(from, &nr))
		return false;
	if (nr && !nr_formats)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		struct file_entry entry = { 0 };

		for (uint64_t f = 0; f < nr_formats; f++)
			if (!read_field(lines, table, &formats[f], from, &entry))
				return false;
		if (!add_entry(lines->account, ret, &entry))
			return false;
	}
	return true;
}

/* Reads the header up to its length, behind which the program begins. */
static bool read_version(struct line_table *table, struct shstk_bytes *from)
{
	uint64_t version, length;

	if (!bytes_fixed(from, 2, &version) || version < 2 || version > 5)
		return false;
	table->version = version;
	/* Sizes of addresses and of segment selectors. */
	if (version == 5 && !bytes_skip(from, 2))
		return false;
	if (!bytes_fixed(from, table->wide ? 8 : 4, &length) ||
	    length > (uint64_t)(from->end - from->p))
		return false;
	table->program = (struct shstk_bytes){ from->p + length, from->end };
	from->end = from->p + length;
	return true;
}

static bool read_machine(struct line_table *table, struct shstk_bytes *from)
{
	uint64_t min_length, max_ops = 1, is_stmt, base, range, opcode_base;

	if (!bytes_fixed(from, 1, &min_length) ||
	    (table->version >= 4 && !bytes_fixed(from, 1, &max_ops)) ||
	    !bytes_fixed(from, 1, &is_stmt) || !bytes_fixed(from, 1, &base) ||
	    !bytes_fixed(from, 1, &range) || !bytes_fixed(from, 1, &opcode_base))
		return false;
	/* More than one operation in an instruction exists on no machine that is supported here. */
	if (max_ops > 1 || !range || !opcode_base)
		return false;
	table->min_length = min_length;
	table->line_base = base;
	table->line_range = range;
	table->opcode_base = opcode_base;
	table->lengths = from->p;
	return bytes_skip(from, opcode_base - 1);
}

static bool read_header(struct shstk_lines *lines, struct line_table *table)
{
	struct shstk_bytes all = lines->sections[LINE], from;

	if (!all.p || !bytes_skip(&all, table->offset) || !bytes_unit(&all, &table->wide, &from) ||
	    !read_version(table, &from) || !read_machine(table, &from))
		return false;
	if (table->version >= 5)
		return read_entries(lines, table, &from, &table->dirs) &&
		       read_entries(lines, table, &from, &table->files);
	table->first = 1;
	return read_dirs(lines->account, table, &from) && read_files(lines->account, table, &from);
}

/* ---- Program ---- */

/**
 * struct line_machine - the state that the program changes
 * @account: account of the file.
 * @table: table that the program belongs to.
 * @from: the rest of the program.
 * @now: the next row.
 * @first: index of the first row of the sequence.
 */
struct line_machine {
	struct shstk_account *account;
	struct line_table *table;
	struct shstk_bytes from;
	struct line_row now;
	size_t first;
};

static void reset(struct line_machine *m)
{
	m->now = (struct line_row){ .file = 1, .line = 1 };
	m->first = m->table->nr_rows;
}

/*
 * Makes the rows since @first a sequence that ends before @end. Returns false when memory runs out.
 */
static bool end_sequence(struct line_machine *m, uint64_t end)
{
	struct line_table *table = m->table;
	size_t nr = table->nr_rows - m->first;
	uint64_t start = nr ? table->rows[m->first].addr : 0;

	/* Code that the linker dropped lies at address 0. */
	if (!start || start >= end) {
		table->nr_rows = m->first;
		return true;
	}
	return table->nr_rows < UINT32_MAX && shstk_ranges_add(&table->sequences, m->account, start,
							       end, (uint64_t)m->first << 32 | nr);
}

static bool add_row(struct line_machine *m)
{
	struct line_table *table = m->table;
	struct line_row *last = table->nr_rows > m->first ? table->rows + table->nr_rows - 1 : NULL;
	struct line_row *rows;

	/* Of several rows for one address the last one is right. */
	if (last && last->addr == m->now.addr) {
		*last = m->now;
		return true;
	}
	if (last && last->file == m->now.file && last->line == m->now.line &&
	    last->addr < m->now.addr)
		return true;
	/* Addresses in a sequence ascend: where they go back, another sequence begins. */
	if (last && last->addr > m->now.addr) {
		if (!end_sequence(m, last->addr))
			return false;
		m->first = table->nr_rows;
	}
	rows = shstk_account_grow(m->account, table->rows, table->nr_rows, &table->max_rows,
				  sizeof(*rows));
	if (!rows)
		return false;
	table->rows = rows;
	rows[table->nr_rows++] = m->now;
	return true;
}

static void advance(struct line_machine *m, uint64_t instructions)
{
	m->now.addr += instructions * m->table->min_length;
}

static bool special(struct line_machine *m, uint8_t opcode)
{
	unsigned int n = opcode - m->table->opcode_base;

	advance(m, n / m->table->line_range);
	m->now.line += m->table->line_base + n % m->table->line_range;
	return add_row(m);
}

static bool define_file(struct line_machine *m, struct shstk_bytes from)
{
	struct file_entry entry;

	return read_file(&from, &entry) && add_entry(m->account, &m->table->files, &entry);
}

/*
 * Runs an extended opcode: a zero, a length, and so many bytes, the first of which is the opcode.
 */
static bool extended(struct line_machine *m)
{
	struct shstk_bytes from = m->from;
	uint64_t length, opcode, end;

	if (!bytes_uleb(&m->from, &length))
		return false;
	from.p = m->from.p;
	if (!length || !bytes_skip(&m->from, length))
		return false;
	from.end = m->from.p;
	bytes_fixed(&from, 1, &opcode);
	switch (opcode) {
	case DW_LNE_end_sequence:
		end = m->now.addr;
		if (!end_sequence(m, end))
			return false;
		reset(m);
		return true;
	case DW_LNE_set_address:
		return length - 1 <= 8 && bytes_fixed(&from, length - 1, &m->now.addr);
	case DW_LNE_define_file:
		return define_file(m, from);
	default:
		return true;
	}
}

/* Passes over an opcode that is not known here. The header tells how many arguments it has. */
static bool skip_arguments(struct line_machine *m, uint8_t opcode)
{
	uint64_t value;

	for (unsigned int n = m->table->lengths[opcode - 1]; n; n--)
		if (!bytes_uleb(&m->from, &value))
			return false;
	return true;
}

static bool standard(struct line_machine *m, uint8_t opcode)
{
	uint64_t value;
	int64_t lines;

	switch (opcode) {
	case DW_LNS_copy:
		return add_row(m);
	case DW_LNS_advance_pc:
		if (!bytes_uleb(&m->from, &value))
			return false;
		advance(m, value);
		return true;
	case DW_LNS_advance_line:
		if (!bytes_sleb(&m->from, &lines))
			return false;
		m->now.line += lines;
		return true;
	case DW_LNS_set_file:
		if (!bytes_uleb(&m->from, &value))
			return false;
		m->now.file = value < UINT32_MAX ? value : UINT32_MAX;
		return true;
	case DW_LNS_const_add_pc:
		advance(m, (255 - m->table->opcode_base) / m->table->line_range);
		return true;
	case DW_LNS_fixed_advance_pc:
		if (!bytes_fixed(&m->from, 2, &value))
			return false;
		m->now.addr += value;
		return true;
	default:
		return skip_arguments(m, opcode);
	}
}

/* Runs one opcode. It takes at least a byte from the program. */
static bool step(struct line_machine *m)
{
	uint8_t opcode = *m->from.p++;

	if (opcode >= m->table->opcode_base)
		return special(m, opcode);
	return opcode ? standard(m, opcode) : extended(m);
}

static bool run(struct shstk_lines *lines, struct line_table *table)
{
	struct line_machine m = {
		.account = lines->account,
		.table = table,
		.from = table->program,
	};
	bool ok = shstk_account_begin(lines->account);

	reset(&m);
	for (uint32_t steps = 1; ok && m.from.p < m.from.end; steps++) {
		ok = step(&m);
		if (ok && !(steps % SHSTK_ACCOUNT_STEPS))
			ok = shstk_account_on(lines->account);
	}
	shstk_ranges_sort(&table->sequences);
	shstk_account_end(lines->account);
	return ok;
}

/* ---- Tables ---- */

static void empty(struct shstk_lines *lines, struct line_table *table)
{
	shstk_account_give(lines->account,
			   (table->dirs.max + table->files.max) * sizeof(struct file_entry) +
				   table->max_rows * sizeof(*table->rows));
	shstk_ranges_deinit(&table->sequences, lines->account);
	free(table->dirs.v);
	free(table->files.v);
	free(table->rows);
	table->dirs = table->files = (struct file_entries){ 0 };
	table->rows = NULL;
	table->nr_rows = table->max_rows = 0;
}

static struct line_table *add_table(struct shstk_lines *lines, uint64_t offset)
{
	struct line_table *table = NULL;

	if (shstk_account_take(lines->account, sizeof(*table)))
		table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	table->offset = offset;
	HASH_ADD(hh, lines->tables, offset, sizeof(table->offset), table);
	if (!table->hh.tbl) {
		free(table);
		return NULL;
	}
	table->bad = !shstk_account_begin(lines->account) || !read_header(lines, table);
	shstk_account_end(lines->account);
	if (table->bad)
		empty(lines, table);
	return table;
}

/* Returns the table at @offset, or NULL if it cannot be read. */
static struct line_table *get_table(struct shstk_lines *lines, uint64_t offset)
{
	struct line_table *table;

	HASH_FIND(hh, lines->tables, &offset, sizeof(offset), table);
	if (!table)
		table = add_table(lines, offset);
	return table && !table->bad ? table : NULL;
}

static struct line_table *get_rows(struct shstk_lines *lines, uint64_t offset)
{
	struct line_table *table = get_table(lines, offset);

	if (!table || table->was_run)
		return table;
	table->was_run = true;
	table->bad = !run(lines, table);
	if (!table->bad)
		return table;
	empty(lines, table);
	return NULL;
}

struct shstk_lines *shstk_lines_create(Elf *elf, struct shstk_account *account)
{
	static const char *const names[] = {
		[LINE] = ".debug_line",
		[LINE_STR] = ".debug_line_str",
		[STR] = ".debug_str",
	};
	struct shstk_lines *lines = calloc(1, sizeof(*lines));
	const char *ident = elf_getident(elf, NULL);

	if (!lines)
		return NULL;
	lines->account = account;
	/* All machines that are supported here are little endian. */
	for (int i = 0; ident && ident[EI_DATA] == ELFDATA2LSB && i < SECTIONS; i++)
		lines->sections[i] = shstk_elf_bytes(elf, names[i]);
	return lines;
}

void shstk_lines_destroy(struct shstk_lines *lines)
{
	struct line_table *table, *next;

	if (!lines)
		return;
	HASH_ITER(hh, lines->tables, table, next)
	{
		HASH_DEL(lines->tables, table);
		empty(lines, table);
		shstk_account_give(lines->account, sizeof(*table));
		free(table);
	}
	free(lines);
}

/* Returns the last row at or before @addr, in the sequence that covers it. */
static const struct line_row *find_row(const struct line_table *table, uint64_t addr)
{
	const struct shstk_range *sequence = shstk_ranges_find(&table->sequences, addr);
	size_t lo, hi, mid;

	if (!sequence)
		return NULL;
	lo = sequence->value >> 32;
	hi = lo + (uint32_t)sequence->value;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (table->rows[mid].addr <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return table->rows + lo;
}

/* Returns the name of an entry; NULL if it has no end, or is longer than any path. */
static const char *text(const struct shstk_lines *lines, const struct file_entry *entry)
{
	size_t left;

	if (!entry->name)
		return NULL;
	left = lines->sections[entry->section].end - entry->name;
	if (left > PATH_MAX)
		left = PATH_MAX;
	return memchr(entry->name, '\0', left) ? (const char *)entry->name : NULL;
}

static bool name_file(const struct shstk_lines *lines, const struct line_table *table,
		      uint64_t number, struct shstk_line *ret)
{
	const struct file_entry *file;
	uint64_t dir;

	if (number < table->first || number - table->first >= table->files.nr)
		return false;
	file = table->files.v + (number - table->first);
	ret->file = text(lines, file);
	ret->dir = "";
	/* Before DWARF 5, number 0 is the folder of the compilation, which is not in the list. */
	dir = (uint64_t)file->dir - table->first;
	if (file->dir >= table->first && dir < table->dirs.nr)
		ret->dir = text(lines, table->dirs.v + dir);
	return ret->file && ret->dir;
}

bool shstk_lines_find(struct shstk_lines *lines, uint64_t offset, uint64_t addr,
		      struct shstk_line *ret)
{
	struct line_table *table = get_rows(lines, offset);
	const struct line_row *row = table ? find_row(table, addr) : NULL;

	if (!row || !name_file(lines, table, row->file, ret))
		return false;
	ret->line = row->line;
	return true;
}

bool shstk_lines_file(struct shstk_lines *lines, uint64_t offset, uint64_t number,
		      struct shstk_line *ret)
{
	const struct line_table *table = get_table(lines, offset);

	return table && name_file(lines, table, number, ret);
}
