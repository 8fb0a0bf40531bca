/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base64.h - bytes as text (RFC 4648, section 4), as JSON has them in requests. */
#ifndef TOOLS_PUSH_BASE64_H
#define TOOLS_PUSH_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters for @size bytes, without the zero byte behind them. */
#define BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* Writes the characters, and no zero byte. Returns where they end. */
char *base64_put(char *to, const uint8_t *from, size_t size);

#endif
