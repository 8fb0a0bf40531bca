// SPDX-License-Identifier: GPL-2.0-only
/*
 * stacks.bpf.c - a BPF program that takes exact user stacks at perf events. stacks.c loads it.
 *
 *   clang -target bpf -O2 -g -I/usr/include/$(uname -m)-linux-gnu -c -o own.bpf.o stacks.bpf.c
 *   bpftool gen object stacks.bpf.o own.bpf.o /usr/lib/shstk/shstk-stack.bpf.o
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <shstk_stack.bpf.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} stacks SEC(".maps");

SEC("perf_event")
int sample(void *ctx)
{
	struct shstk_bpf_stack *stack = bpf_ringbuf_reserve(&stacks, sizeof(*stack), 0);

	(void)ctx;
	if (!stack)
		return 0;
	if (shstk_walk(stack) > 0)
		bpf_ringbuf_submit(stack, 0);
	else
		bpf_ringbuf_discard(stack, 0);
	return 0;
}
