/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk_state.h - the functions and types that the steps of kmod/walk_special.h need from their
 * walk, for the walk that is a BPF program.
 *
 * The state of a walk lies in a map, not on the stack. The verifier then knows nothing of its
 * values, and each round of bpf_loop() is the same to it.
 */
#ifndef BPF_WALK_STATE_H
#define BPF_WALK_STATE_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#define noinline __attribute__((noinline))
/*
 * A function that the verifier looks at once, by itself. It looks at any other one again for each state in
 * which that is called, which is most of what loading a program takes. What is given to it are numbers, and
 * pointers to whole structs or numbers: the verifier takes them for NULL, too. It returns a number. Its name
 * begins with "shstk_", since programs that are linked with this one see it.
 */
#define VERIFIED_ALONE noinline
#define __maybe_unused __attribute__((unused))
/* Newer headers define these, too. */
#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
#define S16_MAX 32767

#include "kernel.h"
#include "walk.h"

/*
 * In the object that other programs are linked with (stack.bpf.c) maps have names that tell whose
 * they are. Some are pinned under that name: all programs of the machine share them, and whoever
 * fills them.
 */
#ifdef WALK_SHARED
#define MAP(name) shstk_##name
#define SHARED_MAP __uint(pinning, LIBBPF_PIN_BY_NAME);
#else
#define MAP(name) name
#define SHARED_MAP
#endif
#include "kmod/walk_rule.h"

#define current bpf_get_current_task_btf_()
static __always_inline struct task_struct *bpf_get_current_task_btf_(void)
{
	return (void *)bpf_get_current_task_btf();
}

#ifdef WALK_X86
#define CONFIG_X86
#include "arch_x86.h"
#else
#include "arch_arm64.h"
#endif

/* Masks a value that is below @bound, a power of two, so that the verifier sees the bound. */
#define MASKED(value, bound)                                              \
	({                                                                \
		u64 masked = (value);                                     \
		asm volatile("%0 &= %1" : "+r"(masked) : "i"((bound)-1)); \
		masked;                                                   \
	})

/* Has the verifier forget what it knows of a value. @unknown: any value of which it knows nothing. */
#define FORGET(value, unknown)                                                   \
	do {                                                                     \
		const u64 any = (unknown);                                       \
		u64 forgotten = (value);                                         \
                                                                                 \
		asm volatile("%0 ^= %1\n%0 ^= %1" : "+r"(forgotten) : "r"(any)); \
		(value) = forgotten;                                             \
	} while (0)

/*
 * 1 if a < b, both below 2^63, else 0. There is no branch, because the verifier would follow both
 * ways of a branch. It also does so if the result of an arithmetic shift is masked.
 */
#define BELOW(a, b)                                     \
	({                                              \
		u64 less = (u64)(a) - (u64)(b);         \
		asm volatile("%0 >>= 63" : "+r"(less)); \
		less;                                   \
	})

#include "piece.h"
#include "ruled.h"

#define NR_MAPPINGS 8 /* a power of two */
#define ROUND 32 /* frames that are passed at once if nothing has to be looked up for them */

/**
 * struct mapping - a range of executable addresses, of a file or of none
 * @start: first address.
 * @len: bytes.
 * @file_off: value that is added to an address to get the offset in the file.
 * @table_at: address at which the table begins, which may be outside the mapping.
 * @ruled: what the table covers of the mapping.
 * @table: slot of the table; 0: there is none.
 * @page_at: index of the table's list of pages (the first row of each), in words of 4 bytes.
 * @row_at: index of the table's first row, in words of 4 bytes.
 * @file: the mapping is of a file, or of the vDSO.
 * @from: the file, which may be gone; to be read as any kernel memory.
 * @id: identifies the file.
 * @key: passed to rules_cut(), which ignores it here.
 */
struct mapping {
	u64 start, len;
	u64 file_off;
	u64 table_at;
	struct ruled ruled;
	u32 table;
	u32 page_at, row_at;
	bool file;
	const struct file *from;
	struct walk_file id;
	const void *key;
};

