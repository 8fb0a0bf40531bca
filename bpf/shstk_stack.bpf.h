/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shstk_stack.bpf.h - exact user stacks for any BPF program.
 *
 * A program that includes this header, behind vmlinux.h or linux/types.h, is linked with
 * shstk-stack.bpf.o by "bpftool gen object". The tables come from `shstk rules serve --bpf`, which
 * its loader starts by libshstk-bpf. bpf-stacks.rst in the documentation has an example.
 */
#ifndef SHSTK_STACK_BPF_H
#define SHSTK_STACK_BPF_H

#define SHSTK_STACK_MAX 127

/**
 * struct shstk_bpf_stack - the user stack of a task
 * @nr: number of entries.
 * @whole: 1: the last entry is the outermost frame; 0: there are more, or the rules for the code of
 *	the last one are not there (yet).
 * @guesses: number of entries that a frame record led to, in code that no file describes.
 * @pid: process ID, as whoever serves the tables knows it.
 * @pc: program counter, then return addresses, from the innermost frame on.
 */
struct shstk_bpf_stack {
	__u32 nr;
	__u32 whole;
	__u32 guesses;
	__u32 pid;
	__u64 pc[SHSTK_STACK_MAX];
};

/**
 * shstk_walk() - take the user stack of the task that runs
 * @to: receives the stack. It lies in a map or in a ring buffer, as it is too large for the stack of
 *	a BPF program.
 *
 * It may be called in programs at perf events, kprobes, uprobes, tracepoints and functions.
 *
 * Return: the number of entries; -ENOENT (-2): nobody serves tables; -EBUSY (-16): this program
 * interrupted another walk on the same CPU; -ENODATA (-61): there is no user stack, as in threads of
 * the kernel, or it is not of 64-bit code; -EPROTO (-71): who serves the tables is of another version, so
 * the program is to be linked with its shstk-stack.bpf.o; -EINVAL (-22): @to is NULL.
 */
extern int shstk_walk(struct shstk_bpf_stack *to);

#endif
