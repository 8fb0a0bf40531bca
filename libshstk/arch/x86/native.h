/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * native.h - the running machine, x86-64: reads the registers of the calling thread and
 * of a signal context, copies shadow stacks, and compares words of the stack. Each
 * arch/NAME/ has such a file; the include path selects one.
 */
#ifndef SHSTK_NATIVE_H
#define SHSTK_NATIVE_H

#include <immintrin.h>
#include <ucontext.h>

#include "../plain.h"
#include "cfi.h"
#include "frame_records.h"
#include "rule.h"
#include "shadow.h"

#define NATIVE_MACHINE machine_x86
#define native_entry x86_shadow_entry

/* Instructions are aligned to 1 << NATIVE_CODE_SHIFT bytes. */
#define NATIVE_CODE_SHIFT 0

/* The number of bytes below the stack pointer that signal handlers leave alone. */
#define NATIVE_RED_ZONE 128

/* 1 if every call pushes its return address to the shadow stack. */
#define NATIVE_CALLS_PUSH 1

/* 1 if the return address always lies at the same distance from the CFA. */
#define NATIVE_RA_FIXED 1

/* Returns where the fast loop finds the return address, in bytes from the CFA. */
static inline int64_t native_ra_off(uint64_t rule)
{
	(void)rule;
	return -8;
}

/* Returns the caller's frame pointer; @frame is __builtin_frame_address(0). */
static inline no_sanitize uint64_t native_caller_fp(const uint64_t *frame)
{
	return frame[0];
}

/*
 * Returns how markers find the frame record (the caller's frame pointer and the return address
 * behind it) of a frame with @rule, or 0 if the frame has no record. All functions that keep a
 * frame pointer begin with push and mov, so it points at the record: the answer is just 1.
 */
static inline uint64_t native_record_rule(uint64_t rule)
{
	return rule == (RULE_FP | RULE_FP_SAVED | RULE_RA_SAVED | RULE_CFA(16) | RULE_RA_AT(-8) |
			RULE_FP_AT(-16));
}

/* Returns the address of the frame record. @how: from native_record_rule(). */
static inline uint64_t native_record(uint64_t how, uint64_t sp, uint64_t fp)
{
	(void)how;
	(void)sp;
	return fp;
}

/* Returns the CFA of the frame whose frame record is at @record. */
static inline uint64_t native_record_cfa(uint64_t how, uint64_t record)
{
	(void)how;
	return record + 16;
}

static inline uint64_t native_thread_pointer(void)
{
	uint64_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* Reads the callee-saved registers, sp and pc at the place of the call. */
static inline __attribute__((always_inline)) void native_here(struct regs *regs)
{
	__asm__ volatile("mov %%rbx, 24(%0)\n\t"
			 "mov %%rbp, 48(%0)\n\t"
			 "mov %%rsp, 56(%0)\n\t"
			 "mov %%r12, 96(%0)\n\t"
			 "mov %%r13, 104(%0)\n\t"
			 "mov %%r14, 112(%0)\n\t"
			 "mov %%r15, 120(%0)\n\t"
			 "lea 0f(%%rip), %%rcx\n"
			 "0:\tmov %%rcx, 256(%0)"
			 :
			 : "a"(regs->r)
			 : "rcx", "memory");
	regs->r[16] = regs->r[REG_PC];
	regs->known = machine_x86.callee_saved | 1ull << 16 | 1ull << REG_PC;
}

static inline void native_context(const void *ucontext, struct regs *regs)
{
	/* The index in gregs of each register by its DWARF number. */
	static const uint8_t greg[17] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};
	const greg_t *g = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;
	unsigned int i;

	for (i = 0; i < 17; i++)
		regs->r[i] = g[greg[i]];
	regs->r[REG_PC] = g[REG_RIP];
	regs->known = 0x1ffff | 1ull << REG_PC;
}

/*
 * ---- The shadow stack ----
 *
 * Sources: Intel SDM volume 1 chapter 17, arch/x86/kernel/shstk.c.
 */

/* True if the CPU or the kernel is known to have no shadow stacks. */
extern bool native_no_shadow __attribute__((visibility("hidden")));

/*
 * Returns the shadow stack pointer, or 0 while shadow stacks are off. RDSSP is a NOP then,
 * but one that takes three cycles, so it is left out where shadow stacks are impossible.
 */
