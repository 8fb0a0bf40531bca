/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h - tables of unwind rules: which table a file has, and what the table says.
 *
 * A table is an array map of blocks with the bytes of linux/shstk_rules.h. User space fills it and
 * is not trusted: whatever a table says, no read leaves the table.
 */
#ifndef BPF_TABLE_H
#define BPF_TABLE_H

#include "program.h"

#define WALK_PAGE 4096
#define BLOCK_WORDS (WALK_BLOCK / 4)
#define MOST_ROWS_SHIFT 11 /* a page has at most 2 << 11 rows */
#define USUAL_ROWS 256 /* a page seldom has more rows */

struct table_block {
	u32 word[BLOCK_WORDS];
};

struct table_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct table_block));
};

/* The tables by slot. */
struct {
	SHARED_MAP
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WALK_SLOTS);
	__type(key, u32);
	__array(values, struct table_map);
} MAP(tables) SEC(".maps");

/* The slots by file; 0: the file was asked for. */
struct {
	SHARED_MAP
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WALK_FILES);
	__type(key, struct walk_file);
	__type(value, u32);
} MAP(files) SEC(".maps");

/* The files that are asked for: struct walk_asked. */
struct {
	SHARED_MAP
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WALK_ASKED);
} MAP(asked) SEC(".maps");

/*
 * Rules that were looked up before, by the last bits of their key: slot of the table, and offset in what
 * the table covers. Slots are never reused, so this stays valid.
 */
#define REMEMBERED 2048 /* as many as fit into an element of a per-CPU map */

struct remembered {
	struct packed_rule rule[REMEMBERED];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct remembered);
} MAP(rules) SEC(".maps");

/* Reads word @at of a table. Returns false if the table has no such word. */
static __always_inline bool read_word(void *table, u32 at, u32 *ret)
{
	u32 number = at / BLOCK_WORDS;
	struct table_block *b = bpf_map_lookup_elem(table, &number);

	if (!b)
		return false;
	*ret = b->word[MASKED(at, BLOCK_WORDS)];
	return true;
}

static __always_inline bool read_rule(void *table, u32 number, u64 *ret)
{
	u32 at = sizeof(struct shstk_rules_header) / 4 + 2 * number, low, high;

	if (!read_word(table, at, &low) || !read_word(table, at + 1, &high))
		return false;
	*ret = (u64)high << 32 | low;
	return true;
}

/*
 * Finds the last of @n rows from @first on that begins at @in within the page or before. All rows
 * lie in one block.
 */
#define BISECT(block, first, n, in, most)                                             \
	({                                                                            \
		u64 row = first, end = row + (n);                                     \
		int step;                                                             \
                                                                                      \
		_Pragma("unroll") for (step = most; step; step >>= 1)                 \
		{                                                                     \
			u64 at = row + step;                                          \
			u64 word = (block)->word[MASKED(at, BLOCK_WORDS)];            \
                                                                                      \
			row += step * (BELOW(at, end) & BELOW(word >> 16, (in) + 1)); \
		}                                                                     \
		row;                                                                  \
	})

/* Does the same for rows of table @slot that lie in several blocks. */
VERIFIED_ALONE u64 shstk_bisect_blocks(u32 slot, u64 first, u64 n, u64 in)
{
	void *table = bpf_map_lookup_elem(&MAP(tables), &slot);
	u64 row = first, end = first + n;
	int step;

	if (!table)
		return first;
	for (step = 1 << MOST_ROWS_SHIFT; step; step >>= 1) {
		u64 at = row + step;
		u32 word = 0;

		if (!read_word(table, at, &word))
			at = end;
		row += step * (BELOW(at, end) & BELOW(word >> 16, in + 1));
	}
	return row;
}

/*
 * Sets @ret to the row of table @slot that is valid at @in within the page, from the @n rows that begin at
 * word @first. Returns false if the table does not have it.
 */
