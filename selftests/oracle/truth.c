// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * truth.c - the true stack, from what instructions did.
 *
 * Rules:
 *  - A call adds an entry: the slot it wrote and the address it wrote there.
 *  - An entry ends as soon as the stack pointer lies above its slot, whatever
 *    raised it: ret, longjmp(), an exception's landing. Jumps change nothing:
 *    tail calls and the end of lazy binding need no rule.
 *  - Signal delivery adds the return address of the handler and the program
 *    counter in the frame that the kernel built, as long as it lies there;
 *    sigreturn ends both, and so
 *    does a longjmp() out of the handler.
 *  - An instruction that loads the stack pointer from elsewhere (mov, xchg)
 *    and leaves the current stack enters another one: one that was left before
 *    if the value lies between its stack pointer then and its end, else a
 *    new one. On a new one the word on top is the entry that whoever built it
 *    put there; it is optional in comparisons.
 *  - What such a function (longjmp(), swapcontext(), _Unwind_Resume()) has on
 *    its stack while it writes over the registers and slots of the old context
 *    is neither: misses from its entry to the load, if that discards frames,
 *    and from there to its last jump, are counted apart.
 *  - An entry that pop takes into a register is held as long as the stack
 *    pointer stays behind it: vfork() pushes it back. Both answers count.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "oracle.h"

/* A mov to the stack pointer may move it so far and still be alloca(), as clang compiles it. */
#define ALLOCA_MAX (1ul << 20)
/* A jump that goes farther leaves a function that switches stacks. */
#define FUNCTION_SIZE 512
/* So many bytes may lie above the first stack pointer of a new stack, as arguments do. */
#define BASE_SLACK 4096
/* No signal frame is larger, even with AVX-512 and AMX state. */
#define SIGNAL_FRAME_MAX 16384

struct truth_stats truth_stats;
u64 truth_now;

struct stack *stack_create(u64 sp)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->base = sp + BASE_SLACK;
	return s;
}

struct stack *stack_copy(const struct stack *from)
{
	struct stack *s = malloc(sizeof(*s));

	if (!s)
		abort();
	*s = *from;
	s->next = from->next ? stack_copy(from->next) : NULL;
	return s;
}

void stack_destroy(struct stack *s)
{
	while (s) {
		struct stack *next = s->next;

		free(s);
		s = next;
	}
}

static void push(struct stack *s, struct frame f)
{
	if (s->count == MAX_FRAMES) {
		truth_stats.overflows++;
		return;
	}
	f.born = truth_now;
	s->frames[s->count++] = f;
}

/* Ends all entries of the current stack whose slots lie below @sp. */
void truth_rise(struct stack *s, u64 sp)
{
	while (s->count) {
		struct frame *top = &s->frames[s->count - 1];

		if (top->kind == FRAME_SIGNAL && top->other_stack)
			break;
		if (top->slot >= sp)
			break;
		if (top->kind == FRAME_SIGNAL)
			s->base = top->base;
		s->count--;
	}
}

/* Ends a signal: the interrupted context comes back, or is left for one further out. */
static void end_signal(struct stack *s, u64 sp)
{
	while (s->count) {
		struct frame *top = &s->frames[--s->count];

		if (top->kind == FRAME_SIGNAL) {
			s->base = top->base;
			break;
		}
	}
	truth_rise(s, sp);
}

/* Returns whether @sp lies on a stack that a signal handler on another stack interrupted. */
static bool leave_handlers(struct stack *s, u64 sp)
{
	for (unsigned int i = s->count; i-- > 0;) {
		struct frame *f = &s->frames[i];

		if (f->kind != FRAME_SIGNAL || !f->other_stack)
			continue;
		if (sp < f->slot || sp > f->base)
			continue;
		s->count = i;
		s->base = f->base;
		truth_rise(s, sp);
		return true;
	}
	return false;
}

static struct stack *find_left(struct stack *s, u64 sp)
{
	for (struct stack **at = &s->next; *at; at = &(*at)->next) {
		struct stack *other = *at;

		if (sp < other->sp || sp > other->base)
			continue;
		*at = other->next;
		other->next = s->next;
		s->next = NULL;
		return other;
	}
	return NULL;
}

static struct stack *start_stack(struct stack *s, struct memory *m, u64 sp)
{
	struct stack *fresh = stack_create(sp);
	struct frame f = { .slot = sp, .kind = FRAME_START };

	if (!memory_read(m, sp, &f.pc, sizeof(f.pc)) && f.pc)
		push(fresh, f);
	fresh->next = s->next;
	s->next = NULL;
	return fresh;
}

/* Follows a load of the stack pointer, which was @old and is @sp now. */
static void load_sp(struct stack **stack, struct memory *m, u64 old, u64 sp)
{
	struct stack *s = *stack;
	unsigned int count = s->count;
	u64 born = count ? s->frames[count - 1].born : 0;
	struct stack *other;

	other = find_left(s, sp);
	if (!other) {
		if (sp >= old && sp <= s->base) {
			truth_rise(s, sp);
			if (s->count < count) {
				report_switched(s, born);
				s->landing = true;
			}
			return;
		}
		if (sp < old && old - sp < ALLOCA_MAX)
			return;
		if (leave_handlers(s, sp)) {
			report_switched(s, born);
			s->landing = true;
			return;
		}
		other = start_stack(s, m, sp);
	}
	truth_stats.switches++;
	report_switched(s, born);
	other->landing = true;
	s->sp = old;
	s->next = other->next;
	other->next = s;
	truth_rise(other, sp);
	*stack = other;
}

