/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_crash.h - reports of a program's own crash (libshstk-crash).
 *
 * A program that is about to end by a signal tells why, with the stacks of all its threads. The
 * report is the one of shstk-crash(1), which runs as a process of its own: the crashed program
 * neither allocates memory nor reads files nor takes locks.
 *
 * Programs that are not linked with the library may preload it, see shstk_crash(3).
 */
#ifndef SHSTK_CRASH_H
#define SHSTK_CRASH_H

#include <signal.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHSTK_CRASH_API __attribute__((visibility("default")))

/**
 * struct shstk_crash_opts - how crashes are reported
 * @size: sizeof(struct shstk_crash_opts), set by the caller.
 * @timeout: seconds that a report may take, after which the program ends without it; 0: 10.
 * @command: path of the command shstk; NULL: where it was installed with the library.
 * @args: further arguments of `shstk crash`, such as "-o" and a file, or "--json"; ended by NULL.
 *	NULL: none. By default a report is written to standard error.
 *
 * The strings must stay as they are. Fields behind @size are never read.
 */
struct shstk_crash_opts {
	uint32_t size;
	uint32_t timeout;
	const char *command;
	const char *const *args;
};

/**
 * shstk_crash_install() - report crashes of this program from now on
 * @opts: how, or NULL.
 *
 * Installs handlers of SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS and SIGABRT, except for
 * those that have a handler or are ignored already, and gives the calling thread an alternate
 * signal stack as shstk_crash_thread() does. After a report the process ends by the signal as it
 * would have without the handler, with a core file where core files are wanted.
 *
 * A second call changes the options only.
 *
 * Context: not async-signal-safe. Not a cancellation point. Does not block.
 * Return: 0; -EINVAL if @opts is not valid; or another negative errno.
 */
SHSTK_CRASH_API int shstk_crash_install(const struct shstk_crash_opts *opts);

/**
 * shstk_crash_thread() - give the calling thread an alternate signal stack if it has none
 *
 * Handlers run on it when the thread's own stack is full. A thread without one ends the process
 * without a report then. It is freed when the thread ends.
 *
 * Context: not async-signal-safe. Not a cancellation point. Does not block.
 * Return: 0 or a negative errno.
 */
SHSTK_CRASH_API int shstk_crash_thread(void);

/**
 * shstk_crash_report() - report a crash from a handler of the program's own
 * @signo: number of the signal.
 * @info: the handler's second argument.
 * @ucontext: the handler's third argument, of the calling thread.
 *
 * Starts `shstk crash`, which stops the process for as long as it reads the stacks, and waits until
 * it has written the report. If it cannot be started, or ends before, addresses are written to
 * standard error, unless nobody reads there. Only the first call of a process reports; others wait
 * until that one has ended. shstk_crash_install() need not have been called.
 *
 * Context: async-signal-safe. Not a cancellation point. Blocks for @timeout seconds and a few more
 * at most. Needs 8 KiB of stack. errno is preserved.
 * Return: 0 if a report was written; -EALREADY if one had been, or is being, written by this
 * thread; or another negative errno.
 */
SHSTK_CRASH_API int shstk_crash_report(int signo, const siginfo_t *info, const void *ucontext);

#ifdef __cplusplus
}
#endif

#endif
