// SPDX-License-Identifier: GPL-2.0-only
/*
 * lsm.bpf.c - a security module that forbids one process one prctl(); lsm_test.c loads it
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	int process;
	int option;
	int seen;
} state;

SEC("lsm/task_prctl")
int on_prctl(__u64 *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != state.process || (int)ctx[0] != state.option)
		return 0;
	state.seen++;
	return -1; /* EPERM */
}

char LICENSE[] SEC("license") = "GPL";
