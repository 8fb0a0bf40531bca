/* SPDX-License-Identifier: GPL-2.0-or-later */
/* python.h - what the files of CPython share. */
#ifndef TOOLS_LANGUAGE_PYTHON_PYTHON_H
#define TOOLS_LANGUAGE_PYTHON_PYTHON_H

#include "tools/language/language.h"

struct python_version;
typedef struct Elf Elf;

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

/*
 * Returns the text of a str object of which @size bytes were copied, malloc'ed. It ends in "..." if
 * it was not copied whole. NULL: it is no such object, or there is no memory.
 */
char *python_text(const struct python_version *v, const uint8_t *object, size_t size);

#define PYTHON_SELF_CODE 4 /* instructions of pthread_self() that are looked at */

/*
 * Finds out by which number of bytes pthread_self() is below the thread pointer in a process on arm64.
 * @code: PYTHON_SELF_CODE instructions of it. Returns whether they are those that are expected.
 */
bool python_thread_distance(const uint32_t *code, uint64_t *ret);

/*
 * Finds out the same of a process that has mapped the file @elf, whose addresses in it are those in the
 * process less @bias. Returns 0, -EAGAIN if it did not call that function yet, -ENOENT if the file does not.
 */
int python_find_thread(const struct language_module *m, Elf *elf, uint64_t bias, uint64_t *ret);

#define PYTHON_BEGINNING 256 /* bytes of the function that runs frames that are looked at */

/*
 * Finds where in the function that runs frames the lists may be in the middle of a change. @machine: of which
 * it is code (EM_*). @code: its first PYTHON_BEGINNING bytes. It is at @ret->run_start.
 */
void python_find_unsure(const struct python_version *v, unsigned int machine, const uint8_t *code,
			struct language_found *ret);

#endif
