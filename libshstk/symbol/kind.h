/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* kind.h - what the code of a frame is, and which module it is in: for colours and categories. */
#ifndef SHSTK_KIND_H
#define SHSTK_KIND_H

#include "export.h"

/**
 * enum shstk_kind - what the code of a frame is
 * @SHSTK_KIND_NOTE: a frame named by shstk_note_name().
 * @SHSTK_KIND_NATIVE: a function of a program or library.
 * @SHSTK_KIND_INLINED: a function inlined into its caller.
 * @SHSTK_KIND_KERNEL: a function of the kernel.
 * @SHSTK_KIND_MADE: code made at run time, of an unknown language.
 * @SHSTK_KIND_PYTHON: a function of Python.
 * @SHSTK_KIND_JAVA: a method of Java.
 * @SHSTK_KIND_JAVASCRIPT: a function of JavaScript.
 * @SHSTK_KIND_GO: a function of Go.
 * @SHSTK_KIND_UNKNOWN: an address without a name.
 * @SHSTK_KIND_GUESSED: whatever it is, that it is on the stack was found by guessing.
 * @SHSTK_KINDS: number of values of this enum.
 */
enum shstk_kind {
	SHSTK_KIND_NOTE,
	SHSTK_KIND_NATIVE,
	SHSTK_KIND_INLINED,
	SHSTK_KIND_KERNEL,
	SHSTK_KIND_MADE,
	SHSTK_KIND_PYTHON,
	SHSTK_KIND_JAVA,
	SHSTK_KIND_JAVASCRIPT,
	SHSTK_KIND_GO,
	SHSTK_KIND_UNKNOWN,
	SHSTK_KIND_GUESSED,
	SHSTK_KINDS,
};

/* Names of the kinds: "note", "native", ... */
extern const char *const shstk_kind_names[SHSTK_KINDS];

/* Returns the kind of a frame, which is one of @symbol at @location. */
enum shstk_kind shstk_kind_of(const struct shstk_location *location,
			      const struct shstk_symbol *symbol,
			      const struct shstk_symframe *frame);

/* Returns the name of the module at a location: "libc.so.6", "[kernel]"; "" if it is not known. */
const char *shstk_module_of(const struct shstk_location *location);

#endif /* SHSTK_KIND_H */
