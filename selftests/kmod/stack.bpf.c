// SPDX-License-Identifier: GPL-2.0-only
/*
 * stack.bpf.c - takes the user stack of a sample by bpf_get_stack() and bpf_get_stackid(), and
 * tells the process by a signal that it was sampled; bpf_test.c loads it
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "stack.h"

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, STACK_DEPTH * sizeof(__u64));
} ids SEC(".maps");

struct stack_state state;

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != state.process || !state.wanted)
		return 0;
	state.bytes = bpf_get_stack(ctx, state.pc, sizeof(state.pc), BPF_F_USER_STACK);
	/* Another stack with the same hash is replaced. */
	state.id = bpf_get_stackid(ctx, &ids, BPF_F_USER_STACK | BPF_F_REUSE_STACKID);
	state.sent = bpf_send_signal_thread(27); /* SIGPROF */
	state.wanted = 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
