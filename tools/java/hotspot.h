/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot.h - where a method that HotSpot, the Java virtual machine, compiled for x86-64
 * makes its frame, and where it gives it back.
 */
#ifndef TOOLS_JAVA_HOTSPOT_H
#define TOOLS_JAVA_HOTSPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOTSPOT_TAIL 16 /* bytes behind an address that are looked at */

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
 * hotspot_partial() - how much of its frame a method has at a program counter
 * @code: the method's code around it; anything may be in it.
 * @size: bytes of it.
 * @at: the program counter, from the start of @code.
 * @making: the frame is still being made, and the method begins at the start of @code.
 * @frame: the frame when it is complete; changed if it is not.
 */
void hotspot_partial(const uint8_t *code, size_t size, size_t at, bool making,
		     struct hotspot_frame *frame);

/**
 * hotspot_edge() - the frame of code that keeps frame pointers, where it has none
 * @code: the code around the program counter; anything may be in it.
 * @size: bytes of it.
 * @at: the program counter, from the start of @code.
 * @frame: receives it, where the frame record is not made yet or is gone; else its @cfa is 0.
 */
void hotspot_edge(const uint8_t *code, size_t size, size_t at, struct hotspot_frame *frame);

#endif
