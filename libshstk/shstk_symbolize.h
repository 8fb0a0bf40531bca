/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk_symbolize.h - names, files and lines for what shstk_capture() gives.
 *
 * A stack is captured where it matters, also in a signal handler, and named later, by a thread
 * that may allocate and read files. This is a library of its own, libshstk-symbolize, because it
 * is linked with elfutils: `pkg-config --cflags --libs libshstk-symbolize`.
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
 * @size: sizeof(struct shstk_name), set by the library; members may follow in later versions,
 *	so elements of an array lie @name_size bytes apart, as was said in the call.
 * @line: line in @file, or 0. In an outer frame that of the inlined call.
 * @inlined: the function was inlined into the next one, 1; or 0.
 * @offset: the address less where the function begins; 0: it is not known where.
 * @function: readable name, never NULL: "[libfoo.so+0x1234]" where nothing names the address.
 * @linkage: the name in the symbol table or the debug information.
 * @file: source file, or NULL.
 * @module: file that is mapped there, without its folder: "libc.so.6", "[vdso]", "[anon]".
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
 * shstk_symbolizer_create() - begin to name addresses of a process
 * @pid: the process; 0: this one.
 * @ret: receives it; give it to shstk_symbolizer_destroy().
 *
 * Debug files are looked for in /usr/lib/debug, and asked of the servers of DEBUGINFOD_URLS if it
 * is set.
 *
 * Context: allocates and reads files; not from a signal handler.
 *
 * Return: 0, or a negative errno: -ENOMEM, or why /proc/PID/maps cannot be read.
 */
SHSTK_API int shstk_symbolizer_create(int pid, struct shstk_symbolizer **ret);

/**
 * shstk_symbolizer_destroy() - release it, with all strings that it gave
 * @s: a symbolizer, or NULL.
 */
SHSTK_API void shstk_symbolizer_destroy(struct shstk_symbolizer *s);

/**
 * shstk_symbolize() - the functions at an address
 * @s: the symbolizer. What was loaded since it was made is found: the mappings are read again
 *	when an address is in none that is known.
 * @pc: the address, as shstk_capture() gave it.
 * @mark: its mark, or 0: a return address, of which the call before it is meant.
 * @names: receives the functions: the innermost inlined one first, the one that was really
 *	called last. Strings stay until the symbolizer goes.
 * @max: elements of @names.
 * @name_size: sizeof(struct shstk_name).
 *
 * Context: allocates and reads files; not from a signal handler, where one captures only. From
 * several threads at once they wait for each other.
 *
 * Return: how many functions there are, at least 1, which may be more than @max; or a negative
 * errno: -EINVAL: @name_size is too small.
 */
SHSTK_API int shstk_symbolize(struct shstk_symbolizer *s, uint64_t pc, uint8_t mark,
			      struct shstk_name *names, unsigned int max, size_t name_size);

#ifdef __cplusplus
}
#endif

#endif
