/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hex.h - hexadecimal digits. */
#ifndef SHSTK_SYMBOL_HEX_H
#define SHSTK_SYMBOL_HEX_H

/* Returns the value of a hexadecimal digit; -1: it is none. OpenTelemetry's may be capital letters. */
static inline int shstk_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

#endif /* SHSTK_SYMBOL_HEX_H */
