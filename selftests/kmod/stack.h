/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack.h - what stack.bpf.c and its loader share
 */
#ifndef STACK_H
#define STACK_H

#include <linux/types.h>

#define STACK_DEPTH 127

/* One sample, and what the loader tells the program. */
struct stack_state {
	__u32 process;
	__u32 wanted; /* the loader sets 1; the program sets 0 when it has a sample */
	__s64 bytes; /* result of bpf_get_stack() */
	__s64 id; /* result of bpf_get_stackid() */
	__s64 sent; /* result of bpf_send_signal_thread() */
	__u64 pc[STACK_DEPTH];
};

#endif
