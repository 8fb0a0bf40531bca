// SPDX-License-Identifier: GPL-2.0-or-later
/* v8.c - JavaScript in V8 as a language. */
#include "tools/language/v8/v8.h"

const struct language language_v8 = {
	.module = "[javascript]",
	.on_stack = true,
	.may_be = v8_may_be,
	.recognise = v8_recognise,
	.function = v8_function,
	.line = v8_line,
	.kind = v8_kind,
	.sound = v8_sound,
	.expand = v8_expand,
};
