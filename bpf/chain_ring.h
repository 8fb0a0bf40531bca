/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * chain_ring.h - writes the chain of a walk into memory that the recorder has mapped. That takes a quarter of
 * what it takes to write to an event (make bench-bpf-guest).
 *
 * The records are as the event's would be: the recorder reads both in the same way, in the order of time.
 * Programs at perf events do not interrupt each other, so each ring has one writer.
 */
#ifndef BPF_CHAIN_RING_H
#define BPF_CHAIN_RING_H

#include "program.h"
#include "ring_record.h"

#define RING_SAMPLE 9 /* PERF_RECORD_SAMPLE */
#define RING_KERNEL 1 /* PERF_RECORD_MISC_KERNEL */
#define RING_USER 2 /* PERF_RECORD_MISC_USER */

struct ring_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct walk_ring));
};

/* The rings by CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WALK_RINGS);
	__type(key, u32);
	__array(values, struct ring_map);
} rings SEC(".maps");

/* Writes the chain into the ring of this CPU. Returns false if there is none, or no room in it. */
static noinline bool ring_chain(struct walk *w, bool user)
{
	u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	void *map = bpf_map_lookup_elem(&rings, &cpu);
	struct walk_ring *r = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	const u32 nr = sizeof(w->chain) / 8 + w->chain.nr;

	if (!r)
		return false;
	w->chain.size = 8 * nr - sizeof(w->chain.size);
	return put_record(r, ring_header(RING_SAMPLE, user ? RING_USER : RING_KERNEL, 0),
			  (u32)current->tgid | (u64)current->pid << 32, bpf_ktime_get_ns(),
			  (const u64 *)&w->chain, nr);
}

#endif /* BPF_CHAIN_RING_H */
