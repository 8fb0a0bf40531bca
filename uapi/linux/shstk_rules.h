/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Unwind rules for shstk_perf.ko: the format of a table, and /dev/shstk_rules, by which
 * tables are uploaded.
 *
 * A table says of each address in the code of one file how a walk steps from that frame
 * to its caller. It is
 *
 *	struct shstk_rules_header
 *	__u64 rule[nr_rules]		distinct rules
 *	__u32 page[nr_pages + 1]	where the rows of each 4 KiB of the file begin
 *	__u32 row[nr_rows]		offset in the page << 16 | number of the rule
 *
 * all in the byte order of the machine. Page p is about the file's bytes from
 * base + 4096 * p; its rows are row[page[p]] up to row[page[p + 1]], and the first of
 * them is at offset 0. A rule holds up to the next row.
 *
 * Structures grow at their end, as those of linux/shstk.h do. Unknown flags, and fields
 * that are reserved and not 0, give EINVAL. All calls but SHSTK_RULES_INFO need
 * CAP_PERFMON and CAP_SYS_ADMIN in the initial user namespace, else EPERM.
 */
#ifndef _UAPI_LINUX_SHSTK_RULES_H
#define _UAPI_LINUX_SHSTK_RULES_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SHSTK_RULES_DEVICE "/dev/shstk_rules"
#define SHSTK_RULES_VERSION 1 /* of tables */

/*
 * Of the calls. 2: SHSTK_RULES_LOAD takes the time of the file's last change, and refuses a
 * memfd that can be written to; SHSTK_RULES_MAX_TABLES; a table goes, too, when a file that was
 * open for writing is closed; what of a file is counted in bytes is all of it.
 */
#define SHSTK_RULES_ABI 2

#define SHSTK_RULES_MAGIC 0x314c5552u /* "RUL1" */
#define SHSTK_RULES_PAGE_SHIFT 12
#define SHSTK_RULES_MAX_RULES 65536u
#define SHSTK_RULES_MAX_PAGES 0xfffffu
#define SHSTK_RULES_MAX_ROWS (1u << 26)
#define SHSTK_RULES_MAX_TABLES 65536u

/**
 * struct shstk_rules_header - the beginning of a table
 * @magic: SHSTK_RULES_MAGIC.
 * @version: SHSTK_RULES_VERSION.
 * @machine: EM_X86_64 or EM_AARCH64: it has to be this machine's.
 * @base: offset in the file, in bytes, of what page 0 is about; a multiple of 4096.
 * @nr_rules: 1 to SHSTK_RULES_MAX_RULES.
 * @nr_pages: 1 to SHSTK_RULES_MAX_PAGES.
 * @nr_rows: @nr_pages to SHSTK_RULES_MAX_ROWS.
 * @reserved: 0.
 */
struct shstk_rules_header {
	__u32 magic;
	__u16 version;
	__u16 machine;
	__u64 base;
	__u32 nr_rules;
	__u32 nr_pages;
	__u32 nr_rows;
	__u32 reserved;
};

/**
 * DOC: rules
 *
 * A rule is 64 bits:
 *
 *	63      43 42      26 25       9 8       4 3      0
 *	+---------+----------+----------+---------+--------+
 *	|   cfa   |    fp    |  saved   |   reg   |  kind  |
 *	+---------+----------+----------+---------+--------+
 *
 * The canonical frame address (CFA) is the stack pointer's value in the caller. cfa is
 * signed. All offsets are in words of 8 bytes. fp and saved are how far below the CFA a
 * register of the caller lies, 0 if it is unchanged: fp the frame pointer; saved on
 * x86-64 rbx (the return address is at CFA - 8), on arm64 the return address, where 0
 * says that it is still in the link register. Fields that a kind does not name are 0.
 *
 * SHSTK_RULE_NONE: nothing is known of this address.
 * SHSTK_RULE_SP: CFA = sp + cfa; fp, saved.
 * SHSTK_RULE_FP: CFA = fp + cfa; fp, saved.
 * SHSTK_RULE_END: the outermost frame.
 * SHSTK_RULE_REG: CFA = register reg (its DWARF number) + cfa; fp, saved. x86-64 only.
 *	Only rbx is followed beyond the interrupted frame.
 * SHSTK_RULE_LOAD: CFA = the word at fp + cfa, caller's fp = the word at fp: realigned
 *	frames. x86-64 only.
 * SHSTK_RULE_PLT: a stub of the linker: CFA = sp + 8, and 8 more from byte reg of each
 *	16 on. x86-64 only.
 * SHSTK_RULE_SIGNAL: the kernel's signal frame is at sp.
 * SHSTK_RULE_CUT: described, but by means that no kind has.
 * SHSTK_RULE_STACK: CFA = the word at sp + cfa, and reg words more; fp, saved: assembler
 *	code that keeps the former stack pointer in its frame. x86-64 only.
 * SHSTK_RULE_INDEX: CFA = the word at sp + cfa + 8 * register reg, and one word more; fp,
 *	saved: the same of a frame as large as a register says. x86-64 only, and only in the
 *	interrupted frame.
 * SHSTK_RULE_CLONE: around the system call of clone(): the outermost frame if that returned
 *	0; else CFA = sp + 8. x86-64 only, and only in the interrupted frame.
 * SHSTK_RULE_RETURN: CFA = sp + cfa, and the return address is in register reg; fp. arm64
 *	only, and only in the interrupted frame and in the one that called it.
 */
