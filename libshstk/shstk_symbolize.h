/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_symbolize.h - function names, files and lines for the entries of shstk_capture().
 *
 * A program captures a stack where it needs to, also in a signal handler, and symbolizes it
 * later, in a thread that may allocate and read files. These functions are in a library of their
 * own, libshstk-symbolize, because it is linked with elfutils:
 * `pkg-config --cflags --libs libshstk-symbolize`.
 */
#ifndef SHSTK_SYMBOLIZE_H
#define SHSTK_SYMBOLIZE_H

#include "shstk.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shstk_symbolizer;

/**
 * struct shstk_name - one function at an address
 * @size: sizeof(struct shstk_name), set by the library. Later versions may have more members,
 *	so the elements of an array lie as many bytes apart as the argument name_size of
 *	shstk_symbolize() says.
 * @line: line in @file, or 0. In a function that another one was inlined into, the line of the
 *	inlined call.
 * @inlined: 1 if the function was inlined into the next one of the array, otherwise 0.
 * @reserved: 0.
 * @offset: the address minus the start of the function; 0 if the start is not known.
 * @function: readable name, never NULL: "[libfoo.so+0x1234]" where nothing names the address.
 * @linkage: the name in the symbol table or the debug information.
 * @file: source file, or NULL.
 * @module: name without folder of the file that is mapped at the address: "libc.so.6",
 *	"[vdso]", "[anon]".
 */
struct shstk_name {
	uint32_t size;
	uint32_t line;
	uint32_t inlined;
	uint32_t reserved;
	uint64_t offset;
	const char *function;
	const char *linkage;
	const char *file;
	const char *module;
};

/**
 * shstk_symbolizer_create() - make a symbolizer for the addresses of a process
 * @pid: the process; 0: the calling one.
 * @ret: receives the symbolizer; release it by shstk_symbolizer_destroy().
 *
 * Debug files are looked for in /usr/lib/debug, and requested from the servers that the
 * environment variable DEBUGINFOD_URLS names, if it is set.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: 0; -ENOMEM; or the negative errno of reading /proc/PID/maps.
 */
SHSTK_API int shstk_symbolizer_create(int pid, struct shstk_symbolizer **ret);

/**
 * shstk_symbolizer_destroy() - release a symbolizer and all strings that it returned
 * @s: a symbolizer, or NULL.
 */
SHSTK_API void shstk_symbolizer_destroy(struct shstk_symbolizer *s);

/**
 * shstk_symbolize() - find the functions at an address
 * @s: the symbolizer. It also finds code that was loaded after it was made: it reads the
 *	mappings again when an address lies in none that it knows.
 * @pc: the address, as shstk_capture() stored it.
 * @mark: the marks of that entry. With 0, @pc is a return address, and the functions at the
 *	call in front of it are found.
 * @names: receives the functions: first the innermost inlined one, last the one that was really
 *	called. The strings are valid until the symbolizer is destroyed.
 * @max: number of elements of @names.
 * @name_size: sizeof(struct shstk_name).
 *
 * Context: allocates and reads files; not from a signal handler. Several threads may call it at
 * once; they wait for each other.
 *
 * Return: number of functions, at least 1, which may be more than @max; -EINVAL: @name_size is
 * too small.
 */
SHSTK_API int shstk_symbolize(struct shstk_symbolizer *s, uint64_t pc, uint8_t mark,
			      struct shstk_name *names, unsigned int max, size_t name_size);

#ifdef __cplusplus
}
#endif

#endif
