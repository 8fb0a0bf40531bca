/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Unwind rules for shstk_perf.ko: the format of a table of rules, and the device /dev/shstk_rules,
 * to which tables are uploaded.
 *
 * A table says for each address in the code of one file how a walk steps from the frame at that
 * address to the frame of its caller. It consists of
 *
 *	struct shstk_rules_header
 *	__u64 rule[nr_rules]		distinct rules
 *	__u32 page[nr_pages + 1]	where the rows of each 4 KiB of the file begin
 *	__u32 row[nr_rows]		offset in the page << 16 | number of the rule
 *
 * all in the byte order of the machine. Page p is about the file's bytes from base + 4096 * p on.
 * The rows of page p are row[page[p]] up to, but not including, row[page[p + 1]], and the first of
 * them is at offset 0. A rule is valid up to the next row.
 *
 * Structures grow at their end, like those of linux/shstk.h. Unknown flags, and reserved fields
 * that are not 0, give EINVAL. All calls but SHSTK_RULES_INFO need CAP_PERFMON and CAP_SYS_ADMIN in
 * the initial user namespace; without them they give EPERM.
 */
#ifndef _UAPI_LINUX_SHSTK_RULES_H
#define _UAPI_LINUX_SHSTK_RULES_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SHSTK_RULES_DEVICE "/dev/shstk_rules"
#define SHSTK_RULES_VERSION 1 /* version of the table format */

/*
 * The version of the calls. Version 2 added: SHSTK_RULES_LOAD takes the time of the file's last
 * change, and refuses a memfd that can be written to; SHSTK_RULES_MAX_TABLES; a table also goes
 * when a file that was open for writing is closed; all memory that is kept for a file is counted in
 * bytes. Version 3 added: SHSTK_RULE_SWITCH; callers on another stack at a lower address. Version 4
 * added: SHSTK_RULE_WORD; SHSTK_RULE_STACK and SHSTK_RULE_SWITCH on arm64. Version 5 added:
 * SHSTK_RULES_USERS.
 */
