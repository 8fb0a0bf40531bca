/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * language_lent.h - for whom frames of interpreters are read: for ordinary users, each under a lease
 * (lend.h). language_walk.h includes it. language_own.h is the other case.
 *
 * A user's recorder says itself how frames are found in the user's processes, and may say anything: so
 * the broker has to look at no file and no memory of a user's. What is said counts for events of
 * that lease, and decides only which words of the process's own memory are read, and how often up to
 * a bound.
 *
 * The broker makes the maps of a lease, and takes them away with it, so nobody's functions and
 * processes take the room of another user's. What all leases share on a CPU is the scratch memory of
 * language_walk.h. Nothing that it had before a sample may be read by that sample.
 */
#ifndef BPF_LANGUAGE_LENT_H
#define BPF_LANGUAGE_LENT_H

/* As in language_own.h: what was told of the process under the lease, or NULL. */
typedef struct lent_process language_source;

#define LENT_TIME 5000000 /* ns after which no more frames of a sample are read */
#define LENT_LOOKS 16 /* frames between two looks at the clock */

/* Returns the map of the numbers of functions. */
#define functions_of(run) ((run)->functions)

/* As in language_own.h. */
#define write_record(run, record, bytes)                                           \
	bpf_perf_event_output((run)->ctx, &output, output_of_lease((run)->number), \
			      &(record)->kind, bytes)

/*
 * Removes what another user's sample left, as a target may have words be passed on that were not read,
 * and looks at the clock.
 */
static __always_inline void begin_for(struct language_run *run)
{
	struct language_walk *l = run->l;

	l->until = bpf_ktime_get_ns() + LENT_TIME;
	l->identity.lease = run->number;
	clear(l->frame, sizeof(l->frame));
	clear(l->words, sizeof(l->words));
}

/*
 * Returns whether reading has taken so long that it is to end. A table may have each frame take many
 * times as long as one of an interpreter does. @n: number of frames of a list that were read.
 */
static __always_inline bool is_late(const struct language_walk *l, u32 n)
{
	return n % LENT_LOOKS == 0 && bpf_ktime_get_ns() >= l->until;
}

/*
 * Returns a number that no other function gets, of this lease or of another one: a recorder that opens
 * its events anew has another lease, and still knows the functions of the one before.
 */
static __always_inline u64 new_id(struct language_run *run)
{
	return ((u64)run->number << 32) + __sync_fetch_and_add(&run->lease->nr_functions, 1);
}

/* As in language_own.h. */
static __always_inline const struct language_target *
find_target(struct language_run *run, const language_source *told, u32 *ret)
{
	u32 slot = LEASE_SLOT(run->number);

	run->functions = bpf_map_lookup_elem(&lent_functions, &slot);
	if (!run->functions || !told)
		return NULL;
	*ret = told->number;
	if (!*ret)
		return NULL;
#ifdef LANGUAGE_NATIVE
	run->n = &told->native;
#endif
	return &told->target;
}

#ifdef LANGUAGE_NATIVE
/* As in language_own.h: find_target() has set it. */
static __always_inline const struct native_target *native_target_of(const struct language_run *run,
								    u32 number)
{
	(void)number;
	return run->n;
}
#endif

#endif /* BPF_LANGUAGE_LENT_H */
