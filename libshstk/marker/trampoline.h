/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trampoline.h - where a marked return address leads; see
 * Documentation/markers.rst.
 *
 * A marker is the address of one of many small pieces of code, each with a record
 * of its own that holds the true return address. Code and records lie at the same
 * distance from each other everywhere, so that the record of a piece can be found
 * by adding one number: also in the DWARF expression that tells unwinders where
 * the true return address is. trampoline_NAME.c has the code, for an architecture each.
 */
#ifndef SHSTK_TRAMPOLINE_H
#define SHSTK_TRAMPOLINE_H

#include "native.h"

#define TRAMPOLINE_RECORDS 8192
/* So many places at the start of each page of code, at most, are no trampolines. */
#define TRAMPOLINE_HEADER 2

/**
 * struct trampoline - the record of a marker
 * @ra: the true return address, without authentication code.
 * @set: its address is, or was, or will be in a slot. Clear: not used, returned through (the
 *	code says so), or taken back.
 */
struct trampoline {
	uint64_t ra;
	bool set;
	uint8_t pad[7];
};

#if defined(__x86_64__)
#define HAVE_TRAMPOLINE 1

#define TRAMPOLINE_BYTES 16 /* of code */
#define TRAMPOLINE_ENTRY 1 /* behind a byte that unwinders look up */

/* What the marker looks like in a slot. False: this frame can't have one. */
static inline bool trampoline_encode(uint64_t marker, uint64_t raw, uint64_t cfa, uint64_t *ret)
{
	(void)raw;
	(void)cfa;
	*ret = marker;
	return true;
}
#elif defined(__aarch64__)
#define HAVE_TRAMPOLINE 1

#define TRAMPOLINE_BYTES 8
#define TRAMPOLINE_ENTRY 0

/* Sign as PACIASP and PACIBSP do; does nothing where there is no such key. */
static inline uint64_t trampoline_sign_a(uint64_t pc, uint64_t sp)
{
	register uint64_t x17 __asm__("x17") = pc;
	register uint64_t x16 __asm__("x16") = sp;

	__asm__("hint #8" : "+r"(x17) : "r"(x16)); /* pacia1716 */
	return x17;
}

static inline uint64_t trampoline_sign_b(uint64_t pc, uint64_t sp)
{
	register uint64_t x17 __asm__("x17") = pc;
	register uint64_t x16 __asm__("x16") = sp;

	__asm__("hint #10" : "+r"(x17) : "r"(x16)); /* pacib1716 */
	return x17;
}

/*
 * Signed as the function will authenticate it: with the key, and the stack pointer
 * at its start, that give what is in the slot. An address that looks the same
 * signed and unsigned does not tell.
 */
static inline bool trampoline_encode(uint64_t marker, uint64_t raw, uint64_t cfa, uint64_t *ret)
{
	uint64_t plain = native_strip(raw);
	bool a = trampoline_sign_a(plain, cfa) == raw;
	bool b = trampoline_sign_b(plain, cfa) == raw;

	*ret = marker;
	if (!native_pac_mask())
		return true;
	if (raw == plain)
		return !a && !b;
	if (a == b)
		return false;
	*ret = a ? trampoline_sign_a(marker, cfa) : trampoline_sign_b(marker, cfa);
	return true;
}
#else
#define HAVE_TRAMPOLINE 0
#endif

#if HAVE_TRAMPOLINE
extern const uint8_t shstk_marker_code[] __attribute__((visibility("hidden")));
extern struct trampoline shstk_marker_table[TRAMPOLINE_RECORDS]
	__attribute__((visibility("hidden")));

static inline uint64_t trampoline_address(unsigned int i)
{
	return (uintptr_t)shstk_marker_code + i * TRAMPOLINE_BYTES + TRAMPOLINE_ENTRY;
}

/* Is @pc in a trampoline? */
static inline bool trampoline_has(uint64_t pc)
{
	return pc - (uintptr_t)shstk_marker_code < (uint64_t)TRAMPOLINE_RECORDS * TRAMPOLINE_BYTES;
}

/* The record of the trampoline that @pc is in. */
static inline struct trampoline *trampoline_of(uint64_t pc)
{
	return &shstk_marker_table[(pc - (uintptr_t)shstk_marker_code) / TRAMPOLINE_BYTES];
}

/* The true return address if @pc is in a trampoline, else @pc. */
static inline uint64_t trampoline_resolve(uint64_t pc)
{
	return unlikely(trampoline_has(pc)) ? trampoline_of(pc)->ra : pc;
}

/* What the core asks, as a meant_fn (meant.h): @regs may be in the middle of a trampoline. */
uint64_t trampoline_meant(uint64_t pc, struct regs *regs);
#else
static inline uint64_t trampoline_resolve(uint64_t pc)
{
	return pc;
}
#endif

#endif