#define SHSTK_RULE_NONE 0
#define SHSTK_RULE_SP 1
#define SHSTK_RULE_FP 2
#define SHSTK_RULE_END 3
#define SHSTK_RULE_REG 4
#define SHSTK_RULE_LOAD 5
#define SHSTK_RULE_PLT 6
#define SHSTK_RULE_SIGNAL 7
#define SHSTK_RULE_CUT 8
#define SHSTK_RULE_STACK 9
#define SHSTK_RULE_INDEX 10
#define SHSTK_RULE_CLONE 11
#define SHSTK_RULE_RETURN 12

#define SHSTK_RULE_KIND_MASK 0xfull
#define SHSTK_RULE_REG_SHIFT 4
#define SHSTK_RULE_REG_MASK 0x1full
#define SHSTK_RULE_SAVED_SHIFT 9
#define SHSTK_RULE_FP_SHIFT 26
#define SHSTK_RULE_OFF_MASK 0x1ffffull /* of fp and saved, unshifted */
#define SHSTK_RULE_CFA_SHIFT 43
#define SHSTK_RULE_CFA_MIN (-(1 << 20)) /* in words */
#define SHSTK_RULE_CFA_MAX ((1 << 20) - 1)

#define SHSTK_RULES_NAME_LEN 32

/**
 * struct shstk_rules_info - the argument of SHSTK_RULES_INFO
 * @version: out: SHSTK_RULES_VERSION.
 * @machine: out: EM_* that tables have to be for.
 * @tables: out: number of tables.
 * @bytes: out: memory that they take, with what the kernel keeps of their files: 2 KiB are
 *	counted for the inode and the mark of each.
 * @limit: out: most that they may take: the module's parameter rules_limit.
 * @abi: out: SHSTK_RULES_ABI; the first one, 1, did not have this field.
 * @max_tables: out: SHSTK_RULES_MAX_TABLES.
 */
struct shstk_rules_info {
	__u32 version;
	__u32 machine;
	__u64 tables;
	__u64 bytes;
	__u64 limit;
	__u32 abi;
	__u32 max_tables;
};

/**
 * struct shstk_rules_load - the argument of SHSTK_RULES_LOAD
 * @table: address of the table.
 * @size: its bytes, no more and no less.
 * @fd: the file it is of, open for reading; -1: the vdso.
 * @flags: 0.
 * @name: what SHSTK_RULES_LIST shows; ends with 0 bytes.
 * @change_sec: when the file was changed last, as the table was made: stat's st_ctim, in
 *	seconds.
 * @change_nsec: its nanoseconds. Both 0: that is not looked at.
 * @reserved: 0.
 *
 * A table that the file had is replaced; no walk sees it without one. A table goes
 * when its file is written to by this kernel's calls, deleted (and closed and unmapped by all),
 * or its file system is unmounted, which it never hinders; with SHSTK_RULES_DROP; and with the
 * module. A write through a shared mapping drops it when the last descriptor and mapping
 * go that could write; until then walks by it may be wrong. Of what another machine
 * writes to a network file system, or is written to a disk below a file system, the kernel
 * tells nothing.
 *
 * What was written to before the call is found by the time of the change, and as exactly as
 * the file system keeps that.
 *
 * Errors: EINVAL for a table with anything wrong; EXDEV: for another machine; EBADF: fd;
 * EISDIR, ENODEV: not a regular file; ETXTBSY: it is open for writing, or a memfd that is not
 * sealed by F_SEAL_WRITE; ENOSPC: more than rules_limit, or SHSTK_RULES_MAX_TABLES, in all;
 * EDQUOT: the files of its owner, who is not root, have a fourth of either; ENOMEM;
 * EOVERFLOW: 2^32 tables were loaded already; ESTALE: the file was changed since the table was
 * made, or its file system went meanwhile.
 */
struct shstk_rules_load {
	__aligned_u64 table;
	__aligned_u64 size;
	__s32 fd;
	__u32 flags;
	char name[SHSTK_RULES_NAME_LEN];
	__aligned_u64 change_sec;
	__u32 change_nsec;
	__u32 reserved;
};

#define SHSTK_RULES_DROP_ALL 1

