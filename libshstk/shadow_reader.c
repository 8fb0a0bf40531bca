// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shadow_reader.c - copies a shadow stack and drops words that are not return addresses.
 *
 * Entries are copied as vectors, and the same code checks whether each can be a return
 * address. Only a block in which one can't is then read entry by entry. native.h of the
 * architecture knows what tokens look like.
 */
#include "native.h"
#include "shadow_reader.h"

#define CHUNK 512 /* most words of which each is looked at because one is no return address */

void hw_put(struct hw_trace *t, uint64_t v, uint8_t mark)
{
	if (t->skip) {
		t->skip--;
		return;
	}
	if (t->marks)
		t->marks[t->n] = t->gap ? mark | SHSTK_MARK_GAP : mark;
	t->gap = false;
	t->pcs[t->n++] = v;
}

/*
 * Notes a signal frame. Where there is no room to note it, the interrupted pc can't be put in
 * later, and there is a gap.
 */
static void put_signal(struct hw_trace *t)
{
	/* The entry in front of the token is the signal return trampoline. */
	if (NATIVE_CALLS_PUSH && t->marks && t->n)
		t->marks[t->n - 1] |= SHSTK_MARK_SIGNAL;
	if (t->skip)
		return;
	if (t->nsignals < HW_SIGNALS)
		t->signal[t->nsignals++] = t->n;
	else
		t->gap = true;
}

/* Copies one word at a time. Returns the address behind the last word that was read. */
static uint64_t copy_words(struct hw_trace *t, uint64_t addr, uint64_t hi)
{
	for (; addr < hi && t->n < t->max && !t->ended; addr += 8) {
		uint64_t v = hw_word(addr);
		enum shadow_entry kind = native_entry(v, addr);

		t->plain &= kind == SHADOW_RETURN_ADDRESS || kind == SHADOW_END;
		switch (kind) {
		case SHADOW_RETURN_ADDRESS:
			hw_put(t, v, 0);
			break;
		case SHADOW_SIGNAL:
			put_signal(t);
			break;
		case SHADOW_TOKEN:
			break;
		case SHADOW_END:
			t->ended = true;
			break;
		case SHADOW_FOREIGN:
			t->gap = true;
			break;
		}
	}
	return addr;
}

/*
 * Copies @n words from @addr. Returns 0, or another value if a word may be something else than a
 * return address and each word has to be looked at.
 */
static inline uint64_t copy_at_once(const struct hw_trace *t, uint64_t addr, uint64_t n)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)addr;

	return t->seen_before ? native_copy(from, t->pcs + t->n, n) :
				native_copy_checked(from, t->pcs + t->n, n);
}

/*
 * Copies as many words as native_chunk() allows to check for tokens at once, up to CHUNK. Returns the
 * address behind them.
 */
static inline uint64_t copy_chunk(struct hw_trace *t, uint64_t addr, uint64_t hi)
{
	uint64_t n = min(min(native_chunk(addr), (uint64_t)CHUNK), (hi - addr) / 8);

	n = min(n, (uint64_t)(t->max - t->n));
	if (unlikely(n < 4 || t->gap || copy_at_once(t, addr, n)))
		return copy_words(t, addr, addr + 8 * n);
	if (unlikely(t->marks != NULL))
		memset(t->marks + t->n, 0, n);
	t->n += n;
	return addr + 8 * n;
}

/* Copies in pieces; handles tokens, marks, and entries to leave out. Returns as hw_copy(). */
static __attribute__((noinline)) bool copy_slowly(struct hw_trace *t, uint64_t ssp, uint64_t hi)
{
	if (ssp >= hi)
		return true;
	t->gap = false;
	t->ended = false;
	while (t->skip && ssp < hi && t->n < t->max && !t->ended)
		ssp = copy_words(t, ssp, ssp + 8);
	while (ssp < hi && t->n < t->max && !t->ended)
		ssp = copy_chunk(t, ssp, hi);
	if (t->ended)
		return true;
	if (ssp < hi) /* the array is full: tell whether there are more entries */
		return native_entry(hw_word(ssp), ssp) == SHADOW_END;
	/*
	 * Remove what lies behind the outermost frame: end markers, unused words, the
	 * token of a stack that was made for a switch.
	 */
	for (; t->n; t->n--, hi -= 8) {
		if (native_entry(t->pcs[t->n - 1], hi - 8) == SHADOW_RETURN_ADDRESS)
			break;
	}
	return true;
}

/* Ends hw_copy() where all words were copied at once, and @other is 0 if all are return addresses. */
static inline __attribute__((always_inline)) bool end_copy(struct hw_trace *t, uint64_t ssp,
							   uint64_t hi, uint64_t other)
{
	if (unlikely(other))
		return copy_slowly(t, ssp, hi);
	t->n += (hi - ssp) / 8;
	return true;
}

#ifdef NATIVE_V4
/*
 * Copies at least 16 words to @to by AVX2. hw_copy() jumps here, so that no registers have to be
 * saved. With a call in its place, 32 entries take 20 instructions more, of 102. Both are aligned: with
 * the loop across two lines of the cache, 128 entries take 9.3 ns instead of 8.6 on an EPYC (Zen 5).
 */
static __attribute__((noinline, aligned(64))) NATIVE_V4 no_sanitize bool
copy_by_avx2(struct hw_trace *t, uint64_t ssp, uint64_t hi, uint64_t *to)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)ssp;
	uint64_t n = (const uint64_t *)(uintptr_t)hi - from;

	return end_copy(t, ssp, hi, native_copy_avx2(from, to, n, true));
}
#endif

__attribute__((aligned(64))) bool hw_copy(struct hw_trace *t, uint64_t ssp, uint64_t hi)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)ssp;
	uint64_t n = (hi - ssp) / 8, *to = t->pcs + t->n;

	/* In the usual case all words are copied at once, and all are return addresses. */
	if (unlikely(n < 4 || n > native_chunk(ssp) || n > t->max - t->n ||
		     t->skip | (uintptr_t)t->marks ||
		     native_ends_in_token(hw_word(hi - 8), hi - 8)))
		return copy_slowly(t, ssp, hi);
#ifdef NATIVE_V4
	if (likely(n >= 16 && native_has_avx2))
		return copy_by_avx2(t, ssp, hi, to);
#endif
	return end_copy(t, ssp, hi, native_copy_checked(from, to, n));
}

uint64_t hw_interrupted(uint64_t ssp, uint64_t hi, const void *ucontext)
{
	uint64_t addr;

	addr = native_context_ssp(ucontext);
	if (addr)
		return addr > ssp && addr <= hi ? addr : 0;
	for (addr = ssp; addr < hi; addr += 8) {
		uint64_t v = hw_word(addr);

		if (native_entry(v, addr) == SHADOW_SIGNAL) {
			addr = native_token_ssp(v, addr);
			return addr > ssp && addr <= hi ? addr : 0;
		}
	}
	return 0;
}
