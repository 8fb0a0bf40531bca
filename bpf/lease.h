/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lease.h - the leases (lend.h) of the event at which a program runs, what was told under them, and what
 * they may take of a CPU's time.
 */
#ifndef BPF_LEASE_H
#define BPF_LEASE_H

#include "lend.h"
#define OUTPUTS (LEASES * LEASE_CPUS)
#include "program.h"

#define DUMPABLE_MASK 3 /* of the flags of an address space */

/* The leases by LEASE_SLOT(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LEASES);
	__type(key, u32);
	__type(value, struct walk_lease);
} leases SEC(".maps");

struct lent_processes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LENT_PROCESSES);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct lent_process));
};

/* By LEASE_SLOT(): what was told of processes, by process ID. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, LEASES);
	__type(key, u32);
	__array(values, struct lent_processes_map);
} lent_processes SEC(".maps");

struct lent_functions_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LENT_FUNCTIONS);
	__uint(key_size, sizeof(struct language_identity));
	__uint(value_size, sizeof(u64));
};

/* By LEASE_SLOT(): the numbers of functions. One that was not met for the longest time is forgotten. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, LEASES);
	__type(key, u32);
	__array(values, struct lent_functions_map);
} lent_functions SEC(".maps");

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

/*
 * Returns the place in the map "output" of the event to which records of the lease are written. If the
 * lease has ended meanwhile, there is none in that place. Place 0 may have one of another user's.
 */
static __always_inline u64 output_of_lease(u32 number)
{
	return LEASE_OUTPUT(LEASE_SLOT(number), bpf_get_smp_processor_id() % LEASE_CPUS);
}

/* Returns who may trace the process and have its core file. */
static __always_inline u32 dumpable_by(void)
{
	const struct task_struct___7_2 *task = (const void *)current;
	const struct mm_struct *mm = current->mm;
	const struct mm_struct___6_18 *newer = (const void *)mm;
	u64 flags = 0;

	if (bpf_core_field_exists(task->exec_state->dumpable))
		return BPF_CORE_READ(task, exec_state, dumpable);
	if (bpf_core_field_exists(mm->flags))
		flags = BPF_CORE_READ(mm, flags);
	else if (bpf_core_field_exists(newer->flags.__mm_flags))
		flags = BPF_CORE_READ(newer, flags.__mm_flags[0]);
	return flags & DUMPABLE_MASK;
}

/*
 * Returns what the user's recorder said of the task's process, or of the one of which it is still a copy;
 * NULL: nothing. Nothing counts of a process that has become one that its user may not trace, as one that
 * has secrets may do (PR_SET_DUMPABLE): then only what its samples have anyway is given.
 */
static noinline const struct lent_process *find_told(u32 number)
{
	u32 zero = 0, slot = LEASE_SLOT(number), pid;
	const struct walk_config *c = bpf_map_lookup_elem(&MAP(config), &zero);
	void *processes = bpf_map_lookup_elem(&lent_processes, &slot);
	const struct lent_process *ret;

	if (!c || !processes || !current->mm || dumpable_by() != TASK_DUMPABLE_OWNER)
		return NULL;
	pid = visible_pid(c);
	ret = bpf_map_lookup_elem(processes, &pid);
	if (ret)
		return ret;
	pid = copied_pid(c);
	return pid ? bpf_map_lookup_elem(processes, &pid) : NULL;
}

#endif /* BPF_LEASE_H */