static inline __attribute__((always_inline)) uint64_t native_ssp(void)
{
	uint64_t ssp = 0;

	if (native_no_shadow)
		return 0;
	__asm__ volatile("rdsspq %0" : "+r"(ssp));
	return ssp;
}

/*
 * Tells whether @v, the outermost entry, may be a previous SSP token: the SSP of the stack
 * that was left, with bits 0 and 1 set, which looks like any other address. It can only be
 * the outermost entry, of a stack that was switched to without SAVEPREVSSP.
 */
static inline bool native_may_be_left_token(uint64_t v)
{
	return (v & 7) == 3;
}

/* Returns where the entries of interrupted code begin: the SSP in the signal token @v. */
static inline uint64_t native_token_ssp(uint64_t v, uint64_t addr)
{
	(void)addr;
	return v & ~(1ull << 63);
}

/* Returns 0: the kernel does not put the interrupted SSP into the context. */
static inline uint64_t native_context_ssp(const void *ucontext)
{
	(void)ucontext;
	return 0;
}

/*
 * Tells whether the outermost word @v at @addr is a restore token. Of all words that are not
 * return addresses, native_copy_checked() does not find this one.
 */
static inline bool native_ends_in_token(uint64_t v, uint64_t addr)
{
	return (v ^ (addr + 8)) == 1;
}

/* Returns how many words native_copy() may copy at once from @addr: any number, tokens are no addresses. */
static inline uint64_t native_chunk(uint64_t addr)
{
	(void)addr;
	return UINT64_MAX;
}

#define NATIVE_V4 __attribute__((target("avx2,bmi")))

/*
 * The copy functions also check the words, in the same vectors: with @check whether all can be
 * return addresses, and otherwise only whether bit 63 is set in one, which saves an addition for
 * each vector. An address minus SHADOW_LEAST has none of the bits from NATIVE_UPPER on.
 */
#define NATIVE_UPPER 55

/*
 * Copies 16 words. Returns the values to be checked, or-ed together. Each word of @least is
 * SHADOW_LEAST; it is not used without @check.
 */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize __m256i
native_copy16(const uint64_t *from, uint64_t *to, __m256i least, bool check)
{
	const __m256i_u *f = (const __m256i_u *)from;
	__m256i_u *t = (__m256i_u *)to;
	__m256i a = f[0], b = f[1], c = f[2], d = f[3];

	t[0] = a;
	t[1] = b;
	t[2] = c;
	t[3] = d;
	if (!check)
		return (a | b) | (c | d);
	return ((a - least) | (b - least)) | ((c - least) | (d - least));
}

/*
 * Copies sixteen words at a time, where the CPU and the kernel have AVX2. Some of the last
 * sixteen may be copied twice. Up to 48 words need no loop: most stacks are not longer. The loop
 * aligns its stores, which costs more than it saves there. Returns as native_copy() or
 * native_copy_checked().
 */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize uint64_t
native_copy_avx2(const uint64_t *from, uint64_t *to, uint64_t n, bool check)
{
	const uint64_t *last = from + n - 16;
	uint64_t *end = to + n - 16;
	const __m256i least = _mm256_set1_epi64x(SHADOW_LEAST);
	__m256i sign = native_copy16(from, to, least, check);

	if (n > 48) {
		/* Align the stores, so that none crosses the end of a cache line. */
		unsigned int step = 16 - ((uintptr_t)to & 31) / 8;

		for (from += step, to += step; from < last; from += 16, to += 16)
			sign |= native_copy16(from, to, least, check);
	} else if (n > 32) {
		sign |= native_copy16(from + 16, to + 16, least, check);
	}
	sign |= native_copy16(last, end, least, check);
	if (check) {
		sign = _mm256_srli_epi64(sign, NATIVE_UPPER);
		return !_mm256_testz_si256(sign, sign);
	}
	return _mm256_movemask_pd((__m256d)sign);
}

/* Returns the values to be checked of two pairs of words, see NATIVE_UPPER. */
static inline __m128i native_look(__m128i a, __m128i b, bool check)
{
	const __m128i least = _mm_set1_epi64x(SHADOW_LEAST);

	return check ? (a - least) | (b - least) : a | b;
}

