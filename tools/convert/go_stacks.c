// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * go_stacks.c - completes stacks of Go programs that lie on two stacks with the kernel's callchain.
 * See go_stacks.h.
 */
#include <string.h>

#include "tools/convert/go_stacks.h"

/* Callers that a callchain may lack: the one of code that has not stored its frame pointer yet. */
#define MAX_MISSING 1

static enum shstk_gokind kind_of(const struct mappings *mappings, const struct unwound *s, size_t i)
{
	return mappings_go_kind(mappings, s->pcs[i] - !(s->marks[i] & SHSTK_MARK_PC));
}

/*
 * Returns the index of the first frame whose caller may be on another stack; @stack->nr if there is
 * none.
 */
static size_t find_switch(const struct mappings *mappings, const struct unwound *stack)
{
	enum shstk_gokind kind;
	size_t i;

	for (i = 0; i < stack->nr; i++) {
		kind = kind_of(mappings, stack, i);
		if (kind == SHSTK_GO_SWITCH || kind == SHSTK_GO_VDSO)
			break;
	}
	return i;
}

/*
 * Returns whether the chain has only code of Go from entry @from on, up to an outermost function.
 */
static bool leads_to_root(const struct mappings *mappings, const struct callchain *chain,
			  size_t from)
{
	size_t i;

	if (from >= chain->nr ||
	    mappings_go_kind(mappings, chain->ips[chain->nr - 1] - 1) != SHSTK_GO_OUTERMOST)
		return false;
	for (i = from; i < chain->nr; i++)
		if (mappings_go_kind(mappings, chain->ips[i] - 1) == SHSTK_GO_NONE)
			return false;
	return true;
}

/*
 * Returns whether the stack's entries up to @last are those of the chain, which lacks @missing
 * entries behind the first one.
 */
static bool same_up_to(const struct callchain *chain, const struct unwound *stack, size_t last,
		       size_t missing)
{
	size_t i;

	for (i = missing + 1; i <= last; i++)
		if (i - missing >= chain->nr || chain->ips[i - missing] != stack->pcs[i])
			return false;
	return last > missing;
}

/*
 * Returns the index in the chain at which the callers of the switch at @at begin; 0 if the chain
 * does not have them. If the chain does not agree with the stack up to the switch, it may go on
 * with the goroutine's stack right behind the program counter. That happens if code without a frame
 * pointer, such as the vdso, was called on the other stack, so that the first frame pointer is the
 * goroutine's; or if the innermost function itself has switched, provided it has a frame.
 */
static size_t find_callers(const struct mappings *mappings, const struct callchain *chain,
			   const struct unwound *stack, size_t at)
{
	size_t missing;

	for (missing = 0; missing <= MAX_MISSING; missing++)
		if (same_up_to(chain, stack, at, missing))
			return at - missing + 1;
	if (chain->nr < 2)
		return 0;
	if (at)
		return kind_of(mappings, stack, 0) == SHSTK_GO_NONE;
	return mappings_go_has_frame(mappings, stack->pcs[0]);
}

/*
 * Returns whether the stack is complete without a switch, which was only about to be made or was
 * not necessary. A thread's own stack ends right behind the switch.
 */
static bool is_whole(const struct unwound *stack, size_t at)
{
	return stack->end == SHSTK_END_COMPLETE && stack->nr > at + 2;
}

/*
 * Continues the stack behind entry @last with those of the chain from @from on, if these lead to
 * where goroutines begin. Returns whether it did.
 */
static bool join(const struct mappings *mappings, const struct callchain *chain, size_t from,
		 struct unwound *stack, size_t last)
{
	if (!from || !leads_to_root(mappings, chain, from) ||
	    chain->nr - from > stack->max - (last + 1))
		return false;
	stack->nr = last + 1;
	for (; from < chain->nr; from++) {
		stack->marks[stack->nr] = 0;
		stack->pcs[stack->nr++] = chain->ips[from];
	}
	stack->end = SHSTK_END_COMPLETE;
	return true;
}

/*
 * Continues a stack whose copy ended within the goroutine's stack: on arm64 some copies lack only
 * its outermost frames. Returns whether it did.
 */
static bool join_behind_copy(const struct mappings *mappings, const struct callchain *chain,
			     struct unwound *stack)
{
	size_t missing, last = stack->nr - 1;

	if (stack->end != SHSTK_END_READ || !stack->nr)
		return false;
	for (missing = 0; missing <= MAX_MISSING; missing++)
		if (same_up_to(chain, stack, last, missing))
			return join(mappings, chain, last - missing + 1, stack, last);
	return false;
}

bool splice_stack(const struct mappings *mappings, const struct callchain *chain,
		  struct unwound *stack)
{
	size_t at;

	if (!mappings_has_go(mappings))
		return false;
	at = find_switch(mappings, stack);
	if (at == stack->nr)
		return join_behind_copy(mappings, chain, stack);
	if (is_whole(stack, at))
		return false;
	if (join(mappings, chain, find_callers(mappings, chain, stack, at), stack, at))
		return true;
	if (stack->end == SHSTK_END_COMPLETE)
		stack->end = SHSTK_END_BAD_STACK;
	return false;
}

bool splice_in_vdso(const struct mappings *mappings, const struct unwound *stack)
{
	enum shstk_gokind kind = SHSTK_GO_NONE;

	for (size_t i = 0; i < stack->nr && kind == SHSTK_GO_NONE; i++) {
		if (i && stack->marks[i] & SHSTK_MARK_PC)
			return false;
		kind = kind_of(mappings, stack, i);
	}
	return kind == SHSTK_GO_VDSO;
}

uint64_t splice_frame(const struct stack_copy *copy, unsigned int fp, unsigned int sp)
{
	uint64_t at = copy->regs->r[fp], from = copy->regs->r[sp], next;

	while (!(at & 7) && at - from < copy->size && copy->size - (at - from) >= 8) {
		memcpy(&next, copy->bytes + (at - from), 8);
		if (!next || (next <= at && next >= from))
			break;
		at = next;
	}
	return at;
}
