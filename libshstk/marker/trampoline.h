/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trampoline.h - the trampolines, to which marked return addresses lead; see
 * Documentation/markers.rst.
 *
 * A trampoline is a small piece of code; a marker is its address. Each trampoline has
 * a record of its own that holds the true return address. Each record lies at a fixed
 * place in relation to its trampoline, so that simple arithmetic finds it: also in the
 * DWARF expression that tells unwinders where the true return address is.
 * trampoline_NAME.c has the code for an architecture.
 */
#ifndef SHSTK_TRAMPOLINE_H
#define SHSTK_TRAMPOLINE_H

#include "native.h"

#define TRAMPOLINE_RECORDS 8192
/* At most this many places at the start of each page of code are not trampolines. */
#define TRAMPOLINE_HEADER 2

/**
 * struct trampoline - the record of a marker
 * @ra: the true return address, without authentication code.
 * @set: true while the marker is in a slot, or may be in one. It is false before the first use,
 *	after a return through the trampoline (its code clears it), and after the marker was
 *	taken back.
 * @pad: unused, makes the record 16 bytes large.
 */
struct trampoline {
	uint64_t ra;
	bool set;
	uint8_t pad[7];
};

#if defined(__x86_64__)
#define HAVE_TRAMPOLINE 1

#define TRAMPOLINE_BYTES 16 /* bytes of code of a trampoline */
#define TRAMPOLINE_ENTRY 1 /* the entry is behind a byte for unwinders: see trampoline_x86.c */

/*
 * Stores in *@ret how the marker is written into the slot that holds @raw. Returns false if this
 * frame can't have a marker.
 */
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

/*
 * trampoline_sign_a() signs @pc like PACIASP, and trampoline_sign_b() like PACIBSP. They return it
 * unchanged where there is no such key.
 */
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
 * Stores in *@ret how the marker is written into the slot that holds @raw: signed as the
 * function will authenticate it, with the stack pointer at its start, @cfa, and the key
 * that gives @raw. Returns false if the key can't be told, as for an address that is the
 * same signed and unsigned: then this frame can't have a marker.
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

/* Returns the marker of trampoline @i, unsigned. */
static inline uint64_t trampoline_address(unsigned int i)
{
	return (uintptr_t)shstk_marker_code + i * TRAMPOLINE_BYTES + TRAMPOLINE_ENTRY;
}

/* Tells whether @pc is in a trampoline. */
static inline bool trampoline_has(uint64_t pc)
{
	return pc - (uintptr_t)shstk_marker_code < (uint64_t)TRAMPOLINE_RECORDS * TRAMPOLINE_BYTES;
}

/* Returns the record of the trampoline that @pc is in. */
static inline struct trampoline *trampoline_of(uint64_t pc)
{
	return &shstk_marker_table[(pc - (uintptr_t)shstk_marker_code) / TRAMPOLINE_BYTES];
}

/* Returns the true return address if @pc is in a trampoline, otherwise @pc. */
static inline uint64_t trampoline_resolve(uint64_t pc)
{
	return unlikely(trampoline_has(pc)) ? trampoline_of(pc)->ra : pc;
}

/*
 * Returns the true return address for @pc to the rest of the library, as a meant_fn (meant.h).
 * @regs: NULL, or the registers of code that may be in the middle of a trampoline.
 */
uint64_t trampoline_meant(uint64_t pc, struct regs *regs);
#else
static inline uint64_t trampoline_resolve(uint64_t pc)
{
	return pc;
}
#endif

#endif
