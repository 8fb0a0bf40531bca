/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bidi.h - characters that change the direction of writing.
 *
 * A name that holds such characters looks like another name on the screen. No name needs them, as
 * scripts that are written from right to left do without them. So they are shown as escapes.
 */
#ifndef SHSTK_SYMBOL_BIDI_H
#define SHSTK_SYMBOL_BIDI_H

#include <stdbool.h>
#include <stdint.h>

/* Length of an escape such as \u202e, in bytes. */
#define SHSTK_BIDI_ESCAPE 6

/* Returns whether a character has Unicode's property Bidi_Control. */
static inline bool shstk_is_bidi(uint32_t point)
{
	return point == 0x061c || point == 0x200e || point == 0x200f ||
	       (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

#endif /* SHSTK_SYMBOL_BIDI_H */
