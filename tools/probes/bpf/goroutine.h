/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * goroutine.h - what goroutine.bpf.c, which runs in the kernel, and the recorder share.
 */
#ifndef PROBES_BPF_GOROUTINE_H
#define PROBES_BPF_GOROUTINE_H

#include <linux/types.h>

#define GO_PIECE_WORDS 26

/* Bytes of the goroutine's stack that are copied at most: one of two sizes of records. */
#define GO_STACK 8192
#define GO_LARGE_STACK 65536

/* What is kept, beside a stack. */
enum {
	GO_PIECE_G, /* of the stack that the thread is on */
	GO_PIECE_G0, /* of the thread's own stack */
	GO_PIECE_M, /* the thread */
	GO_PIECE_CURG, /* the goroutine that the thread runs; address 0: it runs none */
	GO_PIECES,
};

/**
 * struct go_piece - the beginning of one of the runtime's descriptions
 * @addr: where it was.
 * @words: what was there.
 */
struct go_piece {
	__u64 addr;
	__u64 words[GO_PIECE_WORDS];
};

/**
 * struct go_moment - a thread that is not on the stack of its goroutine, when it was sampled
 * @tid: the thread.
 * @room: bytes in @stack, of which
 * @size: so many at the end are those
 * @end: below this address.
 * @time: CLOCK_MONOTONIC, in ns: shortly before or after that of the sample.
 * @pc: program counter of user space, and
 * @sp: stack pointer.
 * @pieces: what the runtime notes.
 * @stack: of the goroutine.
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
