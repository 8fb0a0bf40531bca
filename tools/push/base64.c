// SPDX-License-Identifier: GPL-2.0-or-later
/* base64.c - bytes as text, as base64.h describes. */
#include "tools/push/base64.h"

char *base64_put(char *to, const uint8_t *from, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t group;
	size_t n;

	for (size_t i = 0; i < size; i += 3) {
		n = size - i < 3 ? size - i : 3;
		group = from[i] << 16 | (n > 1 ? from[i + 1] : 0) << 8 | (n > 2 ? from[i + 2] : 0);
		*to++ = digits[group >> 18];
		*to++ = digits[group >> 12 & 63];
		*to++ = n > 1 ? digits[group >> 6 & 63] : '=';
		*to++ = n > 2 ? digits[group & 63] : '=';
	}
	return to;
}
