/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* language.h - the language that a function is written in, as far as names tell it. */
#ifndef SHSTK_LANGUAGE_H
#define SHSTK_LANGUAGE_H

#include "export.h"

enum shstk_language {
	SHSTK_LANGUAGE_NATIVE,
	SHSTK_LANGUAGE_KERNEL,
	SHSTK_LANGUAGE_PYTHON,
	SHSTK_LANGUAGE_JAVA,
	SHSTK_LANGUAGE_JAVASCRIPT,
	SHSTK_LANGUAGE_GO,
	SHSTK_LANGUAGES,
};

/* Returns the language of a function at a location, by its source file or its name. */
enum shstk_language shstk_language_of(const struct shstk_location *location,
				      const struct shstk_symframe *frame);
/* Returns the name of a language: "native", "kernel", "python", ... */
const char *shstk_language_name(enum shstk_language language);
/* Returns the name that OpenTelemetry has for a language, as the type of a frame. */
const char *shstk_language_frame_type(enum shstk_language language);

#endif /* SHSTK_LANGUAGE_H */
