/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_mapping.h - from an address to the mapping and its table.
 */
#ifndef USHSTK_WALK_MAPPING_H
#define USHSTK_WALK_MAPPING_H

#include <linux/mm.h>

#include "walk_parts.h"

/*
 * VMAs and files are freed under RCU, or may become others' meanwhile: what was read of
 * one counts only if it is the same when read again. A file may be freed at once; its
 * inode is only compared.
 */
static bool read_vma(struct mm_struct *mm, u64 addr, struct mapping *m, const void **key)
{
	struct vm_area_struct *vma;
	unsigned long start, end, pgoff;
	struct file *file;

	*key = NULL;
	vma = mtree_load(&mm->mm_mt, addr);
	if (!vma)
		return false;
	start = READ_ONCE(vma->vm_start);
	end = READ_ONCE(vma->vm_end);
	pgoff = READ_ONCE(vma->vm_pgoff);
	file = READ_ONCE(vma->vm_file);
	if (file && get_kernel_nofault(*key, (const void **)&file->f_inode))
		return false;
	if (!(READ_ONCE(vma->vm_flags) & VM_EXEC) || addr < start || addr >= end)
		return false;
	/* All reads above come before these. */
	smp_rmb();
	if (READ_ONCE(vma->vm_mm) != mm || READ_ONCE(vma->vm_start) != start ||
	    READ_ONCE(vma->vm_end) < end || READ_ONCE(vma->vm_file) != file ||
	    READ_ONCE(vma->vm_pgoff) != pgoff)
		return false;
	m->start = start;
	m->len = end - start;
	m->file_off = ((u64)pgoff << PAGE_SHIFT) - start;
	m->file = file;
	if (!file && start == (unsigned long)mm->context.vdso) {
		*key = rules_vdso_key;
		m->file_off = -(u64)start;
		m->file = true;
	}
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

	walk_count(COUNT_MAPPINGS_READ);
	if (!read_vma(w->mm, addr, &found, &key))
		return NULL;
	found.key = key;
	found.table = key ? rules_find(key) : NULL;
	if (key && !found.table && key != rules_vdso_key)
		rules_miss(key, addr);
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
