// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * capture.c - traces of the calling thread: the fast loop and the memo.
 *
 * walk() steps over frames of any kind, stride() over ordinary ones with a
 * handful of instructions each. When a frame of the thread's last trace is met
 * (same pc, same sp, same fp if a later step uses it), reuse() takes the rest
 * from the memo, which reads every word again that the old walk depended on and
 * compares. A walk is a function of its start and the words it reads, so equal
 * words mean an equal walk; the proof is in Documentation/design.rst.
 */
#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "capture.h"
#include "hook.h"
#include "linux/shstk.h"
#include "native.h"
#include "rulecache.h"
#include "self.h"
#include "source_hw.h"
#include "thread.h"
#include "verify.h"
#include "vma.h"
#include "walk.h"

/* New frames that short_cut() walks. */
#define SHORT_CUT 12

/**
 * struct capture - one capture in progress
 * @t: the thread.
 * @pcs: the caller's arrays.
 * @marks: or NULL.
 * @max: their capacity.
 * @n: entries written.
 * @skip: entries still to be left out.
 * @pc: the frame that comes next, not yet written.
 * @sp: its registers.
 * @fp: see @sp.
 * @slot: where @pc was read; 0: not from a plain slot.
 * @raw: what was read there.
 * @mark: marks of that frame.
 * @stack: bounds of the stack @sp lies in.
 * @gen: generation of the rules in use.
 * @outermost: it does not interrupt another one.
 * @crossed: it came through a signal frame.
 * @memo: record into (and reuse) the memo.
 * @waits: goes without the memo because that has not paid of late.
 * @place: then tells from where.
 * @joined: the rest of the trace is that of the last one.
 * @w: the memo's view of this capture.
 * @end: enum shstk_end.
 * @end_by_rule: the outermost frame was known by its rule, not by a word read.
 * @end_pc: see struct shstk_info.
 * @reused: entries verified.
 * @guessed: entries guessed.
 */
struct capture {
	struct thread *t;
	uint64_t *pcs;
	uint8_t *marks;
	unsigned int max, n, skip;
	uint64_t pc, sp, fp;
	uint64_t slot, raw;
	uint8_t mark;
	struct range stack;
	uint64_t gen;
	bool outermost, crossed, memo, waits, joined;
	uint64_t place;
	struct memo_walk w;
	int end;
	bool end_by_rule;
	uint64_t end_pc;
	unsigned int reused, guessed;
};

enum outcome { GO_ON, FINISHED, NEED_FULL };

/*
 * Bounds.
 */

static __attribute__((noinline)) bool look_up_stack(struct capture *c,
						   uint64_t sp)
{
	uint64_t tp = native_thread_pointer();
	struct thread *t = c->t;
	int saved = errno;
	struct vma vma;
	int err;

	err = vma_query(sp, &vma, NULL, 0);
	errno = saved;
	if (err == -ENOENT)
		return false;
	if (err) {		/* no /proc: at most this page is certain */
		c->stack = (struct range){ sp, (sp | 4095) + 1 };
		return self_readable(sp);
	}
	if (!(vma.prot & VMA_READ))
		return false;
	c->stack = vma.range;		/* whole pages: ends are aligned */
	/* The main thread's TLS may lie anywhere, say in .data's mapping. */
	if (load_relaxed(&t->tid) != load_relaxed(&t->pid) &&
	    range_has(&vma.range, tp) && tp > sp)
		c->stack.hi = tp & ~7ull;	/* C libraries put it above the stack */
	else if (!range_has(&vma.range, getauxval(AT_RANDOM)))
		return true;
	/* A capture that this one interrupts relies on the end and its memo. */
	if (t->native_known) {
		if (t->native.hi == c->stack.hi) {
			t->native.lo = c->stack.lo;	/* it has grown */
			return true;
		}
		if (!c->outermost)
			return true;
		memo_hide(&t->memo);
	}
	t->native_known = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->native = c->stack;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->native_known = true;
	return true;
}

/* The stack @sp lies in: the thread's own is looked up once, others each time. */
static inline bool find_stack(struct capture *c, uint64_t sp)
{
	const struct thread *t = c->t;

	if (unlikely(!t->native_known || !range_has(&t->native, sp)))
		return look_up_stack(c, sp);
	c->stack.lo = t->native.lo;
	c->stack.hi = t->native.hi;
	return true;
}

static no_sanitize int read_stack(void *arg, uint64_t addr, void *buf,
				  size_t len)
{
	struct capture *c = arg;
	const volatile uint8_t *p = (const volatile uint8_t *)(uintptr_t)addr;
	uint8_t *to = buf;
	size_t i;

	if (!range_has(&c->stack, addr) || len > c->stack.hi - addr)
		return -EFAULT;
	if (len == 8 && !(addr & 7)) {
		*(uint64_t *)buf = *(const volatile uint64_t *)p;
		return 0;
	}
	for (i = 0; i < len; i++)
		to[i] = p[i];
	return 0;
}

static struct module *view_find(void *arg, uint64_t pc)
{
	(void)arg;
	return self_module(pc);
}

static bool view_is_code(void *arg, uint64_t pc)
{
	struct module *m = self_module(pc);

	(void)arg;
	return m && module_is_code(m, pc);
}

static struct view self_view(struct capture *c, bool full)
{
	static uint64_t mask;
	static bool mask_known;

	if (!load_relaxed(&mask_known)) {
		store_relaxed(&mask, native_pac_mask());
		store_relaxed(&mask_known, true);
	}
	return (struct view){
		.m = &NATIVE_MACHINE,
		.pac_mask = load_relaxed(&mask),
		.full = full,
		.mem = { read_stack, c },
		.find = view_find,
		.is_code = view_is_code,
		.arg = c,
	};
}

/*
 * Output.
 */

static void finish(struct capture *c, int end, uint64_t pc)
{
	c->end = end;
	c->end_pc = pc;
}

/* Write one entry. False: there is no room. */
static inline bool append(struct capture *c, uint64_t pc, uint8_t mark)
{
	if (unlikely(c->skip)) {
		c->skip--;
		return true;
	}
	if (unlikely(c->n == c->max))
		return false;
	if (unlikely(c->marks != NULL))
		c->marks[c->n] = mark;
	if (unlikely(mark & SHSTK_MARK_GUESS))
		c->guessed++;
	c->pcs[c->n++] = pc;
	return true;
}

/* Add marks to the entry that was written last. */
static void mark_last(struct capture *c, uint8_t mark)
{
	if (c->marks && c->n)
		c->marks[c->n - 1] |= mark;
}

/*
 * The memo.
 */

/* Nested captures leave the memo alone: an outer one is using it. */
static void forget(struct capture *c)
{
	if (c->memo)
		memo_clear(&c->t->memo);
	c->memo = false;
}

/* The frame in @c becomes part of the memo. */
static void record(struct capture *c)
{
	if (c->memo && !memo_record(&c->w, c->raw, c->slot, c->sp))
		forget(c);
}

/* Its step, by @rule, may use fp. */
static void record_use(struct capture *c, uint64_t rule)
{
	if (c->memo && rule & (RULE_SPECIAL | RULE_FP) &&
	    RULE_KIND(rule) != RULE_END)
		memo_use_fp(&c->w, c->w.fresh->end - 1, c->fp);
}

/* Frames so far belong to another stack or a signal handler: leave them out. */
static void restart_memo(struct capture *c)
{
	if (c->memo)
		memo_start(&c->w, &c->t->memo, c->stack.hi);
}

/* Does the step out of @pc restore fp without using it? */
static bool restores_fp(uint64_t pc)
{
	uint64_t rule = rulecache_get(pc, rulecache_gen(),
				      load_relaxed(&rulecache.mask));

	return RULE_KIND(rule) == RULE_SP && rule & RULE_FP_SAVED;
}

