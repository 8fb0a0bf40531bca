/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_marker.h - captures by markers: return addresses that are replaced on the stack.
 *
 * A part of the static library, libshstk.a, that is linked into programs which call it and into
 * no others; the shared library has none of it.
 *
 * A capture replaces a return address on the stack by the address of a trampoline. A later
 * capture that comes to it knows that all frames further out are still waiting, and copies what
 * it found there the last time.
 *
 * The program runs as it did, exceptions, longjmp() and coroutines included, but whoever reads
 * return addresses from the stack on his own sees the marker: __builtin_return_address(0) in a
 * function that called something that captured, walkers of frame pointers.
 * shstk_marker_resolve() tells them the address meant, and shstk_marker_withdraw() puts all of
 * the thread's addresses back. Unwinders that go by CFI (exceptions, backtrace(), libunwind, gdb)
 * go through a marker as through one more frame, shstk_marker_code. The other captures of this
 * library see the address meant.
 *
 * Markers are placed in code that keeps frame pointers, on the stack that the thread was started
 * on, never in the two youngest frames, and not from signal handlers.
 */
#ifndef SHSTK_MARKER_H
#define SHSTK_MARKER_H

#include "shstk.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * In &struct shstk_info.source: the youngest frames were unwound down to a marker, the others
 * copied. &struct shstk_info.reused has their number.
 */
#define SHSTK_SOURCE_MARKER 2

/**
 * enum shstk_marker_status - are markers in use, and if not, why
 * @SHSTK_MARKER_ON: they are placed.
 * @SHSTK_MARKER_NOT_ASKED: the thread has made no capture by shstk_marker_capture().
 * @SHSTK_MARKER_HARDWARE: a hardware shadow stack is active: it would not let a function
 *	return to a marker, and is faster.
 * @SHSTK_MARKER_MACHINE: not implemented for this architecture.
 * @SHSTK_MARKER_NO_ROOM: more threads than there are trampolines for, or no memory.
 * @SHSTK_MARKER_LEFT: too many marked frames of this thread were left without a return or an
 *	exception: by longjmp() or by stacks that are copied.
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
 * shstk_marker_capture() - capture the calling thread's stack, by a marker if there is one
 * @pcs: receives up to @max code addresses, as from shstk_capture().
 * @max: capacity of @pcs in entries.
 * @info: receives how the capture went, or NULL.
 *
 * Where markers can't be used, or none has been placed yet, this is shstk_capture(). An object
 * that the static library is linked into must not be unloaded any more once this was called.
 *
 * Context: as shstk_capture().
 *
 * Return: as shstk_capture().
 */
SHSTK_API int shstk_marker_capture(uint64_t *pcs, unsigned int max, struct shstk_info *info);

/**
 * shstk_marker_status() - are markers in use in the calling thread?
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
 * For code that reads return addresses from the stack, copies stacks, or is about to leave many
 * frames at once. The next shstk_marker_capture() may place one again.
 *
 * Context: async-signal-safe.
 */
SHSTK_API void shstk_marker_withdraw(void);

/**
 * shstk_marker_restart() - use markers again in a thread where they went off
 *
 * After SHSTK_MARKER_LEFT. The thread gets other trampolines, since its old ones may still be
 * somewhere, and there are enough for 255 in a process.
 *
 * Context: not from a signal handler.
 *
 * Return: 0; -EOPNOTSUPP: shstk_marker_status() tells why they can't be used.
 */
SHSTK_API int shstk_marker_restart(void);

/**
 * shstk_marker_resolve() - the return address that a marker stands for
 * @address: a word read from the stack.
 *
 * Context: async-signal-safe; for a stack of the calling thread.
 *
 * Return: the true return address, without authentication code, if @address is a marker,
 * otherwise @address.
 */
SHSTK_API uint64_t shstk_marker_resolve(uint64_t address);

#ifdef __cplusplus
}
#endif

#endif
