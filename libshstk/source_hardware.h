/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_hardware.h - captures traces from the hardware shadow stack.
 */
#ifndef SHSTK_SOURCE_HARDWARE_H
#define SHSTK_SOURCE_HARDWARE_H

#include "shadow_reader.h"
#include "walk.h"

/*
 * Captures from the shadow stack at @ssp. The trace begins at the frame in @c, or if
 * @uc is not NULL at the code that a signal interrupted. Returns the number of entries.
 */
int hardware_capture(struct capture *c, const struct request *r, uint64_t ssp, const void *uc);

/*
 * Makes the usual capture from a hardware shadow stack: both ends of it are known, and no
 * tokens lie in between. Returns the number of entries, or 0 if it is not a usual capture.
 */
static inline no_sanitize int hardware_copy(const struct thread *t, uint64_t ra, uint64_t ssp,
					    uint64_t *pcs, unsigned int max,
					    struct shstk_info *info)
{
	const unsigned int own = !NATIVE_CALLS_PUSH;
	uint64_t n = (t->shadow_end - ssp) / 8;

	if (!range_has(&t->shadow, ssp) || n < 4 || n + own > max || n > native_chunk(ssp) ||
	    hw_word(t->shadow_end - 8) != t->shadow_last ||
	    native_copy((const uint64_t *)(uintptr_t)ssp, pcs + own, n))
		return 0;
	if (own)
		pcs[0] = native_strip(ra);
	n += own;
	/* This is call_tell() in place: a call would make every capture save registers. */
	if (info)
		put_info(info, (struct shstk_info){
				       .source = SHSTK_SOURCE_HARDWARE,
				       .end = SHSTK_END_COMPLETE,
				       .end_pc = pcs[n - 1],
			       });
	return n;
}

#endif
