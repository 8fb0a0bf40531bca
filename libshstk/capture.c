// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * capture.c - the public calls: what is asked for, and which source is asked first.
 *
 * The order is: the hardware shadow stack, markers, the thread's last trace, a walk. The
 * first three have fast ways for calls that ask for nothing special and interrupt no other
 * capture; the functions here jump there with their arguments in registers.
 */
#include <errno.h>

#include "enter.h"
#include "modmap.h"
#include "native.h"
#include "scratch.h"
#include "source.h"
#include "source_hardware.h"
#include "source_marker.h"
#include "source_memo.h"
#include "walk.h"

/* What is asked for. Returns 0 or -EINVAL. */
static inline int check_request(struct request *r, uint64_t *pcs, unsigned int max,
				const struct shstk_opts *opts, struct shstk_info *info)
{
	r->pcs = pcs;
	r->max = max;
	r->info = info;
	r->hook = NULL;
	r->sources = ALL_SOURCES;
	r->skip = 0;
	r->check = false;
	r->marks = NULL;
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
	return 0;
}

/* No memory for a thread state: the trace is what needs none. */
static int without_state(const struct request *r, uint64_t pc)
{
	struct capture c = { .n = 0 };

	c.pcs = r->pcs;
	c.max = r->max;
	c.marks = r->marks;
	walk_append(&c, pc, 0);
	if (r->info)
		call_tell(r->info, 0, c.n, SHSTK_END_BAD_STACK, pc, 0, 0);
	return c.n;
}

/* What a capture in any way needs, off the program's stack. */
struct room {
	struct request r;
	struct capture c;
};

/* May a marker be placed after such a capture? */
static bool ends_plainly(const struct capture *c, const struct request *r)
{
	return c->own.outermost && !c->crossed && c->end == SHSTK_END_COMPLETE && !c->guessed &&
	       !r->skip && r->sources & SHSTK_USE_MARKER;
}

/* The general way: the shadow stack if @ssp is not 0, else a walk that uses the memo. */
static inline __attribute__((always_inline)) int
capture_by(struct capture *c, const struct request *r, const struct call *call, uint64_t ssp)
{
	c->own.t = thread_get();
	if (unlikely(!c->own.t))
		return without_state(r, native_strip(call->ra));
	c->pc = native_strip(call->ra);
	c->sp = call->sp;
	c->fp = call->fp;
	c->slot = 0;
	c->raw = call->ra;
	if (unlikely(ssp && r->sources & SHSTK_USE_HARDWARE))
		return hardware_capture(c, r, ssp, NULL);
	if (unlikely(r->sources == SHSTK_USE_HARDWARE))
		return -EOPNOTSUPP;
	walk_begin(c, r, call->sp);
	walk_from_caller(c, r);
	if (marker_at_work(c->own.t) && !ssp && ends_plainly(c, r))
		marker_learn(c->own.t, call, c->n);
	return walk_end(c, r);
}

static int capture_any_in(void *mem, void *arg)
{
	const struct call *c = arg;
	struct room *room = mem;
	int err;

	err = check_request(&room->r, c->pcs, c->max, c->opts, c->info);
	room->r.hook = c->hook;
	return err ? err : capture_by(&room->c, &room->r, c, c->ssp);
}

/* The general way, for any options; its variables lie in scratch memory. */
static __attribute__((noinline)) int capture_any(const struct call *c)
{
	thread_get(); /* make the thread's state now: scratch_call() takes memory from it */
	return scratch_call(sizeof(struct room), capture_any_in, (void *)c);
}

static int capture_simple_in(void *mem, void *arg)
{
	const struct call *c = arg;
	struct room *room = mem;

	room->r = (struct request){
		.pcs = c->pcs,
		.max = c->max,
		.sources = c->opts && c->opts->sources ? c->opts->sources : ALL_SOURCES,
		.info = c->info,
		.hook = c->hook,
	};
	return capture_by(&room->c, &room->r, c, 0);
}

