// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pool.c - memory that is released all at once, and strings held once.
 *
 * Names come from files that may be hostile, and go to terminals, XML and protobuf. So this is the
 * one place where they are made harmless: they become valid UTF-8 of bounded length, without
 * control characters and without characters that change the direction of writing.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bidi.h"
#include "hash.h"
#include "pool.h"
#include "utf8.h"

#define CHUNK (64 * 1024)

struct shstk_pool_chunk {
	struct shstk_pool_chunk *next;
	max_align_t data[];
};

struct shstk_pool_text {
	UT_hash_handle hh;
	const char *clean;
	char raw[];
};

void shstk_pool_init(struct shstk_pool *pool)
{
	memset(pool, 0, sizeof(*pool));
}

void shstk_pool_deinit(struct shstk_pool *pool)
{
	struct shstk_pool_chunk *chunk, *next;

	HASH_CLEAR(hh, pool->texts);
	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	memset(pool, 0, sizeof(*pool));
}

static void *add_chunk(struct shstk_pool *pool, size_t size)
{
	struct shstk_pool_chunk *chunk;

	chunk = calloc(1, sizeof(*chunk) + size);
	if (!chunk)
		return NULL;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	return chunk->data;
}

void *shstk_pool_alloc(struct shstk_pool *pool, size_t size)
{
	char *ret;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	if (size > CHUNK / 4)
		return add_chunk(pool, size);
	if (size > pool->left) {
		ret = add_chunk(pool, CHUNK);
		if (!ret)
			return NULL;
		pool->next = ret;
		pool->left = CHUNK;
	}
	ret = pool->next;
	pool->next += size;
	pool->left -= size;
	return ret;
}

void *shstk_grow(void *array, size_t nr, size_t *max, size_t size)
{
	size_t want = *max ? *max * 2 : 64;

	if (nr < *max)
		return array;
	array = reallocarray(array, want, size);
	if (array)
		*max = want;
	return array;
}

static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 ||
	       point == 0x2029;
}

/*
 * Writes a harmless copy of a text to @out, which has room for SHSTK_TEXT_MAX + 8 bytes. @len is
 * not 0. Returns the length of the copy.
 */
static size_t clean(char *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t done = 0, n;
	uint32_t point;

	do {
		if (done >= SHSTK_TEXT_MAX - 8) {
			memcpy(out + done, "...", 3);
			return done + 3;
		}
		n = shstk_utf8_decode(s, len, &point);
		if (!n || (point & 0xfffe) == 0xfffe) {
			memcpy(out + done, "\xef\xbf\xbd", 3);
			done += 3;
			n = n ? n : 1;
		} else if (is_control(point)) {
			out[done++] = '?';
		} else if (shstk_is_bidi(point)) {
			done += snprintf(out + done, SHSTK_BIDI_ESCAPE + 1, "\\u%04x", point);
		} else {
			memcpy(out + done, s, n);
			done += n;
		}
		s += n;
		len -= n;
	} while (len);
	return done;
}

static struct shstk_pool_text *find(struct shstk_pool *pool, const char *text, size_t len)
{
	struct shstk_pool_text *found;

	HASH_FIND(hh, pool->texts, text, len, found);
	return found;
}

static struct shstk_pool_text *add(struct shstk_pool *pool, const char *text, size_t len)
{
	struct shstk_pool_text *new;

	new = shstk_pool_alloc(pool, sizeof(*new) + len + 1);
	if (!new)
		return NULL;
	memcpy(new->raw, text, len);
	new->clean = new->raw;
	HASH_ADD_KEYPTR(hh, pool->texts, new->raw, len, new);
	return new->hh.tbl ? new : NULL;
}

bool shstk_pool_has(struct shstk_pool *pool, const char *text, size_t len)
{
	return !len || find(pool, text, len < SHSTK_TEXT_MAX ? len : SHSTK_TEXT_MAX);
}

const char *shstk_pool_text(struct shstk_pool *pool, const char *text, size_t len)
{
	char buf[SHSTK_TEXT_MAX + 8];
	struct shstk_pool_text *raw, *fine;
	size_t n;

	if (!len)
		return "";
	if (len > SHSTK_TEXT_MAX)
		len = SHSTK_TEXT_MAX;
	raw = find(pool, text, len);
	if (raw)
		return raw->clean;
	n = clean(buf, text, len);
	fine = find(pool, buf, n);
	if (!fine)
		fine = add(pool, buf, n);
	if (!fine || (n == len && !memcmp(buf, text, n)))
		return fine ? fine->clean : NULL;
	raw = add(pool, text, len);
	if (!raw)
		return NULL;
	raw->clean = fine->clean;
	return raw->clean;
}
