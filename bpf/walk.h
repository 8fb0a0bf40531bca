/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk.h - what walk.bpf.c, which runs in the kernel, and the command share.
 *
 * A file is identified by the contents of its inode. Its slot, which is its number in the kernel,
 * is assigned once and never to another file or table: what was remembered under it stays true.
 */
#ifndef BPF_WALK_H
#define BPF_WALK_H

#include <linux/shstk_rules.h>
#include <linux/types.h>

#include "kmod/walk_end.h"

/*
 * Version of all that programs and whoever serves them agree on: the layouts of struct walk_config, walk_file
 * and walk_asked, what slots and generations mean, and the format of the tables. The lower part is changed
 * with each of the former.
 */
#define WALK_VERSION (SHSTK_RULES_VERSION << 16 | 1)

#define WALK_FILES 16384 /* files that can be known, with and without a table */
#define WALK_SLOTS 16384 /* tables; slot 0 means no table */
#define WALK_BLOCK 65536 /* bytes of an entry of a table's map */
#define WALK_LEFT 4096 /* processes that are not walked */
#define WALK_ASKED (1 << 16) /* bytes of the ring buffer of files that are asked for */
#define WALK_CUTS 1024 /* files in which walks ended too early that can be known */

/*
 * Bits of user-space entries: one that was found by a frame record; the program counter where a signal
 * interrupted; the trampoline to which the signal's handler returns.
 */
#define WALK_GUESS (1ull << 63)
#define WALK_PC (1ull << 62)
#define WALK_SIGNAL (1ull << 61)
#define WALK_MARKS (WALK_GUESS | WALK_PC | WALK_SIGNAL)
#define WALK_KERNEL 128 /* maximum entries of the kernel's part of a chain */
#define WALK_CALLCHAIN 512 /* maximum entries of a callchain by frame pointers */
#define WALK_ENTRIES 1024 /* maximum entries of a chain, with its marks; a power of two */

/**
 * struct walk_file - identifies a file; all 0: the vDSO
 * @ino: inode number.
 * @sec: time of the inode's last change, seconds.
 * @nsec: time of the inode's last change, nanoseconds.
 * @dev: device of the file system, major << 20 | minor.
 */
struct walk_file {
	__u64 ino;
	__s64 sec;
	__u32 nsec;
	__u32 dev;
};

/**
 * struct walk_asked - a request in the ring buffer "asked" for the table of a file that a walk met
 * @file: the file.
 * @addr: an address in the file's code.
 * @pid: the process that has the file mapped there.
 * @uid: its user.
 */
struct walk_asked {
	struct walk_file file;
	__u64 addr;
	__u32 pid;
	__u32 uid;
};

/**
 * struct walk_cut - the walks that ended in a file without a rule for its code
 * @count: number of these walks.
 * @name: name of the file, without its folder, ended by 0.
 */
struct walk_cut {
	__u64 count;
	char name[56];
};

/*
 * What is counted on each CPU. The values of the map "walks" begin with these words. The counts of
 * how walks ended come first (enum walk_end).
 */
enum walk_counter {
	COUNT_RECORD = WALK_ENDS, /* frames that were left by their frame record */
	COUNT_SIGNAL, /* signal frames */
	COUNT_URETPROBE, /* return probes that were seen through */
	COUNT_UNASKED, /* files without a table and without room to ask for it */
	COUNT_UNSENT, /* chains that found no room in the event */
	NR_COUNTS,
};

/*
 * What was told of processes, by entries of the map "uses" that are not 0: those with trace contexts, those
 * with interpreters, and those that are not walked. The program looks for a process only where that may
 * be found: each look takes it some 100 to 200 instructions.
 *
 * WALK_USES_CALLCHAINS says that samples have no callchain of user space, and want one written beside them, with
 * up to so many entries as the entry says.
 */
enum walk_use {
	WALK_USES_CONTEXTS,
	WALK_USES_LANGUAGES,
	WALK_USES_LEFT,
	WALK_USES_CALLCHAINS,
	WALK_USES,
};

/*
 * Where a frame may be left by its frame record, if that leads behind a call: in code of no file, for
 * which nobody can have rules; even in a file's code that has no rule; nowhere.
 */
enum walk_records {
	WALK_RECORDS_NO_FILE,
	WALK_RECORDS_ALWAYS,
	WALK_RECORDS_NEVER,
};

/**
 * struct walk_config - the only entry of the map "config"; user space sets it
 * @version: WALK_VERSION of whoever serves these maps, if programs of others share them; 0: nobody has done
 *	so yet. It is the first member in each version.
 * @max: maximum number of user-space entries in a chain, with the program counter; up to 512.
 * @kernel: put the kernel's part into chains, too.
 * @both: write chains that are not whole, too, and take the sample in any case, so that both can be
 *	compared.
 * @records: enum walk_records.
 * @generation: changes after each change of a table.
 * @page: bytes of a page of memory.
 * @reserved: 0.
 * @ns_dev: device of the PID namespace that process IDs belong to.
 * @ns_ino: inode of this namespace; 0: the first namespace, to which all processes belong.
 */
struct walk_config {
	__u32 version;
	__u32 max;
	__u32 kernel;
	__u32 both;
	__u32 records;
	__u32 generation;
	__u32 page;
	__u32 reserved;
	__u64 ns_dev;
	__u64 ns_ino;
};

#define WALK_RINGS 4096 /* CPUs with a lower number may have a ring */
#define WALK_RING_WORDS 16384 /* a power of two */

/**
 * struct walk_ring - chains of a CPU, as records in the layout of perf's own rings
 * @before: nothing; the next two are where struct perf_event_mmap_page has them.
 * @head: bytes that were written so far.
 * @tail: bytes that were read so far.
 * @between: nothing.
 * @word: the records. One of type 0 fills the rest, up to the end, which no other record goes over.
 */
struct walk_ring {
	__u64 before[128];
	__u64 head;
	__u64 tail;
	__u64 between[382];
	__u64 word[WALK_RING_WORDS];
};

/**
 * struct walk_chain - head of a chain: the raw data of a record of the event in the map "output", or in a
 *	struct walk_ring
 * @size: number of bytes that follow, as perf counts them.
 * @end: enum walk_end.
 * @guesses: number of entries that have WALK_GUESS.
 * @nr: number of entries.
 * @period: period that the sample stands for.
 * @id: identifier of the sample's event, as perf's own samples have it.
 *
 * The entries follow, 8 bytes each, as in a callchain of perf: PERF_CONTEXT_KERNEL and the kernel's
 * entries, if they are wanted; PERF_CONTEXT_USER, the program counter, and the return addresses.
 */
struct walk_chain {
	__u32 size;
	__u32 end;
	__u32 guesses;
	__u32 nr;
	__u64 period;
	__u64 id;
};

#endif /* BPF_WALK_H */
