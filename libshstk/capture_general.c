// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * capture_general.c - the general path, which serves any call: nested, the thread's first, with
 * options, or one that the fast paths cannot serve. It also has shstk_capture_context(), which has
 * no fast path.
 */
#include <errno.h>

#include "capture_general.h"
#include "enter.h"
#include "native.h"
#include "scratch.h"
#include "source_hardware.h"
#include "walk.h"

/* Checks the arguments of a call and stores them in @r. Returns 0 or -EINVAL. */
static inline int check_request(struct request *r, uint64_t *pcs, unsigned int max,
				const struct shstk_opts *opts, struct shstk_info *info)
{
	r->pcs = pcs;
	r->max = max;
	r->info = info;
	r->hook = NULL;
	r->call = NULL;
	r->sources = ALL_SOURCES;
	r->skip = 0;
	r->check = false;
	r->marks = NULL;
	r->sps = NULL;
	if ((!pcs && max) || max > INT32_MAX || (info && info->size < 8))
		return -EINVAL;
	if (!opts)
		return 0;
	if (opts->size < offsetof(struct shstk_opts, marks) || opts->flags & ~SHSTK_CHECK_STACK ||
	    opts->sources & ~ALL_SOURCES)
		return -EINVAL;
	if (opts->sources)
		r->sources = opts->sources;
	r->skip = opts->skip;
	r->check = opts->flags & SHSTK_CHECK_STACK;
	if (opts->size >= offsetof(struct shstk_opts, marks) + sizeof(opts->marks))
		r->marks = opts->marks;
	if (opts->size >= offsetof(struct shstk_opts, sps) + sizeof(opts->sps) &&
	    r->sources == SHSTK_USE_WALK)
		r->sps = opts->sps;
	return 0;
}

/* Makes the trace when there is no memory for a thread state: it has the first entry only. */
static int without_state(const struct request *r, uint64_t pc, uint64_t sp)
{
	struct capture c = { .n = 0 };

	c.pcs = r->pcs;
	c.max = r->max;
	c.marks = r->marks;
	c.sps = r->sps;
	walk_append(&c, pc, sp, 0);
	if (r->info)
		call_tell(r->info, 0, c.n, SHSTK_END_BAD_STACK, pc, 0, 0);
	return c.n;
}

/* The variables of a capture, which lie in scratch memory and not on the program's stack. */
struct capture_room {
	struct request r;
	struct capture c;
};

/* Captures by the shadow stack if there is one, else by a walk that uses the memo. */
static int capture_by(struct capture *c, const struct request *r, const struct call *call)
{
	c->calling.t = thread_get();
	if (unlikely(!c->calling.t))
		return without_state(r, native_strip(call->ra), call->sp);
	c->pc = native_strip(call->ra);
	c->sp = call->sp;
	c->fp = call->fp;
	c->slot = 0;
	c->raw = call->ra;
	if (unlikely(call->ssp && r->sources & SHSTK_USE_HARDWARE))
		return hardware_capture(c, r, call->ssp, NULL);
	if (unlikely(r->sources == SHSTK_USE_HARDWARE))
		return -EOPNOTSUPP;
	walk_begin(c, r);
	walk_from_caller(c, r);
	return walk_end(c, r);
}

static int capture_general_in(void *mem, void *arg)
{
	const struct call *c = arg;
	struct capture_room *room = mem;
	int err;

	err = check_request(&room->r, c->pcs, c->max, c->opts, c->info);
	room->r.hook = c->hook;
	room->r.call = c;
	return err ? err : capture_by(&room->c, &room->r, c);
}

int capture_general(const struct call *c)
{
	thread_get(); /* make the thread's state now: scratch_call() takes memory from it */
	return scratch_call(sizeof(struct capture_room), capture_general_in, (void *)c);
}

int capture_kept(struct thread *t)
{
	/*
	 * Copy the call first: after leave_outermost() a signal handler may store its own in
	 * @t->call.
	 */
	const struct call c = t->call;

	leave_outermost(t);
	return capture_general(&c);
}

/* The arguments of shstk_capture_context(). */
struct context_call {
	const void *ucontext;
	uint64_t *pcs;
	unsigned int max;
	const struct shstk_opts *opts;
	struct shstk_info *info;
};

struct context_room {
	struct request r;
	struct capture c;
	struct cursor cur;
};

static int capture_context_in(void *mem, void *arg)
{
	const struct context_call *call = arg;
	struct context_room *room = mem;
	struct request *r = &room->r;
	struct capture *c = &room->c;
	uint64_t ssp = native_ssp();

	if (check_request(r, call->pcs, call->max, call->opts, call->info) || !call->ucontext)
		return -EINVAL;
	walk_context_cursor(&room->cur, call->ucontext);
	c->calling.t = thread_self;
	c->pc = room->cur.regs.r[REG_PC];
	c->sp = room->cur.regs.r[NATIVE_MACHINE.sp];
	if (!c->calling.t)
		return without_state(r, c->pc, c->sp);
	if (ssp && r->sources & SHSTK_USE_HARDWARE) {
		c->fp = room->cur.regs.r[NATIVE_MACHINE.fp];
		return hardware_capture(c, r, ssp, call->ucontext);
	}
	if (r->sources == SHSTK_USE_HARDWARE)
		return -EOPNOTSUPP;
	walk_begin(c, r);
	walk_from_context(c, r, call->ucontext, &room->cur);
	return walk_end(c, r);
}

SHSTK_API int shstk_capture_context(const void *ucontext, uint64_t *pcs, unsigned int max,
				    const struct shstk_opts *opts, struct shstk_info *info)
{
	struct context_call call = { ucontext, pcs, max, opts, info };

	thread_get(); /* make the thread's state now: scratch_call() takes memory from it */
	return scratch_call(sizeof(struct context_room), capture_context_in, &call);
}
