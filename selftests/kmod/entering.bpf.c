// SPDX-License-Identifier: GPL-2.0-only
/*
 * entering.bpf.c - calls bpf_shstk_get_user_stack() in an NMI; entering_test.c loads it
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "entering.h"

extern int bpf_shstk_get_user_stack(void *buf, __u32 buf__sz, __u64 flags) __ksym;

struct entering_state state;

/* The arguments are the handler, how long it took, and what it returned. */
SEC("tp_btf/nmi_handler")
int on_nmi(__u64 *ctx)
{
	__u32 n = state.taken;
	struct entering_stack *s;

	if (ctx[0] != state.handler || (__u32)ctx[2] != 1 || n >= ENTERING_STACKS ||
	    bpf_get_current_pid_tgid() >> 32 != state.process)
		return 0;
	s = &state.stack[n];
	s->bytes = bpf_shstk_get_user_stack(s->pc, sizeof(s->pc), 0);
	state.taken = n + 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
