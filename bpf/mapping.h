/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mapping.h - find the mapping that contains an address.
 *
 * A mapping is either read from the address space at this moment, or was read in an earlier walk on
 * this CPU, and the kernel says that no mapping has changed since (as in kmod/walk.c). The kernel
 * keeps mappings in a maple tree. The nodes of the tree, and the structures that they lead to, are
 * freed under RCU, and programs at perf events run in an RCU read-side section. All of them are
 * read by bpf_probe_read_kernel(), which accepts any address.
 */
#ifndef BPF_MAPPING_H
#define BPF_MAPPING_H

#include "table.h"

/* The low bits of a pointer to a node, as defined in lib/maple_tree.c. */
#define NODE_MASK 255ull
#define NODE_TYPE_SHIFT 3
#define NODE_TYPE_MASK 15
#define NODE_LEAF 1 /* maple_leaf_64 */
#define NODE_RANGE 2 /* maple_range_64 */
#define NODE_ARANGE 3 /* maple_arange_64 */
#define NODE_MAX_DEPTH 8 /* 5^8 mappings are more than there may be */
#define NO_POINTER 4096

/* Indices of the words of a node: parent, pivots, slots. There are two kinds of nodes. */
#define NODE_PIVOT 1
#define RANGE_PIVOTS 15
#define RANGE_SLOT 16
#define RANGE_END 31 /* its first byte is the last slot in use, if the last pivot is not in use */
#define ARANGE_PIVOTS 9
#define ARANGE_SLOT 10
#define ARANGE_END 30 /* its first byte is the last slot in use */

/* Returns how many of @n pivots, of which @end are in use, are below @addr. */
static __always_inline u64 count_below(const u64 *node, int n, u64 end, u64 addr)
{
	u64 below = 0;
	int i;

#pragma unroll
	for (i = 0; i < n; i++) {
		below += BELOW(i, end) & BELOW(node[NODE_PIVOT + i] & ~(1ull << 63), addr);
		/* One after the other: else compilers keep many of them on the stack. */
		asm volatile("" : "+r"(below), "+r"(end));
	}
	return below;
}

/*
 * Returns the entry of a node for @addr: the next node, or the VMA if the node is a leaf; 0 if the
 * node has left the tree.
 */
static __always_inline u64 pass_node(struct walk *w, u64 node, u64 type, u64 addr)
{
	u64 end, slot;

	/* A node that has left the tree is its own parent. */
	if ((w->node[0] & ~NODE_MASK) == node)
		return 0;
	if (type == NODE_ARANGE) {
		end = w->node[ARANGE_END] & 255;
		slot = ARANGE_SLOT + count_below(w->node, ARANGE_PIVOTS, end, addr);
	} else {
		end = w->node[RANGE_PIVOTS] ? RANGE_PIVOTS : w->node[RANGE_END] & 255;
		slot = RANGE_SLOT + count_below(w->node, RANGE_PIVOTS, end, addr);
	}
	return w->node[MASKED(slot, 32)];
}

/* It is a function of its own because of its stack: so it is with read_vma(). */
static noinline u64 find_vma(struct walk *w, u64 addr)
{
	const struct mm_struct *mm = w->mm;
	u64 entry = (u64)BPF_CORE_READ(mm, mm_mt.ma_root), node, type;
	int i;

	for (i = 0; i < NODE_MAX_DEPTH; i++) {
		if (entry <= NO_POINTER)
			return 0;
		type = entry >> NODE_TYPE_SHIFT & NODE_TYPE_MASK;
		node = entry & ~NODE_MASK;
		if (type < NODE_LEAF || type > NODE_ARANGE ||
		    bpf_probe_read_kernel(w->node, sizeof(w->node), (void *)node))
			return 0;
		entry = pass_node(w, node, type, addr);
		if (type == NODE_LEAF)
			return entry > NO_POINTER ? entry : 0;
	}
	return 0;
}

/* Reads the time of the inode's last change. Kernels have three names for it. */
static __always_inline void read_change(const struct inode *inode, struct walk_file *file)
{
	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		file->sec = BPF_CORE_READ(inode, i_ctime_sec);
		/* The highest bit says that somebody has asked for the time. */
		file->nsec = BPF_CORE_READ(inode, i_ctime_nsec) & ~(1u << 31);
	} else if (bpf_core_field_exists(((struct inode___6_6 *)0)->__i_ctime)) {
		const struct inode___6_6 *i = (const void *)inode;

		file->sec = BPF_CORE_READ(i, __i_ctime.tv_sec);
		file->nsec = BPF_CORE_READ(i, __i_ctime.tv_nsec) & ~(1u << 31);
	} else {
		const struct inode___6_1 *i = (const void *)inode;

		file->sec = BPF_CORE_READ(i, i_ctime.tv_sec);
		file->nsec = BPF_CORE_READ(i, i_ctime.tv_nsec);
	}
}

