/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buffer.h - the only way in which preloaded objects fill a buffer.
 *
 * Whatever happens to the consumer of the bytes (a ring is full, a recorder is gone), nothing is
 * ever written behind the end: a piece that does not fit is left out as a whole, and the buffer
 * remembers that it lacks something.
 */
#ifndef INJECT_BUFFER_H
#define INJECT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/**
 * struct buffer - a fixed number of bytes, filled from the start
 * @bytes: the bytes; they belong to the caller.
 * @size: number of bytes.
 * @used: number of bytes that are filled.
 * @cut: a piece did not fit.
 */
struct buffer {
	char *bytes;
	size_t size;
	size_t used;
	bool cut;
};

static inline struct buffer buffer_on(void *bytes, size_t size)
{
	return (struct buffer){ .bytes = bytes, .size = size };
}

static inline size_t buffer_room(const struct buffer *b)
{
	return b->size - b->used;
}

static inline void buffer_empty(struct buffer *b)
{
	b->used = 0;
}

/* Adds @n bytes. Returns false and adds nothing if there is no room for all of them. */
static inline bool buffer_add(struct buffer *b, const void *from, size_t n)
{
	if (n > buffer_room(b)) {
		b->cut = true;
		return false;
	}
	memcpy(b->bytes + b->used, from, n);
	b->used += n;
	return true;
}

/* Adds a string without the zero at its end. */
static inline bool buffer_add_text(struct buffer *b, const char *text)
{
	return buffer_add(b, text, strlen(text));
}

static inline bool buffer_add_number(struct buffer *b, unsigned int number)
{
	char digits[10];
	size_t at = sizeof(digits);

	do
		digits[--at] = '0' + number % 10;
	while (number /= 10);
	return buffer_add(b, digits + at, sizeof(digits) - at);
}

/* Adds the zero at the end of a string. */
static inline bool buffer_end_text(struct buffer *b)
{
	return buffer_add(b, "", 1);
}

#endif
