// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk.bpf.c - a BPF program at perf events that takes user callchains by unwind rules.
 *
 * It is the same walk as kmod/walk.c, for kernels into which no module is to be loaded: the same
 * tables, the same steps (kmod/walk_special.h), the same ends. If the stack is walked to its
 * outermost frame, the chain is written to the event in the map "output", and the sample itself is
 * not taken. Otherwise the sample is taken, with all that the event asks for, such as a copy of the
 * stack.
 *
 * Whatever the stack, the mappings and the tables say, a walk makes no more than WALK_MAX steps.
 */
#include "chain_ring.h"
#include "context_own.h"
#include "next.h"
#include "program.h"
#include "walk_user.h"
#include "write_chain.h"

#define PERF_CONTEXT_KERNEL (-128ull)
#define PERF_CONTEXT_USER (-512ull)

#ifdef WALK_X86
#include "callchain.h"
#include "language_walk.h"
#else
/* On other machines samples have the kernel's callchain. */
static __always_inline void write_callchain(struct walk *w, void *ctx, u32 max)
{
	(void)w;
	(void)ctx;
	(void)max;
}

/* On other machines a program of its own reads frames, behind this one. */
static __always_inline bool read_language(void *ctx, const struct walk_config *c)
{
	(void)ctx;
	(void)c;
	return false;
}
#endif

char LICENSE[] SEC("license") = "GPL";

/*
 * Processes that are not walked: at their samples the next program runs, if there is one. If there are too
 * many, those that were not met for the longest time are forgotten.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WALK_LEFT);
	__type(key, u32);
	__type(value, u32);
} left SEC(".maps");

/* What there is, by enum walk_use. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_USES);
	__type(key, u32);
	__type(value, u32);
} uses SEC(".maps");

/* The files in which walks ended because they have no table or no rule. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WALK_CUTS);
	__type(key, struct walk_file);
	__type(value, struct walk_cut);
} cuts SEC(".maps");

/*
 * Adds the kernel's part of the chain, if the sample is in the kernel and the options ask for it.
 */
static __always_inline void add_kernel(struct walk *w, void *ctx, const struct walk_config *c)
{
	long size;

	w->first = 0;
	if (!c->kernel)
		return;
	size = bpf_get_stack(ctx, &w->entry[1], WALK_KERNEL * 8, 0);
	if (size <= 0)
		return;
	w->entry[0] = PERF_CONTEXT_KERNEL;
	w->first = 1 + MASKED(size / 8, 2 * WALK_KERNEL);
}

/* Begins a walk, as the command says. Returns false if there is nothing to walk. */
static noinline bool begin(struct walk *w, void *ctx, const struct walk_config *c)
{
	if (!begin_walk(w, c, c->max))
		return false;
	add_kernel(w, ctx, c);
	w->entry[MASKED(w->first, WALK_ENTRIES)] = PERF_CONTEXT_USER;
	w->entry[MASKED(w->first + 1, WALK_ENTRIES)] = w->frame.pc;
	w->first += 2;
	return true;
}

/* Counts the file in which the walk ended, if it should not have ended there. */
static noinline void count_cut(struct walk *w)
{
	const struct mapping *m = &w->mapping[MASKED(w->now, NR_MAPPINGS)];
	const struct file *from = m->from;
	struct walk_file file = m->id;
	struct walk_cut first = { .count = 1 }, *known;

	if ((w->end != WALK_NO_TABLE && w->end != WALK_NO_RULE && w->end != WALK_NO_KIND) ||
	    !m->file)
		return;
	known = bpf_map_lookup_elem(&cuts, &file);
	if (known) {
		__sync_fetch_and_add(&known->count, 1);
		return;
	}
	if (from)
		bpf_probe_read_kernel_str(first.name, sizeof(first.name),
					  BPF_CORE_READ(from, f_path.dentry, d_name.name));
	bpf_map_update_elem(&cuts, &file, &first, BPF_NOEXIST);
}

/*
 * This is a function of its own, as others here are: before Linux 6.13 all functions that call each
 * other share 512 bytes of stack, and what is inlined into the first one counts for all.
 */
static noinline bool read_frames(void *ctx, const struct walk_config *c)
{
	return read_language(ctx, c);
}

/* It is a function of its own for the same reason. */
static noinline void walk_all(struct walk *w)
{
	walk_on(w);
	if (!is_whole(w))
		count_cut(w);
}

static __always_inline bool is_used(u32 what)
{
	const u32 *used = bpf_map_lookup_elem(&uses, &what);

	return used && *used;
}

static __always_inline bool is_left(const struct walk_config *c)
{
	u32 pid = visible_pid(c);

	return bpf_map_lookup_elem(&left, &pid);
}

/*
 * Writes the chain into the ring of this CPU, or to its event where that has no room: the kernel counts what
 * is lost there. Returns true if it was written.
 */
static __always_inline bool write_chain(struct walk *w, struct bpf_perf_event_data *ctx,
					const struct walk_config *c)
{
	end_chain(w, ctx, ctx->sample_period);
	/* A chain that comes beside its sample precedes it in the event's ring. */
	return (!c->both && !c->ns_ino && ring_chain(w, walk_arch_user(&ctx->regs))) ||
	       output_chain(w, ctx, BPF_F_CURRENT_CPU);
}

/* Has the sample itself be taken, which may have no callchain of user space. Returns 1. */
static __always_inline int take_sample(struct walk *w, void *ctx)
{
	const u32 what = WALK_USES_CALLCHAINS, *max = bpf_map_lookup_elem(&uses, &what);

	if (w && max && *max)
		write_callchain(w, ctx, *max);
	return 1;
}

/* Returns 1 if the sample itself is to be taken, else 0. */
SEC("perf_event")
int walk_sample(struct bpf_perf_event_data *ctx)
{
	u32 zero = 0;
	struct walk_config *c = bpf_map_lookup_elem(&MAP(config), &zero);
	struct walk *w = bpf_map_lookup_elem(&MAP(walks), &zero);

	if (c && !(current->flags & PF_KTHREAD)) {
		if (is_used(WALK_USES_CONTEXTS))
			read_context(ctx, c);
		/* The places of an interpreter's frames among native ones are found in a copy. */
		if (is_used(WALK_USES_LANGUAGES) && read_frames(ctx, c))
			return take_sample(w, ctx);
		if (is_used(WALK_USES_LEFT) && is_left(c)) {
			take_sample(w, ctx);
			run_next(ctx);
			return 1;
		}
	}
	if (!c || !w || !begin(w, ctx, c)) {
		if (w)
			walk_count(WALK_REFUSED);
		return take_sample(w, ctx);
	}
	walk_all(w);
	if ((c->both || is_whole(w)) && write_chain(w, ctx, c))
		return c->both;
	return take_sample(w, ctx);
}
