/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * entering.h - what entering.bpf.c and its loader share
 */
#ifndef ENTERING_H
#define ENTERING_H

#include <linux/types.h>

#define ENTERING_DEPTH 48
#define ENTERING_STACKS 20

/* @bytes: the result of the call. */
struct entering_stack {
	__s64 bytes;
	__u64 pc[ENTERING_DEPTH];
};

/**
 * struct entering_state - what the loader tells the program, and the program's results
 * @handler: handler of NMIs; the call is made after this handler has handled one.
 * @process: current has to be this process.
 * @taken: number of stacks; the loader writes 0 to begin.
 * @stack: the stacks.
 */
struct entering_state {
	__u64 handler;
	__u32 process;
	__u32 taken;
	struct entering_stack stack[ENTERING_STACKS];
};

#endif
