/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_go_symbolize.h - names of C functions for Go's runtime: the symbolizer that
 * runtime.SetCgoTraceback() can be given.
 *
 * The Go package shstktraceback/symbolize (go/shstktraceback/symbolize) calls these; a
 * program needs no more than to import it. They are in a library of their own,
 * libshstk-go-symbolize, because that is linked with elfutils.
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
 * It has all signals blocked and sleeps until there is something to look up. Further
 * calls do nothing.
 *
 * Context: allocates; not from a signal handler.
 *
 * Return: 0, or the negative errno of pthread_create().
 */
SHSTK_API int shstk_go_symbolize_start(void);

/**
 * shstk_go_symbolize() - the symbolizer function
 * @arg: { uintptr_t pc; const char *file; uintptr_t lineno; const char *func;
 *	uintptr_t entry, more, data }. @pc is given, 0 to release what was kept for the
 *	one before: there is nothing. The rest is filled: the innermost function at @pc
 *	with its file and line, and where the code begins that it is part of. While @more is
 *	not 0, another call with the same struct fills in the function that this one was
 *	inlined into.
 *
 * @file and @func are NULL where nothing is known. A function that no symbol names is
 * "[libfoo.so+0x1234]". Strings stay valid.
 *
 * The runtime also calls this while it reports a crash: in a signal handler, on a small
 * stack, after which nothing may be called that C code held a lock of. So the work is
 * done by the thread of shstk_go_symbolize_start(). It is waited for as long as it gets
 * on, 30 seconds at most; once it has stood still for 3 seconds, addresses have no name
 * until it goes on.
 *
 * Context: async-signal-safe, from several threads at once, leaves errno alone.
 */
SHSTK_API void shstk_go_symbolize(void *arg);

#ifdef __cplusplus
}
#endif

#endif
