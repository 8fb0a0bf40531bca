/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * go_context.h - what the library keeps about C's stack while C calls Go; see shstk_go.h.
 */
#ifndef SHSTK_GO_CONTEXT_H
#define SHSTK_GO_CONTEXT_H

#include <stdint.h>

/**
 * struct go_context - where C's stack continues below a call of Go
 * @ra: return address into the C function that calls Go; 0 if it is not known.
 * @sp: stack pointer of that function, behind the return address.
 * @fp: frame pointer of that function.
 * @next: the next context in the list of unused ones.
 */
struct go_context {
	uint64_t ra, sp, fp;
	struct go_context *next;
};

#endif
