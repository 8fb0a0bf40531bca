// SPDX-License-Identifier: GPL-2.0-only
/* returned.bpf.c - tells what shstk_walk() returned of the process that runs it. returned.c loads it. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <shstk_stack.bpf.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct shstk_bpf_stack);
} stack SEC(".maps");

SEC("raw_tp")
int returned(void *ctx)
{
	__u32 zero = 0;

	(void)ctx;
	return shstk_walk(bpf_map_lookup_elem(&stack, &zero));
}