/* By a walk, for a call that call_is_simple() and has no hardware shadow stack. */
static __attribute__((noinline)) int capture_walking(const struct call *c)
{
	return scratch_call(sizeof(struct room), capture_simple_in, (void *)c);
}

/* The memo had all @n entries: the next capture may be faster by a marker. */
static own_stack void learn(const struct call *c, struct thread *t, int n)
{
	bool outermost = enter(t, c->sp);

	marker_learn(t, c, n);
	leave(t, outermost);
}

/*
 * The call in progress, with the room for its entries. A copy: what is in the thread's state
 * is the next capture's as soon as this one was left.
 */
static struct call call_of(const struct thread *t, uint64_t *pcs)
{
	return (struct call){
		.ra = t->call.ra,
		.sp = t->call.sp,
		.fp = t->call.fp,
		.pcs = pcs,
		.max = t->call.max,
		.opts = t->call.opts,
		.info = t->call.info,
		.hook = t->call.hook,
	};
}

/* Try the memo, with up to MEMO_NEAR new frames; else walk. */
static int capture_near(const struct call *c, struct thread *t)
{
	int n = memo_capture_near(c, t);

	if (unlikely(n <= 0))
		return capture_walking(c);
	if (marker_at_work(t) && call_allows_marker(c->opts))
		learn(c, t, n);
	return n;
}

__attribute__((noinline)) int source_after_memo(uint64_t *pcs, struct thread *t)
{
	struct call c = call_of(t, pcs);

	return capture_near(&c, t);
}

/* The call in progress, which asks for more than the memo has. */
static __attribute__((noinline)) int capture_other(uint64_t *pcs, struct thread *t)
{
	struct call c = call_of(t, pcs);

	leave_outermost(t);
	return capture_any(&c);
}

int source_after_marker(uint64_t *pcs, struct thread *t, bool learn)
{
	const struct call *c = &t->call;

	if (!call_is_simple(pcs, c->max, c->opts, c->info, SHSTK_USE_MEMO))
		return capture_other(pcs, t);
	if (learn || !memo_begins_again(t, c->max, c->ra, c->sp, c->fp))
		return source_after_memo(pcs, t);
	return memo_repeat(pcs, t);
}

/* No fast way applies: nested, the thread's first, or with options. */
static __attribute__((noinline)) int capture_rare(uint64_t *pcs, unsigned int max,
						  const struct shstk_opts *opts,
						  struct shstk_info *info, uint64_t ra, uint64_t sp,
						  uint64_t fp, uint64_t ssp)
{
	struct call c = {
		.ra = ra,
		.sp = sp,
		.fp = fp,
		.ssp = ssp,
		.pcs = pcs,
		.max = max,
		.opts = opts,
		.info = info,
	};

	return capture_any(&c);
}

/* On a thread with a hardware shadow stack; the arguments come in registers. */
static __attribute__((noinline)) int capture_shadow(uint64_t *pcs, unsigned int max,
						    const struct shstk_opts *opts,
						    struct shstk_info *info, uint64_t ra,
						    uint64_t ssp, uint64_t sp, uint64_t fp)
{
	struct thread *t = thread_self;
	int n = 0;

	if (likely(t && call_is_simple(pcs, max, opts, info, SHSTK_USE_HARDWARE)))
		n = hardware_copy(t, ra, ssp, pcs, max, info);
	return likely(n) ? n : capture_rare(pcs, max, opts, info, ra, sp, fp, ssp);
}

/* The call goes on by jumps: see struct thread.call. */
static inline __attribute__((always_inline)) void
keep_call(struct thread *t, uint64_t ra, uint64_t sp, uint64_t fp, unsigned int max,
	  const struct shstk_opts *opts, struct shstk_info *info)
{
	t->call.ra = ra;
	t->call.sp = sp;
	t->call.fp = fp;
	t->call.max = max;
	t->call.opts = opts;
	t->call.info = info;
	t->call.hook = NULL;
}

/*
 * By a marker, if the call that was kept is a simple one. Not inlined: shstk_capture()
 * would save registers for it, for captures without markers too.
 */
