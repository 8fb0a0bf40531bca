/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_go.h - C frames in the stacks that Go's runtime takes: what
 * runtime.SetCgoTraceback() wants to be given.
 *
 * The Go package shstktraceback (go/shstktraceback) calls these; a program needs no more
 * than to import it. The arguments are the structs that the documentation of
 * runtime.SetCgoTraceback describes, of version 0.
 */
#ifndef SHSTK_GO_H
#define SHSTK_GO_H

#include <stdint.h>

#include "shstk.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * shstk_go_set_text() - say where Go's code lies, and prepare for tracebacks
 * @lo: its first address (runtime.text).
 * @hi: address behind it (runtime.etext).
 *
 * From now on every capture of this copy of the library ends at the first frame of Go,
 * which the runtime unwinds itself. All that a first capture would have to look up is
 * looked up here. Where C libraries were loaded by dlopen() since, calling it again looks these
 * up, as shstk_go_context() does at the next call of Go by C; else it does nothing.
 *
 * Context: allocates, takes the dynamic linker's lock; not from a signal handler.
 *
 * Return: 0, -EINVAL for an empty range, -ENOMEM.
 */
SHSTK_API int shstk_go_set_text(uintptr_t lo, uintptr_t hi);

/**
 * shstk_go_traceback() - the traceback function
 * @arg: { uintptr_t context, sigcontext; uintptr_t *buf; uintptr_t max }. At most @max
 *	addresses are stored in @buf, innermost first, then a 0 if there is room. They are
 *	those of calls, not return addresses, as the runtime wants them. The last one is
 *	that of the C function that Go called.
 *
 * Context: async-signal-safe, no cancellation point, leaves errno alone.
 */
SHSTK_API void shstk_go_traceback(void *arg);

/**
 * shstk_go_context() - the context function
 * @arg: { uintptr_t context }. 0: C calls Go, which stores here where C's stack goes on.
 *	Otherwise what was stored is released.
 *
 * Three registers are kept; unwinding waits until somebody asks. If libraries were loaded since
 * all were looked up last, they are looked up.
 *
 * Context: may allocate, and takes the dynamic linker's lock then; not from a signal handler.
 */
SHSTK_API void shstk_go_context(void *arg);

#ifdef __cplusplus
}
#endif

#endif
