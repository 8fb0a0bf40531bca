// SPDX-License-Identifier: GPL-2.0-only
/*
 * offcpu.bpf.c - counts the stacks with which a process leaves the CPU, by
 * bpf_shstk_get_user_stack(); kfunc_test.c loads it
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "offcpu.h"

extern int bpf_shstk_get_user_stack(void *buf, __u32 buf__sz, __u64 flags) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct offcpu_stack);
	__type(value, __u64);
} stacks SEC(".maps");

/* A stack is too large for the stack of a BPF program. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_stack);
} scratch SEC(".maps");

struct offcpu_state state;

SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	struct offcpu_stack *stack;
	__u64 one = 1, *count;
	__u32 zero = 0;

	if (bpf_get_current_pid_tgid() >> 32 != state.process)
		return 0;
	stack = bpf_map_lookup_elem(&scratch, &zero);
	if (!stack)
		return 0;
	__builtin_memset(stack, 0, sizeof(*stack));
	state.answer_flags = bpf_shstk_get_user_stack(stack->pc, sizeof(stack->pc), 1);
	state.answer = bpf_shstk_get_user_stack(stack->pc, sizeof(stack->pc), 0);
	if (state.answer < 0)
		return 0;
	count = bpf_map_lookup_elem(&stacks, stack);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&stacks, stack, &one, BPF_ANY);
	return 0;
}

/*
 * Takes the stack of the same process when it goes to sleep. Programs on kprobes have another type.
 */
SEC("kprobe/do_nanosleep")
int on_sleep(void *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != state.process)
		return 0;
	__builtin_memset(&state.sleeping, 0xff, sizeof(state.sleeping));
	state.answer_sleeping =
		bpf_shstk_get_user_stack(state.sleeping.pc, sizeof(state.sleeping.pc), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