#define SHSTK_RULES_ABI 5

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
 * @machine: EM_X86_64 or EM_AARCH64; must be that of this machine.
 * @base: offset in the file, in bytes, at which page 0 begins; a multiple of 4096.
 * @nr_rules: number of rules, 1 to SHSTK_RULES_MAX_RULES.
 * @nr_pages: number of pages, 1 to SHSTK_RULES_MAX_PAGES.
 * @nr_rows: number of rows, @nr_pages to SHSTK_RULES_MAX_ROWS.
 * @reserved: must be 0.
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
 * A rule has 64 bits:
 *
 *	63      43 42      26 25       9 8       4 3      0
 *	+---------+----------+----------+---------+--------+
 *	|   cfa   |    fp    |  saved   |   reg   |  kind  |
 *	+---------+----------+----------+---------+--------+
 *
 * The canonical frame address (CFA) is the value of the stack pointer in the caller. cfa is signed.
 * All offsets are in words of 8 bytes. fp and saved say how far below the CFA a register of the
 * caller is saved; 0 means that the register is unchanged. fp is about the frame pointer. saved is
 * about rbx on x86-64, where the return address is at CFA - 8; on arm64 it is about the return
 * address, and 0 means that it is still in the link register. Fields that are not named for a kind
 * are 0.
 *
 * SHSTK_RULE_NONE: nothing is known of this address.
 * SHSTK_RULE_SP: CFA = sp + cfa. Uses fp and saved.
 * SHSTK_RULE_FP: CFA = fp + cfa. Uses fp and saved.
 * SHSTK_RULE_END: this is the outermost frame.
 * SHSTK_RULE_REG: CFA = register reg (its DWARF number) + cfa. Uses fp and saved. x86-64 only.
 *	Beyond the interrupted frame only rbx and rbp are followed.
 * SHSTK_RULE_LOAD: CFA = the word at fp + cfa, and the caller's fp = the word at fp. Describes
 *	realigned frames. x86-64 only.
 * SHSTK_RULE_PLT: a stub of the linker: CFA = sp + 8, and 8 more from byte reg of each 16 bytes on.
 *	x86-64 only.
 * SHSTK_RULE_SIGNAL: the kernel's signal frame is at sp.
 * SHSTK_RULE_CUT: the frame is described, but in a way that no kind can express.
 * SHSTK_RULE_STACK: CFA = the word at sp + cfa, and reg words more. Uses fp and saved. Describes
 *	assembler code that keeps the former stack pointer in its frame, or on a stack of its own.
 *	On arm64 saved is not 0.
 * SHSTK_RULE_INDEX: CFA = the word at sp + cfa + 8 * register reg, and one word more. Uses fp and
 *	saved. Like SHSTK_RULE_STACK, for a frame whose size is in a register. x86-64 only, and only
 *	in the interrupted frame.
 * SHSTK_RULE_CLONE: code around the system call of clone(): this is the outermost frame if the call
 *	returned 0; otherwise CFA = sp + 8. x86-64 only, and only in the interrupted frame.
 * SHSTK_RULE_RETURN: CFA = sp + cfa, and the return address is in register reg. Uses fp. arm64
 *	only, and only in the interrupted frame and in the frame that called it.
 * SHSTK_RULE_SWITCH: CFA = the word to which the word at sp + cfa points, and reg words more. Uses
 *	fp and saved. Describes code on a stack of its own that has the address of what is known
 *	of its caller's stack, which begins with the stack pointer there. On arm64 saved is not 0.
 * SHSTK_RULE_WORD: CFA = the word at register reg (its DWARF number) + cfa, and one word more. Uses
 *	fp and saved. Like SHSTK_RULE_STACK, for code that has the address of the word in a
 *	register. x86-64 only. Beyond the interrupted frame only rbx and rbp are followed.
 *
 * A CFA by SHSTK_RULE_STACK, SHSTK_RULE_SWITCH, SHSTK_RULE_WORD or SHSTK_RULE_REG may lie below
 * sp, on another stack, if a call is in front of the return address there.
 *
 * A cfa of SHSTK_RULE_CFA_MAX in SHSTK_RULE_REG or SHSTK_RULE_RETURN says that the frame is
 * described in a way that no kind can express, and that it has no frame record: what the frame
 * pointer leads to is another frame's. So a walk ends there. SHSTK_RULE_CUT frames may have a
 * record.
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
#define SHSTK_RULE_SWITCH 13
#define SHSTK_RULE_WORD 14

#define SHSTK_RULE_KIND_MASK 0xfull
#define SHSTK_RULE_REG_SHIFT 4
#define SHSTK_RULE_REG_MASK 0x1full
#define SHSTK_RULE_SAVED_SHIFT 9
#define SHSTK_RULE_FP_SHIFT 26
#define SHSTK_RULE_OFF_MASK 0x1ffffull /* of fp and saved, unshifted */
#define SHSTK_RULE_CFA_SHIFT 43
#define SHSTK_RULE_CFA_MIN (-(1 << 20)) /* in words of 8 bytes */
#define SHSTK_RULE_CFA_MAX ((1 << 20) - 1)

#define SHSTK_RULES_NAME_LEN 32

