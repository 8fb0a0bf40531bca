/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_parts.h - what the parts of the walk have of each other: walk.c, the loop, with
 * walk_mapping.h and walk_special.h, which it includes; and walk_count.c.
 */
#ifndef USHSTK_WALK_PARTS_H
#define USHSTK_WALK_PARTS_H

#include <linux/mm_types.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "arch.h"
#include "probed.h"
#include "rules.h"
#include "walk.h"
#include "walk_rule.h"

#ifdef CONFIG_X86
#include "walk_x86.h"
#else
#include "walk_arm64.h"
#endif

#define NR_MAPPINGS 16

/**
 * struct mapping - executable addresses of one file, or of none
 * @start: first address.
 * @len: bytes.
 * @key_off: to be added to an address: the key of its rule; see struct packed_rule.
 * @file_off: to be added to an address: the offset in the file.
 * @table: NULL if no table says anything here.
 * @file: it is of a file, or the vdso.
 * @key: that file's, to be told by.
 */
struct mapping {
	u64 start, len;
	u64 key_off;
	u64 file_off;
	const struct rules_table *table;
	bool file;
	const void *key;
};

/**
 * struct space - mappings of an address space, and until when they hold
 * @id: of the mm, 0 for none.
 * @seq: its mm_lock_seq, which each change of a mapping changes.
 * @generation: rules_generation.
 * @nr: mappings that were stored; the last NR_MAPPINGS are there.
 * @mapping: these.
 */
struct space {
	u64 id;
	unsigned int seq;
	unsigned long generation;
	unsigned int nr;
	struct mapping mapping[NR_MAPPINGS];
};

/* What else is counted. */
enum {
	COUNT_RECORD = WALK_ENDS, /* frame record, no rule */
	COUNT_SIGNAL,
	COUNT_URETPROBE,
	COUNT_FIRST_UNKNOWN, /* -1: served by somebody else */
	COUNT_MAPPINGS_READ,
	COUNT_RULES_READ,
	NR_COUNTS,
};

struct counts {
	u64 count[NR_COUNTS];
};

DECLARE_PER_CPU(struct counts, walk_counts);

/* Preemption is disabled; another walk on this CPU may come between. */
static __always_inline void walk_count(unsigned int what)
{
	ushstk_arch_count(walk_counts.count[what]);
}

/**
 * struct walk - a walk
 * @regs: where it began.
 * @mm: current's.
 * @space: mappings.
 * @rules: what is remembered of rules, @mask + 1 of them.
 * @mask: see @rules.
 * @dst: room for entries.
 * @max: their number.
 * @nr: entries that there are.
 * @signals: signal frames passed.
 * @exact: the frame's pc is a program counter, not a return address.
 * @sp_known: false if sp is a lower bound only: behind a frame record of arm64.
 * @instance: pending return probes of frames not yet passed.
 * @missing: receives the address where a read failed, which ended the walk; NULL: that is not
 *	wanted. If it is, the walk is made carefully.
 */
struct walk {
	const struct pt_regs *regs;
	struct mm_struct *mm;
	struct space *space;
	struct packed_rule *rules;
	unsigned int mask;
	u64 *dst;
	unsigned int max;
	unsigned int nr;
	unsigned int signals;
	bool exact;
	bool sp_known;
	const struct return_instance *instance;
	u64 *missing;
};

static __always_inline bool load(struct walk *w, u64 *ret, u64 addr)
{
	if (addr < TASK_SIZE_MAX - PAGE_SIZE &&
	    !__get_user(*ret, (u64 __user *)(unsigned long)addr))
		return true;
	if (w->missing)
		*w->missing = addr;
	return false;
}

/* WALK_CALL_BYTES of code. */
static inline bool load_code(u8 *code, u64 addr)
{
	int i;

	for (i = 0; i < WALK_CALL_BYTES; i++)
		if (addr >= TASK_SIZE_MAX - PAGE_SIZE ||
		    __get_user(code[i], (u8 __user *)(unsigned long)addr + i))
			return false;
	return true;
}

#endif /* USHSTK_WALK_PARTS_H */
