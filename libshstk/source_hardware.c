// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_hardware.c - captures from the hardware shadow stack.
 *
 * It has the return addresses; shadow_reader.c copies them. Where it ends is looked up
 * once for the thread's own stack. What is not on it (where signals interrupted) is
 * filled in by the software walk.
 */
#include <errno.h>
#include <sys/auxv.h>

#include "enter.h"
#include "linux/shstk.h"
#include "modmap.h"
#include "native.h"
#include "source_hardware.h"
#include "step.h"
#include "sys.h"
#include "vma.h"

/* From shstk.ko, where /proc does not say. */
static __attribute__((cold, noinline)) int ask_device(uint64_t ssp, struct range *ret)
{
	struct shstk_ioc_map map = { .pidfd = -1, .addr = ssp };
	int dev = shstk_device_open(), err;

	if (dev < 0)
		return dev;
	err = shstk_device_map(dev, &map);
	sys_close(dev);
	*ret = (struct range){ map.start, map.end };
	return err;
}

/*
 * Where the shadow stack at @ssp ends. The one of the thread's own stack stays as
 * it is while the thread lives, and is in use whenever the ordinary stack pointer
 * @sp is on that stack; others (coroutines) are looked up each time. A shadow stack
 * is a mapping of its own: the kernel keeps a guard page below each of them
 * (mm.h stack_guard_start_gap()), so the mapping's end is the stack's.
 */
static bool find_shadow(struct thread *t, uint64_t ssp, uint64_t sp, uint64_t *hi)
{
	/* Where calls do not push, there may be no entry yet. */
	uint64_t in = NATIVE_CALLS_PUSH ? ssp : ssp - 8;
	int saved = errno;
	struct vma vma;
	int err;

	if (likely(range_has(&t->shadow, ssp))) {
		*hi = t->shadow.hi;
		return true;
	}
	err = vma_query(in, &vma, NULL, 0);
	if (err && in != ssp) /* full to the last word, with the guard below */
		err = vma_query(ssp, &vma, NULL, 0);
	if (unlikely(err))
		err = ask_device(in, &vma.range);
	errno = saved;
	if (err) { /* neither: the page is certain */
		*hi = (in | 4095) + 1;
		return false;
	}
	*hi = vma.range.hi;
	if (t->native_known && range_has(&t->native, sp)) {
		t->outer = 0; /* was found for an earlier shadow stack, perhaps unmapped now */
		/* A handler between the two must not find half of it. */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		t->shadow.lo = vma.range.hi;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		t->shadow.hi = vma.range.hi;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		t->shadow.lo = vma.range.lo;
	}
	return true;
}

/*
 * For SHSTK_CHECK_STACK: can all entries from @ssp to *@hi be read? If not *@hi becomes
 * the end of those that can.
 */
static __attribute__((cold, noinline)) bool shadow_is_whole(uint64_t ssp, uint64_t *hi)
{
	uint64_t page = ssp & -getauxval(AT_PAGESZ);
	int saved = errno, err;
	struct vma vma;

	if (ssp >= *hi || !sys_populate_read(page, *hi - page))
		return true;
	err = vma_query(ssp, &vma, NULL, 0);
	errno = saved;
	/* Before Linux 5.14 it can't be asked so. */
	if (!err && vma.prot & VMA_READ && vma.range.hi >= *hi)
		return true;
	*hi = err || !(vma.prot & VMA_READ) ? ssp : vma.range.hi;
	return false;
}

/* Make room for one entry at @at. */
static void insert_entry(struct hw_trace *h, unsigned int at, uint64_t pc, uint8_t mark)
{
	unsigned int n = h->n - at - (h->n == h->max);

	memmove(h->pcs + at + 1, h->pcs + at, n * sizeof(h->pcs[0]));
	if (h->marks)
		memmove(h->marks + at + 1, h->marks + at, n);
	h->pcs[at] = pc;
	if (h->marks)
		h->marks[at] = mark;
	h->n += h->n < h->max;
}

/*
 * The pc at which a signal interrupted is not on the shadow stack. It is in the
 * signal frame, which the software walk finds: from @cur, whose frame is the entry
 * before the first one if that was skipped. Where calls do not push, neither is the
 * return address of a function that calls none, or has not pushed it yet; other
 * frames of the walk that are not on the shadow stack stay out.
 */
static void fill_signals(struct capture *c, struct hw_trace *h, struct cursor *cur,
			 unsigned int skip)
{
	int64_t k = NATIVE_CALLS_PUSH ? -(int64_t)skip : 0;
	const struct view *v = own_view(&c->own, false);
	bool interrupted = false, calls;
	unsigned int i, s = 0;
	uint8_t mark;

	while (s < h->nsignals || interrupted) {
		uint64_t pc = cur->regs.r[REG_PC];
		bool was = interrupted;

		interrupted = s < h->nsignals && cur->exact && k == h->signal[s];
		calls = k < 0 || (k < h->n && h->pcs[k] == pc);
		if (interrupted || (was && !calls)) {
			if (k >= h->max)
				return;
			insert_entry(h, k, pc, cur->mark);
			s += interrupted;
			for (i = s; i < h->nsignals; i++)
				h->signal[i]++;
			calls = true;
		}
		if (NATIVE_CALLS_PUSH) {
			interrupted = false;
			if (!calls)
				break;
		}
		if (cursor_step(v, cur, &mark) ||
		    (cur->exact && !own_find_stack(&c->own, cur->regs.r[v->m->sp])))
			break;
		if (!NATIVE_CALLS_PUSH && calls && h->marks)
			h->marks[k] |= mark & SHSTK_MARK_SIGNAL;
		k += calls;
	}
	for (; h->marks && s < h->nsignals; s++) {
		if (h->signal[s] < h->n)
			h->marks[h->signal[s]] |= SHSTK_MARK_GAP;
	}
}

