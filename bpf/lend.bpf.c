// SPDX-License-Identifier: GPL-2.0-only
/*
 * lend.bpf.c - a BPF program at perf events that takes callchains of ordinary users' own processes.
 *
 * It makes the same walk as walk.bpf.c. The broker (tools/broker/) puts it on events that it lends.
 * The chain goes to the event that the broker gave with the lease, whose ring the user reads. It has
 * nothing that the sample itself, which has registers and a copy of the stack, would not have.
 *
 * Of processes of which the user's recorder says that they have an interpreter, it reads the frames of
 * that instead, as language.bpf.c does (language_lent.h).
 *
 * If the task is not, with all its identities, of the user whose lease it is, nothing is written, and
 * the kernel decides about the sample as without this program.
 */
#include "lend.h"
#define OUTPUTS (LEASES * LEASE_CPUS)
#include "program.h"
#include "walk_user.h"
#include "write_chain.h"

#ifdef WALK_X86
#define LANGUAGE_LENT
#include "language_walk.h"
#endif

char LICENSE[] SEC("license") = "GPL";

#define PERF_CONTEXT_USER (-512ull)

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

/*
 * Reads the frames of the task's interpreter, if the user's recorder said that there is one. Returns
 * whether it did. It is a function of its own because of its stack, as in walk.bpf.c.
 */
static noinline bool read_lent(void *ctx, struct walk_lease *lease, u32 number)
{
#ifdef WALK_X86
	struct language_run run = { .ctx = ctx, .lease = lease, .number = number };
	u32 zero = 0;
	const struct walk_config *c = bpf_map_lookup_elem(&MAP(config), &zero);

	return c && read_run(&run, c);
#else
	(void)ctx;
	(void)lease;
	(void)number;
	return false;
#endif
}

/*
 * Walks. Returns whether the sample itself is to be taken. It is a function of its own, too, or else
 * its stack would count for what reads frames.
 */
static noinline bool walk_for(struct bpf_perf_event_data *ctx, const struct walk_lease *lease,
			      u32 number)
{
	u32 zero = 0;
	const struct walk_config *c = bpf_map_lookup_elem(&MAP(config), &zero);
	struct walk *w = bpf_map_lookup_elem(&MAP(walks), &zero);
	u64 at;

	if (!c || !w || !begin_walk(w, c, lease->max))
		return true;
	w->records = lease->records;
	w->entry[0] = PERF_CONTEXT_USER;
	w->entry[1] = w->frame.pc;
	w->first = 2;
	walk_on(w);
	if (!lease->both && !is_whole(w))
		return true;
	/*
	 * If the lease has ended meanwhile, its entry is all 0, and its place has no output. Place 0 may
	 * have one of another user's.
	 */
	at = LEASE_OUTPUT(LEASE_SLOT(number), bpf_get_smp_processor_id() % LEASE_CPUS);
	return !write_chain(w, ctx, ctx->sample_period, at) || lease->both;
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
 * Returns 1 if the sample itself is to be taken, else 0. Keeps the work to a part of this CPU's time,
 * whatever stacks and rates users choose.
 */
SEC("perf_event")
int walk_lent(struct bpf_perf_event_data *ctx)
{
	const u32 number = number_of(ctx);
	struct walk_lease *lease = find_lease(number);
	const u64 begin = bpf_ktime_get_ns();
	bool taken;

	if (!lease || !is_of(lease->uid) || is_paused(begin))
		return 1;
	taken = read_lent(ctx, lease, number) || walk_for(ctx, lease, number);
	pause_from(begin);
	return taken;
}
