// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * settle.c - accounts for the time of a thread that no signal reported: before its timer existed,
 * and at its end.
 */
#include <string.h>

#include "agent.h"

/* Returns the number of innermost entries up to the last one in this object. */
static int agent_frames(const uint64_t *pcs, int n)
{
	int own = 0;

	for (int i = 0; i < n; i++)
		if (is_agent_code(pcs[i]))
			own = i + 1;
	return own;
}

/*
 * Returns the time from arming to @at that is in no sample, in periods. Negative: the samples have
 * more than that.
 */
static int64_t due_periods(const struct agent_thread *t, uint64_t at)
{
	uint64_t used = at - t->start;
	uint64_t ran_out = used < t->first ? 0 : 1 + (used - t->first) / agent.period;

	return (int64_t)(t->owed + ran_out - t->periods);
}

uint64_t unsampled_periods(const struct agent_thread *t, uint64_t at)
{
	int64_t due = due_periods(t, at);

	return due > 0 ? due : 0;
}

bool is_ahead(const struct agent_thread *t, uint64_t at)
{
	return due_periods(t, at) - (int64_t)t->put_off < -1;
}

/* Returns how many of @periods without a sample no signal reported. */
static uint64_t silent_of(const struct agent_thread *t, uint64_t periods)
{
	uint64_t told = t->put_off + t->held;

	return periods > told ? periods - told : 0;
}

uint64_t silent_periods(const struct agent_thread *t, uint64_t at)
{
	return silent_of(t, unsampled_periods(t, at));
}

bool signal_is_held_back(void)
{
	ksigset pending = 0;

	return !sys2(SYS_rt_sigpending, &pending, sizeof(pending)) && pending & agent_sigset();
}

/*
 * Returns the thread's last sample, if its bytes are still in the ring, or NULL. *@head is a copy
 * of its header, which is read once because others can write there. The sample lies in the ring
 * without a wrap.
 */
static const struct rec_sample *last_sample(const struct agent_thread *t, struct rec_sample *head)
{
	uint32_t offset = (t->last - 1) & (agent.ring_size - 1);
	const struct rec_sample *s = (const struct rec_sample *)(t->ring + offset);

	if (!t->last || t->head - (t->last - 1) > agent.ring_size ||
	    agent.ring_size - offset < sizeof(*s))
		return NULL;
	memcpy(head, s, sizeof(*head));
	if (head->nr > agent.max_depth || head->labels > REC_MAX_LABELS)
		return NULL;
	head->record.size = rec_sample_size(head->nr, head->labels);
	return head->record.size <= agent.ring_size - offset ? s : NULL;
}

/*
 * Captures a stack for a thread that was never sampled: its start routine, or where it is now.
 * Returns the number of entries.
 */
static int settle_stack(const struct agent_thread *t, struct rec_sample *s, uint8_t *marks,
			struct shstk_info *info)
{
	uint32_t depth = agent.max_depth;
	struct shstk_opts opts = { .size = sizeof(opts), .flags = capture_flags(), .marks = marks };
	int n = shstk_capture(s->pcs, depth, &opts, info);
	int first = !!t->fn;
	int skip, keep;

	if (n < 0)
		n = 0;
	skip = agent_frames(s->pcs, n);
	keep = n - skip;
	if (t->fn) {
		/* The two functions of libc below the start routine remain. */
		keep = keep < 2 ? keep : 2;
		skip = n - keep;
	}
	memmove(&s->pcs[first], &s->pcs[skip], keep * sizeof(s->pcs[0]));
	memmove(&marks[first], &marks[skip], keep);
	if (t->fn) {
		s->pcs[0] = (uintptr_t)t->fn;
		marks[0] = SHSTK_MARK_PC;
	}
	return first + keep;
}

static void settle(struct agent_thread *t, uint64_t periods)
{
	struct rec_sample head = { 0 };
	const struct rec_sample *last = last_sample(t, &head);
	uint64_t late = sample_late(t, periods);
	struct rec_sample *s = sample_new(t, periods, rec_sample_room(agent.max_depth));
	struct shstk_info info = { .size = sizeof(info) };
	uint32_t labels = 0;
	uint8_t *marks;
	int n;

	if (!s)
		return;
	marks = (uint8_t *)&s->pcs[agent.max_depth];
	if (last) {
		memmove(s, last, head.record.size);
		n = head.nr;
		labels = head.labels;
		marks = (uint8_t *)&s->pcs[n];
		info.end = head.end;
		info.source = head.source;
	} else {
		n = settle_stack(t, s, marks, &info);
		late = 0;
	}
	sample_fill(s, REC_SAMPLE, n, marks, periods, &info);
	s->late = late;
	s->folded = head.folded;
	sample_put(t, sample_set_labels(s, n, labels));
}

