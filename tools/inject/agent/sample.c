// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sample.c - captures the stack of a thread directly into its ring.
 *
 * The kernel looks at CPU-time timers only in its periodic tick, so there are at most CONFIG_HZ
 * samples a second. The periods that ran out in between come as the overrun count and are in the
 * sample's weight.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "agent.h"
#include "go/golabels.h"
#include "tools/repeats.h"

/*
 * Copies the name of the calling thread to its slot. Only the thread itself can ask for its name
 * this way.
 */
void take_name(struct agent_thread *t)
{
	char comm[REC_COMM] = "";

	sys2(SYS_prctl, PR_GET_NAME, comm);
	memcpy(t->slot->comm, comm, sizeof(comm));
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* There is only one writer, so no atomic addition is needed. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

void sample_fill(struct rec_sample *s, int type, int n, const uint8_t *marks, uint64_t periods,
		 const struct shstk_info *info)
{
	uint8_t *to = (uint8_t *)&s->pcs[n];

	if (marks != to)
		memmove(to, marks, n);
	s->labels = 0;
	s->folded = 0;
	s->frames = 0;
	s->pad = 0;
	s->record.size = rec_sample_size(n, 0);
	s->record.type = type;
	s->record.flags = 0;
	s->time = now(CLOCK_MONOTONIC);
	s->weight = periods * agent.period;
	s->nr = n;
	s->end = info->end;
	s->source = info->source;
	s->opens = atomic_load_explicit(&agent.opens, memory_order_relaxed);
	s->late = 0;
}

uint32_t sample_set_labels(struct rec_sample *s, uint32_t nr, uint32_t labels)
{
	const uint32_t size = rec_sample_size(nr, labels);

	s->labels = labels;
	s->record.size = size;
	return size;
}

/*
 * Adds the labels of the goroutine and of the trace behind the @nr entries; the record has room for
 * them. Returns the bytes of the record.
 */
static uint32_t add_labels(struct rec_sample *s, uint32_t nr)
{
	char *to = (char *)&s->pcs[nr] + nr;
	uint32_t labels;

	if (!agent.header->labels || agent.sandboxed)
		return rec_sample_size(nr, 0);
	labels = shstk_golabels(s->pcs, nr, to, REC_MAX_LABELS);
	if (labels <= REC_MAX_LABELS - CONTEXT_ROOM)
		labels += context_labels(to + labels);
	return sample_set_labels(s, nr, labels);
}

void sample_put(struct agent_thread *t, uint32_t size)
{
	t->last = t->head + 1;
	ring_commit(t, size);
}

/* Returns whether the recorder was killed, so that nobody empties the rings any more. */
static bool recorder_is_gone(void)
{
	return sys2(SYS_kill, agent.header->recorder, 0) == -ESRCH;
}

static void count_lost(struct agent_thread *t, uint64_t periods)
{
	count(&t->slot->lost, 1);
	count(&t->slot->lost_weight, periods * agent.period);
}

struct rec_sample *sample_new(struct agent_thread *t, uint64_t periods, uint32_t room)
{
	struct rec_sample *s;
	uint64_t owed;

	/* The name is read again now and then, as a thread may name itself late. */
	if (!(atomic_load_explicit(&t->slot->taken, memory_order_relaxed) % 16) && !agent.sandboxed)
		take_name(t);
	count(&t->slot->taken, 1);
	owed = periods < t->owed ? periods : t->owed;
	t->owed -= owed;
	t->periods += periods - owed;
	atomic_store_explicit(&t->slot->cpu, t->start + t->first + (t->periods - 1) * agent.period,
			      memory_order_relaxed);
	s = ring_reserve(t, room);
	if (!s) {
		count_lost(t, periods);
		if (!agent.sandboxed && recorder_is_gone())
			atomic_store(&agent.header->stop, 1);
	}
	return s;
}

/**
 * struct captured - a stack that was captured into the ring
 * @s: the record, whose entries it is.
 * @marks: the marks of the entries.
 * @sps: the stack pointers of the entries, or NULL.
 * @frames: what is known of the frames of Python.
 * @nr: number of entries.
 * @folded: entries stand for others, which were left out.
 * @info: what the capture tells.
 */
struct captured {
	struct rec_sample *s;
	uint8_t *marks;
	uint64_t *sps;
	struct frames frames;
	int nr;
	bool folded;
	struct shstk_info info;
};

static void drop_frames(struct captured *stack)
{
	stack->frames.unknown |= stack->frames.moment != NULL;
	stack->frames.moment = NULL;
}

/*
 * Reads what Python runs in this thread. Returns the bytes of a record that has it, and a stack of any
 * depth. If the ring has no room for both, there is the stack alone.
 */
static uint32_t take_frames(struct agent_thread *t, struct captured *to)
{
	const uint32_t room = rec_sample_room(agent.max_depth),
		       with_sps = room + agent.max_depth * sizeof(*to->sps);

	to->frames = frames_take(t);
	if (to->frames.moment && ring_reserve(t, with_sps + to->frames.bytes))
		return with_sps + to->frames.bytes;
	drop_frames(to);
	return room;
}

/*
 * Removes this object's frames, which are hooks: a signal that was blocked during a call comes in
 * them. @function is the function of libc where the time was spent, or NULL; it takes the place of
 * an innermost frame of this object.
 */
static void drop_own(struct captured *stack, const void *function)
{
	uint64_t *pcs = stack->s->pcs;
	int to = 0;

	if (stack->nr && function && is_agent_code(pcs[0])) {
		pcs[0] = (uintptr_t)function;
		stack->marks[0] = SHSTK_MARK_PC;
	}
	for (int i = 0; i < stack->nr; i++) {
		if (is_agent_code(pcs[i]))
			continue;
		if (stack->sps)
			stack->sps[to] = stack->sps[i];
		pcs[to] = pcs[i];
		stack->marks[to++] = stack->marks[i];
	}
	stack->nr = to;
}

/*
 * Captures the stack that the signal with @context interrupted, or if that is NULL, this one. If there are
 * frames of Python, these are placed by the stack pointers, which only a walk has.
 */
static void capture(struct captured *to, uint32_t depth, const void *context)
{
	struct shstk_opts opts = { .size = sizeof(opts), .flags = capture_flags() };
	uint64_t *pcs = to->s->pcs;

	to->info = (struct shstk_info){ .size = sizeof(to->info) };
	to->marks = opts.marks = (uint8_t *)&pcs[depth];
	to->sps = NULL;
	if (to->frames.moment) {
		to->sps = opts.sps = (uint64_t *)((char *)to->s + rec_sample_room(depth));
		opts.sources = SHSTK_USE_WALK;
	}
	to->nr = context ? shstk_capture_context(context, pcs, depth, &opts, &to->info) :
			   shstk_capture(pcs, depth, &opts, &to->info);
	if (to->nr < 0)
		to->nr = 0;
}

/*
 * Captures a stack that has more entries than a sample again, with room for all of them, and
 * shortens it. The room is in the ring, too: little of it is kept. If the ring has not so much, the
 * stack is cut. Where native entries are left out, frames of Python have no sure place. Returns false
 * if there is no room at all.
 */
static bool capture_deep(struct agent_thread *t, struct captured *to, const void *context)
{
	uint32_t max = agent.max_depth, depth = agent.deepest;
	unsigned int nr;

	drop_frames(to);
	to->s = ring_reserve(t, rec_sample_room(depth));
	if (!to->s) {
		depth = max;
		to->s = ring_reserve(t, rec_sample_room(depth));
	}
	if (!to->s)
		return false;
	capture(to, depth, context);
	if (depth == max)
		return true;
	nr = to->nr;
	to->folded = repeats_fit(to->s->pcs, to->marks, &nr, max, &to->info.end);
	to->nr = (int)nr;
	return true;
}

/*
 * Captures a stack into a record for which there is room. @function: see drop_own(). Returns false
 * if there is no room any more.
 */
static bool take_stack(struct agent_thread *t, struct captured *to, const void *context,
		       const void *function)
{
	capture(to, agent.max_depth, context);
	if (to->info.end == SHSTK_END_CAPACITY && agent.deepest > agent.max_depth &&
	    !capture_deep(t, to, context))
		return false;
	drop_own(to, function);
	return true;
}

/* Adds what Python ran behind the first @size bytes of a record. Returns the bytes with it. */
static uint32_t add_frames(const struct captured *stack, uint32_t size)
{
	const uint32_t sps = stack->nr * sizeof(*stack->sps), bytes = sps + stack->frames.bytes;
	char *to = (char *)stack->s + size;

	memmove(to, stack->sps, sps);
	memmove(to + sps, stack->frames.moment, stack->frames.bytes);
	stack->s->frames = bytes;
	stack->s->record.size = size + bytes;
	return size + bytes;
}

/*
 * Fills in the record of a stack that was captured. Returns its bytes. Others can write to it, so
 * nothing that bounds what is written is read back from there.
 */
static uint32_t fill_captured(const struct captured *stack, uint64_t periods)
{
	struct rec_sample *s = stack->s;
	uint32_t size;

	sample_fill(s, REC_SAMPLE, stack->nr, stack->marks, periods, &stack->info);
	s->folded = stack->folded;
	s->frames = stack->frames.unknown ? REC_FRAMES_UNKNOWN : 0;
	size = add_labels(s, stack->nr);
	return stack->sps ? add_frames(stack, size) : size;
}

/*
 * Captures the stack at the beginning of a wait, into the ring, but does not commit it. The wait
 * may last longer than the recording, and no signal comes before its end. A late signal gives the
 * sample its weight (take_wait()), or the recorder does, if it sees @wait_since.
 */
void agent_open_wait(const void *function)
{
	ksigset old = block_signals();
	struct agent_thread *t = agent_self();
	struct captured stack = { .s = NULL };

	if (t && t->armed)
		stack.s = ring_reserve(t, take_frames(t, &stack));
	if (stack.s && take_stack(t, &stack, NULL, function)) {
		/*
		 * This publishes the head, so that the recorder finds the sample, which may lie
		 * behind a pad.
		 */
		ring_commit(t, 0);
		fill_captured(&stack, 0);
		atomic_store_explicit(&t->open, true, memory_order_relaxed);
		atomic_store_explicit(&t->slot->wait_since, stack.s->time, memory_order_release);
	}
	frames_give(&stack.frames);
	restore_signals(old | agent_sigset());
}

static void close_wait(struct agent_thread *t)
{
	atomic_store_explicit(&t->open, false, memory_order_relaxed);
	atomic_store_explicit(&t->slot->wait_since, 0, memory_order_release);
}

void agent_close_wait(void)
{
	struct agent_thread *t = agent_self();

	if (t && atomic_load_explicit(&t->open, memory_order_relaxed))
		close_wait(t);
}

/*
 * Commits the sample of agent_open_wait(), at the first signal after it, when the wait has ended.
 * Its place is still reserved.
 */
static void take_wait(struct agent_thread *t, uint64_t periods)
{
	uint32_t offset = t->head & (agent.ring_size - 1);
	struct rec_sample *s = (struct rec_sample *)(t->ring + offset);

	close_wait(t);
	count(&t->slot->taken, 1);
	t->periods += periods;
	s->weight = periods * agent.period;
	sample_put(t, s->record.size);
}

uint64_t time_in_kernel(void)
{
	struct rusage usage = { 0 };

	sys2(SYS_getrusage, RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_stime.tv_sec * 1000000000 +
	       (uint64_t)usage.ru_stime.tv_usec * 1000;
}

/*
 * Returns how many of these periods the thread did not spend in the stack found now. These are the
 * periods beyond in_time that were not in the kernel. The thread then ran between ticks, as work
 * does that is in phase with them, or in time slices that the kernel's HRTICK ends; or the signal
 * was blocked. A thread in a long system call, in contrast, is found where it was.
 */
uint64_t sample_late(struct agent_thread *t, uint64_t periods)
{
	uint64_t before = t->system, late, in_kernel;
	uint64_t in_time = agent.header->in_time;

	if (agent.wall)
		return 0;
	if (t->event) {
		late = t->held < periods ? t->held : periods;
		t->held -= late;
		return late;
	}
	if (!agent.sandboxed)
		t->system = time_in_kernel();
	periods -= periods < t->owed ? periods : t->owed;
	if (periods <= in_time)
		return 0;
	late = periods - in_time;
	in_kernel = (t->system - before) / agent.period;
	return late > in_kernel ? late - in_kernel : 0;
}

/* Takes a sample into its record, for which there is room. */
static void take_captured(struct agent_thread *t, struct captured *stack, uint64_t periods,
			  uint64_t late, const void *context)
{
	uint32_t size;

	if (!take_stack(t, stack, context, local.waits_in)) {
		count_lost(t, periods);
		return;
	}
	size = fill_captured(stack, periods);
	stack->s->late = late;
	sample_put(t, size);
}

static void sample(struct agent_thread *t, uint64_t periods, const void *context)
{
	uint64_t late = sample_late(t, periods);
	struct captured stack = { .s = NULL };

	stack.s = sample_new(t, periods, take_frames(t, &stack));
	if (stack.s)
		take_captured(t, &stack, periods, late, context);
	frames_give(&stack.frames);
}

void sample_place(struct agent_thread *t, uint64_t periods, enum rec_place place)
{
	struct rec_sample *s = sample_new(t, periods, rec_sample_size(0, 0));
	struct shstk_info info = { .size = sizeof(info) };

	if (!s)
		return;
	sample_fill(s, REC_SAMPLE, 0, (uint8_t *)s->pcs, periods, &info);
	s->record.flags = place;
	ring_commit(t, s->record.size);
}

void sample_take(struct agent_thread *t, uint64_t periods, const void *context)
{
	if (atomic_load_explicit(&t->open, memory_order_relaxed))
		take_wait(t, periods);
	else
		sample(t, periods, context);
}
