/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * go_context.h - what is kept of C's stack while C calls Go; see shstk_go.h.
 */
#ifndef SHSTK_GO_CONTEXT_H
#define SHSTK_GO_CONTEXT_H

#include <stdint.h>

/**
 * struct go_context - where C's stack goes on below a call of Go
 * @ra: return address into the C function that calls Go; 0: it is not known.
 * @sp: its stack pointer behind that, and
 * @fp: its frame pointer.
 * @next: another one that is not in use.
 */
struct go_context {
	uint64_t ra, sp, fp;
	struct go_context *next;
};

#endif
