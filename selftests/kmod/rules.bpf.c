// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules.bpf.c - takes user stacks by each of BPF's calls, in each kind of program that profilers
 * use; rules_bpf_test.c loads it
 */
#include <asm/errno.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rules_bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, RULES_DEPTH * sizeof(__u64));
} ids SEC(".maps");

struct rules_state state;

static __attribute__((always_inline)) int take(void *ctx, unsigned int kind)
{
	__u32 n = state.taken[kind];
	struct rules_stack *s;

	if (bpf_get_current_pid_tgid() >> 32 != state.process || n >= RULES_STACKS)
		return 0;
	s = &state.stack[kind][n];
	s->bytes = bpf_get_stack(ctx, s->pc, sizeof(s->pc), BPF_F_USER_STACK);
	s->task_bytes = bpf_get_task_stack(bpf_get_current_task_btf(), s->task_pc,
					   sizeof(s->task_pc), BPF_F_USER_STACK);
	s->id = bpf_get_stackid(ctx, &ids, BPF_F_USER_STACK);
	/*
	 * The stacks of this kind differ, and two of them may want the same place in the map. Then
	 * the next sample is taken instead.
	 */
	if (kind == RULES_CLOCK && s->id == -EEXIST)
		return 0;
	state.taken[kind] = n + 1;
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_tracepoint(void *ctx)
{
	return take(ctx, RULES_TRACEPOINT);
}

SEC("kprobe")
int on_kprobe(void *ctx)
{
	return take(ctx, RULES_KPROBE);
}

SEC("uprobe")
int on_uprobe(void *ctx)
{
	return take(ctx, RULES_UPROBE);
}

SEC("kprobe")
int on_step(void *ctx)
{
	return take(ctx, RULES_STEP);
}

SEC("perf_event")
int on_clock(void *ctx)
{
	return take(ctx, RULES_CLOCK);
}

char LICENSE[] SEC("license") = "GPL";
