/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_shared.h - what the parts of the walk share. The parts are the loop in walk.c, with
 * walk_mapping.h and walk_special.h, which it includes, and walk_count.c.
 */
#ifndef USHSTK_WALK_SHARED_H
#define USHSTK_WALK_SHARED_H

#include <linux/mm_types.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "arch.h"
#include "return_probe.h"
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
 * struct mapping - executable addresses of one file, or of no file
 * @start: first address.
 * @len: length in bytes.
 * @key_off: number to add to an address to get the key of its rule; see struct packed_rule.
 * @file_off: number to add to an address to get the offset in the file.
 * @table: table that covers the addresses, or NULL.
 * @file: the addresses belong to a file or to the vdso.
 * @key: key of that file, for counting.
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
 * struct space - mappings of an address space, and until when they are valid
 * @id: identifies the mm; 0 if none.
 * @seq: mm_lock_seq of the mm, which each change of a mapping changes.
 * @generation: value of rules_generation.
 * @nr: number of mappings stored so far; only the last NR_MAPPINGS are kept.
 * @mapping: the mappings.
 */
struct space {
	u64 id;
	unsigned int seq;
	unsigned long generation;
	unsigned int nr;
	struct mapping mapping[NR_MAPPINGS];
};

/* Counters besides those of enum walk_end. */
enum {
	COUNT_RECORD = WALK_ENDS, /* steps by a frame record, without a rule */
	COUNT_SIGNAL,
	COUNT_URETPROBE,
	COUNT_FIRST_UNKNOWN, /* walks that returned -1 */
	COUNT_MAPPINGS_READ,
	COUNT_RULES_READ,
	NR_COUNTS,
};

struct counts {
	u64 count[NR_COUNTS];
};

DECLARE_PER_CPU(struct counts, walk_counts);

/* Adds one to a counter. Preemption is disabled; another walk on this CPU may interrupt. */
static __always_inline void walk_count(unsigned int what)
{
	ushstk_arch_count(walk_counts.count[what]);
}

/**
 * struct walk - the state of one walk
 * @regs: registers with which it began.
 * @mm: mm of current.
 * @space: remembered mappings.
 * @rules: remembered rules, @mask + 1 of them.
 * @mask: number of @rules - 1.
 * @dst: receives the entries.
 * @max: room in @dst.
 * @nr: number of entries so far.
 * @signals: number of signal frames passed.
 * @exact: pc of the frame is a program counter, not a return address.
 * @sp_known: sp is exact; if false, it is only a lower bound, behind a frame record of arm64.
 * @instance: innermost pending return probe of the frames that are not passed yet.
 * @missing: receives the address of a read that failed and ended the walk; NULL if it is not
 *	wanted. If it is wanted, the walk is made carefully.
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

/*
 * Reads a word of user memory. Returns whether it could be read; if not, notes @addr if that is
 * wanted.
 */
static __always_inline bool load(struct walk *w, u64 *ret, u64 addr)
{
	if (addr < TASK_SIZE_MAX - PAGE_SIZE &&
	    !__get_user(*ret, (u64 __user *)(unsigned long)addr))
		return true;
	if (w->missing)
		*w->missing = addr;
	return false;
}

/* Reads WALK_CALL_BYTES of code at @addr. Returns whether all of it could be read. */
static inline bool load_code(u8 *code, u64 addr)
{
	int i;

	for (i = 0; i < WALK_CALL_BYTES; i++)
		if (addr >= TASK_SIZE_MAX - PAGE_SIZE ||
		    __get_user(code[i], (u8 __user *)(unsigned long)addr + i))
			return false;
	return true;
}

#endif /* USHSTK_WALK_SHARED_H */
