/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lend.h - what lend.bpf.c, which runs in the kernel, and the broker (tools/broker/) share.
 *
 * A lease permits a user to have the stacks of the user's own processes walked. Its number is in the
 * field config1 of each event that the broker opens for it. Clocks and switches do not use that field,
 * nobody can change it, and threads inherit it.
 */
#ifndef BPF_LEND_H
#define BPF_LEND_H

#include <linux/types.h>

#include "bpf/context.h"
#include "bpf/language.h"
#include "bpf/native.h"

#define LEASES 64 /* leases at a time, a power of two */
#define LEASE_CPUS 4096 /* CPUs with a lower number have an output for each lease */

/* The map by which the programs that read frames are called, and their places there. */
#define LENT_READERS "lent_readers"
enum lent_reader {
	LENT_HEAP, /* frames in the heap, where the program that calls it does not read them itself */
	LENT_NATIVE, /* frames on the native stack */
	NR_LENT_READERS,
};

#define LENT_PROCESSES 1024 /* processes of which a lease knows something */
#define LENT_FUNCTIONS 8192 /* functions that it knows */

/* The place of a lease, from its number, in the map "leases". */
#define LEASE_SLOT(number) ((number) % LEASES)

/* The place in the map "output" of the event that receives what a lease gives on a CPU. */
#define LEASE_OUTPUT(slot, cpu) ((slot)*LEASE_CPUS + (cpu))

/* After a walk none is made on that CPU for so many times as long as the walk took. */
#define LEASE_PAUSE 3

/**
 * struct walk_lease - an entry of the map "leases"
 * @number: number of the lease; 0: there is none.
 * @uid: the user. Only the user's processes are walked.
 * @max: maximum number of entries in a chain, with the program counter.
 * @records: enum walk_records.
 * @both: write chains that are not whole, too, and take the samples in any case.
 * @reserved: 0.
 * @nr_functions: number of functions of interpreters that were met.
 */
struct walk_lease {
	__u32 number;
	__u32 uid;
	__u32 max;
	__u32 records;
	__u32 both;
	__u32 reserved;
	__u64 nr_functions;
};

/**
 * struct lent_process - what is told of a process, in the maps of "lent_processes"
 * @number: number that the user gave its interpreter, which records of its frames have; 0: there is none, or
 *	none any more.
 * @reserved: 0.
 * @target: how frames are found in it, as the user says.
 * @native: how they are found if they are on the native stack, as the user says.
 * @contexts: where its threads publish trace contexts, as the user says; its @nr is 0: nowhere.
 */
struct lent_process {
	__u32 number;
	__u32 reserved;
	struct language_target target;
	struct native_target native;
	struct context_process contexts;
};

#endif /* BPF_LEND_H */
