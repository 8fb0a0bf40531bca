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
#include "program.h"

enum { RULES_CUT_TABLE, RULES_CUT_RULE, RULES_CUT_KIND };

#include "mapping.h"
#include "table.h"

#include "kmod/return_probe_read.h"
#include "kmod/walk_special.h"

#ifdef WALK_X86
#include "loop_x86.h"
#else
#include "loop_arm64.h"
#endif

#include "language_walk.h"

char LICENSE[] SEC("license") = "GPL";

#define PERF_CONTEXT_KERNEL (-128ull)
#define PERF_CONTEXT_USER (-512ull)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

/*
 * Processes that are not walked. If there are too many, those that were not met for the longest
 * time are forgotten.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WALK_LEFT);
	__type(key, u32);
	__type(value, u32);
} left SEC(".maps");

/* Adds the frame to the chain. @guess is WALK_GUESS or 0. Returns GO_ON, or how the walk ends. */
static __always_inline int add_entry(struct walk *w, const struct frame *f, u64 guess)
{
	if (!f->pc)
		return WALK_ZERO;
	if (w->nr >= w->max)
		return WALK_ROOM;
	w->entry[MASKED(w->first + w->nr, WALK_ENTRIES)] = f->pc | guess;
	w->nr++;
	return GO_ON;
}

/*
 * Ends the walk at an address without code. A return address that leads there is no return address
 * and is removed. A program counter may be there after a signal that followed a wild jump, but it
 * is not in the kernel's addresses, which a forged signal frame may hold.
 */
static __always_inline int no_code(struct walk *w)
{
	if (w->exact && (w->frame.pc < TASK_SIZE_MAX || !w->nr))
		return WALK_NO_TABLE;
	if (w->nr)
		w->nr--;
	return WALK_NO_CODE;
}

static __always_inline bool is_unknown(const struct packed_rule *rule)
{
	return rule->cfa & PACKED_SPECIAL && packed_kind(rule->cfa) == SHSTK_RULE_NONE;
}

/* Passes from a frame to its caller's frame. Returns GO_ON, or how the walk ends. */
static __always_inline int pass_frame(struct walk *w)
{
	struct frame *f = &w->frame;
	const u64 records = w->count[COUNT_RECORD];
	u64 at = f->pc - !w->exact;
	struct mapping *m = find_mapping(w, at);
	u64 guesses;
	int ret;

	if (!m)
		return no_code(w);
	find_rule(w, m, at);
	if (m->file && !w->records && is_unknown(&w->rule))
		return m->table ? WALK_NO_RULE : WALK_NO_TABLE;
	if (w->rule.cfa & PACKED_SPECIAL)
		ret = step_special(w, f, m, &w->rule, true);
	else
		ret = step_plain(w, f, &w->rule);
	if (ret >= 0)
		return ret;
	guesses = w->count[COUNT_RECORD] - records;
	w->chain.guesses += guesses;
	if (w->instance && !w->exact)
		f->pc = through_trampoline(w, f->pc, f->sp);
	return add_entry(w, f, guesses << 63);
}

/* Makes one round of bpf_loop(). */
static long pass(u32 i, struct walk **of)
{
	struct walk *w = *of;
	int ret = pass_frame(w);

	(void)i;
	if (ret == GO_ON)
		return 0;
	w->end = ret;
	return 1;
}

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

/* Begins a walk. Returns false if the task has no user space, or no code that can be walked. */
static __always_inline bool begin(struct walk *w, void *ctx, const struct walk_config *c)
{
	struct task_struct *task = current;
	struct mm_struct *mm = task->mm;
	const struct uprobe_task *utask;
	struct pt_regs *pt;

	w->mm = mm;
	w->pid = visible_pid(c);
	if (!mm || task->flags & PF_KTHREAD || bpf_map_lookup_elem(&left, &w->pid))
		return false;
	pt = (void *)bpf_task_pt_regs((void *)task);
	if (!walk_arch_start(&w->frame, w->regs, (void *)pt))
		return false;
	w->vdso = (u64)BPF_CORE_READ(mm, context.vdso);
	utask = ushstk_own_utask();
	w->instance = utask ? ushstk_returns(utask) : NULL;
	if (utask)
		w->frame.pc = ushstk_unstepped(w->frame.pc);
	check_stamp(w, mm, c);
	w->nr = 0;
	w->signals = 0;
	w->exact = true;
	w->sp_known = true;
	w->end = WALK_ROOM;
	w->chain.guesses = 0;
	w->records = c->records;
	w->max = c->max - 1 < WALK_MAX ? c->max - 1 : WALK_MAX;
	add_kernel(w, ctx, c);
	w->entry[MASKED(w->first, WALK_ENTRIES)] = PERF_CONTEXT_USER;
	w->entry[MASKED(w->first + 1, WALK_ENTRIES)] = w->frame.pc;
	w->first += 2;
	return true;
}

static __always_inline bool is_whole(const struct walk *w)
{
	return w->end == WALK_WHOLE || w->end == WALK_ZERO;
}

/* Writes the chain. Returns true if it was written. */
static __always_inline bool send(struct walk *w, void *ctx, u64 period)
{
	u64 size;

	w->chain.end = w->end;
	w->chain.nr = w->first + w->nr;
	w->chain.period = period;
	size = sizeof(w->chain) - sizeof(w->chain.size) + 8 * MASKED(w->chain.nr, WALK_ENTRIES);
	if (!bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &w->chain.end, size))
		return true;
	walk_count(COUNT_UNSENT);
	return false;
}

/* Returns 1 if the sample itself is to be taken, else 0. */
SEC("perf_event")
int walk_sample(struct bpf_perf_event_data *ctx)
{
	u32 zero = 0;
	struct walk_config *c = bpf_map_lookup_elem(&config, &zero);
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);

	/* The places of an interpreter's frames among native ones are found in a copy. */
	if (c && !(current->flags & PF_KTHREAD) && read_language(ctx, c))
		return 1;
	if (!c || !w || !begin(w, ctx, c)) {
		if (w)
			walk_count(WALK_REFUSED);
		return 1;
	}
	bpf_loop(WALK_MAX + 1, pass, &w, 0);
	walk_count(MASKED(w->end, 16));
	if (!c->both && !is_whole(w))
		return 1;
	return !send(w, ctx, ctx->sample_period) || c->both;
}