/*
 * The frame in @c is frame j of the memo, and written: take over what is
 * unchanged behind it. GO_ON: the frame in @c, written, is the last one that was.
 */
static enum outcome reuse(struct capture *c)
{
	const struct memo_side *old = c->w.old;
	int j = c->w.j;
	int v = memo_verify(&c->w, c->pcs + c->n, c->max - c->n);
	int taken = j;

	if (unlikely(c->marks != NULL))
		memset(c->marks + c->n, 0, v - j);
	if ((v == old->end - 1 && c->t->memo.complete) ||
	    (v < old->end - 1 && c->n + (v - j) == c->max)) {
		c->n += v - j;
		c->reused += v - j;
		c->joined = true;
		finish(c, v == old->end - 1 ? SHSTK_END_COMPLETE :
		       SHSTK_END_CAPACITY, c->pcs[c->n - 1]);
		return FINISHED;
	}
	if (v > j)
		taken = memo_take(&c->w, v, &c->fp, restores_fp);
	if (taken < 0) {
		forget(c);
		return GO_ON;
	}
	if (taken == j) {
		c->w.j++;
		return GO_ON;
	}
	c->n += taken - j;
	c->reused += taken - j;
	c->sp = old->anchor + old->sp[taken];
	c->raw = old->raw[taken];
	c->pc = native_strip(c->raw);
	return GO_ON;
}

/*
 * Where no trace has much of the one before, remembering costs more than it
 * saves: about as much as walking a quarter of the new frames and 16 more. The
 * more often that was so, the more captures go without, up to 31. The next one then
 * is compared with a trace of long ago, which may be why nothing is met: now and then
 * it is not waited, and the next one is compared with its neighbour.
 */
static void judge_memo(struct capture *c)
{
	struct memo *m = &c->t->memo;

	if (4 * c->reused >= 64 + (c->n - c->reused)) {
		m->misses = 0;
		return;
	}
	if (++m->misses == 9) {
		m->misses = 5;
		m->wait = 0;
		return;
	}
	m->wait = (1 << (min(m->misses, 6) - 1)) - 1;
}

/* The capture is over: what was walked replaces what was not met. */
static void store_memo(struct capture *c)
{
	struct memo *m = &c->t->memo;

	if (!c->memo)
		return;
	judge_memo(c);
	m->gen = c->gen;
	if (c->joined) {
		memo_join(&c->w);
	} else {
		memo_replace(&c->w);
		m->complete = c->end_by_rule;
	}
	memo_publish(m, c->t->native_known ? c->t->native.hi : 0);
	m->near = c->w.fresh->end - c->w.fresh->first <= SHORT_CUT;
}

/* May the last trace be used at all? */
static void open_memo(struct capture *c)
{
	struct memo *m = &c->t->memo;

	if (m->wait) {
		m->wait--;
		c->waits = true;
		c->place = c->pc * 9 + c->sp;
		return;
	}
	c->memo = true;
	if (unlikely(m->gen != c->gen))
		memo_clear(m);
}

/* Two traces in a row that begin alike: there is no more need to wait. */
static inline void note_trace(struct capture *c)
{
	struct memo *m = &c->t->memo;
	uint64_t key = c->place + c->n;

	if (c->n > 4)
		key += c->pcs[1] * 3 + c->pcs[2] * 5 + c->pcs[4] * 7;
	if (m->wait_key == key)
		m->wait = 0;
	m->wait_key = key;
}

/*
 * Walking.
 */

static void put_cursor(struct cursor *cur, const struct capture *c)
{
	const struct machine *m = &NATIVE_MACHINE;

	memset(cur, 0, sizeof(*cur));
	cur->regs.r[REG_PC] = c->pc;
	cur->regs.r[m->sp] = c->sp;
	cur->regs.r[m->fp] = c->fp;
	cur->regs.known = 1ull << REG_PC | 1ull << m->sp | 1ull << m->fp;
	if (!m->ra_in_reg) {
		cur->regs.r[m->ra] = c->pc;
		cur->regs.known |= 1ull << m->ra;
	}
}

/* Walk on from @cur. */
static enum outcome take_cursor(struct capture *c, const struct cursor *cur)
{
	const struct machine *m = &NATIVE_MACHINE;

	c->pc = cur->regs.r[REG_PC];
	c->sp = cur->regs.r[m->sp];
	c->fp = cur->regs.known & 1ull << m->fp ? cur->regs.r[m->fp] : 0;
	c->slot = 0;
	c->raw = c->pc;
	c->mark = cur->mark;
	if (c->memo)
		memo_restored_fp(&c->w, c->w.fresh->end, 0);
	if (c->sp <= c->stack.hi)
		return GO_ON;
	finish(c, SHSTK_END_BAD_STACK, c->pc);
	return FINISHED;
}

/*
 * Step out of @cur, whose entry is written, and out of every frame after it
 * whose pc is exact: interrupted code.
 */
static enum outcome step_cursor(struct capture *c, const struct view *v,
				struct cursor *cur)
{
	for (;;) {
		uint64_t pc = cur->regs.r[REG_PC];
		uint8_t mark;
		int err;

		err = cursor_step(v, cur, &mark);
		if (err == -SHSTK_END_NO_REGISTER && !v->full)
			return NEED_FULL;
		trampoline_finish(&cur->regs);
		mark_last(c, mark);
		if (err) {
			finish(c, err == STEP_COMPLETE ? SHSTK_END_COMPLETE :
			       -err, pc);
			return FINISHED;
		}
		if (!cur->exact)
			return GO_ON;
		pc = cur->regs.r[REG_PC];
		if (!append(c, pc, cur->mark)) {
			finish(c, SHSTK_END_CAPACITY, pc);
			return FINISHED;
		}
		if (!find_stack(c, cur->regs.r[v->m->sp])) {
			finish(c, SHSTK_END_BAD_STACK, pc);
			return FINISHED;
		}
		c->crossed = true;
		restart_memo(c);
	}
}

/* A frame that is no plain addition. Its entry is written. */
static enum outcome step_special(struct capture *c, uint64_t rule)
{
	struct view v;
	struct cursor cur;
	enum outcome out;

	if (RULE_KIND(rule) == RULE_END) {
		finish(c, SHSTK_END_COMPLETE, c->pc);
		c->end_by_rule = true;
		return FINISHED;
	}
	v = self_view(c, false);
	put_cursor(&cur, c);
	out = step_cursor(c, &v, &cur);
	return out == GO_ON ? take_cursor(c, &cur) : out;
}

/*
 * Step out of the frame in @c, whose entry is written, by @rule.
 */
static no_sanitize enum outcome step(struct capture *c, uint64_t rule)
{
	uint64_t cfa, slot, addr;

	if (unlikely((rule & (RULE_SPECIAL | RULE_RA_SAVED)) != RULE_RA_SAVED))
		return step_special(c, rule);
	cfa = (rule & RULE_FP ? c->fp : c->sp) + rule_cfa_off(rule);
	slot = cfa + native_ra_off(rule);
	/* Both bounds in one comparison; sp may have come to the end. */
	if (unlikely(slot - c->sp >= c->stack.hi - c->sp || slot & 7 ||
		     native_beyond(cfa, c->stack.hi))) {
		finish(c, SHSTK_END_BAD_STACK, c->pc);
		return FINISHED;
	}
	if (rule & RULE_FP_SAVED) {
		addr = cfa + rule_fp_off(rule);
		if (unlikely(addr - c->sp >= c->stack.hi - c->sp)) {
			finish(c, SHSTK_END_BAD_STACK, c->pc);
			return FINISHED;
		}
		c->fp = *(const volatile uint64_t *)(uintptr_t)addr;
		if (c->memo)
			memo_restored_fp(&c->w, c->w.fresh->end, addr);
	}
	c->slot = slot;
	c->raw = *(const volatile uint64_t *)(uintptr_t)slot;
	c->pc = native_strip(c->raw);
	c->sp = cfa;
	c->mark = 0;
	return GO_ON;
}