/**
 * struct shstk_rules_info - the argument of SHSTK_RULES_INFO
 * @version: out: SHSTK_RULES_VERSION.
 * @machine: out: EM_* machine that tables must be for.
 * @tables: out: number of tables.
 * @bytes: out: memory that the tables take, in bytes, including what the kernel keeps for their
 *	files: 2 KiB are counted per file for the inode and the mark.
 * @limit: out: most bytes that the tables may take, which is the module's parameter rules_limit.
 * @abi: out: SHSTK_RULES_ABI. The first version, 1, did not have this field.
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
 * @size: exact size of the table in bytes.
 * @fd: the file that the table is for, open for reading; -1 for the vdso.
 * @flags: must be 0.
 * @name: name that SHSTK_RULES_LIST shows; ends with 0 bytes.
 * @change_sec: time of the file's last change when the table was made (st_ctim of stat), in
 *	seconds.
 * @change_nsec: nanoseconds of that time. If both are 0, the time is not checked.
 * @reserved: must be 0.
 *
 * If the file has a table already, it is replaced; no walk sees the file without a table. A table
 * goes when its file is written to by a system call of this kernel; when the file is deleted (and
 * closed and unmapped by everybody); when its file system is unmounted, which the table never
 * hinders; by SHSTK_RULES_DROP; and when the module is unloaded. A write through a shared mapping
 * drops the table when the last descriptor and mapping go that could write; until then walks by the
 * table may be wrong. The kernel does not report what another machine writes to a network file
 * system, or what is written to a disk below a file system.
 *
 * The time of the change reveals writes before the call, as exactly as the file system keeps that
 * time. For a write through a shared mapping it may not change: mostly when the page was written to
 * before and is not written back yet, on tmpfs also when it was read before. So whoever may write
 * to the file can give it a wrong table by a mapping that is gone before the call, and has wrong
 * chains through the file.
 *
 * Errors: EINVAL: anything is wrong with the table. EXDEV: the table is for another machine. EBADF:
 * @fd is not usable. EISDIR, ENODEV: @fd is no regular file. ETXTBSY: the file is open for writing,
 * or is a memfd that is not sealed by F_SEAL_WRITE. ENOSPC: all tables together would exceed
 * rules_limit or SHSTK_RULES_MAX_TABLES. EDQUOT: the files of the file's owner, who is not root,
 * and of all who count as the same user by SHSTK_RULES_USERS, would take more than a fourth of
 * either limit. ENOMEM. EOVERFLOW: 2^32 tables were loaded
 * already. ESTALE: the file was changed since the table was made, or its file system went
 * meanwhile.
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
 * @fd: the file whose table to drop; -1 for the vdso. Ignored with SHSTK_RULES_DROP_ALL.
 * @flags: 0 or SHSTK_RULES_DROP_ALL.
 *
 * Errors: ENOENT: the file has no table. EBADF: @fd is not usable.
 */
struct shstk_rules_drop {
	__s32 fd;
	__u32 flags;
};

/**
 * struct shstk_rules_list - the argument of SHSTK_RULES_LIST
 * @id: in: 0, or the number of the previous table; out: the number of the next table. Tables are
 *	listed in the order in which they were loaded.
 * @uid: out: user who loaded it, as the caller sees the user.
 * @dev: out: device of the file system: major << 20 | minor; 0 for the vdso.
 * @ino: out: inode number.
 * @bytes: out: memory that the table takes, in bytes.
 * @nr_rules: out: number of rules.
 * @nr_pages: out: number of pages.
 * @nr_rows: out: number of rows.
 * @reserved: must be 0.
 * @name: out: name that was given at the upload.
 *
 * Errors: ENOENT: there are no more tables.
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
 * @fd: out: the file for which a walk had no table, open for reading and close-on-exec. It is
 *	exactly the file that was mapped, even if it has no name any more.
 * @pid: out: process that mapped it, as the caller sees it; 0 if the caller does not see it.
 * @addr: out: an address in the file's code in that process. If the code was copied to memory
 *	without a file at the same place, it is an address beside that memory.
 *
 * The call waits until there is a miss. If the device was opened with O_NONBLOCK, it returns EAGAIN
 * instead. poll() also reports a miss. Misses are recorded from the first call until the last
 * caller closes the device, and each is kept for two seconds. At most 64 are kept: at most 32 per
 * user, and at most 8 per process. If 64 are not enough, a user who has fewer takes the place of a
 * user who has more. Users are served in turn. All ids of a user namespace count as the user who
 * created it, or, if root created it, as the id that is root in it, unless that is no id or the
 * machine's root. In any case a user's further ids count as SHSTK_RULES_USERS told.
 *
 * A miss does not hold the file. If the process has ended, the next process that runs the file is
 * reported. Files that cannot be opened are not reported. Neither are files that are not regular,
 * on which somebody has a lease, or that are on FUSE (except virtiofs), because opening such a file
 * may take as long as the program likes that has the lease or serves the file system.
 *
 * Errors: EAGAIN, EINTR; EMFILE and other errors of allocating a descriptor.
 */
