// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * source_hw.c - read a shadow stack: copy, and drop what is no return address.
 *
 * Entries are copied by vectors of 16 bytes, which also collect whether any of
 * them could be a token; only then is the block gone through entry by entry.
 * What tokens look like is the architecture's business (native.h).
 */
#include "native.h"
#include "source_hw.h"

void hw_put(struct hw_trace *t, uint64_t v, uint8_t mark)
{
	if (t->skip) {
		t->skip--;
		return;
	}
	if (t->marks)
		t->marks[t->n] = mark;
	t->pcs[t->n++] = v;
}

/* One word at a time. Returns the address behind the last one taken. */
static uint64_t copy_words(struct hw_trace *t, uint64_t addr, uint64_t hi)
{
	for (; addr < hi && t->n < t->max; addr += 8) {
		uint64_t v = hw_word(addr);

		switch (native_entry(v, addr)) {
		case SHADOW_RETURN_ADDRESS:
			hw_put(t, v, 0);
			break;
		case SHADOW_SIGNAL:
			/* The entry before it is the trampoline's. */
			if (NATIVE_CALLS_PUSH && t->marks && t->n)
				t->marks[t->n - 1] |= SHSTK_MARK_SIGNAL;
			if (t->nsignals < HW_SIGNALS && !t->skip)
				t->signal[t->nsignals++] = t->n;
			break;
		case SHADOW_TOKEN:
			break;
		}
	}
	return addr;
}

/* As many words as fit one look for tokens. Returns the address behind them. */
static inline uint64_t copy_chunk(struct hw_trace *t, uint64_t addr,
				  uint64_t hi)
{
	uint64_t n = min(native_chunk(addr), (hi - addr) / 8);

	n = min(n, (uint64_t)(t->max - t->n));
	if (unlikely(n < 4 || native_copy((const void *)(uintptr_t)addr,
					  t->pcs + t->n, n)))
		return copy_words(t, addr, addr + 8 * n);
	if (unlikely(t->marks != NULL))
		memset(t->marks + t->n, 0, n);
	t->n += n;
	return addr + 8 * n;
}

/* In pieces, with tokens, marks, entries to skip. */
static __attribute__((noinline)) bool copy_slowly(struct hw_trace *t,
						  uint64_t ssp, uint64_t hi)
{
	while (t->skip && ssp < hi && t->n < t->max)
		ssp = copy_words(t, ssp, ssp + 8);
	while (ssp < hi && t->n < t->max)
		ssp = copy_chunk(t, ssp, hi);
	if (ssp < hi)
		return false;
	/*
	 * Behind the outermost frame: end markers, unused words, the token of a
	 * stack that was made for a switch.
	 */
	for (; t->n; t->n--, hi -= 8) {
		if (native_entry(t->pcs[t->n - 1], hi - 8) ==
		    SHADOW_RETURN_ADDRESS)
			break;
	}
	return true;
}

bool hw_copy(struct hw_trace *t, uint64_t ssp, uint64_t hi)
{
	uint64_t n = (hi - ssp) / 8;

	/* The usual case: all of it at once, and nothing special in it. */
	if (likely(n >= 4 && n <= native_chunk(ssp) &&
		   n <= t->max - t->n && !(t->skip | (uintptr_t)t->marks) &&
		   native_entry(hw_word(hi - 8), hi - 8) == SHADOW_RETURN_ADDRESS &&
		   !native_copy((const void *)(uintptr_t)ssp, t->pcs + t->n, n))) {
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