static void after_return(struct stack *s, const struct user_regs_struct *before,
			 const struct user_regs_struct *after)
{
	const struct frame *top = s->count ? &s->frames[s->count - 1] : NULL;

	truth_stats.returns++;
	if (!top || top->slot != before->rsp || top->pc != after->rip)
		truth_stats.odd_returns++;
	truth_rise(s, after->rsp);
}

static void after_pop(struct stack *s, const struct user_regs_struct *before,
		      const struct user_regs_struct *after)
{
	const struct frame *top = s->count ? &s->frames[s->count - 1] : NULL;

	if (top && top->kind == FRAME_CALL && top->slot == before->rsp) {
		s->held = true;
		s->held_frame = *top;
	}
	truth_rise(s, after->rsp);
}

static void after_push(struct stack *s, struct memory *m, u64 sp)
{
	u64 word;

	if (!s->held || s->held_frame.slot != sp || memory_read(m, sp, &word, sizeof(word)) ||
	    word != s->held_frame.pc)
		return;
	push(s, s->held_frame);
}

/**
 * truth_step() - follow one instruction
 * @stack: the thread's current stack.
 * @m: memory, already told what the instruction wrote.
 * @insn: the instruction that ran.
 * @before: registers before it.
 * @after: registers after it.
 */
void truth_step(struct stack **stack, struct memory *m, const struct insn *insn,
		const struct user_regs_struct *before, const struct user_regs_struct *after)
{
	struct stack *s = *stack;
	struct frame f = { .slot = after->rsp, .kind = FRAME_CALL };
	u64 moved = after->rip - (insn->pc + insn->len) + FUNCTION_SIZE;

	if (moved > 2 * FUNCTION_SIZE || insn->kind == INSN_RET)
		s->landing = false;
	switch (insn->kind) {
	case INSN_CALL:
		if (after->rsp != before->rsp - 8 ||
		    memory_read(m, after->rsp, &f.pc, sizeof(f.pc)) || f.pc != insn->pc + insn->len)
			break; /* the instruction faulted */
		truth_stats.calls++;
		push(s, f);
		break;
	case INSN_RET:
		if (after->rsp != before->rsp)
			after_return(s, before, after);
		break;
	case INSN_SYSCALL:
		if (before->rax == SYS_rt_sigreturn)
			end_signal(s, after->rsp);
		break;
	case INSN_POP:
		if (after->rsp != before->rsp)
			after_pop(s, before, after);
		break;
	case INSN_PUSH:
		if (after->rsp != before->rsp)
			after_push(s, m, after->rsp);
		break;
	case INSN_LOAD_SP:
		if (after->rsp != before->rsp)
			load_sp(stack, m, before->rsp, after->rsp);
		break;
	default:
		truth_rise(s, after->rsp);
	}
	s = *stack;
	if (s->held && after->rsp != s->held_frame.slot + 8)
		s->held = false;
}

/**
 * truth_signal() - follow the delivery of a signal
 * @s: the thread's current stack.
 * @m: memory, flushed.
 * @before: registers when the signal was about to be delivered.
 * @after: registers at the next stop.
 *
 * Return: false if no handler was entered.
 */
bool truth_signal(struct stack *s, struct memory *m, const struct user_regs_struct *before,
		  const struct user_regs_struct *after)
{
	/* The handler's frame begins with a return address of 8 bytes; struct ucontext follows. */
	struct frame handler = { .slot = after->rsp, .kind = FRAME_CALL };
	struct frame interrupted = { .kind = FRAME_SIGNAL, .base = s->base };
	u64 sp;

	if (memory_read(m, after->rsp, &handler.pc, 8) ||
	    memory_read(m, after->rsp + 168, &sp, 8) ||
	    memory_read(m, after->rsp + 176, &interrupted.pc, 8))
		return false;
	/* A system call that will be restarted resumes two bytes earlier. */
	if (sp != before->rsp ||
	    (interrupted.pc != before->rip && interrupted.pc != before->rip - 2))
		return false;
	truth_stats.signals++;
	interrupted.saved = after->rsp + 176;
	interrupted.slot = sp - 1;
	interrupted.other_stack = after->rsp > sp || sp - after->rsp > SIGNAL_FRAME_MAX;
	push(s, interrupted);
	push(s, handler);
	if (interrupted.other_stack)
		s->base = after->rsp + SIGNAL_FRAME_MAX;
	s->held = false;
	return true;
}

/**
 * truth_trace() - the trace that an unwinder should give
 * @s: the thread's current stack.
 * @m: its memory.
 * @pc: program counter.
 * @pcs: receives the addresses, innermost first.
 * @max: capacity.
 * @held: with the return address that is held in a register.
 *
 * Return: number of addresses.
 */
unsigned int truth_trace(const struct stack *s, struct memory *m, u64 pc, u64 *pcs,
			 unsigned int max, bool held)
{
	unsigned int n = 0;

	pcs[n++] = pc;
	if (held && s->held && n < max)
		pcs[n++] = s->held_frame.pc;
	for (unsigned int i = s->count; i-- > 0 && n < max; n++) {
		pcs[n] = s->frames[i].pc;
		if (s->frames[i].kind == FRAME_SIGNAL)
			memory_read(m, s->frames[i].saved, &pcs[n], 8);
	}
	return n;
}
