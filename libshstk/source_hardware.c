// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_hardware.c - captures traces from the hardware shadow stack.
 *
 * shadow_reader.c copies the return addresses from the shadow stack. The end of the shadow
 * stack is looked up once for the thread's own stack. The program counters that signals
 * interrupted are not on the shadow stack; the software walk fills them in.
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

/* Asks shstk.ko for the bounds of the shadow stack, where /proc can't be read. */
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
 * Stores in *@hi where the shadow stack at @ssp ends. Returns false if that is not known;
 * then *@hi is the end of the page. The shadow stack of the thread's own stack stays the
 * same while the thread lives, and is in use whenever the ordinary stack pointer @sp is on
 * that stack. Other shadow stacks (coroutines) are looked up each time. A shadow stack is a
 * mapping of its own: the kernel keeps a guard page below each of them (mm.h
 * stack_guard_start_gap()), so the end of the mapping is the end of the shadow stack.
 */
static bool find_shadow(struct thread *t, uint64_t ssp, uint64_t sp, uint64_t *hi)
{
	/* Where calls do not push, there may be no entry yet, and @ssp is the mapping's end. */
	uint64_t in = NATIVE_CALLS_PUSH ? ssp : ssp - 8;
	int saved = errno;
	struct vma vma;
	int err;

	if (likely(range_has(&t->shadow, ssp))) {
		*hi = t->shadow.hi;
		return true;
	}
	err = vma_query(in, &vma, NULL, 0);
	if (err && in != ssp) /* the stack is full, and @in lies in the guard page below it */
		err = vma_query(ssp, &vma, NULL, 0);
	if (unlikely(err && err != -ECANCELED))
		err = ask_device(in, &vma.range);
	errno = saved;
	if (err) { /* only the page is certain */
		*hi = (in | 4095) + 1;
		return false;
	}
	*hi = vma.range.hi;
	if (t->native_known && range_has(&t->native, sp)) {
		t->shadow_end = 0; /* it belongs to an earlier shadow stack, perhaps unmapped now */
		/* A signal handler must not find a range that is half written. */
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
 * Tells for SHSTK_CHECK_STACK whether all entries from @ssp to *@hi can be read. If not,
 * *@hi becomes the end of the entries that can.
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
	/* Before Linux 5.14 sys_populate_read() always fails. */
	if (!err && vma.prot & VMA_READ && vma.range.hi >= *hi)
		return true;
	*hi = err || !(vma.prot & VMA_READ) ? ssp : vma.range.hi;
	return false;
}

/* Inserts one entry at @at. If the array is full, the outermost entry drops out. */
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
 * Inserts the frame of @cur at @at, and moves the signals from number @s on by one entry. Returns
 * false if there is no room.
 */
static bool insert_frame(struct hw_trace *h, unsigned int at, const struct cursor *cur,
			 unsigned int s)
{
	if (at >= h->max)
		return false;
	insert_entry(h, at, cur->regs.r[REG_PC], cur->mark);
	for (; s < h->nsignals; s++)
		h->signal[s]++;
	return true;
}

/* Steps to the caller of @cur. Returns false if there is none, or if it is on no known stack. */
static bool step_out(struct capture *c, struct cursor *cur, uint8_t *mark)
{
	const struct view *v = calling_thread_view(&c->calling, false);

	return !cursor_step(v, cur, mark) &&
	       (!cur->exact || calling_thread_find_stack(&c->calling, cur->regs.r[v->m->sp]));
}

/*
 * Fills in the interrupted frames where calls push: the walk and the shadow stack then have the
 * same frames, except for the frames that signals interrupted. The first @skip frames were left
 * out of @h. Returns the number of signals that the walk met.
 */
static unsigned int fill_pushed(struct capture *c, struct hw_trace *h, struct cursor *cur,
				unsigned int skip)
{
	unsigned int s = 0;
	uint8_t mark;
	int64_t k;

	for (k = -(int64_t)skip; s < h->nsignals; k++) {
		if (cur->exact && k == h->signal[s]) {
			if (!insert_frame(h, k, cur, s + 1))
				break;
			s++;
		} else if (k >= 0 && (k >= h->n || h->pcs[k] != cur->regs.r[REG_PC])) {
			break;
		}
		if (!step_out(c, cur, &mark))
			break;
	}
	return s;
}

/*
 * Fills in the interrupted frames where calls do not push. There the shadow stack also lacks the
 * return address of a function that calls no other one, or that has not pushed it yet. Behind
 * interrupted code this return address is put in too. Other frames of the walk that are not on
 * the shadow stack stay out. Returns the number of signals that the walk met.
 */
static unsigned int fill_not_pushed(struct capture *c, struct hw_trace *h, struct cursor *cur)
{
	unsigned int k = 0, s = 0;
	bool interrupted = false;
	uint8_t mark;

	while (s < h->nsignals || interrupted) {
		bool has = k < h->n && h->pcs[k] == cur->regs.r[REG_PC];
		bool was_interrupted = interrupted;

		interrupted = s < h->nsignals && cur->exact && k == h->signal[s];
		if (interrupted || (was_interrupted && !has)) {
			if (!insert_frame(h, k, cur, s + interrupted))
				break;
			s += interrupted;
			has = true;
		}
		if (!step_out(c, cur, &mark))
			break;
		if (has && h->marks)
			h->marks[k] |= mark & SHSTK_MARK_SIGNAL;
		k += has;
	}
	return s;
}

/*
 * Fills in the program counters that signals interrupted. They are not on the shadow stack, but in
 * the signal frames, which the software walk finds. The walk starts at @cur; if @skip entries were
 * left out, the frame of @cur is the first of these. A signal frame that the walk does not reach
 * becomes a gap.
 */
static void fill_signals(struct capture *c, struct hw_trace *h, struct cursor *cur,
			 unsigned int skip)
{
	unsigned int s = NATIVE_CALLS_PUSH ? fill_pushed(c, h, cur, skip) :
					     fill_not_pushed(c, h, cur);

	for (; h->marks && s < h->nsignals; s++) {
		if (h->signal[s] < h->n)
			h->marks[h->signal[s]] |= SHSTK_MARK_GAP;
	}
}

/*
 * Adds the caller of the code that a signal interrupted, where calls do not push: that code
 * may be in a function whose return address is not, or not yet, on the shadow stack at @ssp.
 * Returns false if that can't be told.
 */
static bool put_caller(struct capture *c, struct hw_trace *h, const void *uc, uint64_t ssp,
		       uint64_t hi)
{
	struct cursor cur = { .exact = true, .innermost = true };
	bool outermost = enter(c->calling.t, c->sp), ok = false;
	uint64_t pc;
	const struct view *v;
	uint8_t mark;

	if (unlikely(modmap_loads_changed()))
		modmap_revalidate();
	native_context(uc, &cur.regs);
	v = calling_thread_view(&c->calling, false);
	if (calling_thread_find_stack(&c->calling, c->sp) && !cursor_step(v, &cur, &mark) &&
	    !(cur.mark & SHSTK_MARK_GUESS)) {
		pc = cur.regs.r[REG_PC];
		ok = true;
		if ((ssp >= hi || hw_word(ssp) != pc) && h->n < h->max)
			hw_put(h, pc, cur.mark);
	}
	leave(c->calling.t, outermost);
	modmap_tidy(outermost);
	return ok;
}

/*
 * Corrects the copy: puts in the program counters that signals interrupted, and removes a token
 * that looks like the outermost entry, if @last_may_be_token.
 */
static noinline_for_stack void correct(struct capture *c, const struct request *r,
				       struct hw_trace *h, const void *uc, bool last_may_be_token)
{
	struct cursor cur;

	walk_begin(c, r);
	c->memo = false;
	if (last_may_be_token && !calling_thread_is_code(h->pcs[h->n - 1] - 1))
		h->n--;
	calling_thread_cursor(&cur, c->pc, c->sp, c->fp);
	if (uc) {
		native_context(uc, &cur.regs);
		cur.exact = true;
		cur.innermost = true;
	}
	if (h->nsignals && calling_thread_find_stack(&c->calling, c->sp))
		fill_signals(c, h, &cur, r->skip);
	c->end = SHSTK_END_COMPLETE;
	c->end_pc = 0;
	walk_end(c, r);
}

/* Notes that the entries of the thread's shadow stack end at @end, with the entry @last. */
static void remember_end(struct thread *t, uint64_t end, uint64_t last)
{
	t->shadow_end = 0; /* a handler must not use the new entry with the old end */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->shadow_last = last;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->shadow_end = end;
}

/* What is known about the shadow stack that a capture reads. */
struct shadow_extent {
	uint64_t ssp, hi; /* the entries are between the two */
	bool end_known; /* @hi is the end of the shadow stack */
	bool readable; /* all entries up to the end of the shadow stack can be read */
	bool caller_unknown; /* one entry may be missing in front of the innermost one */
};

/* Begins a trace of the code that a signal interrupted: sets @x->ssp to where its entries begin. */
static void begin_interrupted(struct capture *c, struct hw_trace *h, const void *uc,
			      struct shadow_extent *x)
{
	x->ssp = hw_interrupted(x->ssp, x->hi, uc);
	if (!x->ssp) {
		x->ssp = x->hi;
		x->end_known = false;
	}
	if (!NATIVE_CALLS_PUSH)
		x->caller_unknown = !put_caller(c, h, uc, x->ssp, x->hi);
}

/* Tells whether the thread's shadow stack still ends as remember_end() noted it. */
static bool ends_as_before(const struct thread *t, const struct shadow_extent *x)
{
	return x->readable && range_has(&t->shadow, x->ssp) && x->ssp < t->shadow_end &&
	       hw_word(t->shadow_end - 8) == t->shadow_last;
}

/* Fills in @info. */
static void tell(struct shstk_info *info, const struct hw_trace *h, const struct shadow_extent *x,
		 bool reached_end)
{
	int end = !reached_end ? SHSTK_END_CAPACITY :
		  x->end_known ? SHSTK_END_COMPLETE :
				 SHSTK_END_BOUNDS;

	call_tell(info, SHSTK_SOURCE_HARDWARE, h->n, end, h->n ? h->pcs[h->n - 1] : 0, 0, 0);
}

int hardware_capture(struct capture *c, const struct request *r, uint64_t ssp, const void *uc)
{
	struct hw_trace h = {
		.pcs = r->pcs, .marks = r->marks, .max = r->max, .skip = r->skip, .plain = true
	};
	bool reached_end, last_may_be_token, may_remember;
	struct shadow_extent x = { .ssp = ssp };
	struct thread *t = c->calling.t;
	unsigned int before_copy;

	if (!t->native_known)
		calling_thread_find_stack(&c->calling, c->sp);
	x.end_known = find_shadow(t, ssp, c->sp, &x.hi);
	x.readable = likely(!r->check) || shadow_is_whole(ssp, &x.hi);
	x.end_known = x.end_known && x.readable;
	if ((uc || !NATIVE_CALLS_PUSH) && h.max)
		hw_put(&h, c->pc, uc ? SHSTK_MARK_PC : 0);
	if (uc)
		begin_interrupted(c, &h, uc, &x);
	before_copy = h.n;
	h.seen_before = ends_as_before(t, &x);
	reached_end = hw_copy(&h, x.ssp, h.seen_before ? t->shadow_end : x.hi);
	if (unlikely(x.caller_unknown && h.marks && before_copy < h.n))
		h.marks[before_copy] |= SHSTK_MARK_GAP;
	last_may_be_token = reached_end && h.n && native_may_be_left_token(h.pcs[h.n - 1]) &&
			    h.pcs[h.n - 1] != t->shadow_last;
	may_remember = reached_end && x.readable && range_has(&t->shadow, x.ssp) && h.plain &&
		       !r->skip && !uc;
	if (unlikely(h.nsignals || last_may_be_token))
		correct(c, r, &h, uc, last_may_be_token);
	if (may_remember && h.n > before_copy)
		remember_end(t, x.ssp + 8 * (h.n - before_copy), h.pcs[h.n - 1]);
	if (r->info)
		tell(r->info, &h, &x, reached_end);
	return h.n;
}
