/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_mapping.h - from an address to the mapping and its table.
 */
#ifndef USHSTK_WALK_MAPPING_H
#define USHSTK_WALK_MAPPING_H

#include <linux/mm.h>

#include "walk_parts.h"

/* Pieces of memory that are looked at on either side of one: see is_hole(). */
#define MAX_PIECES 8

/**
 * struct area - a mapping as it was read
 * @start: first address.
 * @end: address behind the last.
 * @file_off: to be added to an address: the offset in the file.
 * @key: inode of the file; NULL: it is of none.
 * @code: it may be executed.
 * @plain: memory of no file, and nothing that the kernel put there.
 */
struct area {
	u64 start, end;
	u64 file_off;
	const void *key;
	bool code;
	bool plain;
};

/*
 * The mapping at @addr. VMAs and files are freed under RCU, or may become others' meanwhile:
 * what was read of one counts only if it is the same when read again. A file may be freed at
 * once; its inode is only compared.
 */
static bool read_area(struct mm_struct *mm, u64 addr, struct area *a)
{
	struct vm_area_struct *vma;
	unsigned long start, end, pgoff;
	struct file *file;

	a->key = NULL;
	vma = mtree_load(&mm->mm_mt, addr);
	if (!vma)
		return false;
	start = READ_ONCE(vma->vm_start);
	end = READ_ONCE(vma->vm_end);
	pgoff = READ_ONCE(vma->vm_pgoff);
	file = READ_ONCE(vma->vm_file);
	if (file && get_kernel_nofault(a->key, (const void **)&file->f_inode))
		return false;
	a->code = READ_ONCE(vma->vm_flags) & VM_EXEC;
	a->plain = !file && !READ_ONCE(vma->vm_ops);
	if (addr < start || addr >= end)
		return false;
	/* All reads above come before these. */
	smp_rmb();
	if (READ_ONCE(vma->vm_mm) != mm || READ_ONCE(vma->vm_start) != start ||
	    READ_ONCE(vma->vm_end) < end || READ_ONCE(vma->vm_file) != file ||
	    READ_ONCE(vma->vm_pgoff) != pgoff)
		return false;
	a->start = start;
	a->end = end;
	a->file_off = ((u64)pgoff << PAGE_SHIFT) - start;
	return true;
}

/* From @a, a piece of code in memory of no file, to the file's mapping that adjoins such pieces. */
static bool read_beside(struct mm_struct *mm, struct area *a, bool below)
{
	int i;

	for (i = 0; i < MAX_PIECES; i++) {
		if (!read_area(mm, below ? a->start - 1 : a->end, a))
			return false;
		if (a->key)
			return true;
		if (!a->plain || !a->code)
			return false;
	}
	return false;
}

/*
 * Programs copy their code to memory of no file in its place, to have it on huge pages. So code
 * in such memory between two mappings of one file is that file's, at the offset that these go on
 * with. Linkers may give each segment another distance from its address: what is left of the
 * code itself tells which it is; without that both sides have to agree.
 *
 * Where @a is such code, it gets the file; *@at receives where that is mapped.
 */
static noinline void fill_hole(struct mm_struct *mm, struct area *a, u64 *at)
{
	struct area below = *a, above = *a;
	const struct area *side = &below;

	if (!read_beside(mm, &below, true) || !read_beside(mm, &above, false) ||
	    below.key != above.key)
		return;
	if (below.code == above.code && below.file_off != above.file_off)
		return;
	if (above.code && !below.code)
		side = &above;
	/* No file has anything in front of its beginning. */
	if ((s64)(a->start + side->file_off) < 0)
		return;
	a->key = side->key;
	a->file_off = side->file_off;
	*at = side->start;
}

/* Code at @addr, and the file that it is of. *@at receives an address at which that is mapped. */
static bool read_vma(struct mm_struct *mm, u64 addr, struct mapping *m, const void **key, u64 *at)
{
	struct area a;

	*at = addr;
	if (!read_area(mm, addr, &a) || !a.code)
		return false;
	if (a.plain) {
		fill_hole(mm, &a, at);
	} else if (!a.key && a.start == (unsigned long)mm->context.vdso) {
		a.key = rules_vdso_key;
		a.file_off = -a.start;
	}
	*key = a.key;
	m->file = a.key;
	m->start = a.start;
	m->len = a.end - a.start;
	m->file_off = a.file_off;
	return true;
}

/*
 * Only that part of the mapping, around @addr, which the table is about, or is not: so that
 * no key runs into the numbers of other tables. All is compared as offsets in the file,
 * which in a regular file are below 2^63; as an address its beginning may be negative.
 */
static void cut_mapping(struct mapping *m, u64 addr)
{
	const struct ushstk_rules_view *v = &m->table->view;
	u64 begin = v->base, end = begin + ((u64)v->nr_pages << SHSTK_RULES_PAGE_SHIFT);
	u64 first = m->start + m->file_off, past = first + m->len;
	u64 at = addr + m->file_off;

	if (at < begin) {
		m->table = NULL;
		past = min(past, begin);
	} else if (at >= end) {
		m->table = NULL;
		first = max(first, end);
	} else {
		m->key_off = ((u64)m->table->id << 32) + m->file_off - begin;
		first = max(first, begin);
		past = min(past, end);
	}
	m->start = first - m->file_off;
	m->len = past - first;
}

/* Where nothing is known, keys are below those of all tables, and never stored. */
static void no_table(struct mapping *m)
{
	m->table = NULL;
	m->key_off = 1 - m->start;
	m->len = min(m->len, (u64)U32_MAX - 1);
}

/* Return: the mapping at @addr, which is remembered; NULL: not executable. */
static noinline struct mapping *look_up_mapping(struct walk *w, u64 addr)
{
	struct space *space = w->space;
	struct mapping *m, found;
	const void *key;
	u64 at;

	walk_count(COUNT_MAPPINGS_READ);
	if (!read_vma(w->mm, addr, &found, &key, &at))
		return NULL;
	found.key = key;
	found.table = key ? rules_find(key) : NULL;
	if (key && !found.table && key != rules_vdso_key)
		rules_miss(key, at);
	if (found.table)
		cut_mapping(&found, addr);
	if (!found.table) {
		/* An address further than the keys reach: its own piece. */
		if (addr - found.start >= U32_MAX - 1) {
			found.len -= addr - found.start;
			found.start = addr;
		}
		no_table(&found);
	}
	m = &space->mapping[space->nr++ % NR_MAPPINGS];
	*m = found;
	return m;
}

static __always_inline struct mapping *find_mapping(struct walk *w, u64 addr)
{
	struct space *space = w->space;
	unsigned int i, n = min(space->nr, NR_MAPPINGS);

	for (i = 0; i < n; i++)
		if (addr - space->mapping[i].start < space->mapping[i].len)
			return &space->mapping[i];
	return look_up_mapping(w, addr);
}

#endif /* USHSTK_WALK_MAPPING_H */
