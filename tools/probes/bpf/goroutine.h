/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * goroutine.h - what goroutine.bpf.c, which runs in the kernel, and the recorder share.
 */
#ifndef PROBES_BPF_GOROUTINE_H
#define PROBES_BPF_GOROUTINE_H

#include <linux/types.h>

#define GO_PIECE_WORDS 26

/* Most bytes of a goroutine's stack that are copied: records have one of these two sizes. */
#define GO_STACK 8192
#define GO_LARGE_STACK 65536

/* The pieces of Go's descriptions that are kept with a stack. */
enum {
	GO_PIECE_G, /* goroutine of the stack that the thread is on */
	GO_PIECE_G0, /* goroutine of the thread's own stack */
	GO_PIECE_M, /* the thread (struct m) */
	GO_PIECE_CURG, /* goroutine that the thread runs; its address is 0 if there is none */
	GO_PIECES,
};

/**
 * struct go_piece - the beginning of one of the runtime's descriptions
 * @addr: address of the description; 0: there is none, or it could not be read.
 * @words: the words at @addr.
 */
struct go_piece {
	__u64 addr;
	__u64 words[GO_PIECE_WORDS];
};

/**
 * struct go_moment - record of a thread that is not on the stack of its goroutine, when it was
 * sampled
 * @tid: thread ID.
 * @room: bytes in @stack.
 * @size: number of bytes at the end of @stack that were copied.
 * @end: address of the upper end of the goroutine's stack, where @stack ends.
 * @time: CLOCK_MONOTONIC, in ns; shortly before or after the time of the sample.
 * @pc: program counter of user space.
 * @sp: stack pointer of user space.
 * @pieces: the beginnings of the runtime's descriptions.
 * @stack: copy of the goroutine's stack.
 */
struct go_moment {
	__u32 tid;
	__u32 room;
	__u64 size;
	__u64 end;
	__u64 time;
	__u64 pc;
	__u64 sp;
	struct go_piece pieces[GO_PIECES];
	__u8 stack[];
};

#endif