/*
 * The CFA of an ordinary frame with stack pointer @sp, by @rule of the cache, and where
 * its caller's pc and frame pointer lie, all seen from the end of the stack. False: it
 * is none, or does not lie on the stack.
 */
static inline __attribute__((always_inline))
bool ordinary_frame(uint64_t rule, uint64_t sp, uint64_t fp, uint64_t *cfa,
		    uint64_t *next, uint64_t *addr)
{
	if (likely((int64_t)rule > 0)) {
		*cfa = sp + rule_cfa_off(rule);
		*next = *cfa + native_ra_off(rule);
		*addr = *cfa + rule_fp_off(rule);
		return likely((int64_t)*cfa <= 0);
	}
	if ((rule & (RULE_SPECIAL | RULE_RA_SAVED)) != RULE_RA_SAVED)
		return false;
	*cfa = (rule & RULE_FP ? fp : sp) + rule_cfa_off(rule & ~RULECACHE_ODD);
	*next = *cfa + native_ra_off(rule);
	*addr = *cfa + rule_fp_off(rule);
	if (unlikely(*next - sp >= -sp || *next & 7 || (int64_t)*cfa > 0))
		return false;
	return !(rule & RULE_FP_SAVED) || likely(*addr - sp < -sp);
}

/*
 * Write and leave frames as long as they are ordinary: nothing but additions and
 * loads, as few of them as can be between one return address and the next. Comes
 * back with the first frame in @c that is not, not yet written, or that the memo
 * may have.
 */
static inline __attribute__((always_inline)) no_sanitize
void stride(struct capture *c, const bool memo)
{
	const uint64_t mask = load_relaxed(&rulecache.mask), gen = c->gen;
	const uint64_t hi = c->stack.hi;
	const struct rulecache_entry *e = rulecache.trail;
	struct rulecache_entry *inner = NULL;
	const bool update = !(load_relaxed(&c->t->captures) & 31);
	uint64_t *out = c->pcs + c->n, *const full = c->pcs + c->max;
	uint64_t pc = c->pc, sp = c->sp - hi, fp = c->fp;
	uint64_t slot = c->slot - hi, raw = c->raw;
	struct memo_walk w;
	int i = 0, look = 0;
	unsigned int n;

	if (unlikely(sp & 7))
		return;
	if (memo) {
		w = c->w;
		i = w.fresh->end;
		look = i;
	}
	for (;;) {
		uint64_t rule, cfa, next, addr;

		if (unlikely(out == full))
			break;
		/*
		 * Where the last trace comes in can't be predicted, so looking
		 * is dear. Far out it is done less often; at most a quarter
		 * more is walked than had to be.
		 */
		if (memo && i >= look) {
			const struct memo_side *old = w.old;
			int32_t at = (int32_t)(int64_t)sp;

			while (old->sp[w.j] < at)
				w.j++;
			if (unlikely(!((old->sp[w.j] ^ at) |
				       (native_strip(old->raw[w.j]) ^ pc))))
				break;
			look = min(i + 1 + (i - MEMO_START) / 4, MEMO_ROOM - 1);
			if (unlikely(i == MEMO_ROOM - 1))
				break;
		}
		if (!NATIVE_RA_FIXED)
			e = rulecache_find(pc, gen, mask);
		else if (unlikely(load_acquire(&e->key) != (pc | gen)))
			e = rulecache_follow(inner, pc, gen, mask, update);
		if (unlikely(!e))
			break;
		rule = rulecache_read(e, pc | gen);
		if (!ordinary_frame(rule, sp, fp - hi, &cfa, &next, &addr))
			break;
		if (memo && (int64_t)rule < 0 && rule & RULE_FP)
			memo_use_fp(&w, i, fp);
		if (NATIVE_RA_FIXED) {
			inner = (struct rulecache_entry *)e;
			e = rulecache_trail(rule);
		}
		*out++ = pc;
		if (memo) {
			w.fresh->raw[i] = raw;
			w.fresh->slot[i] = (int32_t)(int64_t)slot;
			w.fresh->sp[i] = (int32_t)(int64_t)sp;
			i++;
		}
		if (rule & RULE_FP_SAVED) {
			fp = *(const volatile uint64_t *)(uintptr_t)(hi + addr);
			if (memo)
				memo_restored_fp(&w, i, hi + addr);
		}
		slot = next;
		raw = *(const volatile uint64_t *)(uintptr_t)(hi + slot);
		pc = native_strip(raw);
		sp = cfa;
	}
	n = out - c->pcs;
	if (unlikely(c->marks != NULL))
		memset(c->marks + c->n, 0, n - c->n);
	c->n = n;
	c->pc = pc;
	c->sp = hi + sp;
	c->fp = fp;
	if (memo) {	/* otherwise nobody wants to know */
		c->slot = hi + slot;
		c->raw = raw;
		w.fresh->end = i;
		c->w = w;
	}
}

static __attribute__((noinline)) no_sanitize void stride_memo(struct capture *c)
{
	stride(c, true);
}

static __attribute__((noinline)) no_sanitize void stride_plain(struct capture *c)
{
	stride(c, false);
}

/* From the frame in @c outwards. */
static enum outcome walk(struct capture *c)
{
	if (!c->memo && !c->skip && !c->mark)
		stride_plain(c);
	for (;;) {
		enum outcome out;
		uint64_t rule;

		if (unlikely(trampoline_has(c->pc))) {	/* nested, or another's */
			c->pc = c->raw = trampoline_of(c->pc)->ra;
			c->slot = 0;
		}
		if (c->memo && !c->skip &&
		    memo_meet(&c->w, c->pc, c->sp, c->fp)) {
			if (!append(c, c->pc, c->mark)) {
				finish(c, SHSTK_END_CAPACITY, c->pc);
				return FINISHED;
			}
			record(c);
			if (c->memo && reuse(c) == FINISHED)
				return FINISHED;
			rule = rulecache_get(c->pc, c->gen,
					     load_relaxed(&rulecache.mask));
			if (unlikely(rule == RULE_NONE))
				rule = self_rule(c->pc, false);
			if (rule == RULE_NONE) {
				finish(c, SHSTK_END_NO_RULE, c->pc);
				return FINISHED;
			}
		} else {
			rule = rulecache_get(c->pc, c->gen,
					     load_relaxed(&rulecache.mask));
			if (unlikely(rule == RULE_NONE)) {
				if (!c->pc) {
					finish(c, SHSTK_END_COMPLETE, 0);
					return FINISHED;
				}
				rule = self_rule(c->pc, false);
				if (rule == RULE_NONE) {
					finish(c, SHSTK_END_BAD_PC, c->pc);
					return FINISHED;
				}
			}
			if (!append(c, c->pc, c->mark)) {
				finish(c, SHSTK_END_CAPACITY, c->pc);
				return FINISHED;
			}
			record(c);
		}
		record_use(c, rule);
		out = step(c, rule);
		if (out != GO_ON)
			return out;
		/* Frames without a slot, or to be left out, are for this loop. */
		if (!c->slot || c->skip)
			continue;
		if (c->memo)
			stride_memo(c);
		else
			stride_plain(c);
	}
}

/*
 * A rule needed a register that the fast loop does not follow: all over again
 * from @cur, with every register.
 */