static __always_inline bool find_row(void *table, u32 slot, u32 first, u32 n, u64 in, u32 *ret)
{
	u32 number = first / BLOCK_WORDS, last = (first + n - 1) / BLOCK_WORDS;
	u64 at = MASKED(first, BLOCK_WORDS);
	struct table_block *b;

	if (number != last)
		return read_word(table, shstk_bisect_blocks(slot, first, n, in), ret);
	b = bpf_map_lookup_elem(table, &number);
	if (!b)
		return false;
	if (n > USUAL_ROWS)
		at = BISECT(b, at, n, in, 1 << MOST_ROWS_SHIFT);
	else
		at = BISECT(b, at, n, in, USUAL_ROWS / 2);
	*ret = b->word[MASKED(at, BLOCK_WORDS)];
	return true;
}

/* Returns the rule at @off, which is counted from where the table begins in the file. */
static __always_inline u64 look_up_rule(const struct mapping *m, u64 off)
{
	u32 slot = m->table, page = off / WALK_PAGE, first, past, row;
	void *table = bpf_map_lookup_elem(&MAP(tables), &slot);
	u64 rule;

	if (!table || !read_word(table, m->page_at + page, &first) ||
	    !read_word(table, m->page_at + page + 1, &past) ||
	    !find_row(table, slot, m->row_at + first, past - first, off % WALK_PAGE, &row) ||
	    !read_rule(table, row & 0xffff, &rule))
		return SHSTK_RULE_NONE;
	return rule;
}

/* Returns the process ID as user space sees it. */
static __always_inline u32 own_pid(void)
{
	u32 zero = 0;
	const struct walk_config *c = bpf_map_lookup_elem(&MAP(config), &zero);

	return c ? visible_pid(c) : 0;
}

/* Asks for the table of a file. Each file is asked for once. */
static noinline void ask(struct walk *w, const struct walk_file *file, u64 addr)
{
	struct walk_asked *a;
	u32 none = 0;

	if (bpf_map_update_elem(&MAP(files), file, &none, BPF_NOEXIST)) {
		walk_count(COUNT_UNASKED);
		return;
	}
	a = bpf_ringbuf_reserve(&MAP(asked), sizeof(*a), 0);
	if (!a) {
		bpf_map_delete_elem(&MAP(files), file);
		walk_count(COUNT_UNASKED);
		return;
	}
	a->file = *file;
	a->addr = addr;
	a->pid = own_pid();
	a->uid = bpf_get_current_uid_gid();
	bpf_ringbuf_submit(a, 0);
}

/*
 * Sets the table of the file of @m and the places in the table; asks for the table if the file has
 * none.
 */
static __always_inline void find_table(struct walk *w, struct mapping *m,
				       const struct walk_file *file, u64 addr)
{
	u32 *slot = bpf_map_lookup_elem(&MAP(files), file), number, zero = 0;
	const struct shstk_rules_header *h;
	void *table;

	if (!slot) {
		ask(w, file, addr);
		return;
	}
	number = *slot;
	table = number ? bpf_map_lookup_elem(&MAP(tables), &number) : NULL;
	h = table ? bpf_map_lookup_elem(table, &zero) : NULL;
	if (!h)
		return;
	m->table = number;
	m->table_at = h->base - m->file_off;
	find_ruled(m->start, m->len, m->table_at, (u64)h->nr_pages * WALK_PAGE, &m->ruled);
	m->page_at = sizeof(*h) / 4 + 2 * h->nr_rules;
	m->row_at = m->page_at + h->nr_pages + 1;
}

/* Returns the place of a rule that is remembered. It has another key if this one is not. */
static __always_inline struct packed_rule *place_of(struct remembered *all, u64 key)
{
	return &all->rule[MASKED(key, REMEMBERED)];
}

/* Sets @w->rule to the rule of the code at @at. */
static __always_inline void find_rule(struct walk *w, struct remembered *all,
				      const struct mapping *m, u64 at)
{
	u64 off = at - m->table_at, key = (u64)m->table << 32 | (u32)off;
	struct packed_rule *known = place_of(all, key);

	if (at - m->ruled.at >= m->ruled.size) {
		pack_rule(SHSTK_RULE_NONE, &w->rule);
		return;
	}
	if (known->key == key) {
		w->rule = *known;
		return;
	}
	pack_rule(look_up_rule(m, off), &w->rule);
	w->rule.key = key;
	/* pass_known() does not look whether the stack grows where a rule counts from sp. */
	if (WALK_LINK_REGISTER || w->rule.cfa)
		*known = w->rule;
}

#endif /* BPF_TABLE_H */
