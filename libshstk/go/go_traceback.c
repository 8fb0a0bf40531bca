// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * go_traceback.c - captures the C frames of a Go traceback: the function that Go's runtime
 * calls in signal handlers; see shstk_go.h.
 *
 * Sources: golang/go, src/runtime/traceback.go (SetCgoTraceback), src/runtime/cgocall.go
 * (how many addresses are kept).
 */
#include "go_context.h"
#include "hook.h"
#include "modmap.h"
#include "shstk_go.h"

/* Most addresses of a traceback; the runtime asks for fewer. */
#define GO_MAX 64

struct traceback_arg {
	uintptr_t context;
	uintptr_t sigcontext;
	uintptr_t *buf;
	uintptr_t max;
};

/*
 * Stores the trace as the runtime wants it: only up to Go's first frame, and addresses of call
 * instructions instead of return addresses.
 */
static void hand_over(struct traceback_arg *a, const uint64_t *pcs, const uint8_t *marks, int n)
{
	uintptr_t i, taken = 0;

	for (i = 0; n > 0 && i < (uintptr_t)n && taken < a->max; i++) {
		if (modmap_is_end(pcs[i]))
			break;
		a->buf[taken++] = pcs[i] - !(marks[i] & (SHSTK_MARK_PC | SHSTK_MARK_SIGNAL));
	}
	if (taken < a->max)
		a->buf[taken] = 0;
}

SHSTK_API __attribute__((noinline)) void shstk_go_traceback(void *arg)
{
	const struct go_context *c;
	struct traceback_arg *a = arg;
	uint64_t pcs[GO_MAX];
	uint8_t marks[GO_MAX] = { 0 };
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.sources = SHSTK_USE_MEMO | SHSTK_USE_WALK,
		.marks = marks,
	};
	struct shstk_hook hook;
	unsigned int max = min(a->max + 1, (uintptr_t)GO_MAX); /* one more for the Go frame */
	int n = 0;

	c = (const struct go_context *)a->context;
	if (c) {
		hook = (struct shstk_hook){ .ra = c->ra, .sp = c->sp, .fp = c->fp };
		if (c->ra)
			n = shstk_hook_capture(&hook, pcs, max, &opts);
	} else if (a->sigcontext) {
		n = shstk_capture_context((const void *)a->sigcontext, pcs, max, &opts, NULL);
	} else {
		opts.skip = 1;
		n = shstk_capture(pcs, max, &opts, NULL);
	}
	hand_over(a, pcs, marks, n);
}
