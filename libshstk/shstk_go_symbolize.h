/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_go_symbolize.h - the symbolizer function for Go's runtime.SetCgoTraceback(), which
 * gives the runtime the names of C functions.
 *
 * The Go package shstktraceback/symbolize (go/shstktraceback/symbolize) calls these
 * functions; a program only has to import it. They are in a library of their own,
 * libshstk-go-symbolize, because that library is linked with elfutils.
 */
#ifndef SHSTK_GO_SYMBOLIZE_H
#define SHSTK_GO_SYMBOLIZE_H

#include "shstk.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * shstk_go_symbolize_start() - start the thread that looks names up
 *
 * The thread blocks all signals and sleeps until there is something to look up. Calls
 * after the first one do nothing.
 *
 * Context: allocates; not from a signal handler.
 *
 * Return: 0, or the negative errno of pthread_create().
 */
SHSTK_API int shstk_go_symbolize_start(void);

/**
 * shstk_go_symbolize() - the symbolizer function for runtime.SetCgoTraceback()
 * @arg: { uintptr_t pc; const char *file; uintptr_t lineno; const char *func;
 *	uintptr_t entry, more, data }. The caller sets @pc; with 0 it asks to release what
 *	was kept for the previous address, and the function does nothing, because it keeps
 *	nothing. The function fills in the rest: the innermost function at @pc with its
 *	file and line, and in @entry where the code begins that @pc is part of. While @more
 *	is not 0, another call with the same struct fills in the function that this one was
 *	inlined into.
 *
 * @file and @func are NULL where nothing is known. A function that no symbol names is
 * called "[libfoo.so+0x1234]". The strings stay valid.
 *
 * The runtime also calls this function while it reports a crash: in a signal handler, on
 * a small stack, where nothing may be called that takes a lock which the interrupted C
 * code may hold. So the thread of shstk_go_symbolize_start() does the work. The function
 * waits for it as long as it makes progress, but at most 30 seconds. When the thread has
 * made no progress for 3 seconds, addresses get no names until it goes on.
 *
 * Context: async-signal-safe, from several threads at once, does not change errno.
 */
SHSTK_API void shstk_go_symbolize(void *arg);

#ifdef __cplusplus
}
#endif

#endif
