/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_go.h - the functions for Go's runtime.SetCgoTraceback(), which put C frames into
 * the stacks that the runtime takes.
 *
 * The Go package shstktraceback (go/shstktraceback) calls these functions; a program only
 * has to import it. The arguments are the structs of version 0 that the documentation of
 * runtime.SetCgoTraceback describes.
 */
#ifndef SHSTK_GO_H
#define SHSTK_GO_H

#include <stdint.h>

#include "shstk.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * shstk_go_set_text() - tell the library where Go's code lies, and prepare for tracebacks
 * @lo: first address of Go's code (runtime.text).
 * @hi: first address behind it (runtime.etext).
 *
 * From now on every capture of this copy of the library ends at the first Go frame, because
 * the runtime unwinds Go frames itself. This call looks up everything about the modules that
 * the first capture would look up otherwise. A second call with the same range looks up the C
 * libraries that dlopen() has loaded since, and does nothing if there are none.
 * shstk_go_context() does the same at the next call of Go by C.
 *
 * Context: allocates, takes the dynamic linker's lock; not from a signal handler.
 *
 * Return: 0, -EINVAL for an empty range, -ENOMEM.
 */
SHSTK_API int shstk_go_set_text(uintptr_t lo, uintptr_t hi);

/**
 * shstk_go_traceback() - the traceback function for runtime.SetCgoTraceback()
 * @arg: { uintptr_t context, sigcontext; uintptr_t *buf; uintptr_t max }. The function
 *	stores at most @max addresses in @buf, innermost first, and then a 0 if there is
 *	room. As the runtime requires, they are addresses of call instructions, not return
 *	addresses. The last one lies in the C function that Go called.
 *
 * Context: async-signal-safe, not a cancellation point, does not change errno.
 */
SHSTK_API void shstk_go_traceback(void *arg);

/**
 * shstk_go_context() - the context function for runtime.SetCgoTraceback()
 * @arg: { uintptr_t context }. If @context is 0, C is about to call Go: the function stores
 *	a context in it that tells where C's stack continues. Otherwise the function releases
 *	that context.
 *
 * A context only keeps three registers; nothing is unwound before a traceback asks for it. If
 * libraries were loaded since the modules were looked up last, they are looked up here.
 *
 * Context: may allocate, and then takes the dynamic linker's lock; not from a signal handler.
 */
SHSTK_API void shstk_go_context(void *arg);

#ifdef __cplusplus
}
#endif

#endif