/**
 * struct stamp - the state of an address space for which stored mappings are valid
 * @id: number of the address space; 0 for none.
 * @seq: a number that each change of a mapping changes.
 * @generation: generation of the tables.
 */
struct stamp {
	u64 id;
	u32 seq;
	u32 generation;
};

/**
 * struct walk - the state of a walk
 * @count: counters of all walks on this CPU.
 * @busy: a walk uses this; another one, which interrupted it, must not. Only where programs of
 *	others walk, as those at perf events cannot interrupt each other.
 * @frame: the frame that the walk has reached.
 * @rule: unwind rule of this frame.
 * @regs: address of the registers where the walk began.
 * @mm: the address space.
 * @page: bytes of a page of memory.
 * @instance: pending return probes of frames that were not passed yet.
 * @vdso: address of the vDSO.
 * @now: index in @mapping of the mapping that was used last.
 * @mappings: number of mappings that were stored so far; @mapping has the last NR_MAPPINGS.
 * @mapping: stored mappings, which are valid as long as @stamp is.
 * @stamp: state of the address space and the tables when @mapping began to be filled.
 * @piece: a piece of the stack.
 * @node: a node of the kernel's maple tree of mappings, while it is read.
 * @records: see &struct walk_config.
 * @max: maximum number of user-space entries after the program counter.
 * @nr: number of these entries so far.
 * @first: index in @entry of the first of these entries.
 * @signals: number of signal frames passed.
 * @exact: the pc of @frame is a program counter, not a return address.
 * @careful: rbx is followed, which few walks need.
 * @sp_known: false if the sp of @frame is a lower bound only, after a frame record of arm64.
 * @end: enum walk_end.
 * @chain: head of the record that is written.
 * @entry: entries of the record; they follow @chain. The last ROUND of them are never written to the event.
 */
struct walk {
	u64 count[NR_COUNTS];
	u64 busy;
	struct frame frame;
	struct packed_rule rule;
	const struct pt_regs *regs;
	struct mm_struct *mm;
	const struct return_instance *instance;
	u64 vdso;
	u32 page;
	u32 now, mappings;
	struct mapping mapping[NR_MAPPINGS];
	struct stamp stamp;
	struct piece piece;
	u64 node[32];
	u32 records;
	u32 max;
	u32 nr;
	u32 first;
	u32 signals;
	bool exact;
	bool careful;
	bool sp_known;
	u32 end;
	struct walk_chain chain;
	u64 entry[WALK_ENTRIES + ROUND];
};

/* Both macros are used where a struct walk *w is in scope. */
#define walk_count(what) (w->count[what]++)
#define rules_cut(key, offset, why) ((void)(key), (void)(offset))

#define get_kernel_nofault(value, from) bpf_core_read(&(value), sizeof(value), from)

/* Few walks need another register than those with which they begin. */
static noinline __maybe_unused u64 walk_arch_register(const struct pt_regs *regs,
						      unsigned int dwarf)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (const u64 *)regs + walk_arch_place(dwarf));
	return value;
}

/*
 * @ret may be on the stack. It is written to here first: verifiers (of Linux 6.1 and 6.18) may fail with
 * EFAULT where only a function that is called writes to it.
 */
static __always_inline bool load(struct walk *w, u64 *ret, u64 addr)
{
	*ret = 0;
	return (!(addr & 7) && word_of_piece(&w->piece, addr, ret)) ||
	       shstk_read_piece(&w->piece, addr, ret);
}

/* Reads WALK_CALL_BYTES of code. */
static __always_inline bool load_code(u8 *code, u64 addr)
{
	return !bpf_probe_read_user(code, WALK_CALL_BYTES, (void *)addr);
}

static struct mapping *__maybe_unused find_mapping(struct walk *w, u64 addr);

#endif /* BPF_WALK_STATE_H */
