/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * entering.h - what entering.bpf.c and its loader share
 */
#ifndef ENTERING_H
#define ENTERING_H

#include <linux/types.h>

#define ENTERING_DEPTH 48
#define ENTERING_STACKS 20

/* @bytes: what the call said. */
struct entering_stack {
	__s64 bytes;
	__u64 pc[ENTERING_DEPTH];
};

/**
 * struct entering_state - what the program is told, and tells
 * @handler: of NMIs, behind which the call is made if it handled one.
 * @process: current has to be it.
 * @taken: stacks; 0 is written to begin.
 * @stack: these.
 */
struct entering_state {
	__u64 handler;
	__u32 process;
	__u32 taken;
	struct entering_stack stack[ENTERING_STACKS];
};

#endif
