/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * language_own.h - for whom frames of interpreters are read: for the recorder that loaded the program.
 * language_walk.h includes it. language_lent.h is the other case.
 */
#ifndef BPF_LANGUAGE_OWN_H
#define BPF_LANGUAGE_OWN_H

/* With what find_target() finds how the frames of a process are found. */
typedef struct walk_config language_source;

/* The number of the target of a process, by its process ID. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LANGUAGE_PROCESSES);
	__type(key, u32);
	__type(value, u32);
} language_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LANGUAGE_TARGETS);
	__type(key, u32);
	__type(value, struct language_target);
} language_targets SEC(".maps");

/* The numbers of functions. One that was not met for the longest time is forgotten. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct language_identity);
	__type(value, u64);
} language_ids SEC(".maps");

#ifdef LANGUAGE_NATIVE
/* By the same numbers as language_targets. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LANGUAGE_TARGETS);
	__type(key, u32);
	__type(value, struct native_target);
} native_targets SEC(".maps");

/* Returns how frames on the native stack are found, by the number of the target; NULL: it is not known. */
static __always_inline const struct native_target *native_target_of(const struct language_run *run,
								    u32 number)
{
	(void)run;
	return bpf_map_lookup_elem(&native_targets, &number);
}
#endif

/* Returns the map of the numbers of functions. */
#define functions_of(run) (&language_ids)

#ifndef LANGUAGE_PROBED
/* Writes a record of which @bytes follow its first word. Returns 0, or not 0 if there is no room. */
#define write_record(run, record, bytes) \
	bpf_perf_event_output((run)->ctx, &output, BPF_F_CURRENT_CPU, &(record)->kind, bytes)
#endif

/* Does what else is to be done before frames are read. */
static __always_inline void begin_for(struct language_run *run)
{
#ifdef LANGUAGE_PROBED
	run->l->moment.tid = (u32)bpf_get_current_pid_tgid();
#else
	(void)run;
#endif
}

/* Returns whether reading is to end: it never is, as the recorder itself said how frames are found. */
static __always_inline bool is_late(const struct language_walk *l, u32 n)
{
	(void)l;
	(void)n;
	return false;
}

/* Returns a number that no other function gets, of this program or of the other one (native.bpf.c). */
static __always_inline u64 new_id(struct language_run *run)
{
#ifdef LANGUAGE_NATIVE
	const u64 of_program = 1ull << 62;
#else
	const u64 of_program = 0;
#endif

	return of_program | ((u64)bpf_get_smp_processor_id() + 1) << 40 | (u64)slot_of(run) << 36 |
	       ++run->l->last_id;
}

/*
 * Returns the target of this process, and sets its number; NULL: there is none. A process that was
 * just forked has its parent's: the recorder gets to know it later.
 */
static __always_inline const struct language_target *find_target(struct language_run *run,
								 const language_source *c, u32 *ret)
{
	u32 pid = visible_pid(c);
	u32 *number = bpf_map_lookup_elem(&language_processes, &pid);

	(void)run;
	if (!number) {
		pid = copied_pid(c);
		number = pid ? bpf_map_lookup_elem(&language_processes, &pid) : NULL;
	}
	if (!number)
		return NULL;
	*ret = *number;
	return bpf_map_lookup_elem(&language_targets, ret);
}

#endif /* BPF_LANGUAGE_OWN_H */
