/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* utf8.h - decodes UTF-8 in bytes of any kind. */
#ifndef SHSTK_SYMBOL_UTF8_H
#define SHSTK_SYMBOL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/**
 * shstk_utf8_decode() - decode a character
 * @s: its bytes, of which there is at least one.
 * @len: number of bytes at @s, SIZE_MAX for a string that ends in a zero: nothing behind it is read.
 * @point: receives the code point, if the character is valid.
 *
 * Return: number of bytes of the character; 0: it is not valid, longer than needed, a surrogate or
 * above U+10FFFF.
 */
static inline size_t shstk_utf8_decode(const unsigned char *s, size_t len, uint32_t *point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t ret;
	size_t n;

	if (s[0] < 0x80) {
		*point = s[0];
		return 1;
	}
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
		return 0;
	ret = s[0] & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		ret = ret << 6 | (s[i] & 0x3f);
	}
	if (ret < least[n] || ret > 0x10ffff || (ret >= 0xd800 && ret < 0xe000))
		return 0;
	*point = ret;
	return n;
}

#endif /* SHSTK_SYMBOL_UTF8_H */
