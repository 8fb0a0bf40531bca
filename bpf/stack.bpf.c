// SPDX-License-Identifier: GPL-2.0-only
/*
 * stack.bpf.c - a function for BPF programs of others, which are linked with this object. See
 * shstk_stack.bpf.h.
 *
 * The tables, the files and the requests lie in maps that are pinned: all programs of the machine
 * share them, and `shstk rules serve --bpf` fills them. Each program has a state of its own.
 */
#include "program.h"
#include "walk_user.h"

#include "shstk_stack.bpf.h"

#define ENOENT 2
#define EBUSY 16
#define EINVAL 22
#define ENODATA 61
#define EPROTO 71

static __always_inline void hand_out(const struct walk *w, const struct walk_config *c,
				     struct shstk_bpf_stack *to)
{
	u32 i, nr = w->nr + 1;

	to->nr = nr < SHSTK_STACK_MAX ? nr : SHSTK_STACK_MAX;
	to->whole = is_whole(w);
	to->guesses = w->chain.guesses;
	to->pid = visible_pid(c);
	for (i = 0; i < SHSTK_STACK_MAX; i++)
		to->pc[i] = i < nr ? w->entry[i] & ~WALK_MARKS : 0;
}

static __always_inline int walk_to(struct walk *w, const struct walk_config *c,
				   struct shstk_bpf_stack *to)
{
	if (!begin_walk(w, c, SHSTK_STACK_MAX))
		return -ENODATA;
	w->first = 1;
	w->entry[0] = w->frame.pc;
	walk_on(w);
	hand_out(w, c, to);
	return to->nr;
}

noinline int shstk_walk(struct shstk_bpf_stack *to)
{
	u32 zero = 0;
	struct walk_config *c = bpf_map_lookup_elem(&MAP(config), &zero);
	struct walk *w = bpf_map_lookup_elem(&MAP(walks), &zero);
	int ret;

	if (!to)
		return -EINVAL;
	if (!c || !w || !c->version)
		return -ENOENT;
	if (c->version != WALK_VERSION)
		return -EPROTO;
	/* The program may be interrupted by another one that walks, or move to another CPU. */
	if (__sync_lock_test_and_set(&w->busy, 1))
		return -EBUSY;
	ret = walk_to(w, c, to);
	__sync_lock_test_and_set(&w->busy, 0);
	return ret;
}
