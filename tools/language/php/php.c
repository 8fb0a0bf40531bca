// SPDX-License-Identifier: GPL-2.0-or-later
/* php.c - PHP 8.2 to 8.4 as a language. */
#include "tools/language/php/php.h"

const struct language language_php = {
	.module = "[php]",
	.may_be = php_may_be,
	.recognise = php_recognise,
	.function = php_function,
	.line = php_line,
	.kind = php_kind,
	.sound = php_sound,
};
