/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lease.h - the leases (lend.h) of the event at which a program runs, and what they may take of a CPU's
 * time.
 */
#ifndef BPF_LEASE_H
#define BPF_LEASE_H

#include "lend.h"
#include "walk_state.h"

/* The leases by LEASE_SLOT(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LEASES);
	__type(key, u32);
	__type(value, struct walk_lease);
} leases SEC(".maps");

/* CLOCK_MONOTONIC in ns, until which no walk is made on this CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} pauses SEC(".maps");

/* Returns the number of the event's lease, which nothing changes. */
static __always_inline u32 number_of(void *ctx)
{
	const struct bpf_perf_event_data_kern *data = ctx;

	return BPF_CORE_READ(data, event, attr.config1);
}

/* Returns the lease with this number, or NULL if it has ended. It can end at any time. */
static noinline struct walk_lease *find_lease(u32 number)
{
	u32 slot = LEASE_SLOT(number);
	struct walk_lease *lease = bpf_map_lookup_elem(&leases, &slot);

	return lease && number && lease->number == number ? lease : NULL;
}

/* Returns whether the task has no other identity than the user @uid. */
static noinline bool is_of(u32 uid)
{
	const struct cred *cred = BPF_CORE_READ(current, cred);

	return BPF_CORE_READ(cred, uid.val) == uid && BPF_CORE_READ(cred, euid.val) == uid &&
	       BPF_CORE_READ(cred, suid.val) == uid;
}

/* Returns whether nothing is to be done for leases on this CPU now. */
static noinline bool is_paused(u64 now)
{
	u32 zero = 0;
	const u64 *pause = bpf_map_lookup_elem(&pauses, &zero);

	return !pause || now < *pause;
}

/* Begins a pause on this CPU, after work that began at @begin. */
static noinline void pause_from(u64 begin)
{
	const u64 end = bpf_ktime_get_ns();
	u32 zero = 0;
	u64 *pause = bpf_map_lookup_elem(&pauses, &zero);

	if (pause)
		*pause = end + LEASE_PAUSE * (end - begin);
}

#endif /* BPF_LEASE_H */