static void walk_full(struct capture *c, struct cursor *cur, uint64_t until)
{
	struct view v = self_view(c, true);
	uint8_t mark;
	int err;

	forget(c);
	/* Our own frames first. */
	while (cur->regs.r[v.m->sp] < until) {
		err = cursor_step(&v, cur, &mark);
		if (err) {
			finish(c, SHSTK_END_NO_REGISTER, 0);
			return;
		}
	}
	for (;;) {
		if (!append(c, cur->regs.r[REG_PC], cur->mark)) {
			finish(c, SHSTK_END_CAPACITY, cur->regs.r[REG_PC]);
			return;
		}
		if (step_cursor(c, &v, cur) != GO_ON)
			return;
		if (!view_is_code(c, cur->regs.r[REG_PC] - 1)) {
			finish(c, SHSTK_END_BAD_PC, cur->regs.r[REG_PC]);
			return;
		}
	}
}

/*
 * Entry and exit.
 */

struct request {
	uint64_t *pcs;
	unsigned int max;
	uint32_t sources;
	uint32_t skip;
	uint8_t *marks;
	struct shstk_info *info;
	struct shstk_hook *hook;
};

static inline int check_request(struct request *r, uint64_t *pcs,
				unsigned int max, const struct shstk_opts *opts,
				struct shstk_info *info)
{
	r->pcs = pcs;
	r->max = max;
	r->info = info;
	r->hook = NULL;
	r->sources = ALL_SOURCES;
	r->skip = 0;
	r->marks = NULL;
	if ((!pcs && max) || max > INT32_MAX || (info && info->size < 8))
		return -EINVAL;
	if (!opts)
		return 0;
	if (opts->size < offsetof(struct shstk_opts, marks) || opts->pad ||
	    opts->sources & ~ALL_SOURCES)
		return -EINVAL;
	if (opts->sources)
		r->sources = opts->sources;
	r->skip = opts->skip;
	if (opts->size >= offsetof(struct shstk_opts, marks) + sizeof(opts->marks))
		r->marks = opts->marks;
	return 0;
}

/*
 * Enter a capture. A handler may have left an earlier one by longjmp(): its
 * frame, further down the same stack, is gone.
 */
static inline void enter(struct capture *c, const struct request *r, uint64_t sp)
{
	struct thread *t = c->t;
	uint64_t busy = load_relaxed(&t->busy_sp);

	if (unlikely(busy && t->native_known && sp > busy &&
		     range_has(&t->native, sp) && range_has(&t->native, busy))) {
		store_relaxed(&t->busy_sp, 0);
		memo_clear(&t->memo);
	}
	c->outermost = thread_enter(t, sp);
	c->crossed = false;
	if (unlikely(t->marker.n) && c->outermost)
		markers_take_back(t, sp);
	c->pcs = r->pcs;
	c->marks = r->marks;
	c->max = r->max;
	c->skip = r->skip;
	c->n = 0;
	c->mark = 0;
	c->reused = 0;
	c->guessed = 0;
	c->memo = false;
	c->waits = false;
	c->joined = false;
	c->end_by_rule = false;
	if (unlikely(self_loads_changed()))
		self_revalidate();
	c->gen = rulecache_gen();
	if (c->outermost && r->sources & SHSTK_USE_MEMO)
		open_memo(c);
}

void fill_info(struct shstk_info *to, int source, int n, int end, uint64_t end_pc,
	       unsigned int reused, unsigned int guessed)
{
	put_info(to, (struct shstk_info){
		.source = !n ? SHSTK_SOURCE_NONE : source ? source :
			  reused ? SHSTK_SOURCE_MEMO : SHSTK_SOURCE_WALK,
		.end = end,
		.reused = reused,
		.guessed = guessed,
		.end_pc = end_pc,
	});
}

/* Is the trace all that the memo has now? */
static bool is_in_memo(const struct capture *c)
{
	const struct memo *m = &c->t->memo;
	const struct memo_side *s = &m->side[m->last];

	return c->memo && !c->crossed && c->n &&
	       s->end - s->first == (int)c->n;
}

static void tell_hook(struct shstk_hook *hook, const struct capture *c)
{
	struct memo_side *s = &c->t->memo.side[c->t->memo.last];

	hook->end = c->end;
	hook->crossed = c->crossed;
	hook->id = is_in_memo(c) ? memo_id(s, s->first) :
				   shstk_trace_id(c->pcs, c->n);
}

static inline int leave(struct capture *c, const struct request *r)
{
	struct thread *t = c->t;

	store_memo(c);
	if (r->hook)
		tell_hook(r->hook, c);
	if (c->waits)
		note_trace(c);
	thread_count(t, c->reused);
	thread_leave(t, c->outermost);
	if (unlikely(c->outermost && self_has_retired()))
		self_reclaim();
	if (r->info)
		fill_info(r->info, 0, c->n, c->end, c->end_pc, c->reused,
			  c->guessed);
	return c->n;
}

/* No memory for a thread state: the trace is what needs none. */
static int without_state(const struct request *r, uint64_t pc)
{
	struct capture c = { .n = 0 };

	c.pcs = r->pcs;
	c.max = r->max;
	c.marks = r->marks;
	append(&c, pc, 0);
	if (r->info)
		fill_info(r->info, 0, c.n, SHSTK_END_BAD_STACK, pc, 0, 0);
	return c.n;
}

/* Start over from here, above our own frames. */
static __attribute__((noinline)) void again_from_here(struct capture *c,
						      const struct request *r,
						      uint64_t until)
{
	struct cursor cur = { .mark = 0 };

	native_here(&cur.regs);
	cur.exact = true;
	c->n = 0;
	c->skip = r->skip;
	c->guessed = 0;
	c->reused = 0;
	walk_full(c, &cur, until);
}

/*
 * The hardware shadow stack.
 */

/* From shstk.ko, where /proc does not say. */
static __attribute__((cold, noinline)) int ask_device(uint64_t ssp,
						      struct range *ret)
{
	struct shstk_ioc_map map = { .pidfd = -1, .addr = ssp };
	int dev = shstk_device_open(), err;

	if (dev < 0)
		return dev;
	err = shstk_device_map(dev, &map);
	close(dev);
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
static bool find_shadow(struct thread *t, uint64_t ssp, uint64_t sp,
			uint64_t *hi)
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
	if (err && in != ssp)	/* full to the last word, with the guard below */
		err = vma_query(ssp, &vma, NULL, 0);
	if (unlikely(err))
		err = ask_device(in, &vma.range);
	errno = saved;
	if (err) {		/* neither: the page is certain */
		*hi = (in | 4095) + 1;
		return false;
	}
	*hi = vma.range.hi;
	if (t->native_known && range_has(&t->native, sp)) {
		/* A handler between the two must not find half of it. */
		t->shadow.lo = vma.range.hi;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		t->shadow.hi = vma.range.hi;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		t->shadow.lo = vma.range.lo;
	}
	return true;
}

