/* SPDX-License-Identifier: GPL-2.0-or-later */
/* php.h - what the files of PHP share. */
#ifndef TOOLS_LANGUAGE_PHP_PHP_H
#define TOOLS_LANGUAGE_PHP_PHP_H

#include "tools/language/language.h"

/* The texts that are copied of a function. */
enum php_text {
	PHP_TEXT_NAME,
	PHP_TEXT_FILE,
	PHP_TEXT_CLASS,
};

/**
 * struct php_version - a minor version on a 64-bit machine, without debugging code
 * @api: number that modules must have been made for (ZEND_MODULE_API_NO).
 * @name: the version.
 * @page_size: offset in executor_globals of the size of the pages of the stack of frames.
 * @current: offset there of the address of the innermost frame.
 * @count: offset in a function of the number of its instructions.
 * @instructions: offset in a function of the address of its first instruction.
 * @variables: offset in a function of the address of the names of its variables.
 * @file: offset in a function of the name of its file.
 * @first_line: offset in a function.
 * @code: offset in a function that is part of the interpreter of the address of its code.
 * @fiber: offset in executor_globals of the address of the fiber that runs.
 */
struct php_version {
	uint32_t api;
	const char *name;
	uint32_t page_size;
	uint32_t current;
	uint32_t count;
	uint32_t instructions;
	uint32_t variables;
	uint32_t file;
	uint32_t first_line;
	uint32_t code;
	uint32_t fiber;
};

/* Offsets that all versions have. */
#define PHP_FUNCTION_NAME 8 /* in a function */
#define PHP_FUNCTION_CLASS 16
#define PHP_FUNCTION_ARGUMENTS 40
#define PHP_CLASS_NAME 8 /* in a class */
#define PHP_STRING_HASH 8 /* in a string */
#define PHP_STRING_LENGTH 16
#define PHP_STRING_TEXT 24
#define PHP_FRAME_FUNCTION 24 /* in a frame */
#define PHP_FRAME_FLAGS 40
#define PHP_CALL_TOP (1u << 17) /* of the flags: the interpreter was entered (ZEND_CALL_TOP) */
#define PHP_CALL_GENERATOR (1u << 24) /* it is that of a generator (ZEND_CALL_GENERATOR) */
#define PHP_FRAME_CALLER 48
#define PHP_FRAME_BYTES 56
#define PHP_INSTRUCTION_BYTES 32
#define PHP_INSTRUCTION_LINE 24

/* Returns the table of the version with that number of its API, or NULL. */
const struct php_version *php_version(uint32_t api);

/* The functions of struct language. */
bool php_may_be(const char *path);
int php_recognise(const struct language_module *module, struct language_found *ret,
		  struct reason *why);
int php_function(const void *version, const struct language_code *code, size_t size,
		 struct language_function *ret);
unsigned int php_line(const struct language_function *function, int at);
unsigned int php_kind(const void *version, const struct language_frame *frame);
bool php_sound(const void *version, const struct language_frames *frames);

#endif