struct shstk_rules_miss {
	__s32 fd;
	__u32 pid;
	__aligned_u64 addr;
};

/**
 * struct shstk_rules_cuts - the argument of SHSTK_RULES_CUTS
 * @index: in: 0, or the value from the previous call; out: the value for the next call.
 * @reserved: must be 0.
 * @dev: out: device of the file system, as in &struct shstk_rules_list, of a file in whose code
 *	chains ended before the outermost frame; 0 if the code belongs to no file.
 * @ino: out: inode number. If the code belongs to no file, 1 for the vdso and 0 for any other code,
 *	such as code made at run time.
 * @offset: out: offset in the file at which the last chain ended.
 * @no_table: out: number of chains that ended there because nothing is known of the file.
 * @no_rule: out: number of chains that ended there because nothing is known of that code.
 * @no_kind: out: number of chains that ended there because no kind of rule can express what is
 *	known.
 *
 * The files are listed in no order. At most 64 files are counted. A file in which no chain ended
 * for a second may lose its place and its counts to another file. It may lose them at once to a
 * file of a user who has fewer places; users are told apart as for SHSTK_RULES_MISS.
 *
 * Errors: ENOENT: there are no more files.
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

#define SHSTK_RULES_MAX_RANGES 65536u

/**
 * struct shstk_rules_range - user ids that count as one user
 * @first: the first id; not 0.
 * @nr: number of ids; not 0.
 * @user: the user as whom they count; not 0. This one is not looked up again.
 */
struct shstk_rules_range {
	__u32 first;
	__u32 nr;
	__u32 user;
};

/**
 * struct shstk_rules_users - the argument of SHSTK_RULES_USERS
 * @ranges: address of the ranges, in ascending order; no id may be in two of them.
 * @nr: number of ranges, up to SHSTK_RULES_MAX_RANGES.
 * @reserved: must be 0.
 *
 * Says which ids count as another user where users share: in SHSTK_RULES_LOAD, SHSTK_RULES_MISS and
 * SHSTK_RULES_CUTS. The ids are those of the initial user namespace. Each call replaces what was
 * told before; @nr of 0 takes it back. Tables that are loaded count by it from then on, and none is
 * dropped for it. Files in which chains ended before count by it, too, and still do when it is
 * replaced or taken back.
 *
 * Errors: EFAULT: the ranges cannot be read. EINVAL: they are too many or not in order, or have an
 * id that there is not, or 0. ENOMEM.
 */
struct shstk_rules_users {
	__aligned_u64 ranges;
	__u32 nr;
	__u32 reserved;
};

#define SHSTK_RULES_IOC 0xbf /* the same as in linux/shstk.h; the numbers begin at 0x40 */
#define SHSTK_RULES_INFO _IOR(SHSTK_RULES_IOC, 0x40, struct shstk_rules_info)
#define SHSTK_RULES_LOAD _IOW(SHSTK_RULES_IOC, 0x41, struct shstk_rules_load)
#define SHSTK_RULES_DROP _IOW(SHSTK_RULES_IOC, 0x42, struct shstk_rules_drop)
#define SHSTK_RULES_LIST _IOWR(SHSTK_RULES_IOC, 0x43, struct shstk_rules_list)
#define SHSTK_RULES_MISS _IOR(SHSTK_RULES_IOC, 0x44, struct shstk_rules_miss)
#define SHSTK_RULES_CUTS _IOWR(SHSTK_RULES_IOC, 0x45, struct shstk_rules_cuts)
#define SHSTK_RULES_USERS _IOW(SHSTK_RULES_IOC, 0x46, struct shstk_rules_users)

#endif /* _UAPI_LINUX_SHSTK_RULES_H */
