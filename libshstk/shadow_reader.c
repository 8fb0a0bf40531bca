// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shadow_reader.c - read a shadow stack: copy, and drop what is no return address.
 *
 * Entries are copied by vectors, in which it is also seen whether each can be a return
 * address; only if not is the block gone through entry by entry.
 * What tokens look like is the architecture's business (native.h).
 */
#include "native.h"
#include "shadow_reader.h"

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

/* Where a signal interrupted: what can't be put in later is a gap. */
static void put_signal(struct hw_trace *t)
{
	/* The entry before it is the trampoline's. */
	if (NATIVE_CALLS_PUSH && t->marks && t->n)
		t->marks[t->n - 1] |= SHSTK_MARK_SIGNAL;
	if (t->skip)
		return;
	if (t->nsignals < HW_SIGNALS)
		t->signal[t->nsignals++] = t->n;
	else
		t->gap = true;
}

/* One word at a time. Returns the address behind the last one taken. */
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

/* Copies @n words from @addr. Not 0: each has to be looked at. */
static inline uint64_t copy_at_once(const struct hw_trace *t, uint64_t addr, uint64_t n)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)addr;

	return t->seen_before ? native_copy(from, t->pcs + t->n, n) :
				native_copy_checked(from, t->pcs + t->n, n);
}

/* As many words as fit one look for tokens. Returns the address behind them. */
static inline uint64_t copy_chunk(struct hw_trace *t, uint64_t addr, uint64_t hi)
{
	uint64_t n = min(native_chunk(addr), (hi - addr) / 8);

	n = min(n, (uint64_t)(t->max - t->n));
	if (unlikely(n < 4 || t->gap || copy_at_once(t, addr, n)))
		return copy_words(t, addr, addr + 8 * n);
	if (unlikely(t->marks != NULL))
		memset(t->marks + t->n, 0, n);
	t->n += n;
	return addr + 8 * n;
}

/* In pieces, with tokens, marks, entries to skip. */
static __attribute__((noinline)) bool copy_slowly(struct hw_trace *t, uint64_t ssp, uint64_t hi)
{
	while (t->skip && ssp < hi && t->n < t->max && !t->ended)
		ssp = copy_words(t, ssp, ssp + 8);
	while (ssp < hi && t->n < t->max && !t->ended)
		ssp = copy_chunk(t, ssp, hi);
	if (t->ended)
		return true;
	if (ssp < hi) /* full; is that all there was? */
		return native_entry(hw_word(ssp), ssp) == SHADOW_END;
	/*
	 * Behind the outermost frame: end markers, unused words, the token of a
	 * stack that was made for a switch.
	 */
	for (; t->n; t->n--, hi -= 8) {
		if (native_entry(t->pcs[t->n - 1], hi - 8) == SHADOW_RETURN_ADDRESS)
			break;
	}
	return true;
}

bool hw_copy(struct hw_trace *t, uint64_t ssp, uint64_t hi)
{
	uint64_t n = (hi - ssp) / 8;

	t->gap = false;
	t->ended = false;
	t->plain = true;

	/* The usual case: all of it at once, and nothing special in it. */
	if (likely(n >= 4 && n <= native_chunk(ssp) && n <= t->max - t->n &&
		   !(t->skip | (uintptr_t)t->marks) &&
		   !native_ends_in_token(hw_word(hi - 8), hi - 8) &&
		   !native_copy_checked((const void *)(uintptr_t)ssp, t->pcs + t->n, n))) {
		t->n += n;
		return true;
	}
	return ssp >= hi || copy_slowly(t, ssp, hi);
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