/* Does what native_copy_avx2() does on any x86-64 CPU, four words at a time. */
static inline no_sanitize uint64_t native_copy_sse2(const uint64_t *from, uint64_t *to, uint64_t n,
						    bool check)
{
	const uint64_t *last = from + n - 4;
	__m128i sign = _mm_setzero_si128();
	__m128i a, b;

	for (; from < last; from += 4, to += 4) {
		a = _mm_loadu_si128((const __m128i *)from);
		b = _mm_loadu_si128((const __m128i *)(from + 2));
		_mm_storeu_si128((__m128i *)to, a);
		_mm_storeu_si128((__m128i *)(to + 2), b);
		sign |= native_look(a, b, check);
	}
	/* Copy the last four words, of which up to three are copied already. */
	to -= from - last;
	a = _mm_loadu_si128((const __m128i *)last);
	b = _mm_loadu_si128((const __m128i *)(last + 2));
	_mm_storeu_si128((__m128i *)to, a);
	_mm_storeu_si128((__m128i *)(to + 2), b);
	sign |= native_look(a, b, check);
	if (check)
		return _mm_movemask_epi8(_mm_cmpeq_epi32(_mm_srli_epi64(sign, NATIVE_UPPER),
							 _mm_setzero_si128())) != 0xffff;
	return _mm_movemask_pd((__m128d)sign);
}

extern bool native_has_avx2 __attribute__((visibility("hidden")));

/* native_copy() for at least 16 words, with AVX2. */
static __attribute__((noinline, unused)) NATIVE_V4 no_sanitize uint64_t
native_copy_many(const uint64_t *from, uint64_t *to, uint64_t n)
{
	return native_copy_avx2(from, to, n, false);
}

/* native_copy_checked() for at least 16 words, with AVX2. */
static __attribute__((noinline, unused)) NATIVE_V4 no_sanitize uint64_t
native_copy_many_checked(const uint64_t *from, uint64_t *to, uint64_t n)
{
	return native_copy_avx2(from, to, n, true);
}

/* Loads four words, each at @slot bytes from @anchor. */
static inline NATIVE_V4 no_sanitize __m256i native_gather_four(const uint8_t *anchor,
							       const int32_t *slot)
{
	__m128d a, b;
	int64_t s;

	/* The number of instructions limits the speed, so two distances are loaded at once. */
	memcpy(&s, slot, sizeof(s));
	a = _mm_load_sd((const double *)(anchor + (int32_t)s));
	a = _mm_loadh_pd(a, (const double *)(anchor + (s >> 32)));
	memcpy(&s, slot + 2, sizeof(s));
	b = _mm_load_sd((const double *)(anchor + (int32_t)s));
	b = _mm_loadh_pd(b, (const double *)(anchor + (s >> 32)));
	return _mm256_castpd_si256(_mm256_insertf128_pd(_mm256_castpd128_pd256(a), b, 1));
}

/* Returns the bits in which four words differ from @raw; writes the addresses in them to @out. */
static inline NATIVE_V4 no_sanitize __m256i native_differ_words(__m256i v, const uint64_t *raw,
								uint64_t *out)
{
	_mm256_storeu_si256((__m256i *)out, v);
	return _mm256_xor_si256(v, _mm256_loadu_si256((const __m256i *)raw));
}

/* Does the same for four words that each lie at @slot bytes from @anchor. */
static inline NATIVE_V4 no_sanitize __m256i native_differ_four(const uint8_t *anchor,
							       const int32_t *slot,
							       const uint64_t *raw, uint64_t *out)
{
	return native_differ_words(native_gather_four(anchor, slot), raw, out);
}

/* Does what verify_wide() does, for at least 4 words. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize uint64_t
native_differ(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out, int n,
	      bool backwards)
{
	int i = backwards ? n - 8 : 0, step = backwards ? -8 : 8;
	__m256i d0 = _mm256_setzero_si256(), d1 = d0;
	int rest = n & 7, left;

	for (left = n >> 3; left > 0; left--, i += step) {
		d0 = _mm256_or_si256(d0, native_differ_four(anchor, slot + i, raw + i, out + i));
		d1 = _mm256_or_si256(d1, native_differ_four(anchor, slot + i + 4, raw + i + 4,
							    out + i + 4));
	}
	d0 = _mm256_or_si256(d0, d1);
	if (rest) { /* some words are compared twice */
		i = backwards ? 0 : n - rest;
		if (rest > 4)
			d0 = _mm256_or_si256(d0, native_differ_four(anchor, slot + i, raw + i,
								    out + i));
		i = max(i + rest - 4, 0);
		d0 = _mm256_or_si256(d0, native_differ_four(anchor, slot + i, raw + i, out + i));
	}
	return !_mm256_testz_si256(d0, d0);
}