static __attribute__((noinline)) int capture_marking(uint64_t *pcs, struct thread *t)
{
	const struct call c = t->call;

	if (likely(call_is_simple(pcs, c.max, c.opts, c.info, SHSTK_USE_MARKER)))
		return marker_capture(pcs, t);
	leave_outermost(t);
	return capture_rare(pcs, c.max, c.opts, c.info, c.ra, c.sp, c.fp, 0);
}

SHSTK_API __attribute__((noinline)) int shstk_capture(uint64_t *pcs, unsigned int max,
						      const struct shstk_opts *opts,
						      struct shstk_info *info)
{
	uint64_t fp = native_caller_fp(__builtin_frame_address(0));
	uint64_t ra = (uintptr_t)__builtin_return_address(0);
	uint64_t sp = (uintptr_t)__builtin_dwarf_cfa();
	struct thread *t = thread_self;
	uint64_t ssp = native_ssp();

	if (unlikely(ssp))
		return capture_shadow(pcs, max, opts, info, ra, ssp, sp, fp);
	if (unlikely(!t || !enter_is_outermost(t)))
		return capture_rare(pcs, max, opts, info, ra, sp, fp, 0);
	if (unlikely(marker_at_work(t)) && (call_allows_marker(opts) || marker_on_stack(t))) {
		enter_outermost(t, sp);
		keep_call(t, ra, sp, fp, max, opts, info);
		return capture_marking(pcs, t);
	}
	if (unlikely(!call_is_simple(pcs, max, opts, info, SHSTK_USE_MEMO)))
		return capture_rare(pcs, max, opts, info, ra, sp, fp, 0);
	enter_outermost(t, sp);
	keep_call(t, ra, sp, fp, max, opts, info);
	if (unlikely(!memo_begins_again(t, max, ra, sp, fp)))
		return source_after_memo(pcs, t);
	return memo_repeat(pcs, t);
}

/* What a hook wants in any other way than the fastest one. */
static __attribute__((noinline)) int hook_any(struct call *c)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_hook *hook = c->hook;
	int n;

	c->hook = NULL;
	c->info = &info;
	n = c->ssp ? capture_shadow(c->pcs, c->max, c->opts, c->info, c->ra, c->ssp, c->sp, c->fp) :
		     capture_any(c);
	hook->end = info.end;
	hook->crossed = true;
	if (n >= 0)
		hook->id = shstk_trace_id(c->pcs, n);
	return n;
}

/*
 * Functions of the hook stand between the frame and here: what the shadow stack has
 * of them is above its entry for the hook's return address. Where it ends is not
 * known before the thread's first capture, but this page is certain.
 */
static no_sanitize uint64_t hook_shadow(uint64_t ra)
{
	const struct thread *t = thread_self;
	uint64_t ssp = native_ssp(), hi = (ssp | 4095) + 1;

	if (t && range_has(&t->shadow, ssp))
		hi = t->shadow.hi;
	hi = min(hi, ssp + 16 * 8);
	for (ra = native_strip(ra); ssp < hi; ssp += 8) {
		if (hw_word(ssp) == ra)
			return ssp;
	}
	return 0;
}

__attribute__((noinline)) int shstk_hook_capture(struct shstk_hook *hook, uint64_t *pcs,
						 unsigned int max, const struct shstk_opts *opts)
{
	struct call c = {
		.ra = hook->ra,
		.sp = hook->sp,
		.fp = hook->fp,
		.ssp = unlikely(native_ssp() != 0) ? hook_shadow(hook->ra) : 0,
		.pcs = pcs,
		.max = max,
		.opts = opts,
		.hook = hook,
	};
	struct thread *t = thread_self;

	if (unlikely(c.ssp || !t || !enter_is_outermost(t) || marker_on_stack(t) ||
		     !call_is_simple(pcs, max, opts, NULL, SHSTK_USE_MEMO)))
		return hook_any(&c);
	enter_outermost(t, c.sp);
	t->call = c;
	if (unlikely(!memo_begins_again(t, max, c.ra, c.sp, c.fp)))
		return source_after_memo(pcs, t);
	return memo_repeat(pcs, t);
}