/* Make room for one entry at @at. */
static void insert_entry(struct hw_trace *h, unsigned int at, uint64_t pc,
			 uint8_t mark)
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
static void fill_signals(struct capture *c, struct hw_trace *h,
			 struct cursor *cur, unsigned int skip)
{
	int64_t k = NATIVE_CALLS_PUSH ? -(int64_t)skip : 0;
	struct view v = self_view(c, false);
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
		if (cursor_step(&v, cur, &mark) ||
		    (cur->exact && !find_stack(c, cur->regs.r[v.m->sp])))
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
static bool put_caller(struct capture *c, struct hw_trace *h, const void *uc,
		       uint64_t ssp, uint64_t hi)
{
	struct cursor cur = { .exact = true, .innermost = true };
	bool outermost = thread_enter(c->t, c->sp), ok = false;
	uint64_t pc;
	struct view v;
	uint8_t mark;

	if (unlikely(self_loads_changed()))
		self_revalidate();
	native_context(uc, &cur.regs);
	v = self_view(c, false);
	if (find_stack(c, c->sp) && !cursor_step(&v, &cur, &mark) &&
	    !(cur.mark & SHSTK_MARK_GUESS)) {
		pc = cur.regs.r[REG_PC];
		ok = true;
		if ((ssp >= hi || hw_word(ssp) != pc) && h->n < h->max)
			hw_put(h, pc, cur.mark);
	}
	thread_leave(c->t, outermost);
	return ok;
}

/*
 * Capture from the shadow stack at @ssp. @uc: from the code that a signal
 * interrupted; otherwise from the frame in @c.
 */
static int capture_hw(struct capture *c, const struct request *r, uint64_t ssp,
		      const void *uc)
{
	struct hw_trace h;
	struct cursor cur;
	unsigned int own;
	uint64_t hi;
	bool known, all, left, ends, gap = false;

	h.pcs = r->pcs;
	h.marks = r->marks;
	h.max = r->max;
	h.n = 0;
	h.skip = r->skip;
	h.nsignals = 0;
	if (!c->t->native_known)
		find_stack(c, c->sp);
	known = find_shadow(c->t, ssp, c->sp, &hi);
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
	all = hw_copy(&h, ssp, hi);
	if (unlikely(gap && h.marks && own < h.n))
		h.marks[own] |= SHSTK_MARK_GAP;
	left = all && h.n && native_may_be_left_token(h.pcs[h.n - 1]) &&
	       h.pcs[h.n - 1] != c->t->outermost;
	ends = all && range_has(&c->t->shadow, ssp) && !h.nsignals && !r->skip &&
	       !uc;
	if (unlikely(h.nsignals || left)) {
		enter(c, r, c->sp);
		c->memo = false;
		if (left && !view_is_code(c, h.pcs[h.n - 1] - 1))
			h.n--;
		put_cursor(&cur, c);
		if (uc) {
			native_context(uc, &cur.regs);
			cur.exact = true;
			cur.innermost = true;
		}
		if (h.nsignals && find_stack(c, c->sp))
			fill_signals(c, &h, &cur, r->skip);
		c->end = SHSTK_END_COMPLETE;
		c->end_pc = 0;
		leave(c, r);
	}
	if (ends && h.n > own) {
		c->t->outer = 0;	/* a handler must not mix the two */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		c->t->outermost = h.pcs[h.n - 1];
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		c->t->outer = ssp + 8 * (h.n - own);
	}
	if (r->info)
		fill_info(r->info, SHSTK_SOURCE_HARDWARE, h.n,
			  !all ? SHSTK_END_CAPACITY : known ?
			  SHSTK_END_COMPLETE : SHSTK_END_BOUNDS,
			  h.n ? h.pcs[h.n - 1] : 0, 0, 0);
	return h.n;
}

/*
 * The last trace once more.
 */

/* New frames before they have a place in the trace, and room to copy four at a time. */
struct new_frames {
	uint64_t raw[3 + SHORT_CUT];
	int32_t slot[3 + SHORT_CUT];
	int32_t sp[3 + SHORT_CUT];
};

typedef uint64_t two_words __attribute__((vector_size(16), aligned(8), may_alias));
typedef int32_t four_ints __attribute__((vector_size(16), aligned(4), may_alias));

/* Before frame @j of @s; below what was the first one there is room. */
static inline void put_new_frames(struct memo_side *s, int j,
				  const struct new_frames *f, int n)
{
	for (; n > 0; n -= 4) {
		j -= 4;
		*(two_words *)&s->raw[j] = *(const two_words *)&f->raw[n - 1];
		*(two_words *)&s->raw[j + 2] = *(const two_words *)&f->raw[n + 1];
		*(four_ints *)&s->slot[j] = *(const four_ints *)&f->slot[n - 1];
		*(four_ints *)&s->sp[j] = *(const four_ints *)&f->sp[n - 1];
	}
}

/*
 * What most captures are: a few ordinary frames are new, then comes a frame of
 * the last trace, and all behind it is as it was. The same as walk(), reuse()
 * and memo_join(), without anything that these frames do not need. Returns -1,
 * and has changed nothing, if it is anything else.
 *
 * A frame that was met may have been called from elsewhere by now, as its function
 * makes the same call each time: @bad is the last frame of the old trace of which
 * something differs, and those behind it are met sooner or later.
 */
static __attribute__((noinline)) no_sanitize
int short_cut(struct thread *t, uint64_t *pcs, unsigned int max, uint64_t raw,
	      uint64_t sp, uint64_t fp, struct shstk_hook *hook)
{
	const uint64_t mask = load_relaxed(&rulecache.mask);
	const uint64_t hi = t->native.hi, gen = t->memo.gen;
	const int room = min(max, (unsigned int)SHORT_CUT);
	struct memo_side *old = t->memo.now;
	uint64_t pc = native_strip(raw), slot;
	struct memo_fp fps[SHORT_CUT + 1];
	struct new_frames new;
	int j = old->first, x = old->fp_first, n = 0, nfp = 0, cur = -1, bad = -1, i;
	struct memo_fp now = { .addr = 0 };

	if (unlikely(!range_has(&t->native, sp) || sp & 7))
		return -1;
	slot = sp -= hi;
	for (;;) {
		const struct rulecache_entry *e;
		uint64_t rule, cfa, next, addr;

		while (old->sp[j] < (int32_t)sp)
			j++;
		if (!((old->sp[j] ^ (int32_t)sp) | (native_strip(old->raw[j]) ^ pc)) &&
		    j > bad) {
			while (unlikely(old->fp[x].use < j))
				x++;
			i = old->fp[x].from <= j;
			if (unlikely((unsigned int)(n + old->end - j) > max ||
				     n + 3 > j || nfp + i > x ||
				     (i && old->fp[x].val != fp)))
				return -1;
			if (likely(memo_unchanged(&t->memo, old, j, x + i, pcs + n + 1)))
				break;
			bad = memo_last_bad(old, j, SHORT_CUT - n);
			if (bad < 0)
				return -1;
		}
		e = rulecache_find(pc, gen, mask);
		if (unlikely(!e || n == room))
			return -1;
		rule = rulecache_read(e, pc | gen);
		if (!ordinary_frame(rule, sp, fp - hi, &cfa, &next, &addr))
			return -1;
		if ((int64_t)rule < 0 && rule & RULE_FP) {
			if (cur < 0) {
				cur = nfp++;
				fps[cur] = now;
				fps[cur].val = fp;
			}
			fps[cur].use = n;
		}
		pcs[n] = pc;
		new.raw[3 + n] = raw;
		new.slot[3 + n] = (int32_t)(int64_t)slot;
		new.sp[3 + n++] = (int32_t)(int64_t)sp;
		if (rule & RULE_FP_SAVED) {
			now.addr = hi + addr;
			now.from = n;
			cur = -1;
			fp = *(const volatile uint64_t *)(uintptr_t)(hi + addr);
		}
		slot = next;
		raw = *(const volatile uint64_t *)(uintptr_t)(hi + slot);
		pc = native_strip(raw);
		sp = cfa;
	}
	if (i) {
		/* The same value, but behind new frames it has another origin. */
		if (cur < 0) {
			cur = nfp++;
			fps[cur] = now;
			fps[cur].val = fp;
		}
		fps[cur].use = old->fp[x++].use - (j - n);
	}
	pcs[n] = pc;
	t->reused = old->end - 1 - j;
	if (!n) {	/* next time it can be had faster */
		if (j + 1 < old->end)
			memo_set_again(&t->memo, old);
		if (hook)
			hook->id = memo_id(old, j);
		return old->end - j;
	}
	t->memo.again.sp = 0;
	memo_unhash(old, j);
	old->first = j - n;
	old->fp_first = x - nfp;
	old->nbarrier = 1;
	old->barrier[0] = j - n;
	old->raw[j] = raw;
	old->slot[j] = (int32_t)(int64_t)slot;
	put_new_frames(old, j, &new, n);
	for (i = 0; i < nfp; i++) {
		old->fp[x - nfp + i] = fps[i];
		old->fp[x - nfp + i].from += j - n;
		old->fp[x - nfp + i].use += j - n;
	}
	if (hook)
		hook->id = memo_id(old, j - n);
	return n + old->end - j;
}

/*
 * The usual capture from a hardware shadow stack: its ends are known and there are
 * no tokens in between. 0: not so.
 */
static no_sanitize inline int copy_shadow(struct thread *t, uint64_t ra,
					  uint64_t ssp, uint64_t *pcs,
					  unsigned int max,
					  struct shstk_info *info)
{
	const unsigned int own = !NATIVE_CALLS_PUSH;
	uint64_t n = (t->outer - ssp) / 8;

