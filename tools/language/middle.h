/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * middle.h - frames in the middle of an interpreter's deep stack, which are left out of
 * struct language_moment where the process is read here, not by the BPF program.
 *
 * Frames come one after the other, the innermost first. The last ones seen lie in a circle of
 * LANGUAGE_OUTER entries. Before one of these gives its place to the next frame, language_leave_out()
 * adds it to the middle; language_turn() puts those that remain in order. The agents have this code,
 * too, and call it in malloc().
 */
#ifndef TOOLS_LANGUAGE_MIDDLE_H
#define TOOLS_LANGUAGE_MIDDLE_H

#include <stdbool.h>
#include <string.h>

#include "bpf/language.h"

#define LANGUAGE_OUTER (LANGUAGE_FRAMES - LANGUAGE_INNER)

/**
 * struct language_middle - the frames that are left out
 * @before: the last ones, in a circle.
 * @nr: number of frames that came into @before.
 * @kind_bits: as in &struct language_target.
 */
struct language_middle {
	struct language_entry before[LANGUAGE_PERIOD];
	unsigned int nr;
	unsigned int kind_bits;
};

/* Begins a middle behind the inner end of a stack, whose outer end begins at @outer. */
static inline void language_begin_middle(struct language_middle *mid, struct language_moment *m,
					 const struct language_entry *outer, unsigned int kind_bits)
{
	memcpy(mid->before, outer - LANGUAGE_PERIOD, sizeof(mid->before));
	mid->nr = LANGUAGE_PERIOD;
	mid->kind_bits = kind_bits;
	m->left_out = 0;
	m->repeats = (1u << LANGUAGE_PERIOD) - 1;
}

/* Returns whether two frames are the same: function, place in it, and kind. */
static inline bool language_is_same(const struct language_middle *mid,
				    const struct language_entry *a, const struct language_entry *b)
{
	return a->id == b->id && a->at == b->at && !((a->flags ^ b->flags) & mid->kind_bits);
}

/* Adds a frame to the middle, and notes which frames before it are not the same. */
static inline void language_leave_out(struct language_middle *mid, struct language_moment *m,
				      const struct language_entry *e)
{
	for (unsigned int i = 0; i < LANGUAGE_PERIOD; i++)
		if (!language_is_same(mid, &mid->before[(mid->nr - 1 - i) % LANGUAGE_PERIOD], e))
			m->repeats &= ~(1u << i);
	mid->before[mid->nr++ % LANGUAGE_PERIOD] = *e;
	m->left_out++;
}

static inline void language_reverse(struct language_entry *first, unsigned int nr)
{
	for (unsigned int i = 0; i < nr / 2; i++) {
		struct language_entry e = first[i];

		first[i] = first[nr - 1 - i];
		first[nr - 1 - i] = e;
	}
}

/* Puts the outer end in order, in place: a thread may have little stack. */
static inline void language_turn(const struct language_moment *m, struct language_entry *outer)
{
	unsigned int oldest = m->left_out % LANGUAGE_OUTER;

	language_reverse(outer, oldest);
	language_reverse(outer + oldest, LANGUAGE_OUTER - oldest);
	language_reverse(outer, LANGUAGE_OUTER);
}

#endif
