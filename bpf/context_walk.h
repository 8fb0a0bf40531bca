/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * context_walk.h - reads the trace context of the thread that is sampled.
 *
 * The thread stands still while its sample is taken, as OTEP 4947 demands of readers ("signal
 * handler-like semantics"), so the record is as the thread left it: whole if its byte says so.
 *
 * Nothing of the process is trusted: a fixed number of words is read, by functions that bear any
 * address.
 */
#ifndef BPF_CONTEXT_WALK_H
#define BPF_CONTEXT_WALK_H

#include "context.h"
#include "language.h"
#include "program.h"
#include "variable_walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct context_moment);
} context_moments SEC(".maps");

/* Returns whether the process context is still where it was found. */
static __always_inline bool is_published(const struct context_process *p)
{
	struct {
		u64 signature;
		u32 version;
		u32 size;
	} head = { 0 };

	return !bpf_probe_read_user(&head, sizeof(head), (void *)p->header) &&
	       head.signature == CONTEXT_SIGNATURE && head.version == CONTEXT_VERSION;
}

/* Reads the record that a variable leads to. Returns whether there is one that counts. */
static __always_inline bool read_record(const struct context_variable *v, u64 thread,
					struct context_moment *m)
{
	u64 at = find_variable(v, thread), size;

	at = at ? context_word(at) : 0;
	if (!at || bpf_probe_read_user(&m->record, sizeof(m->record), (void *)at) ||
	    m->record.valid != CONTEXT_VALID)
		return false;
	size = m->record.size;
	if (size >= CONTEXT_ATTRIBUTES)
		size = CONTEXT_ATTRIBUTES - 1;
	asm volatile("" : "+r"(size));
	size = MASKED(size, CONTEXT_ATTRIBUTES);
	if (size && bpf_probe_read_user(m->attributes, size, (void *)(at + sizeof(m->record))))
		size = 0;
	m->record.size = size;
	return true;
}

/*
 * Writes a record with the context of the thread to the event at @place in the map "output", if there is
 * one. @p says how it is found.
 */
static __always_inline void write_context(void *ctx, const struct context_process *p, u64 place)
{
	u32 zero = 0;
	struct context_moment *m = bpf_map_lookup_elem(&context_moments, &zero);
	struct task_struct *task = current;
	bool found = false;
	u64 thread, size;

	if (!p || !m || !task->mm || !is_published(p))
		return;
	thread = walk_arch_thread(task);
#pragma unroll
	for (u32 i = 0; i < CONTEXT_VARIABLES; i++)
		if (!found && i < p->nr)
			found = read_record(&p->variables[i], thread, m);
	if (!found)
		return;
	m->kind = LANGUAGE_CONTEXT;
	m->pc = ((const volatile u64 *)bpf_task_pt_regs((void *)task))[WALK_PT_PC];
	size = offsetof(struct context_moment, attributes) - sizeof(m->size) +
	       MASKED(m->record.size, CONTEXT_ATTRIBUTES);
	bpf_perf_event_output(ctx, &output, place, &m->kind, size);
}

#endif /* BPF_CONTEXT_WALK_H */
