/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_mapping.h - finds the mapping of an address, and its table.
 */
#ifndef USHSTK_WALK_MAPPING_H
#define USHSTK_WALK_MAPPING_H

#include <linux/mm.h>

#include "walk_shared.h"

/* Most pieces of memory to look at on each side of a piece without a file: see fill_hole(). */
#define MAX_PIECES 8

/**
 * struct area - a mapping as it was read
 * @start: first address.
 * @end: first address behind it.
 * @file_off: number to add to an address to get the offset in the file.
 * @key: inode of the file; NULL if the mapping has no file.
 * @code: it is executable.
 * @plain: it has no file, and the kernel put nothing special there.
 */
struct area {
	u64 start, end;
	u64 file_off;
	const void *key;
	bool code;
	bool plain;
};

/*
 * Reads the mapping at @addr. VMAs and files are freed under RCU, or may be reused meanwhile, so
 * what was read counts only if it is the same when it is read again. A file may be freed at once;
 * its inode is only compared. Returns whether there is a mapping.
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
	/* All reads above must come before the reads below. */
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

/*
 * Starts at @a, a piece of code without a file, and goes over adjoining pieces of the same sort,
 * downwards or upwards. Returns whether there is a mapping of a file at the end; if so, @a is that
 * mapping.
 */
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
 * Programs may copy their code to memory without a file, at the same addresses, to have it on huge
 * pages. So code in such memory between two mappings of one file belongs to that file, at the
 * offset that continues theirs. Linkers may give each segment another distance between its address
 * and its offset. The part of the code that is still mapped from the file tells which distance is
 * right; without it both sides must agree.
 *
 * If @a is such code, it gets the key and the offset of the file, and *@at receives an address at
 * which the file is mapped.
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
	/* The offset of the code in the file cannot be negative. */
	if ((s64)(a->start + side->file_off) < 0)
		return;
	a->key = side->key;
	a->file_off = side->file_off;
	*at = side->start;
}

/*
 * Reads the code mapping at @addr into @m, and the key of its file into *@key. *@at receives an
 * address at which that file is mapped. Returns whether there is a code mapping.
 */
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
 * Shrinks the mapping @m to the part around @addr that the table covers, or to the part around
 * @addr that it does not cover, so that no key runs into the numbers of other tables. All values
 * are compared as offsets in the file, which are below 2^63 in a regular file. The first address of
 * the whole file may be negative.
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

/*
 * Sets @m up for code without a table. The keys are below those of all tables and are never stored.
 */
static void no_table(struct mapping *m)
{
	m->table = NULL;
	m->key_off = 1 - m->start;
	m->len = min(m->len, (u64)U32_MAX - 1);
}

/*
 * Looks up the mapping at @addr and remembers it. Returns the mapping, or NULL if @addr is not
 * executable.
 */
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
		/*
		 * The keys do not reach this address, so a smaller piece that begins there is used.
		 */
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

/* Returns the mapping at @addr, a remembered one if possible; NULL if @addr is not executable. */
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
