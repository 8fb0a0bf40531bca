/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_marker.h - captures by markers, which replace return addresses on the stack.
 *
 * These functions are in the static library, libshstk.a, and are linked only into programs that
 * call them. The shared library does not have them.
 *
 * A capture replaces a return address on the stack by the address of a trampoline: this is a
 * marker. A later capture that comes to the marker knows that no frame further out has returned
 * since, and copies the entries that the last capture found there.
 *
 * The program runs as before, exceptions, longjmp() and coroutines included. But code that reads
 * return addresses from the stack by itself sees the marker: __builtin_return_address(0) in a
 * function below which a capture was made, and code that follows frame pointers.
 * shstk_marker_resolve() returns the true address for a marker, and shstk_marker_withdraw() puts
 * all return addresses of the thread back. Unwinders that use CFI (exceptions, backtrace(),
 * libunwind, gdb) step through a marker as through one more frame, shstk_marker_code. The other
 * captures of this library see the true address.
 *
 * Markers are placed only in code that keeps frame pointers and on the stack that the thread was
 * started on; never in the two youngest frames, and never by signal handlers.
 */
#ifndef SHSTK_MARKER_H
#define SHSTK_MARKER_H

#include "shstk.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Value of &struct shstk_info.source: the youngest frames were unwound down to a marker, and the
 * others were copied. &struct shstk_info.reused holds the number of copied entries.
 */
#define SHSTK_SOURCE_MARKER 2

/**
 * enum shstk_marker_status - whether markers are in use, and why not
 * @SHSTK_MARKER_ON: markers are in use.
 * @SHSTK_MARKER_NOT_ASKED: the thread has made no capture by shstk_marker_capture().
 * @SHSTK_MARKER_HARDWARE: a hardware shadow stack is active. It would not let a function
 *	return to a marker, and it is the faster source.
 * @SHSTK_MARKER_MACHINE: markers are not implemented for this architecture.
 * @SHSTK_MARKER_NO_ROOM: there are more threads than trampolines, or there is no memory.
 * @SHSTK_MARKER_LEFT: the thread left too many marked frames without a return or an
 *	exception, by longjmp() or because it copies stacks.
 */
enum shstk_marker_status {
	SHSTK_MARKER_ON = 0,
	SHSTK_MARKER_NOT_ASKED = 1,
	SHSTK_MARKER_HARDWARE = 2,
	SHSTK_MARKER_MACHINE = 3,
	SHSTK_MARKER_NO_ROOM = 4,
	SHSTK_MARKER_LEFT = 5,
};

/**
 * shstk_marker_capture() - capture the calling thread's stack, using a marker if there is one
 * @pcs: receives up to @max code addresses, as from shstk_capture().
 * @max: capacity of @pcs in entries.
 * @info: receives how the capture went, or NULL.
 *
 * Where markers can't be used, or none has been placed yet, the trace is the one of
 * shstk_capture(). After the first call, the object that the static library is linked into must
 * not be unloaded any more.
 *
 * Context: as for shstk_capture().
 *
 * Return: as for shstk_capture().
 */
SHSTK_API int shstk_marker_capture(uint64_t *pcs, unsigned int max, struct shstk_info *info);

/**
 * shstk_marker_status() - tell whether markers are in use in the calling thread
 *
 * Context: async-signal-safe.
 *
 * Return: enum shstk_marker_status.
 */
SHSTK_API int shstk_marker_status(void);

/**
 * shstk_marker_name() - name a status
 * @status: enum shstk_marker_status.
 *
 * Context: async-signal-safe.
 *
 * Return: a static string.
 */
SHSTK_API const char *shstk_marker_name(int status);

/**
 * shstk_marker_withdraw() - put the calling thread's return addresses back
 *
 * This is for code that reads return addresses from the stack, copies stacks, or is about to
 * leave many frames at once. The next shstk_marker_capture() may place a marker again.
 *
 * Context: async-signal-safe.
 */
SHSTK_API void shstk_marker_withdraw(void);

/**
 * shstk_marker_restart() - use markers again in a thread that stopped using them
 *
 * This is for a thread whose status is SHSTK_MARKER_LEFT. The thread gets another set of
 * trampolines, because addresses of its old ones may still lie somewhere. A process has 256
 * sets.
 *
 * Context: not from a signal handler.
 *
 * Return: 0; -EOPNOTSUPP: markers can't be used, and shstk_marker_status() tells why.
 */
SHSTK_API int shstk_marker_restart(void);

/**
 * shstk_marker_resolve() - find the return address that a marker replaces
 * @address: a word read from a stack of the calling thread.
 *
 * Context: async-signal-safe.
 *
 * Return: if @address is a marker, the true return address, without authentication code;
 * otherwise @address.
 */
SHSTK_API uint64_t shstk_marker_resolve(uint64_t address);

#ifdef __cplusplus
}
#endif

#endif
