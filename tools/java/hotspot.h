/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot.h - where methods that HotSpot, the Java virtual machine, compiled for x86-64 make their
 * frames, and where they give them back.
 */
#ifndef TOOLS_JAVA_HOTSPOT_H
#define TOOLS_JAVA_HOTSPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOTSPOT_TAIL 16 /* bytes after an address that are read */

/**
 * struct hotspot_frame - a frame
 * @cfa: distance from the stack pointer to the CFA, just above the return address, in bytes.
 * @fp_saved: the caller's frame pointer is stored just below the return address.
 */
struct hotspot_frame {
	uint32_t cfa;
	bool fp_saved;
};

/**
 * hotspot_partial() - correct the frame of a method where not all of it is there
 * @code: the method's code around the program counter; it may hold anything.
 * @size: bytes of @code.
 * @at: offset of the program counter in @code.
 * @making: the frame is still being made, and the method begins at the start of @code.
 * @frame: the complete frame; changed if less of it is there.
 */
void hotspot_partial(const uint8_t *code, size_t size, size_t at, bool making,
		     struct hotspot_frame *frame);

/**
 * hotspot_edge() - find the frame where code that keeps frame pointers has no frame record
 * @code: the code around the program counter; it may hold anything.
 * @size: bytes of @code.
 * @at: offset of the program counter in @code.
 * @frame: receives the frame if the frame record is not made yet or is already gone; otherwise its
 *	@cfa becomes 0.
 */
void hotspot_edge(const uint8_t *code, size_t size, size_t at, struct hotspot_frame *frame);

#endif
