/* SPDX-License-Identifier: GPL-2.0-only */
/* write_chain.h - writes the chain of a walk to an event, whose ring the recorder reads. */
#ifndef BPF_WRITE_CHAIN_H
#define BPF_WRITE_CHAIN_H

#include "program.h"

/* Since 6.2: the context as the kernel knows it, of which the verifier lets a program read members itself. */
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

/* A function of the same kernel, as older ones of libbpf do not tell whether the one above is there. */
enum bpf_func_id___6_2 { BPF_FUNC_cgrp_storage_get___6_2 = 210 };

/* Returns the identifier that samples of the event have: threads inherit events. */
static __always_inline u64 event_id(void *ctx)
{
	const struct bpf_perf_event_data_kern *data = ctx;
	const struct perf_event *event, *parent;

	if (bpf_core_enum_value_exists(enum bpf_func_id___6_2, BPF_FUNC_cgrp_storage_get___6_2)) {
		data = bpf_cast_to_kern_ctx(ctx);
		event = data->event;
		parent = event->parent;
		return parent ? parent->id : event->id;
	}
	event = BPF_CORE_READ(data, event);
	parent = BPF_CORE_READ(event, parent);
	return parent ? BPF_CORE_READ(parent, id) : BPF_CORE_READ(event, id);
}

/* Completes the head of the chain. */
static __always_inline void end_chain(struct walk *w, void *ctx, u64 period)
{
	w->chain.end = w->end;
	w->chain.nr = w->first + w->nr;
	w->chain.period = period;
	w->chain.id = event_id(ctx);
}

/* Writes the chain to the event @at in the map "output". Returns true if it was written. */
static __always_inline bool output_chain(struct walk *w, void *ctx, u64 at)
{
	u64 size = sizeof(w->chain) - sizeof(w->chain.size) + 8 * MASKED(w->chain.nr, WALK_ENTRIES);

	if (!bpf_perf_event_output(ctx, &output, at, &w->chain.end, size))
		return true;
	walk_count(COUNT_UNSENT);
	return false;
}

#endif /* BPF_WRITE_CHAIN_H */
