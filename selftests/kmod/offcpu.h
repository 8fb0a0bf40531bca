/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu.h - what offcpu.bpf.c and its loader share
 */
#ifndef OFFCPU_H
#define OFFCPU_H

#include <linux/types.h>

#define OFFCPU_DEPTH 48

struct offcpu_stack {
	__u64 pc[OFFCPU_DEPTH];
};

/* What the loader tells the program, and the results of the program's last call. */
struct offcpu_state {
	__u32 process;
	__u32 pad;
	__s64 answer;
	__s64 answer_flags; /* result with a flag that does not exist */
	__s64 answer_sleeping; /* result in the program on a kprobe; its stack: */
	struct offcpu_stack sleeping;
};

#endif
