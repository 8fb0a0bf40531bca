// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * capture.c - the public capture functions, and the fast paths to the sources.
 *
 * The sources are tried in this order: the hardware shadow stack, the thread's last trace (the
 * memo), a walk. The first two have fast paths, for calls that ask for nothing special and do not
 * interrupt another capture. The functions here jump to a fast path with their arguments in
 * registers. A source that cannot serve the call jumps to the next one; the last of them is
 * capture_general.c:
 *
 *	capture.c -> source_memo.c -> source_near.c -> capture_general.c
 */
#include <errno.h>

#include "capture_general.h"
#include "enter.h"
#include "modmap.h"
#include "native.h"
#include "source_hardware.h"
#include "source_memo.h"
#include "source_near.h"

/*
 * Serves a call for which there is no fast path: it is nested, the thread's first one, or has
 * options.
 */
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

	return capture_general(&c);
}

/*
 * Serves a call of a thread that has a hardware shadow stack. The arguments are passed in
 * registers.
 */
static __attribute__((noinline)) int capture_shadow(uint64_t *pcs, unsigned int max,
						    const struct shstk_opts *opts,
						    struct shstk_info *info, uint64_t ra,
						    uint64_t sp, uint64_t fp, uint64_t ssp)
{
	struct thread *t = thread_self;
	int n = 0;

	if (likely(t && call_is_simple(pcs, max, opts, info, SHSTK_USE_HARDWARE)))
		n = hardware_copy(t, ra, ssp, pcs, max, info);
	return likely(n) ? n : capture_rare(pcs, max, opts, info, ra, sp, fp, ssp);
}

/*
 * Serves a simple and outermost call by the fast path. Its arguments are written where they are kept, one by one: a
 * struct call that is copied there is loaded in pieces that are larger than its members, which the processor does not
 * take from stores that have yet to reach the cache. That took 8 ns of the 120 that recording an allocation took
 * ("allocate small" of bench.rst, on an EPYC (Zen 3)).
 */
static inline __attribute__((always_inline)) int
capture_fast(struct thread *t, uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
	     struct shstk_info *info, struct shstk_hook *hook, uint64_t ra, uint64_t sp,
	     uint64_t fp)
{
	enter_outermost(t, sp);
	keep_call(t, pcs, max, opts, info, hook, ra, sp, fp);
	if (unlikely(!memo_begins_again(t, max, ra, sp, fp)))
		return near_capture(t);
	return memo_repeat(pcs, t);
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
		return capture_shadow(pcs, max, opts, info, ra, sp, fp, ssp);
	if (unlikely(!t || !enter_is_outermost(t)))
		return capture_rare(pcs, max, opts, info, ra, sp, fp, 0);
	if (unlikely(!call_is_simple(pcs, max, opts, info, SHSTK_USE_MEMO)))
		return capture_rare(pcs, max, opts, info, ra, sp, fp, 0);
	return capture_fast(t, pcs, max, opts, info, NULL, ra, sp, fp);
}

/* Serves a hook's call that the fast path of the memo cannot serve. */
static __attribute__((noinline)) int hook_any(struct shstk_hook *hook, uint64_t *pcs,
					      unsigned int max, const struct shstk_opts *opts,
					      uint64_t ssp)
{
	struct shstk_info info = { .size = sizeof(info) };
	int n;

	n = ssp ? capture_shadow(pcs, max, opts, &info, hook->ra, hook->sp, hook->fp, ssp) :
		  capture_rare(pcs, max, opts, &info, hook->ra, hook->sp, hook->fp, 0);
	hook->end = info.end;
	hook->crossed = true;
	if (n >= 0)
		hook->id = shstk_trace_id(pcs, n);
	return n;
}

/*
 * Returns the address of the shadow stack entry that holds @ra, the hook's return address, or 0 if
 * it is not found. Functions of the hook lie between the frame of its caller and this function;
 * their entries come first and are skipped. At most 16 entries are searched. The end of the shadow
 * stack is not known before the thread's first capture, but the page that SSP points to is always
 * readable.
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
	const uint64_t ra = hook->ra, sp = hook->sp, fp = hook->fp;
	const uint64_t ssp = unlikely(native_ssp() != 0) ? hook_shadow(ra) : 0;
	struct thread *t = thread_self;

	if (unlikely(ssp || !t || !enter_is_outermost(t) ||
		     !call_is_simple(pcs, max, opts, NULL, SHSTK_USE_MEMO)))
		return hook_any(hook, pcs, max, opts, ssp);
	return capture_fast(t, pcs, max, opts, NULL, hook, ra, sp, fp);
}

int capture_call(const struct call *c)
{
	struct thread *t = thread_self;

	if (unlikely(c->ssp || !t || !enter_is_outermost(t) ||
		     !call_is_simple(c->pcs, c->max, c->opts, c->info, SHSTK_USE_MEMO)))
		return capture_general(c);
	return capture_fast(t, c->pcs, c->max, c->opts, c->info, NULL, c->ra, c->sp, c->fp);
}

SHSTK_API __attribute__((noinline)) int shstk_capture_id(uint64_t *pcs, unsigned int max,
							 struct shstk_info *info, uint64_t *id)
{
	uint64_t fp = native_caller_fp(__builtin_frame_address(0));
	uint64_t sp = (uintptr_t)__builtin_dwarf_cfa();
	uint64_t ra = (uintptr_t)__builtin_return_address(0);
	struct shstk_info here = { .size = sizeof(here) };
	uint64_t ssp = native_ssp();
	int n;

	if (!id)
		return -EINVAL;
	n = capture_general(&(struct call){
		.ra = ra, .sp = sp, .fp = fp, .ssp = ssp, .pcs = pcs, .max = max, .info = &here });
	if (n < 0)
		return n;
	*id = shstk_trace_id(pcs, n);
	if (info && info->size >= 8)
		put_info(info, here);
	return here.end == SHSTK_END_CAPACITY ? -E2BIG : n;
}

SHSTK_API int shstk_thread_init(void)
{
	struct calling_thread calling = { .t = thread_get() };

	if (!calling.t)
		return -ENOMEM;
	calling_thread_find_stack(&calling, (uintptr_t)__builtin_frame_address(0));
	return 0;
}

SHSTK_API void shstk_modules_changed(void)
{
	modmap_flush();
	modmap_reclaim();
}