/* Does what verify_last_differs() does, for at least 4 words. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize int
native_last_differs(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
		    int n)
{
	const __m256i none = _mm256_setzero_si256();

	do {
		__m256i d;

		n = max(n - 4, 0); /* some words are compared twice */
		d = native_differ_four(anchor, slot + n, raw + n, out + n);
		if (unlikely(!_mm256_testz_si256(d, d))) {
			int equal = _mm256_movemask_pd((__m256d)_mm256_cmpeq_epi64(d, none));

			return n + 31 - __builtin_clz(~equal & 15);
		}
	} while (n > 0);
	return -1;
}

/* Loads four words, each at @place words from @base. */
static inline NATIVE_V4 no_sanitize __m256i native_gather(const uint64_t *base,
							  const uint16_t *place)
{
	const double *words = (const double *)base;
	__m128d a, b;
	uint64_t u;

	memcpy(&u, place, sizeof(u));
	a = _mm_load_sd(words + (uint16_t)u);
	a = _mm_loadh_pd(a, words + _bextr_u64(u, 16, 16));
	b = _mm_load_sd(words + _bextr_u64(u, 32, 16));
	b = _mm_loadh_pd(b, words + (u >> 48));
	return _mm256_castpd_si256(_mm256_insertf128_pd(_mm256_castpd128_pd256(a), b, 1));
}

/*
 * Does what verify_packed() does. Two vectors of words become one vector of their lower
 * halves and one of their upper halves.
 */
static inline NATIVE_V4 no_sanitize uint64_t native_differ_packed(const uint64_t *base,
								  const uint16_t *place,
								  const uint32_t *low,
								  uint32_t high, uint64_t *out,
								  int n, bool backwards)
{
	int i = backwards ? n - 8 : 0, step = backwards ? -8 : 8, left;
	const __m256i highs = _mm256_set1_epi32((int)high);
	__m256i d0 = _mm256_setzero_si256(), d1 = d0;

	for (left = n >> 3; left > 0; left--, i += step) {
		__m256i a = native_gather(base, place + i);
		__m256i b = native_gather(base, place + i + 4);
		__m256 fa = _mm256_castsi256_ps(a), fb = _mm256_castsi256_ps(b);
		__m256i lows = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0x88));
		__m256i upper = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0xdd));

		_mm256_storeu_si256((__m256i *)(out + i), a);
		_mm256_storeu_si256((__m256i *)(out + i + 4), b);
		lows = _mm256_xor_si256(lows, _mm256_loadu_si256((const __m256i *)(low + i)));
		d0 = _mm256_or_si256(d0, lows);
		d1 = _mm256_or_si256(d1, _mm256_xor_si256(upper, highs));
	}
	d0 = _mm256_or_si256(d0, d1);
	return !_mm256_testz_si256(d0, d0);
}

/* Returns where the lower half of word @i has to be in the array @low of that function. */
static inline int native_packed_at(int i)
{
	static const uint8_t at[8] = { 0, 1, 4, 5, 2, 3, 6, 7 };

	return (i & ~7) | at[i & 7];
}

/* Loads the two words at @a and the two at @b. */
static inline NATIVE_V4 no_sanitize __m256i native_two_pairs(const uint64_t *a, const uint64_t *b)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)a);

	return _mm256_inserti128_si256(_mm256_castsi128_si256(first),
				       _mm_loadu_si128((const __m128i *)b), 1);
}

/*
 * Compares four frame records; see struct frame_records. Returns the bits that differ, and writes
 * the return addresses to @out.
 */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize __m256i
native_differ_records4(const uint64_t *base, const uint16_t *place, const struct frame_half *low,
		       __m256i high, uint64_t *out)
{
	__m256i a, b, lows, highs;
	__m256 fa, fb;
	uint64_t u;

	/* One load of four places: the number of loads limits the speed. */
	memcpy(&u, place, sizeof(u));
	a = native_two_pairs(base + (uint16_t)u, base + _bextr_u64(u, 32, 16));
	b = native_two_pairs(base + _bextr_u64(u, 16, 16), base + (u >> 48));
	_mm256_storeu_si256((__m256i *)out, _mm256_unpackhi_epi64(a, b));
	fa = _mm256_castsi256_ps(a);
	fb = _mm256_castsi256_ps(b);
	lows = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0x88));
	highs = _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0xdd));
	lows = _mm256_xor_si256(lows, _mm256_loadu_si256((const __m256i *)low));
	return _mm256_or_si256(lows, _mm256_xor_si256(highs, high));
}