/* The identity by way of a marker, for the call in @t->call. 0: the walk met no marker. */
static own_stack int id_by_marker(struct thread *t, struct shstk_info *info, uint64_t *id)
{
	uint64_t end_pc = 0;
	int n = marker_identity(t, id, &end_pc);

	if (likely(n > 0)) {
		enter_count(t, true);
		if (unlikely(info != NULL))
			call_tell(info, SHSTK_SOURCE_MARKER, n, SHSTK_END_COMPLETE, end_pc,
				  t->reused, 0);
	}
	leave_outermost(t);
	if (unlikely(modmap_has_retired()))
		modmap_reclaim();
	return n;
}

SHSTK_API __attribute__((noinline)) int shstk_capture_id(uint64_t *pcs, unsigned int max,
							 struct shstk_info *info, uint64_t *id)
{
	uint64_t fp = native_caller_fp(__builtin_frame_address(0));
	uint64_t sp = (uintptr_t)__builtin_dwarf_cfa();
	uint64_t ra = (uintptr_t)__builtin_return_address(0);
	struct shstk_info here = { .size = sizeof(here) };
	uint64_t ssp = native_ssp();
	struct thread *t = thread_self;
	int n;

	if (!id)
		return -EINVAL;
	if (likely(!ssp && t && enter_is_outermost(t) && marker_on_stack(t))) {
		enter_outermost(t, sp);
		keep_call(t, ra, sp, fp, max, NULL, info);
		n = id_by_marker(t, info, id);
		if (likely(n > 0))
			return n;
	}
	n = capture_any(&(struct call){
		.ra = ra, .sp = sp, .fp = fp, .ssp = ssp, .pcs = pcs, .max = max, .info = &here });
	if (n < 0)
		return n;
	*id = shstk_trace_id(pcs, n);
	if (info && info->size >= 8)
		put_info(info, here);
	return here.end == SHSTK_END_CAPACITY ? -E2BIG : n;
}

/* A call of shstk_capture_context(), and what it needs. */
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
	c->own.t = thread_self;
	c->pc = room->cur.regs.r[REG_PC];
	c->sp = room->cur.regs.r[NATIVE_MACHINE.sp];
	if (!c->own.t)
		return without_state(r, c->pc);
	if (ssp && r->sources & SHSTK_USE_HARDWARE) {
		c->fp = room->cur.regs.r[NATIVE_MACHINE.fp];
		return hardware_capture(c, r, ssp, call->ucontext);
	}
	if (r->sources == SHSTK_USE_HARDWARE)
		return -EOPNOTSUPP;
	walk_begin(c, r, c->sp);
	if (!walk_append(c, c->pc, SHSTK_MARK_PC)) {
		walk_finish(c, SHSTK_END_CAPACITY, c->pc);
		c->memo = false;
	} else if (c->sp & 7 || !own_find_stack(&c->own, c->sp)) {
		walk_finish(c, SHSTK_END_BAD_STACK, c->pc);
		c->memo = false;
	} else {
		walk_from_context(c, r, call->ucontext, &room->cur);
	}
	return walk_end(c, r);
}

SHSTK_API int shstk_capture_context(const void *ucontext, uint64_t *pcs, unsigned int max,
				    const struct shstk_opts *opts, struct shstk_info *info)
{
	struct context_call call = { ucontext, pcs, max, opts, info };

	thread_get(); /* make the thread's state now: scratch_call() takes memory from it */
	return scratch_call(sizeof(struct context_room), capture_context_in, &call);
}

SHSTK_API int shstk_thread_init(void)
{
	struct own own = { .t = thread_get() };

	if (!own.t)
		return -ENOMEM;
	own_find_stack(&own, (uintptr_t)__builtin_frame_address(0));
	return 0;
}

SHSTK_API void shstk_modules_changed(void)
{
	modmap_flush();
	modmap_reclaim();
}