/**
 * struct shstk_rules_drop - the argument of SHSTK_RULES_DROP
 * @fd: the file whose table goes; -1: the vdso's. Not looked at with
 *	SHSTK_RULES_DROP_ALL.
 * @flags: 0 or SHSTK_RULES_DROP_ALL.
 *
 * Errors: ENOENT: the file has none. EBADF.
 */
struct shstk_rules_drop {
	__s32 fd;
	__u32 flags;
};

/**
 * struct shstk_rules_list - the argument of SHSTK_RULES_LIST
 * @id: in: 0, or that of the table before; out: the next one's. In the order in which
 *	they were loaded.
 * @uid: out: the user that loaded it, as the caller sees it.
 * @dev: out: device of the file system: major << 20 | minor; 0 for the vdso.
 * @ino: out: inode number.
 * @bytes: out: memory that the table takes.
 * @nr_rules: out: of the table.
 * @nr_pages: out: of the table.
 * @nr_rows: out: of the table.
 * @reserved: 0.
 * @name: out: as it was given.
 *
 * Errors: ENOENT: there are no more.
 */
struct shstk_rules_list {
	__u32 id;
	__u32 uid;
	__aligned_u64 dev;
	__aligned_u64 ino;
	__aligned_u64 bytes;
	__u32 nr_rules;
	__u32 nr_pages;
	__u32 nr_rows;
	__u32 reserved;
	char name[SHSTK_RULES_NAME_LEN];
};

/**
 * struct shstk_rules_miss - the argument of SHSTK_RULES_MISS
 * @fd: out: the file that a walk had no table for, open for reading and close-on-exec:
 *	exactly the one that was mapped, even if nothing has its name any more.
 * @pid: out: the process it was mapped by, as the caller sees it; 0 if not at all.
 * @addr: out: an address in its code in that process; where that was copied to memory of no
 *	file in its place, one beside it.
 *
 * Waits until there is one, unless the device was opened with O_NONBLOCK: then EAGAIN.
 * poll() tells too. Misses are kept from the first such call, until the last caller
 * closes the device, each for two seconds: at most 64, of a user 32, of a process 8. Where 64
 * are not enough, a user who has fewer takes the place of one who has more; and users are told
 * of in turn. The ids in a user namespace are all those of the user who made it, if that was not
 * root.
 *
 * A miss holds no file. If its process has ended, the next one that runs the file is told
 * of. Files that cannot be opened are not told of, and none that is not a regular one, or on which
 * somebody has a lease, or that is FUSE's (but virtiofs'), for opening it may take as long as
 * the program likes that has the lease, or serves it.
 *
 * Errors: EAGAIN, EINTR; EMFILE and others of getting a descriptor.
 */
struct shstk_rules_miss {
	__s32 fd;
	__u32 pid;
	__aligned_u64 addr;
};

/**
 * struct shstk_rules_cuts - the argument of SHSTK_RULES_CUTS
 * @index: in: 0, or what the call before gave; out: what the next one is to have.
 * @reserved: 0.
 * @dev: out: device of the file system of a file in whose code chains ended before the
 *	outermost frame, as in &struct shstk_rules_list; 0: no file's.
 * @ino: out: inode number; of no file's: 1 the vdso, 0 any other code, as made at run time.
 * @offset: out: where in the file the last one ended.
 * @no_table: out: chains that ended there because nothing is known of the file,
 * @no_rule: out: or of that code,
 * @no_kind: out: or because no kind of rule can say what is known.
 *
 * In no order. Of at most 64 files; a file in which no chain ended for a second may lose its
 * place, and what was counted of it, to another one; or at once to one of a user who has fewer
 * places, users being told apart as for SHSTK_RULES_MISS.
 *
 * Errors: ENOENT: there are no more.
 */
struct shstk_rules_cuts {
	__u32 index;
	__u32 reserved;
	__aligned_u64 dev;
	__aligned_u64 ino;
	__aligned_u64 offset;
	__aligned_u64 no_table;
	__aligned_u64 no_rule;
	__aligned_u64 no_kind;
};

#define SHSTK_RULES_IOC 0xbf /* as linux/shstk.h, from 0x40 */
#define SHSTK_RULES_INFO _IOR(SHSTK_RULES_IOC, 0x40, struct shstk_rules_info)
#define SHSTK_RULES_LOAD _IOW(SHSTK_RULES_IOC, 0x41, struct shstk_rules_load)
#define SHSTK_RULES_DROP _IOW(SHSTK_RULES_IOC, 0x42, struct shstk_rules_drop)
#define SHSTK_RULES_LIST _IOWR(SHSTK_RULES_IOC, 0x43, struct shstk_rules_list)
#define SHSTK_RULES_MISS _IOR(SHSTK_RULES_IOC, 0x44, struct shstk_rules_miss)
#define SHSTK_RULES_CUTS _IOWR(SHSTK_RULES_IOC, 0x45, struct shstk_rules_cuts)

#endif /* _UAPI_LINUX_SHSTK_RULES_H */
