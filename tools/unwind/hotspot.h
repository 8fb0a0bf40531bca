/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot.h - frames of what HotSpot, the Java virtual machine, compiled for x86-64.
 *
 * Such code keeps no frame pointers, unless java is told so, and nothing describes it. But
 * each method begins in one of few ways, which say how large its frame is.
 */
#ifndef TOOLS_UNWIND_HOTSPOT_H
#define TOOLS_UNWIND_HOTSPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOTSPOT_TAIL 16 /* bytes behind an address that are looked at */

/**
 * enum hotspot_kind - what was found
 * @HOTSPOT_NOTHING: no method begins there: it may begin further in front.
 * @HOTSPOT_OTHER: it is no method.
 * @HOTSPOT_FRAME: one with a frame of fixed size.
 * @HOTSPOT_RECORD: one that keeps frame pointers, as those that call native code do.
 */
enum hotspot_kind {
	HOTSPOT_NOTHING,
	HOTSPOT_OTHER,
	HOTSPOT_FRAME,
	HOTSPOT_RECORD,
};

/**
 * struct hotspot_frame - a frame
 * @cfa: bytes from the stack pointer to behind the return address.
 * @fp_saved: the caller's frame pointer lies below the return address.
 */
struct hotspot_frame {
	uint32_t cfa;
	bool fp_saved;
};

/**
 * hotspot_find() - find the method of an address, and its frame there
 * @code: code around the address; anything may be in it.
 * @size: bytes of it.
 * @at: the address, from the start of @code.
 * @exact: a program counter: the frame may not be complete yet, or not any more.
 * @ret: receives the frame.
 *
 * Return: enum hotspot_kind.
 */
int hotspot_find(const uint8_t *code, size_t size, size_t at, bool exact,
		 struct hotspot_frame *ret);

/* Does a call end right before the address? */
bool hotspot_after_call(const uint8_t *code, size_t at);

#endif
