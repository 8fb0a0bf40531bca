/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack.h - what stack.bpf.c and its loader share
 */
#ifndef STACK_H
#define STACK_H

#include <linux/types.h>

#define STACK_DEPTH 127

/* One sample, and what the program is told. */
struct stack_state {
	__u32 process;
	__u32 wanted; /* by the loader: 1; sample taken: 0 */
	__s64 bytes; /* of bpf_get_stack() */
	__s64 id; /* of bpf_get_stackid() */
	__s64 sent; /* of bpf_send_signal() */
	__u64 pc[STACK_DEPTH];
};

#endif
