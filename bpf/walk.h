/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk.h - what walk.bpf.c, which runs in the kernel, and its user share.
 *
 * A file is known by what its inode says. Its number in the kernel, its slot, is given once and
 * never to another file or another table: what was remembered under it stays true.
 */
#ifndef BPF_WALK_H
#define BPF_WALK_H

#include <linux/types.h>

#include "kmod/walk_end.h"

#define WALK_FILES 16384 /* that can be known, with and without a table */
#define WALK_SLOTS 16384 /* tables; slot 0 is none's */
#define WALK_BLOCK 65536 /* bytes of an entry of a table's map */
#define WALK_LEFT 4096 /* processes that are left alone */
#define WALK_ASKED (1 << 16) /* bytes of the ring of files that are asked for */

#define WALK_GUESS (1ull << 63) /* set in an entry of user space that a frame record led to */
#define WALK_KERNEL 128 /* entries of the kernel's part of a chain */
#define WALK_ENTRIES 1024 /* of a chain, its marks included; a power of two */

/**
 * struct walk_file - a file, or, all 0, the vdso
 * @ino: number of its inode.
 * @sec: when that was changed last, in seconds,
 * @nsec: and nanoseconds.
 * @dev: device of its file system, major << 20 | minor.
 */
struct walk_file {
	__u64 ino;
	__s64 sec;
	__u32 nsec;
	__u32 dev;
};

/**
 * struct walk_asked - a file that a walk met and has no table of, in the ring "asked"
 * @file: the file.
 * @addr: an address in its code,
 * @pid: in this process.
 * @reserved: 0.
 */
struct walk_asked {
	struct walk_file file;
	__u64 addr;
	__u32 pid;
	__u32 reserved;
};

/*
 * What is counted on each CPU: the values of the map "walks" begin with so many words. How walks
 * ended comes first.
 */
enum walk_counter {
	COUNT_RECORD = WALK_ENDS, /* frames that were left by their frame record */
	COUNT_SIGNAL, /* signal frames */
	COUNT_URETPROBE, /* return probes that were seen through */
	COUNT_UNASKED, /* files that were missed, without room to ask for them */
	COUNT_UNSENT, /* chains that found no room */
	NR_COUNTS,
};

/**
 * struct walk_config - the only entry of the map "config", said by the user
 * @max: most entries of user space in a chain, the program counter included; up to 512.
 * @kernel: chains are to have the kernel's part, too.
 * @both: also chains that are not whole are written, and the sample is taken in any case: to
 *	compare them.
 * @records: also in files' code that has no rule, a frame is left by its frame record, if that
 *	leads behind a call. Else only in code of no file, which nobody can have rules for.
 * @generation: another number after each change of a table.
 * @reserved: 0.
 * @ns_dev: device and
 * @ns_ino: inode of the user's namespace of processes, which numbers are of; 0: all are in it.
 */
struct walk_config {
	__u32 max;
	__u32 kernel;
	__u32 both;
	__u32 records;
	__u32 generation;
	__u32 reserved;
	__u64 ns_dev;
	__u64 ns_ino;
};

/**
 * struct walk_chain - a chain, as the raw data of a record of the event in the map "output"
 * @size: bytes that follow, as perf says.
 * @end: enum walk_end.
 * @guesses: so many entries have WALK_GUESS.
 * @nr: entries.
 * @period: that the sample stands for.
 *
 * Entries follow, of 8 bytes, as in a callchain of perf: PERF_CONTEXT_KERNEL and what is behind
 * it, if that is wanted; PERF_CONTEXT_USER, the program counter, and return addresses.
 */
struct walk_chain {
	__u32 size;
	__u32 end;
	__u32 guesses;
	__u32 nr;
	__u64 period;
};

#endif /* BPF_WALK_H */
