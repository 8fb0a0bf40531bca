/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * verify.h - the inner loop of a repeated capture: reads words of the stack again,
 * compares them with their old values, and writes the addresses in them.
 *
 * All loads are independent of each other. The number of instructions limits the speed
 * of the loops, which load one to four old values at a time. The loops for long traces
 * can go in both directions, to use what the first-level cache still holds.
 */
#ifndef SHSTK_VERIFY_H
#define SHSTK_VERIFY_H

#include "frame_records.h"
#include "native.h"

/*
 * Two words as one vector: verify_pair as they lie in memory, and verify_value as a value. They
 * are two types because gcc 14 for arm64 ends with an internal error if a verify_pair is an
 * argument.
 */
typedef uint64_t verify_pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint64_t verify_value __attribute__((vector_size(16)));

/* Reads the word at @distance bytes from @anchor. */
static inline no_sanitize uint64_t verify_word(const uint8_t *anchor, int64_t distance)
{
	return *(const stack_word *)(anchor + distance);
}

/* Loads two neighbouring distances at once; FIRST_OF() and SECOND_OF() take them apart. */
static inline int64_t verify_two(const int32_t *p)
{
	int64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST_OF(v) ((int32_t)(v))
#define SECOND_OF(v) ((v) >> 32)
#else
#define FIRST_OF(v) ((v) >> 32)
#define SECOND_OF(v) ((int32_t)(v))
#endif

/* Does what verify_pairs() does for four words; the differences are or-ed into *@d0 and *@d1. */
static inline __attribute__((always_inline)) no_sanitize void
verify_four(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
	    verify_value masks, verify_value *d0, verify_value *d1)
{
	int64_t s0 = verify_two(slot), s1 = verify_two(slot + 2);
	verify_value a = { verify_word(anchor, FIRST_OF(s0)), verify_word(anchor, SECOND_OF(s0)) };
	verify_value b = { verify_word(anchor, FIRST_OF(s1)), verify_word(anchor, SECOND_OF(s1)) };

	*d0 |= a ^ *(const verify_pair *)raw;
	*d1 |= b ^ *(const verify_pair *)(raw + 2);
	*(verify_pair *)out = a & masks;
	*(verify_pair *)(out + 2) = b & masks;
}

/* Does what verify_pairs() does, one word at a time. */
static inline no_sanitize uint64_t verify_few(const uint8_t *anchor, const int32_t *slot,
					      const uint64_t *raw, uint64_t *out, int n)
{
	const uint64_t mask = native_pc_mask();
	uint64_t d = 0;
	int i;

	for (i = 0; i < n; i++) {
		uint64_t a = verify_word(anchor, slot[i]);

		d |= a ^ raw[i];
		out[i] = a & mask;
	}
	return d;
}

/*
 * Compares @n words, each at @slot bytes from @anchor, with their old values in @raw, and
 * writes the addresses in them to @out. Returns 0 if all are equal, or another value if at
 * least one differs.
 */
static inline __attribute__((always_inline)) no_sanitize uint64_t
verify_pairs(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out, int n)
{
	const uint64_t mask = native_pc_mask();
	const verify_value masks = { mask, mask };
	verify_value d0 = { 0, 0 }, d1 = { 0, 0 };
	uint64_t d = 0;
	int i;

	if (unlikely(n < 4))
		return verify_few(anchor, slot, raw, out, n);
	i = (uintptr_t)out & sizeof(*out) ? 1 : 0;
	if (i) /* so that the stores below do not cross cache lines */
		d = verify_few(anchor, slot, raw, out, 1);
	for (; i + 4 < n; i += 4)
		verify_four(anchor, slot + i, raw + i, out + i, masks, &d0, &d1);
	/* Verify the last four words; some of them are verified twice. */
	verify_four(anchor, slot + n - 4, raw + n - 4, out + n - 4, masks, &d0, &d1);
	d0 |= d1;
	return d | d0[0] | d0[1];
}

/*
 * Compares @n words like verify_pairs(), the last ones first, up to one that differs. Returns the index
 * of that one, or -1 if none differs. It writes to @out as far as it comes.
 */
static inline __attribute__((always_inline)) no_sanitize int
verify_last_differs(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
		    int n)
{
	const uint64_t mask = native_pc_mask();
	const verify_value masks = { mask, mask };

	for (; n >= 4; n -= 4) {
		verify_value d0 = { 0, 0 }, d1 = { 0, 0 };

		verify_four(anchor, slot + n - 4, raw + n - 4, out + n - 4, masks, &d0, &d1);
		d0 |= d1;
		if (unlikely(d0[0] | d0[1]))
			break;
	}
	while (n-- > 0) {
		uint64_t a = verify_word(anchor, slot[n]);

		out[n] = a & mask;
		if (a != raw[n])
			break;
	}
	return n;
}

/*
 * The functions below do what verify_pairs() does, on x86 with instructions that only some CPUs have.
 * verify_is_wide() tells whether the running CPU has them. @backwards: the last words come first,
 * where that is known to help.
 */
#ifdef NATIVE_V4
#define VERIFY_WIDE NATIVE_V4

static inline bool verify_is_wide(void)
{
	return native_has_avx2;
}

static inline __attribute__((always_inline)) VERIFY_WIDE no_sanitize uint64_t
verify_wide_inline(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
		   int n, bool backwards)
{
	if (unlikely(n < 4))
		return verify_few(anchor, slot, raw, out, n);
	return native_differ(anchor, slot, raw, out, n, backwards);
}

static inline __attribute__((always_inline)) VERIFY_WIDE no_sanitize int
verify_last_differs_inline(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw,
			   uint64_t *out, int n)
{
	if (unlikely(n < 4))
		return verify_last_differs(anchor, slot, raw, out, n);
	return native_last_differs(anchor, slot, raw, out, n);
}

#define VERIFY_PACKED 1

/*
 * Compares @n words, a multiple of 8. Each lies @place words from @base. Their old values all have
 * @high as their upper half; the lower halves are in @low, in the order of verify_packed_at(). The
 * function is aligned: with its loop at other places in a cache line "fixed" at 512 frames is 3 to
 * 7 % slower.
 */
static __attribute__((noinline, unused, aligned(64))) VERIFY_WIDE no_sanitize uint64_t
verify_packed(const uint64_t *base, const uint16_t *place, const uint32_t *low, uint32_t high,
	      uint64_t *out, int n, bool backwards)
{
	return native_differ_packed(base, place, low, high, out, n, backwards);
}

static inline int verify_packed_at(int i)
{
	return native_packed_at(i);
}

/*
 * Does what verify_wide() does, and compares the frame pointers in the frame records of @r, too. They
 * belong to the frames @r->from to @r->end - 1, which are at least 8.
 */
static inline __attribute__((always_inline)) VERIFY_WIDE no_sanitize uint64_t
verify_records(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
	       int n, const struct frame_records *r, bool backwards)
{
	return native_differ_linked(anchor, slot, raw, out, n, r, backwards);
}

/*
 * Compares @n frames, at least 4, and writes their return addresses to @out. Returns 0 if all that
 * counts is equal.
 */
static inline __attribute__((always_inline)) VERIFY_WIDE no_sanitize uint64_t
verify_fours(const struct frame_fours *f, uint64_t *out, int n)
{
	return native_differ_fours(f, out, n);
}
#else
#define VERIFY_WIDE
#define VERIFY_PACKED 0

static inline uint64_t verify_packed(const uint64_t *base, const uint16_t *place,
				     const uint32_t *low, uint32_t high, uint64_t *out, int n,
				     bool backwards)
{
	(void)base;
	(void)place;
	(void)low;
	(void)high;
	(void)out;
	(void)n;
	(void)backwards;
	return 1;
}

static inline int verify_packed_at(int i)
{
	return i;
}

static inline uint64_t verify_records(const uint8_t *anchor, const int32_t *slot,
				      const uint64_t *raw, uint64_t *out, int n,
				      const struct frame_records *r, bool backwards)
{
	(void)anchor;
	(void)slot;
	(void)raw;
	(void)out;
	(void)n;
	(void)r;
	(void)backwards;
	return 1;
}

static inline uint64_t verify_fours(const struct frame_fours *f, uint64_t *out, int n)
{
	(void)f;
	(void)out;
	(void)n;
	return 1;
}

static inline bool verify_is_wide(void)
{
	return true;
}

static inline uint64_t verify_wide_inline(const uint8_t *anchor, const int32_t *slot,
					  const uint64_t *raw, uint64_t *out, int n, bool backwards)
{
	(void)backwards;
	return verify_pairs(anchor, slot, raw, out, n);
}

static inline int verify_last_differs_inline(const uint8_t *anchor, const int32_t *slot,
					     const uint64_t *raw, uint64_t *out, int n)
{
	return verify_last_differs(anchor, slot, raw, out, n);
}
#endif

static __attribute__((noinline, unused)) VERIFY_WIDE no_sanitize uint64_t
verify_wide(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out, int n,
	    bool backwards)
{
	return backwards ? verify_wide_inline(anchor, slot, raw, out, n, true) :
			   verify_wide_inline(anchor, slot, raw, out, n, false);
}

#endif