	if (!range_has(&t->shadow, ssp) || n < 4 || n + own > max ||
	    n > native_chunk(ssp) || hw_word(t->outer - 8) != t->outermost ||
	    native_copy((const uint64_t *)(uintptr_t)ssp, pcs + own, n))
		return 0;
	if (own)
		pcs[0] = native_strip(ra);
	n += own;
	if (info)
		fill_info(info, SHSTK_SOURCE_HARDWARE, n, SHSTK_END_COMPLETE,
			  pcs[n - 1], 0, 0);
	return n;
}

/* Try markers again, if captures have gone without for long enough. */
static inline void wake_markers(struct thread *t)
{
	if (unlikely(t->captures >= t->marker.asleep))
		marker_wake(&t->marker);
}

/*
 * All the ways to capture; the registers are those of shstk_capture()'s caller,
 * @ssp is 0 without a hardware shadow stack.
 */
static inline __attribute__((always_inline))
int capture_by(const struct request *r, uint64_t ra, uint64_t sp, uint64_t fp,
	       uint64_t ssp)
{
	struct capture c;

	c.t = thread_get();
	if (unlikely(!c.t))
		return without_state(r, native_strip(ra));
	c.pc = native_strip(ra);
	c.sp = sp;
	c.fp = fp;
	c.slot = 0;
	c.raw = ra;
	if (unlikely(ssp && r->sources & SHSTK_USE_HARDWARE))
		return capture_hw(&c, r, ssp, NULL);
	if (unlikely(r->sources == SHSTK_USE_HARDWARE))
		return -EOPNOTSUPP;
	enter(&c, r, sp);
	if (unlikely(!find_stack(&c, sp))) {
		finish(&c, SHSTK_END_BAD_STACK, c.pc);
		c.memo = false;
	} else {
		restart_memo(&c);
		if (unlikely(walk(&c) == NEED_FULL))
			again_from_here(&c, r, sp);
	}
	wake_markers(c.t);
	if (unlikely(markers_at_work(&c.t->marker)) && c.outermost && !c.crossed &&
	    c.end == SHSTK_END_COMPLETE && !c.guessed && !r->skip && !ssp &&
	    r->sources & SHSTK_USE_MARKER)
		marker_consider(c.t, c.pcs, c.n, MARKER_PLAIN / 2, 0, ra, sp, fp);
	return leave(&c, r);
}

static __attribute__((noinline)) int capture_here(const struct request *r,
						  uint64_t ra, uint64_t sp,
						  uint64_t fp, uint64_t ssp)
{
	return capture_by(r, ra, sp, fp, ssp);
}

/**
 * struct call - a call of shstk_capture()
 * @ra: the caller's pc.
 * @sp: its registers.
 * @fp: see @sp.
 * @ssp: its shadow stack pointer, 0: it has none.
 * @pcs: the arguments. In memory, so that the fast ways have registers enough.
 * @max: see @pcs.
 * @opts: see @pcs.
 * @info: see @pcs.
 * @hook: if it is a call of shstk_hook_capture(), then @info is NULL.
 */
struct call {
	uint64_t ra, sp, fp, ssp;
	uint64_t *pcs;
	unsigned int max;
	const struct shstk_opts *opts;
	struct shstk_info *info;
	struct shstk_hook *hook;
};

/* In any way there is. */
static __attribute__((noinline)) int capture_any(const struct call *c)
{
	struct request r;
	int n;

	n = check_request(&r, c->pcs, c->max, c->opts, c->info);
	r.hook = c->hook;
	return n ? n : capture_here(&r, c->ra, c->sp, c->fp, c->ssp);
}

/* In any way, for a call that is_simple() and has no hardware shadow stack. */
static __attribute__((noinline)) int capture_simple(const struct call *c)
{
	const struct request r = {
		.pcs = c->pcs,
		.max = c->max,
		.sources = c->opts && c->opts->sources ? c->opts->sources :
							ALL_SOURCES,
		.info = c->info,
		.hook = c->hook,
	};

	return capture_by(&r, c->ra, c->sp, c->fp, 0);
}

/* By a fast way: what is no ordinary frame is not for those. */
static inline void finish_hook(struct shstk_hook *hook)
{
	hook->end = SHSTK_END_COMPLETE;
	hook->crossed = false;
}

static inline bool allows_marker(const struct shstk_opts *opts)
{
	return !opts || !opts->sources || opts->sources & SHSTK_USE_MARKER;
}

/*
 * Something is new, most often a few frames, or a marker may be of use. @busy_sp is
 * set.
 */
static __attribute__((noinline)) no_sanitize
int capture_near(const struct call *c, struct thread *t)
{
	struct memo *m = &t->memo;
	int n = -1;

	if (!m->now || !m->near || m->gen != rulecache_gen() || self_loads_changed()) {
		store_relaxed(&t->busy_sp, 0);
		return capture_simple(c);
	}
	store_relaxed(&t->depth, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	n = short_cut(t, c->pcs, c->max, c->ra, c->sp, c->fp, c->hook);
	if (likely(n > 0)) {
		m->misses = 0;
		if (c->hook)
			finish_hook(c->hook);
		wake_markers(t);
		if (unlikely(markers_at_work(&t->marker)) && allows_marker(c->opts))
			marker_consider(t, c->pcs, n, MARKER_PLAIN / 2, 0, c->ra, c->sp,
					c->fp);
		thread_count(t, t->reused);
		if (unlikely(c->info != NULL))
			fill_info(c->info, 0, n, SHSTK_END_COMPLETE,
				  c->pcs[n - 1], t->reused, 0);
	}
	thread_leave(t, true);
	if (unlikely(self_has_retired()))
		self_reclaim();
	return n > 0 ? n : capture_simple(c);
}

/* What is seldom left to do after a capture of @n entries. */
static __attribute__((noinline)) int after_again(struct thread *t, const uint64_t *pcs,
						 struct shstk_info *info, int n)
{
	wake_markers(t);
	if (info)
		fill_info(info, 0, n, SHSTK_END_COMPLETE, pcs[n - 1], n - 1, 0);
	if (self_has_retired())
		self_reclaim();
	return n;
}

/*
 * The most common capture of all: nothing at all is new since the last one. All stays
 * in registers, and no other function is called but to jump there. @busy_sp tells
 * handlers of it, as thread_enter() does; @depth is for captures that look at modules.
 */
static inline __attribute__((always_inline)) no_sanitize
bool is_again(const struct thread *t, unsigned int max, uint64_t ra, uint64_t sp,
	      uint64_t fp)
{
	const struct memo_again *a = &t->memo.again;

	return likely(a->sp == sp && a->pc == native_strip(ra) &&
		      !((a->fp ^ fp) & a->fp_mask) &&
		      a->gen == rulecache_gen() && self_loads_same() &&
		      (unsigned int)a->n < max);
}

static inline __attribute__((always_inline)) no_sanitize
int end_again(struct thread *t, uint64_t *pcs, struct shstk_info *info)
{
	int n = t->memo.again.n + 1;

	pcs[0] = t->memo.again.pc;
	t->memo.misses = 0;
	marked_end(t, true);
	if (unlikely(info || self_has_retired() || t->captures >= t->marker.asleep))
		return after_again(t, pcs, info, n);
	return n;
}

/* It is not so, after all: @t->begun says what is wanted. */
static __attribute__((noinline)) int not_again(uint64_t *pcs, struct thread *t)
{
	struct call c = {
		.ra = t->marker.ra, .sp = t->busy_sp & ~1ull, .fp = t->begun.fp,
		.pcs = pcs, .max = t->begun.max, .opts = t->begun.opts,
		.info = t->begun.info,
	};

	return capture_near(&c, t);
}

/* The first frame is as it was; now those behind it. A long trace. */
static __attribute__((noinline)) no_sanitize
int again_long(uint64_t *pcs, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(memo_unchanged_again(&t->memo, pcs + 1) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return end_again(t, pcs, t->begun.info);
	return not_again(pcs, t);
}

static __attribute__((noinline)) no_sanitize
int again(uint64_t *pcs, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(!verify_pairs(a->anchor, a->slot, a->raw, pcs + 1, a->n) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return end_again(t, pcs, t->begun.info);
	return not_again(pcs, t);
}

static __attribute__((noinline)) VERIFY_WIDE no_sanitize
int again_wide(uint64_t *pcs, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(!verify_wide_inline(a->anchor, a->slot, a->raw, pcs + 1, a->n,
				       false) &&
		   memo_unchanged_fps(a->fps, a->fps_end))) {
		memo_seen_again(&t->memo);
		return end_again(t, pcs, t->begun.info);
	}
	return not_again(pcs, t);
}

/* That was so several times. */
static __attribute__((noinline)) VERIFY_WIDE no_sanitize
int again_up(uint64_t *pcs, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (likely(!verify_up(t->memo.packed.base, t->memo.packed.up, a->raw, pcs + 1,
			      a->n) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return end_again(t, pcs, t->begun.info);
	return not_again(pcs, t);
}

/*
 * A call that is_simple() and interrupts no other one. It was begun by marked_begin(),
 * for the same reason.
 */
static __attribute__((noinline)) no_sanitize
int capture_again(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		  struct shstk_info *info, struct thread *t, uint64_t fp)
{
	t->begun.fp = fp;
	t->begun.max = max;
	t->begun.opts = opts;
	t->begun.info = info;
	if (unlikely(!is_again(t, max, t->marker.ra, t->busy_sp & ~1ull, fp)))
		return not_again(pcs, t);
	if (likely(t->memo.again.up))
		return again_up(pcs, t);
	if (unlikely(t->memo.again.n > MEMO_LONG))
		return again_long(pcs, t);
	return verify_is_wide() ? again_wide(pcs, t) : again(pcs, t);
}

/* In a handler, for the first time, in any way that is none of the fast ones. */
static __attribute__((noinline))
int capture_rare(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		 struct shstk_info *info, uint64_t ra, uint64_t sp, uint64_t fp,
		 uint64_t ssp)
{
	struct call c = {
		.ra = ra, .sp = sp, .fp = fp, .ssp = ssp,
		.pcs = pcs, .max = max, .opts = opts, .info = info,
	};

	return capture_any(&c);
}

/* On a thread with a hardware shadow stack; the arguments come in registers. */
static __attribute__((noinline))
int capture_shadow(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		   struct shstk_info *info, uint64_t ra, uint64_t ssp,
		   uint64_t sp, uint64_t fp)
{
	struct thread *t = thread_self;
	int n = 0;

	if (likely(t && is_simple(pcs, max, opts, info, SHSTK_USE_HARDWARE)))
		n = copy_shadow(t, ra, ssp, pcs, max, info);
	return likely(n) ? n : capture_rare(pcs, max, opts, info, ra, sp, fp, ssp);
}

int unmarked_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		     struct shstk_info *info, struct thread *t, uint64_t fp)
{
	uint64_t ra = t->marker.ra, sp = t->busy_sp & ~1ull;

	marker_new_rules(&t->marker);
	if (!t->marker.n && is_simple(pcs, max, opts, info, SHSTK_USE_MEMO)) {
		if (allows_marker(opts) && markers_on(&t->marker)) {
			struct call c = {
				.ra = ra, .sp = sp, .fp = fp, .pcs = pcs,
				.max = max, .opts = opts, .info = info,
			};

			if (!t->marker.wait)
				return capture_near(&c, t);
			t->marker.wait--;
		}
		return capture_again(pcs, max, opts, info, t, fp);
	}
	store_relaxed(&t->busy_sp, 0);
	return capture_rare(pcs, max, opts, info, ra, sp, fp, 0);
}

SHSTK_API __attribute__((noinline))
int shstk_capture(uint64_t *pcs, unsigned int max,
		  const struct shstk_opts *opts, struct shstk_info *info)
{
	const uint64_t *frame = __builtin_frame_address(0);
	uint64_t ra = (uintptr_t)__builtin_return_address(0);
	uint64_t sp = (uintptr_t)__builtin_dwarf_cfa();
	struct thread *t = thread_self;
	uint64_t ssp = native_ssp();

	if (unlikely(ssp))
		return capture_shadow(pcs, max, opts, info, ra, ssp, sp,
				      native_caller_fp(frame));
	if (unlikely(!t || t->busy_sp))
		return capture_rare(pcs, max, opts, info, ra, sp,
				    native_caller_fp(frame), 0);
	if (unlikely(markers_at_work(&t->marker)) &&
	    (allows_marker(opts) || t->marker.n)) {
		marked_begin(t, sp);
		if (t->marker.again_sp == sp && t->marker.again_ra == ra)
			return marked_again(pcs, max, opts, info, t,
					    native_caller_fp(frame));
		t->marker.ra = ra;
		return marked_capture(pcs, max, opts, info, t,
				      native_caller_fp(frame));
	}
	if (unlikely(!is_simple(pcs, max, opts, info, SHSTK_USE_MEMO)))
		return capture_rare(pcs, max, opts, info, ra, sp,
				    native_caller_fp(frame), 0);
	marked_begin(t, sp);
	t->marker.ra = ra;
	return capture_again(pcs, max, opts, info, t, native_caller_fp(frame));
}

/* What a hook wants in any other way than the fastest one. */
static __attribute__((noinline)) int hook_any(struct call *c, struct thread *t)
{
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_hook *hook = c->hook;
	int n;

	c->hook = NULL;
	c->info = &info;
	if (!c->ssp && t && !load_relaxed(&t->busy_sp) && t->marker.n) {
		marked_begin(t, c->sp);
		t->marker.ra = c->ra;
		n = marked_capture(c->pcs, c->max, c->opts, &info, t, c->fp);
	} else {
		n = c->ssp ? capture_shadow(c->pcs, c->max, c->opts, c->info,
					    c->ra, c->ssp, c->sp, c->fp) :
			     capture_any(c);
	}
	hook->end = info.end;
	hook->crossed = true;
	if (n >= 0)
		hook->id = shstk_trace_id(c->pcs, n);
	return n;
}

static inline __attribute__((always_inline)) no_sanitize
bool hook_begin(const struct call *c, struct thread *t)
{
	store_relaxed(&t->busy_sp, c->sp | 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return is_again(t, c->max, c->ra, c->sp, c->fp);
}

/* As again_wide(). */
static inline __attribute__((always_inline)) no_sanitize
int hook_end(const struct call *c, struct thread *t)
{
	struct memo_side *s = &t->memo.side[t->memo.last];

	c->hook->id = memo_id(s, s->first);
	finish_hook(c->hook);
	return end_again(t, c->pcs, NULL);
}

static __attribute__((noinline)) VERIFY_WIDE no_sanitize
int hook_again_wide(const struct call *c, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (hook_begin(c, t) &&
	    likely(!verify_wide_inline(a->anchor, a->slot, a->raw, c->pcs + 1,
				       a->n, false) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return hook_end(c, t);
	return capture_near(c, t);
}

static __attribute__((noinline)) no_sanitize
int hook_again(const struct call *c, struct thread *t)
{
	const struct memo_again *a = &t->memo.again;

	if (hook_begin(c, t) &&
	    likely(!verify_pairs(a->anchor, a->slot, a->raw, c->pcs + 1, a->n) &&
		   memo_unchanged_fps(a->fps, a->fps_end)))
		return hook_end(c, t);
	return capture_near(c, t);
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

__attribute__((noinline))
int shstk_hook_capture(struct shstk_hook *hook, uint64_t *pcs, unsigned int max,
		       const struct shstk_opts *opts)
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

	if (unlikely(c.ssp || !t || load_relaxed(&t->busy_sp) || t->marker.n ||
		     !is_simple(pcs, max, opts, NULL, SHSTK_USE_MEMO)))
		return hook_any(&c, t);
	return verify_is_wide() ? hook_again_wide(&c, t) : hook_again(&c, t);
}

/* The identity by way of a marker. */
static int by_marker(struct thread *t, struct shstk_info *info, uint64_t ra,
		     uint64_t sp, uint64_t fp, uint64_t *id)
{
	int n;

	marked_begin(t, sp);
	t->marker.ra = ra;
	n = marked_identity(t, fp, id);
	if (likely(n > 0)) {
		thread_count(t, true);
		if (unlikely(info != NULL))
			fill_info(info, SHSTK_SOURCE_MARKER, n,
				  SHSTK_END_COMPLETE,
				  t->marker.pcs[MARKER_ROOM - 1], t->reused, 0);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&t->busy_sp, 0);
	if (unlikely(self_has_retired()))
		self_reclaim();
	return n;
}

SHSTK_API __attribute__((noinline))
int shstk_capture_id(uint64_t *pcs, unsigned int max,
		     struct shstk_info *info, uint64_t *id)
{
	uint64_t fp = native_caller_fp(__builtin_frame_address(0));
	uint64_t sp = (uintptr_t)__builtin_dwarf_cfa();
	uint64_t ra = (uintptr_t)__builtin_return_address(0);
	struct shstk_info here = { .size = sizeof(here) };
	uint64_t ssp = native_ssp();
	struct thread *t = thread_self;
	struct request r;
	int n;

	if (!id)
		return -EINVAL;
	if (likely(!ssp && t && !load_relaxed(&t->busy_sp) && t->marker.n)) {
		n = by_marker(t, info, ra, sp, fp, id);
		if (likely(n > 0))
			return n;
	}
	n = check_request(&r, pcs, max, NULL, &here);
	if (n)
		return n;
	n = capture_here(&r, ra, sp, fp, ssp);
	if (n >= 0)
		*id = shstk_trace_id(pcs, n);
	if (info && info->size >= 8)
		put_info(info, here);
	return here.end == SHSTK_END_CAPACITY ? -E2BIG : n;
}

SHSTK_API int shstk_capture_context(const void *ucontext, uint64_t *pcs,
				    unsigned int max,
				    const struct shstk_opts *opts,
				    struct shstk_info *info)
{
	struct cursor cur = { .exact = true, .innermost = true,
			      .mark = SHSTK_MARK_PC };
	struct request r;
	struct capture c;
	enum outcome out;
	struct view v;
	uint64_t pc, sp, ssp;
	int err;

	err = check_request(&r, pcs, max, opts, info);
	if (err || !ucontext)
		return -EINVAL;
	native_context(ucontext, &cur.regs);
	trampoline_finish(&cur.regs);
	pc = cur.regs.r[REG_PC];
	sp = cur.regs.r[NATIVE_MACHINE.sp];
	c.t = thread_get();
	if (!c.t)
		return without_state(&r, pc);
	ssp = native_ssp();
	c.pc = pc;
	c.sp = sp;
	if (ssp && r.sources & SHSTK_USE_HARDWARE) {
		c.fp = cur.regs.r[NATIVE_MACHINE.fp];
		return capture_hw(&c, &r, ssp, ucontext);
	}
	if (r.sources == SHSTK_USE_HARDWARE)
		return -EOPNOTSUPP;
	enter(&c, &r, sp);
	v = self_view(&c, false);
	if (!append(&c, pc, SHSTK_MARK_PC)) {
		finish(&c, SHSTK_END_CAPACITY, pc);
		c.memo = false;
	} else if (sp & 7 || !find_stack(&c, sp)) {
		finish(&c, SHSTK_END_BAD_STACK, pc);
		c.memo = false;
	} else {
		restart_memo(&c);
		out = step_cursor(&c, &v, &cur);
		if (out == GO_ON)
			out = take_cursor(&c, &cur);
		if (out == GO_ON)
			out = walk(&c);
		if (out == NEED_FULL) {
			cur = (struct cursor){ .exact = true, .innermost = true,
					       .mark = SHSTK_MARK_PC };
			native_context(ucontext, &cur.regs);
			trampoline_finish(&cur.regs);
			c.n = 0;
			c.skip = r.skip;
			c.guessed = 0;
			c.reused = 0;
			if (find_stack(&c, sp))
				walk_full(&c, &cur, 0);
		}
	}
	return leave(&c, &r);
}

SHSTK_API int shstk_thread_init(void)
{
	struct capture c = { .n = 0 };

	c.t = thread_get();
	if (!c.t)
		return -ENOMEM;
	find_stack(&c, (uintptr_t)__builtin_frame_address(0));
	return 0;
}

SHSTK_API void shstk_modules_changed(void)
{
	self_flush();
	self_reclaim();
}

SHSTK_API int shstk_get_stats(struct shstk_stats *stats)
{
	struct shstk_stats s = { .size = 0 };
	struct thread *t = thread_get();
	bool outermost = false;

	if (!stats || stats->size < 8)
		return -EINVAL;
	/* As a capture: modules that are looked at stay. */
	if (t)
		outermost = thread_enter(t, (uintptr_t)__builtin_frame_address(0));
	s.size = stats->size;
	self_stats(&s);
	thread_stats(&s);
	if (t)
		thread_leave(t, outermost);
	memcpy(stats, &s, min(sizeof(s), (size_t)stats->size));
	return 0;
}

SHSTK_API const char *shstk_source_name(int source)
{
	static const char * const name[] = {
		"none", "hardware", "marker", "memo", "walk",
	};

	return source >= 0 && source < (int)ARRAY_SIZE(name) ? name[source] :
							       "unknown";
}

SHSTK_API const char *shstk_end_name(int end)
{
	static const char * const name[] = {
		[SHSTK_END_COMPLETE] = "complete",
		[SHSTK_END_CAPACITY] = "array full",
		[SHSTK_END_NO_RULE] = "no unwind information",
		[SHSTK_END_BAD_RULE] = "bad unwind information",
		[SHSTK_END_BAD_STACK] = "outside the stack",
		[SHSTK_END_BAD_PC] = "no code address",
		[SHSTK_END_NO_REGISTER] = "register not known",
		[SHSTK_END_READ] = "memory not readable",
		[SHSTK_END_BOUNDS] = "end of the shadow stack not known",
	};

	return end >= 0 && end < (int)ARRAY_SIZE(name) ? name[end] : "unknown";
}