/*
 * Accounts for what a thread has used before it has a timer, since it was created. In the first
 * thread of a program that is the time from exec, or from what came before it unseen, to the
 * agent's constructor. In others it is the time in which the kernel and the agent let it begin.
 */
void settle_early(struct agent_thread *t, uint64_t at)
{
	uint64_t periods = at - t->start < t->first ? 0 :
						      1 + (at - t->start - t->first) / agent.period;

	if (periods)
		sample_place(t, periods, t->program ? REC_PLACE_LOADER : REC_PLACE_KERNEL);
}

/*
 * Accounts for @periods that the timer or an event reported but that are in no sample. Where the
 * timer is alone, these are all periods without a sample.
 */
static void settle_user(struct agent_thread *t, uint64_t periods)
{
	struct rec_sample head;

	if (periods && !t->fn && !last_sample(t, &head))
		sample_place(t, periods, REC_PLACE_TICKS);
	else if (periods)
		settle(t, periods);
}

/*
 * Accounts for wall-clock time during which the signal was held back until the end: the timer's
 * signal is pending, and knows how many periods ran out. Other wall-clock time needs no settling.
 */
static void settle_wall(struct agent_thread *t)
{
	uint64_t periods;
	ksigset old;
	bool others;

	if (!is_held() || atomic_load_explicit(&t->open, memory_order_relaxed))
		return;
	old = block_signals();
	periods = move_drain(agent_signo(), t, &others) * t->stretch;
	if (periods)
		sample_place(t, periods, REC_PLACE_HELD);
	restore_signals(old);
	/* The next program gets them, so their number is to be blocked there as it was here. */
	if (others)
		move_away();
}

void settle_stopped(struct agent_thread *t, uint64_t periods)
{
	ksigset old;

	if (!agent.wall || !periods || atomic_load(&agent.header->stop) ||
	    atomic_load_explicit(&t->open, memory_order_relaxed))
		return;
	old = block_signals();
	sample_place(t, periods, REC_PLACE_HELD);
	restore_signals(old);
}

#define FEW_TICKS 64

bool is_young(const struct agent_thread *t)
{
	return t->calls.ticks < FEW_TICKS;
}

/*
 * Accounts for @silent periods of a thread that ends, at @at on its clock. In a thread that lived for many
 * ticks these were in no system call, as far as the ticks tell. Fewer tell too little.
 */
static void settle_silent(struct agent_thread *t, uint64_t at, uint64_t silent, bool last)
{
	uint64_t rest = last ? ended_rest() : 0;

	if (t->event && !last && is_young(t) &&
	    ended_leave(t->fn, &t->calls, at - t->calls.last, silent))
		return;
	t->owed += rest;
	if (silent + rest)
		sample_place(t, silent + rest, REC_PLACE_KERNEL);
}

/* Accounts for @periods that threads left, which ended, and that no tick has claimed. */
static void settle_unseen(struct agent_thread *t, uint64_t periods)
{
	t->owed += periods;
	if (periods)
		sample_place(t, periods, REC_PLACE_TICKS);
}

/*
 * Accounts for the rest when the thread or the process ends. Without this, periods that ran out
 * since the last tick would be missing, and a thread shorter than a tick has no others. A thread
 * that lived for a few ticks leaves them to the ticks in others (ended.c). Else they are charged to
 * the stack seen last, or, if there is none, to the thread's start routine.
 * Where a process is at its end says nothing about what it did: without a sample, its time passed
 * between ticks. With an event, all periods that it did not report were spent in the kernel; those of
 * threads that ended early are shared later (ended.c).
 */
void agent_settle(struct agent_thread *t, bool last)
{
	uint64_t at, periods, silent, held;
	bool held_back;
	ksigset old;

	if (!t->armed || agent.sandboxed || atomic_load(&agent.header->stop))
		return;
	if (agent.wall) {
		settle_wall(t);
		return;
	}
	held_back = t->event && signal_is_held_back();
	old = block_signals();
	at = now(CLOCK_THREAD_CPUTIME_ID);
	periods = unsampled_periods(t, at);
	if (is_held()) {
		if (periods)
			sample_place(t, periods, REC_PLACE_HELD);
		restore_signals(old);
		return;
	}
	/* Use the same @periods here: another one may have run out since. */
	silent = t->event ? silent_of(t, periods) : 0;
	held = t->held < periods - silent ? t->held : periods - silent;
	if (last || !by_tick(t) || !is_young(t) ||
	    !ended_leave_unseen(t->fn, at - t->calls.last, periods))
		settle_user(t, periods - silent - held);
	held += held_back ? silent : 0;
	if (held)
		sample_place(t, held, REC_PLACE_TICKS);
	settle_silent(t, at, held_back ? 0 : silent, last);
	settle_unseen(t, last ? ended_unseen_rest() : 0);
	restore_signals(old);
}
