/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hook.h - captures for a function that replaces another one, like malloc() of the heap agent and
 * backtrace() of the drop-in. It is not public: it is for objects that the static library is linked
 * into.
 *
 * These captures begin at the frame of the hook's caller, so the hook's own frames need neither be
 * unwound nor left out. They also tell the identity of the trace (shstk_trace_id()), which is kept
 * beside the last trace, so that only new frames are hashed.
 */
#ifndef SHSTK_HOOK_H
#define SHSTK_HOOK_H

#include "shstk.h"

/**
 * struct shstk_hook - where a capture begins, and what it found
 * @ra: return address of the hook. Set by the hook.
 * @sp: stack pointer of the hook's caller, behind the return address. Set by the hook.
 * @fp: frame pointer of the hook's caller. Set by the hook.
 * @id: identity of the trace. Set by the capture.
 * @end: enum shstk_end. Set by the capture.
 * @crossed: 0 if the trace certainly does not go through a signal frame. Set by the capture.
 */
struct shstk_hook {
	uint64_t ra;
	uint64_t sp;
	uint64_t fp;
	uint64_t id;
	uint16_t end;
	uint16_t crossed;
};

/* Describes the caller of the function in which this macro is used. */
#define SHSTK_HOOK_HERE                                              \
	((struct shstk_hook){                                        \
		.ra = (uintptr_t)__builtin_return_address(0),        \
		.sp = (uintptr_t)__builtin_dwarf_cfa(),              \
		.fp = *(const uint64_t *)__builtin_frame_address(0), \
	})

/*
 * Does what shstk_capture() does, but begins at the caller of the hook, whose frame must still
 * exist. Entry 0 is @hook->ra.
 */
int shstk_hook_capture(struct shstk_hook *hook, uint64_t *pcs, unsigned int max,
		       const struct shstk_opts *opts) __attribute__((visibility("hidden")));

/*
 * Returns the address at which the function at @pc begins, as .eh_frame_hdr of the object that is
 * mapped there says, or 0 if it says nothing of @pc. Async-signal-safe; no cancellation point.
 */
uint64_t shstk_hook_function(uint64_t pc) __attribute__((visibility("hidden")));

#endif