/* Does the same for the records @i to @i + 7 of @r. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize __m256i
native_differ_records8(const struct frame_records *r, ptrdiff_t i, __m256i high, uint64_t *out)
{
	return native_differ_records4(r->base, r->place + i, r->low + i, high, out + i) |
	       native_differ_records4(r->base, r->place + i + 4, r->low + i + 4, high, out + i + 4);
}

/* Does the same for all records of @records, at least 8. Some of them may be compared twice. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize __m256i
native_differ_records(const struct frame_records *records, uint64_t *out, bool backwards)
{
	const struct frame_records r = *records;
	const __m256i high = _mm256_set1_epi64x((int64_t)((uint64_t)r.high.ra << 32 | r.high.fp));
	ptrdiff_t n = r.end - r.from, step = backwards ? -8 : 8, i = backwards ? n - 8 : 0, left;
	__m256i d = _mm256_setzero_si256();

	for (left = n >> 3; left > 0; left--, i += step)
		d |= native_differ_records8(&r, i, high, out);
	if (n & 7)
		d |= native_differ_records8(&r, backwards ? 0 : n - 8, high, out);
	return d;
}

/* Compares the words @i to @end - 1 like native_differ(). @end is at least 4. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize __m256i
native_differ_few(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
		  int i, int end)
{
	__m256i d = native_differ_four(anchor, slot + end - 4, raw + end - 4, out + end - 4);

	for (; i < end - 4; i += 4)
		d |= native_differ_four(anchor, slot + i, raw + i, out + i);
	return d;
}

/* Does what verify_records() does. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize uint64_t
native_differ_linked(const uint8_t *anchor, const int32_t *slot, const uint64_t *raw, uint64_t *out,
		     int n, const struct frame_records *r, bool backwards)
{
	__m256i d = _mm256_setzero_si256();

	if (unlikely(r->from))
		d |= native_differ_few(anchor, slot, raw, out, 0, max(r->from, 4));
	if (likely(r->end < n))
		d |= native_differ_few(anchor, slot, raw, out, r->end, n);
	d |= native_differ_records(r, out + r->from, backwards);
	return !_mm256_testz_si256(d, d);
}

/* Compares the frames in @f. Returns the bits that differ; writes the return addresses to @out. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize __m256i
native_differ_frames4(const uint64_t *base, const struct frame_four *f, uint64_t *out)
{
	__m256i a, b, ras, fps;
	uint64_t u;

	memcpy(&u, f->place, sizeof(u));
	a = native_two_pairs(base + (uint16_t)u, base + _bextr_u64(u, 32, 16));
	b = native_two_pairs(base + f->place[1], base + (u >> 48));
	ras = native_differ_words(_mm256_unpackhi_epi64(a, b), f->raw, out);
	fps = _mm256_unpacklo_epi64(a, b) ^ _mm256_loadu_si256((const __m256i *)f->fp);
	return ras | (fps & _mm256_loadu_si256((const __m256i *)f->mask));
}

/* Does what verify_fours() does. */
static inline __attribute__((always_inline)) NATIVE_V4 no_sanitize uint64_t
native_differ_fours(const struct frame_fours *fours, uint64_t *out, int n)
{
	const struct frame_four *f = fours->four, *last = fours->last;
	const uint64_t *base = fours->base;
	__m256i d = native_differ_frames4(base, last, out + n - 4);

	for (; f < last; f++, out += 4)
		d |= native_differ_frames4(base, f, out);
	return !_mm256_testz_si256(d, d);
}

/*
 * Copies @n words, at least 4. Returns a value other than 0 if a signal token is among them.
 *
 * No other token can lie among the entries of an active stack: RSTORSSP removes the restore
 * token that it uses, and SAVEPREVSSP leaves one only on the stack that is left, below its
 * entries. The caller has to check the outermost words.
 */
static inline uint64_t native_copy(const uint64_t *from, uint64_t *to, uint64_t n)
{
	if (n >= 16 && native_has_avx2)
		return native_copy_many(from, to, n);
	return native_copy_sse2(from, to, n, false);
}

/* Copies like native_copy(); also returns another value than 0 if a word is no return address. */
static inline uint64_t native_copy_checked(const uint64_t *from, uint64_t *to, uint64_t n)
{
	if (likely(n >= 16 && native_has_avx2))
		return native_copy_many_checked(from, to, n);
	return native_copy_sse2(from, to, n, true);
}

#endif
