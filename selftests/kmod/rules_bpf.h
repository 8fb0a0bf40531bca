/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rules_bpf.h - what rules.bpf.c and its loader share
 */
#ifndef RULES_BPF_H
#define RULES_BPF_H

#include <linux/types.h>

#define RULES_DEPTH 127
#define RULES_STACKS 20

/* The kinds of programs that ask for stacks. */
enum rules_kind {
	RULES_TRACEPOINT,
	RULES_KPROBE,
	RULES_UPROBE,
	RULES_STEP,
	RULES_CLOCK,
	RULES_KINDS,
};

/* One stack, by each of the calls. */
struct rules_stack {
	__s64 bytes; /* result of bpf_get_stack() */
	__s64 task_bytes; /* result of bpf_get_task_stack() */
	__s64 id; /* result of bpf_get_stackid() */
	__u64 pc[RULES_DEPTH];
	__u64 task_pc[RULES_DEPTH];
};

struct rules_state {
	__u32 process;
	__u32 taken[RULES_KINDS];
	struct rules_stack stack[RULES_KINDS][RULES_STACKS];
};

#endif
