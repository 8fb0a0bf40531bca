/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hook.h - captures for a function that stands in front of another one: malloc()
 * of the heap agent, backtrace() of the drop-in. Not public: for objects that the
 * static library is linked into.
 *
 * They begin at the frame of the hook's caller: the hook's own frames need neither
 * be unwound nor left out. And they tell the trace's identity (shstk_trace_id()),
 * which is kept beside the last trace, so that only new frames are hashed.
 */
#ifndef SHSTK_HOOK_H
#define SHSTK_HOOK_H

#include "shstk.h"

/**
 * struct shstk_hook - where a capture begins, and what it found
 * @ra: return address of the hook.
 * @sp: stack pointer of its caller, behind that address.
 * @fp: frame pointer of its caller.
 * @id: identity of the trace.
 * @end: enum shstk_end.
 * @crossed: the trace may go through a signal frame; 0: it does not.
 */
struct shstk_hook {
	uint64_t ra;
	uint64_t sp;
	uint64_t fp;
	uint64_t id;
	uint16_t end;
	uint16_t crossed;
};

/* The caller of the function that this stands in. */
#define SHSTK_HOOK_HERE                                              \
	((struct shstk_hook){                                        \
		.ra = (uintptr_t)__builtin_return_address(0),        \
		.sp = (uintptr_t)__builtin_dwarf_cfa(),              \
		.fp = *(const uint64_t *)__builtin_frame_address(0), \
	})

/*
 * As shstk_capture(), from the caller of the hook, whose frame must still be there.
 * Entry 0 is @hook->ra.
 */
int shstk_hook_capture(struct shstk_hook *hook, uint64_t *pcs, unsigned int max,
		       const struct shstk_opts *opts) __attribute__((visibility("hidden")));

#endif
