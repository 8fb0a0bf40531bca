/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json.h - writing JSON to a stream, value by value.
 *
 *   struct json json = { .out = stdout };
 *   shstk_json_open(&json, NULL, '{');
 *   shstk_json_string(&json, "program", path);
 *   shstk_json_open(&json, "threads", '[');
 *   shstk_json_int(&json, NULL, 4711);
 *   shstk_json_close(&json);
 *   shstk_json_close(&json);
 *
 * Whatever the bytes of the strings are, the output is valid. Errors stay in the
 * stream.
 */
#ifndef SHSTK_JSON_H
#define SHSTK_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 16

/**
 * struct json - a value being written
 * @out: where to.
 * @depth: objects and arrays that are open.
 * @close: the bracket that closes each.
 * @some: there is something in it already.
 */
struct json {
	FILE *out;
	unsigned int depth;
	char close[JSON_MAX_DEPTH];
	bool some[JSON_MAX_DEPTH];
};

/**
 * shstk_json_open() - begin an object or an array
 * @json: the output.
 * @name: its name in the object around it; NULL in an array and outside.
 * @bracket: '{' or '['.
 */
void shstk_json_open(struct json *json, const char *name, char bracket);

/**
 * shstk_json_close() - end the innermost object or array; after the outermost one
 * the line ends
 * @json: the output.
 */
void shstk_json_close(struct json *json);

/* A value. @name as for shstk_json_open(). */

/* @text: bytes that are no UTF-8 become U+FFFD. NULL: null. */
void shstk_json_string(struct json *json, const char *name, const char *text);
void shstk_json_int(struct json *json, const char *name, int64_t value);
void shstk_json_bool(struct json *json, const char *name, bool value);
/* With three decimals. */
void shstk_json_real(struct json *json, const char *name, double value);
/* An address, as the string "0x...": numbers of JSON are not that exact. */
void shstk_json_address(struct json *json, const char *name, uint64_t value);
void shstk_json_null(struct json *json, const char *name);

#endif
