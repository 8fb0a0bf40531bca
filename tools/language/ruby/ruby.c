// SPDX-License-Identifier: GPL-2.0-or-later
/* ruby.c - Ruby as a language. */
#include "tools/language/ruby/ruby.h"

const struct language language_ruby = {
	.module = "[ruby]",
	.may_be = ruby_may_be,
	.recognise = ruby_recognise,
	.function = ruby_function,
	.line = ruby_line,
	.kind = ruby_kind,
	.sound = ruby_sound,
};
