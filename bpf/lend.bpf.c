// SPDX-License-Identifier: GPL-2.0-only
/*
 * lend.bpf.c - a BPF program at perf events that takes callchains of ordinary users' own processes.
 *
 * It makes the same walk as walk.bpf.c. The broker (tools/broker/) puts it on events that it lends.
 * The chain goes to the event that the broker gave with the lease, whose ring the user reads. It has
 * nothing that the sample itself, which has registers and a copy of the stack, would not have.
 *
 * Of processes of which the user's recorder says that they have an interpreter, it reads the frames of
 * that instead, as language.bpf.c does (language_lent.h). For those on the native stack it calls another
 * program (lend_native.bpf.c), on arm64 for those in the heap (lend_language.bpf.c). Where it says that
 * threads publish trace contexts, it writes the thread's before that (context_walk.h).
 *
 * If the task is not, with all its identities, of the user whose lease it is, nothing is written, and
 * the kernel decides about the sample as without this program.
 */
#include "lease.h"
#include "context_walk.h"
#include "walk_user.h"
#include "write_chain.h"

#ifdef WALK_X86
#define LANGUAGE_LENT
#include "language_walk.h"
#endif

char LICENSE[] SEC("license") = "GPL";

#define PERF_CONTEXT_USER (-512ull)

/* The programs that read frames, by enum lent_reader, if the kernel has taken them. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, NR_LENT_READERS);
	__type(key, u32);
	__type(value, u32);
} lent_readers SEC(".maps");

/* The program that reads frames which this one does not. */
#ifdef WALK_X86
#define OTHER_READER LENT_NATIVE
#else
#define OTHER_READER LENT_HEAP
#endif

/* What became of the frames of the task's interpreter. */
enum lent_frames {
	LENT_NONE, /* there is no interpreter */
	LENT_READ,
	LENT_ELSEWHERE, /* another program reads them */
};

/* Writes the trace context of the thread, if there is one. It is a function of its own because of its stack. */
static noinline void write_lent(void *ctx, const struct lent_process *told, u32 number)
{
	if (told && told->contexts.nr)
		write_context(ctx, &told->contexts, output_of_lease(number));
}

/*
 * Reads the frames of the task's interpreter, if the user's recorder said that there is one, and they are
 * in the heap. It is a function of its own for the same reason, as in walk.bpf.c.
 */
static noinline enum lent_frames read_lent(void *ctx, struct walk_lease *lease,
					   const struct lent_process *told, u32 number)
{
#ifdef WALK_X86
	struct language_run run = {
		.ctx = ctx,
		.lease = lease,
		.number = number,
	};

	if (!read_run(&run, told))
		return LENT_NONE;
	return run.elsewhere ? LENT_ELSEWHERE : LENT_READ;
#else
	(void)ctx;
	(void)lease;
	(void)number;
	return told && told->number ? LENT_ELSEWHERE : LENT_NONE;
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

	if (!c || !w || !begin_walk(w, c, lease->max))
		return true;
	w->records = lease->records;
	w->entry[0] = PERF_CONTEXT_USER;
	w->entry[1] = w->frame.pc;
	w->first = 2;
	walk_on(w);
	if (!lease->both && !is_whole(w))
		return true;
	/* If the lease has ended meanwhile, its entry is all 0. */
	end_chain(w, ctx, ctx->sample_period);
	return !output_chain(w, ctx, output_of_lease(number)) || lease->both;
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
	const struct lent_process *told;
	enum lent_frames frames;
	bool taken;

	if (!lease || !is_of(lease->uid) || is_paused(begin))
		return 1;
	told = find_told(number);
	write_lent(ctx, told, number);
	frames = read_lent(ctx, lease, told, number);
	if (frames == LENT_ELSEWHERE) {
		/* If there is no such program, it goes on here. */
		bpf_tail_call(ctx, &lent_readers, OTHER_READER);
		return 1;
	}
	taken = frames == LENT_READ || walk_for(ctx, lease, number);
	pause_from(begin);
	return taken;
}
