/* SPDX-License-Identifier: GPL-2.0-or-later */
/* objdump.h - instructions of an ELF file, by objdump(1). */
#ifndef TOOLS_REPORT_OBJDUMP_H
#define TOOLS_REPORT_OBJDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJDUMP_LONGEST 16 /* bytes of the longest instruction */

/**
 * struct objdump_line - a line that objdump printed
 * @function: the line is the heading of a function, not an instruction.
 * @address: address of the instruction or function in the file.
 * @text: the instruction, which is foreign text.
 */
struct objdump_line {
	bool function;
	uint64_t address;
	const char *text;
};

/**
 * objdump_run() - disassemble a part of an ELF file
 * @fd: the file. It is untrusted; objdump gets it by the number of a descriptor, never by its name.
 * @start: address of the first instruction.
 * @stop: address behind the last instruction.
 * @fn: gets each instruction and each heading, with addresses from @start to @stop that ascend.
 *	Returns false to end objdump.
 * @arg: first argument of @fn.
 *
 * objdump is started without a shell, and may take 30 seconds of CPU time.
 *
 * Return: 0; -ENOENT: there is no objdump; -ENOEXEC: it could not read the file; another negative
 * errno.
 */
int objdump_run(int fd, uint64_t start, uint64_t stop,
		bool (*fn)(void *arg, const struct objdump_line *line), void *arg);

#endif
