// SPDX-License-Identifier: GPL-2.0-or-later
/* python.c - CPython 3.11 to 3.15 as a language. */
#include "tools/language/python/python.h"

const struct language language_python = {
	.module = "[python]",
	.arm64 = true,
	.may_be = python_may_be,
	.recognise = python_recognise,
	.function = python_function,
	.line = python_line,
	.kind = python_kind,
	.sound = python_sound,
	.task = python_task,
};