/* Reads what identifies a file. Returns false if nothing does. */
static __always_inline bool read_file(const struct file *from, struct walk_file *file)
{
	const struct inode *inode = BPF_CORE_READ(from, f_inode);

	file->ino = BPF_CORE_READ(inode, i_ino);
	file->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	read_change(inode, file);
	return file->ino;
}

/*
 * Reads the mapping that contains @addr, and what identifies its file, where @vma was found. A VMA may be
 * reused meanwhile, so the result counts only if it is the same when read again. Returns false if there
 * is no executable mapping.
 */
static noinline bool read_vma(struct walk *w, const struct vm_area_struct *vma, u64 addr,
			      struct mapping *m)
{
	u64 start, end, pgoff;
	struct file *from;

	start = BPF_CORE_READ(vma, vm_start);
	end = BPF_CORE_READ(vma, vm_end);
	pgoff = BPF_CORE_READ(vma, vm_pgoff);
	from = BPF_CORE_READ(vma, vm_file);
	m->from = from;
	m->file = from && read_file(from, &m->id);
	if (!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC) || addr < start || addr >= end)
		return false;
	if (BPF_CORE_READ(vma, vm_mm) != w->mm || BPF_CORE_READ(vma, vm_start) != start ||
	    BPF_CORE_READ(vma, vm_end) != end || BPF_CORE_READ(vma, vm_file) != from ||
	    BPF_CORE_READ(vma, vm_pgoff) != pgoff)
		return false;
	m->start = start;
	m->len = end - start;
	m->file_off = pgoff * w->page - start;
	if (!from && start == w->vdso) {
		m->file_off = -start;
		m->file = true;
	}
	return true;
}

/* Reads the stamp, which changes when the address space or a table changes. @mm is the running task's. */
static __always_inline void read_stamp(const struct mm_struct *mm, const struct walk_config *c,
				       struct stamp *stamp)
{
	const struct mm_struct___6_13 *newer = (const void *)mm;

	stamp->id = 0;
	stamp->seq = 0;
	stamp->generation = c->generation;
	if (!WALK_REMEMBERS)
		return;
	if (bpf_core_field_exists(newer->mm_lock_seq.sequence))
		stamp->seq = newer->mm_lock_seq.sequence;
	else if (bpf_core_field_exists(mm->mm_lock_seq))
		stamp->seq = mm->mm_lock_seq;
	else
		return;
	stamp->id = mm->context.ctx_id;
}

/*
 * Forgets stored mappings that may have changed. The stamp is read before any mapping is looked up,
 * so a change in between is noticed by the next walk.
 */
static __always_inline void check_stamp(struct walk *w, const struct mm_struct *mm,
					const struct walk_config *c)
{
	struct stamp now;
	u32 i;

	read_stamp(mm, c, &now);
	if (now.id && now.id == w->stamp.id && now.seq == w->stamp.seq &&
	    now.generation == w->stamp.generation)
		return;
	w->stamp = now;
	w->now = 0;
	w->mappings = 0;
	for (i = 0; i < NR_MAPPINGS; i++)
		w->mapping[i].len = 0;
}

/* Stores the mapping at @addr as number @w->now. Returns false if there is no executable mapping. */
VERIFIED_ALONE bool shstk_look_up_mapping(struct walk *w, u64 addr)
{
	const struct vm_area_struct *vma;
	struct walk_file file;
	struct mapping *m;
	u32 number;

	if (!w)
		return false;
	number = MASKED(w->mappings, NR_MAPPINGS);
	m = &w->mapping[number];
	/* The old mapping in this place is gone, even if no new one is found. */
	m->len = 0;
	m->table = 0;
	m->ruled.size = 0;
	m->id = (struct walk_file){};
	vma = (void *)find_vma(w, addr);
	if (!vma || !read_vma(w, vma, addr, m)) {
		m->len = 0;
		return false;
	}
	/* Keys of maps lie on the stack. */
	file = m->id;
	if (m->file)
		find_table(w, m, &file, addr);
	w->now = number;
	w->mappings++;
	return true;
}

/* Returns the stored mapping at @addr, or NULL. */
static __always_inline struct mapping *find_stored(struct walk *w, u64 addr)
{
	struct mapping *m = &w->mapping[MASKED(w->now, NR_MAPPINGS)];
	u32 i;

	if (addr - m->start < m->len)
		return m;
	for (i = 0; i < NR_MAPPINGS; i++)
		if (addr - w->mapping[i].start < w->mapping[i].len)
			break;
	if (i == NR_MAPPINGS)
		return NULL;
	/* So what follows is looked at once, and not for each number. */
	FORGET(i, addr);
	w->now = i;
	return &w->mapping[MASKED(i, NR_MAPPINGS)];
}

static __always_inline struct mapping *find_mapping(struct walk *w, u64 addr)
{
	struct mapping *m = find_stored(w, addr);

	if (m)
		return m;
	return shstk_look_up_mapping(w, addr) ? &w->mapping[MASKED(w->now, NR_MAPPINGS)] : NULL;
}

#endif /* BPF_MAPPING_H */