/*
 * Where calls do not push: the code that a signal interrupted may be in a function
 * whose return address is not on the shadow stack at @ssp, or not yet. False: that
 * cannot be told.
 */
static bool put_caller(struct capture *c, struct hw_trace *h, const void *uc, uint64_t ssp,
		       uint64_t hi)
{
	struct cursor cur = { .exact = true, .innermost = true };
	bool outermost = enter(c->own.t, c->sp), ok = false;
	uint64_t pc;
	const struct view *v;
	uint8_t mark;

	if (unlikely(modmap_loads_changed()))
		modmap_revalidate();
	native_context(uc, &cur.regs);
	v = own_view(&c->own, false);
	if (own_find_stack(&c->own, c->sp) && !cursor_step(v, &cur, &mark) &&
	    !(cur.mark & SHSTK_MARK_GUESS)) {
		pc = cur.regs.r[REG_PC];
		ok = true;
		if ((ssp >= hi || hw_word(ssp) != pc) && h->n < h->max)
			hw_put(h, pc, cur.mark);
	}
	leave(c->own.t, outermost);
	return ok;
}

/*
 * What the copy lacks or has too much: where signals interrupted, and a token (@left) that
 * looks like the outermost entry.
 */
static own_stack void correct(struct capture *c, const struct request *r, struct hw_trace *h,
			      const void *uc, bool left)
{
	struct cursor cur;

	walk_begin(c, r);
	c->memo = false;
	if (left && !own_is_code(h->pcs[h->n - 1] - 1))
		h->n--;
	own_cursor(&cur, c->pc, c->sp, c->fp);
	if (uc) {
		native_context(uc, &cur.regs);
		cur.exact = true;
		cur.innermost = true;
	}
	if (h->nsignals && own_find_stack(&c->own, c->sp))
		fill_signals(c, h, &cur, r->skip);
	c->end = SHSTK_END_COMPLETE;
	c->end_pc = 0;
	walk_end(c, r);
}

/* The thread's shadow stack ends in front of @outer, with the entry @outermost. */
static void remember_end(struct thread *t, uint64_t outer, uint64_t outermost)
{
	t->outer = 0; /* a handler must not mix the two */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->outermost = outermost;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->outer = outer;
}

int hardware_capture(struct capture *c, const struct request *r, uint64_t ssp, const void *uc)
{
	struct hw_trace h = { .pcs = r->pcs, .marks = r->marks, .max = r->max, .skip = r->skip };
	bool known, whole, all, left, ends, gap = false;
	struct thread *t = c->own.t;
	unsigned int own;
	uint64_t hi;

	if (!t->native_known)
		own_find_stack(&c->own, c->sp);
	known = find_shadow(t, ssp, c->sp, &hi);
	whole = likely(!r->check) || shadow_is_whole(ssp, &hi);
	known = known && whole;
	if ((uc || !NATIVE_CALLS_PUSH) && h.max)
		hw_put(&h, c->pc, uc ? SHSTK_MARK_PC : 0);
	if (uc) {
		ssp = hw_interrupted(ssp, hi, uc);
		if (!ssp) {
			ssp = hi;
			known = false;
		}
		if (!NATIVE_CALLS_PUSH)
			gap = !put_caller(c, &h, uc, ssp, hi);
	}
	own = h.n;
	h.known = whole && range_has(&t->shadow, ssp) && ssp < t->outer &&
		  hw_word(t->outer - 8) == t->outermost;
	all = hw_copy(&h, ssp, h.known ? t->outer : hi);
	if (unlikely(gap && h.marks && own < h.n))
		h.marks[own] |= SHSTK_MARK_GAP;
	left = all && h.n && native_may_be_left_token(h.pcs[h.n - 1]) &&
	       h.pcs[h.n - 1] != t->outermost;
	ends = all && whole && range_has(&t->shadow, ssp) && h.plain && !r->skip && !uc;
	if (unlikely(h.nsignals || left))
		correct(c, r, &h, uc, left);
	if (ends && h.n > own)
		remember_end(t, ssp + 8 * (h.n - own), h.pcs[h.n - 1]);
	if (r->info)
		call_tell(r->info, SHSTK_SOURCE_HARDWARE, h.n,
			  !all	? SHSTK_END_CAPACITY :
			  known ? SHSTK_END_COMPLETE :
				  SHSTK_END_BOUNDS,
			  h.n ? h.pcs[h.n - 1] : 0, 0, 0);
	return h.n;
}
