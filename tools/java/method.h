/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * method.h - what HotSpot, the Java virtual machine, records about a method: its name, its file, and
 * which lines its bytecode is of. It is read from another process, which may have anything there.
 */
#ifndef TOOLS_JAVA_METHOD_H
#define TOOLS_JAVA_METHOD_H

#include "tools/java/vmstructs.h"

/* The releases of Java whose methods and frames are known. */
#define JAVA_FIRST 11
#define JAVA_LAST 25

#define METHOD_NAME 512 /* bytes for the name of a method with its class */
#define METHOD_FILE 256 /* bytes for the name of a file */
#define METHOD_LINES (64u << 10) /* bytes of a table of lines, at most */

/**
 * struct java_method - a method
 * @cache: address of the cache of its constants, which frames of the interpreter have, too.
 * @code: address of its bytecode.
 * @code_size: bytes of that; 0: the method is native or abstract.
 * @name: "java.lang.String.hashCode".
 * @file: "String.java", or "".
 * @lines: its table of lines as HotSpot keeps it, malloc'ed; or NULL.
 * @lines_size: bytes of @lines, of which the table may need fewer.
 * @without_0: the numbers in @lines have no byte 0 (since Java 20).
 */
struct java_method {
	uint64_t cache;
	uint64_t code;
	uint32_t code_size;
	char name[METHOD_NAME];
	char file[METHOD_FILE];
	uint8_t *lines;
	size_t lines_size;
	bool without_0;
};

/**
 * java_method_name() - get the name of a method with its class
 * @vm: the tables.
 * @method: address of the Method.
 * @buf: receives the name.
 * @size: bytes of @buf.
 *
 * Return: true if the name could be read.
 */
bool java_method_name(const struct vmstructs *vm, uint64_t method, char *buf, size_t size);

/**
 * java_method_read() - read a method
 * @vm: the tables, of a release between JAVA_FIRST and JAVA_LAST.
 * @method: address of what may be a Method.
 * @ret: receives the method, for java_method_deinit().
 *
 * Return: 0; -ENOENT if there is no method; -ENOMEM; or the error of reading the process's memory.
 */
int java_method_read(const struct vmstructs *vm, uint64_t method, struct java_method *ret);
void java_method_deinit(struct java_method *method);

/**
 * struct java_numbers - numbers as HotSpot writes them, which are not read yet
 * @at: the first byte.
 * @end: the first byte behind them.
 * @without_0: they have no byte 0 (since Java 20).
 */
struct java_numbers {
	const uint8_t *at;
	const uint8_t *end;
	bool without_0;
};

/* Reads a number, and goes on to the next one. Returns false at the end. */
bool java_number(struct java_numbers *numbers, uint32_t *ret);

/* Returns whether numbers of a release of Java have no byte 0. */
bool java_without_0(int version);

/* Returns the line of the bytecode at an offset; 0: none is known. */
unsigned int java_method_line(const struct java_method *method, uint32_t at);

#endif
