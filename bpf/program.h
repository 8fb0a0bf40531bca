/* SPDX-License-Identifier: GPL-2.0-only */
/* program.h - what all BPF programs have: what the command tells them, and where they write. */
#ifndef BPF_PROGRAM_H
#define BPF_PROGRAM_H

#include "walk_state.h"

struct {
	SHARED_MAP
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk_config);
} MAP(config) SEC(".maps");

#ifndef WALK_SHARED
/* One event for each CPU. libbpf sets the number of entries, unless there is one for each lease. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
#ifdef OUTPUTS
	__uint(max_entries, OUTPUTS);
#endif
	__type(key, u32);
	__type(value, u32);
} output SEC(".maps");
#endif

/* Returns the process ID as user space sees it. */
static __always_inline u32 visible_pid(const struct walk_config *c)
{
	struct bpf_pidns_info here = {};

	if (c->ns_ino && !bpf_get_ns_current_pid_tgid(c->ns_dev, c->ns_ino, &here, sizeof(here)))
		return here.tgid;
	return bpf_get_current_pid_tgid() >> 32;
}

/*
 * Returns the process ID of the parent if this process is still a copy of it, as fork() made it; 0 if
 * it is not, or if processes have other numbers in the recorder's namespace.
 */
static __always_inline u32 copied_pid(const struct walk_config *c)
{
	struct task_struct *leader = BPF_CORE_READ(current, group_leader);

	if (c->ns_ino || !(BPF_CORE_READ(leader, flags) & PF_FORKNOEXEC))
		return 0;
	return BPF_CORE_READ(leader, real_parent, tgid);
}

#endif /* BPF_PROGRAM_H */
