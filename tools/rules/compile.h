/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile.h - a file's unwind information as a table for the kernel.
 */
#ifndef TOOLS_RULES_COMPILE_H
#define TOOLS_RULES_COMPILE_H

#include <linux/shstk_rules.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct rules_table - a table, as linux/shstk_rules.h has it
 * @header: its beginning; free() it.
 * @size: bytes of all of it.
 * @functions: that are described.
 * @code: bytes of executable segments.
 * @described: bytes of code that have a rule.
 * @cut: those whose rule the kernel has no means for.
 */
struct rules_table {
	struct shstk_rules_header *header;
	size_t size;
	size_t functions;
	uint64_t code;
	uint64_t described;
	uint64_t cut;
};

/**
 * rules_compile() - make the table of an ELF image
 * @image: its bytes: foreign.
 * @size: number of bytes.
 * @path: where it is from, to find its debug file by; NULL: none is looked for.
 * @ret: receives the table.
 *
 * Where several sections describe a function, the first of these counts: .eh_frame, Go's table
 * of functions, .debug_frame, .sframe, then what is compressed, in .gnu_debugdata or in a separate
 * debug file. An entry point that nothing describes is made the outermost frame; in an
 * image that describes nothing, the code that signal handlers return to is found.
 *
 * Return: 0; -ENOEXEC: no ELF file of a known 64-bit machine; -ENOENT: it has no unwind
 * information or no code; -E2BIG: more than a table can hold; -ENOMEM.
 */
int rules_compile(const void *image, size_t size, const char *path, struct rules_table *ret);

#endif
