/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile.h - compiles the unwind information of a file to a table for the kernel.
 */
#ifndef TOOLS_RULES_COMPILE_H
#define TOOLS_RULES_COMPILE_H

#include <linux/shstk_rules.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct compiled_table - a table in the format of linux/shstk_rules.h
 * @header: beginning of the table; the caller frees it.
 * @size: size of the whole table in bytes.
 * @functions: number of functions that are described.
 * @code: size of the executable segments in bytes.
 * @described: bytes of code that have a rule.
 * @cut: bytes of code that no kind of rule can express.
 */
struct compiled_table {
	struct shstk_rules_header *header;
	size_t size;
	size_t functions;
	uint64_t code;
	uint64_t described;
	uint64_t cut;
};

/**
 * rules_compile() - make the table of an ELF image
 * @image: bytes of the image, from an untrusted source.
 * @size: number of bytes.
 * @path: path of the file, to find its debug file; NULL if none is to be looked for.
 * @ret: receives the table.
 *
 * If several sections describe a function, the first of this list counts: .eh_frame, the function
 * table of Go, .debug_frame, .sframe, and then the sections that are compressed in .gnu_debugdata
 * or are in a separate debug file. An entry point without unwind information is made the outermost
 * frame. In an image without any unwind information, the code to which signal handlers return is
 * found.
 *
 * Return: 0; -ENOEXEC if it is no ELF file of a known 64-bit machine; -ENOENT if it has no unwind
 * information or no code; -E2BIG if it needs more than a table can hold; -ENOMEM.
 */
int rules_compile(const void *image, size_t size, const char *path, struct compiled_table *ret);

#endif
