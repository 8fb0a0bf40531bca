/* SPDX-License-Identifier: GPL-2.0-or-later */
/* python.h - what the files of CPython share. */
#ifndef TOOLS_LANGUAGE_PYTHON_PYTHON_H
#define TOOLS_LANGUAGE_PYTHON_PYTHON_H

#include "tools/language/language.h"

struct python_version;

/* The texts that are copied of a function; the table of lines is the last one. */
enum python_text {
	PYTHON_TEXT_NAME,
	PYTHON_TEXT_FILE,
	PYTHON_TEXT_LINES,
};

/* The functions of struct language. */
bool python_may_be(const char *path);
int python_recognise(const struct language_module *module, struct language_found *ret,
		     struct reason *why);
int python_function(const void *version, const struct language_code *code, size_t size,
		    struct language_function *ret);
unsigned int python_line(const struct language_function *function, int at);
unsigned int python_kind(const void *version, const struct language_frame *frame);
bool python_sound(const void *version, const struct language_frames *frames);
size_t python_task(const void *version, const uint8_t *name, size_t size, char *buf, size_t max);

#define PYTHON_BEGINNING 256 /* bytes of the function that runs frames that are looked at */

/*
 * Finds where in the function that runs frames the lists may be in the middle of a change. @code: its first
 * PYTHON_BEGINNING bytes. It is at @ret->run_start.
 */
void python_find_unsure(const struct python_version *v, const uint8_t *code,
			struct language_found *ret);

#endif
