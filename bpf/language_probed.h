/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * language_probed.h - how frames of interpreters are read at probes, instead of at perf events.
 * language_walk.h includes it.
 *
 * Records go to the ring of the probes' own records, so that all come in one order.
 *
 * A thread that runs a program at a probe may be preempted, and the next thread on its CPU may run the
 * same program. So a CPU has several states of a walk, and a thread takes one that no other one has.
 */
#ifndef BPF_LANGUAGE_PROBED_H
#define BPF_LANGUAGE_PROBED_H

#include "tools/probes/bpf/event.h"

#define LANGUAGE_SLOTS 8 /* states of a CPU, a power of two */

/* The maps that the loader replaces by those of the probes' programs (tools/probes/bpf/heap.bpf.c). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} probe_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct probe_pending);
} probe_calls SEC(".maps");

/* Returns the number of the state that this walk has. */
#define slot_of(run) ((run)->slot)

/* Writes a record of which @bytes follow its first word. Returns 0, or not 0 if there is no room. */
#define write_record(run, record, bytes)                                                  \
	({                                                                                \
		(record)->size = PROBE_LANGUAGE;                                          \
		bpf_ringbuf_output(&probe_ring, record, sizeof((record)->size) + (bytes), \
				   BPF_RB_NO_WAKEUP);                                     \
	})

#endif /* BPF_LANGUAGE_PROBED_H */
