// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * variable.c - the thread-local variable in which publish.c publishes its trace contexts, as a part
 * of that program or a library of its own.
 *
 * FILLER is a number of bytes. With many of them, a library that is loaded later finds no room beside
 * the thread pointer. With OWN, the code uses the variable by a name that is only its own, so nobody
 * can replace it.
 */
#include <stdatomic.h>
#include <stddef.h>

#include "variable.h"

__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;

#ifdef OWN
extern __thread void *variable __attribute__((alias("otel_thread_ctx_v1"), visibility("hidden")));
#else
#define variable otel_thread_ctx_v1
#endif

#ifdef FILLER
__attribute__((visibility("default"))) __thread char context_filler[FILLER];
#endif

/* A compiler fence is what OTEP 4947 demands of writers. */
__attribute__((visibility("default"))) void context_set(void *record)
{
	atomic_signal_fence(memory_order_seq_cst);
	*(void *volatile *)&variable = record;
	atomic_signal_fence(memory_order_seq_cst);
}
