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
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 16

/**
 * struct json - a JSON text being written
 * @out: the stream.
 * @depth: number of objects and arrays that are open.
 * @close: for each open object or array, the bracket that closes it.
 * @some: for each open object or array, whether it has an element already.
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
 * @name: name of the new value in the object around it; NULL in an array and at the top level.
 * @bracket: '{' or '['.
 */
void shstk_json_open(struct json *json, const char *name, char bracket);

/**
 * shstk_json_close() - end the innermost object or array
 * @json: the output.
 *
 * After the outermost one the line is ended.
 */
void shstk_json_close(struct json *json);

/* The functions below write one value. @name is as for shstk_json_open(). */

/* Writes a string. Bytes of @text that are no UTF-8 become U+FFFD; NULL is written as null. */
void shstk_json_string(struct json *json, const char *name, const char *text);
void shstk_json_int(struct json *json, const char *name, int64_t value);
void shstk_json_bool(struct json *json, const char *name, bool value);
/* Writes a number with three decimals. */
void shstk_json_real(struct json *json, const char *name, double value);
/* Writes the millionth part of a number, without rounding: nanoseconds as milliseconds. */
void shstk_json_millionth(struct json *json, const char *name, uint64_t value);
/* Writes an address as the string "0x...", because readers of JSON round large numbers. */
void shstk_json_address(struct json *json, const char *name, uint64_t value);
void shstk_json_null(struct json *json, const char *name);
/* Writes an array of numbers. */
void shstk_json_ints(struct json *json, const char *name, const int64_t *values, size_t nr);
/* Writes an array of strings, each as shstk_json_string() does. */
void shstk_json_strings(struct json *json, const char *name, const char *const *texts, size_t nr);

#endif
