// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * text_fuzz.c - names: whatever the bytes, the text that is kept is valid UTF-8 without control
 * characters, of bounded length; the same bytes are the same pointer; and demangling ends.
 */
#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/haskell.h"
#include "symbol/pool.h"
#include "symbol/shorten.h"

static void check(const char *text)
{
	static uint32_t points[SHSTK_TEXT_MAX + 16];
	char *in = (char *)text, *out = (char *)points;
	size_t left = strlen(text), room = sizeof(points), i;
	iconv_t convert = iconv_open("UCS-4LE", "UTF-8");

	if (convert == (iconv_t)-1 || left > SHSTK_TEXT_MAX)
		abort();
	if (iconv(convert, &in, &left, &out, &room) == (size_t)-1)
		abort();
	iconv_close(convert);
	for (i = 0; i < (sizeof(points) - room) / 4; i++)
		if (points[i] < 0x20 || points[i] == 0x7f || (points[i] & 0xfffe) == 0xfffe)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_pool pool;
	const char *text;
	char *name;

	shstk_pool_init(&pool);
	text = shstk_pool_text(&pool, (const char *)data, size);
	if (!text)
		abort();
	check(text);
	if (shstk_pool_text(&pool, (const char *)data, size) != text ||
	    shstk_pool_text(&pool, text, strlen(text)) != text)
		abort();
	/* The input is read as a name of C++, of Rust, of D, of Haskell, and as it is. */
	name = malloc(size + 3);
	if (!name)
		abort();
	memcpy(name, "_Z", 2);
	memcpy(name + 2, data, size);
	name[size + 2] = '\0';
	check(shstk_demangle(&pool, name, false));
	name[1] = 'R';
	check(shstk_demangle(&pool, name, false));
	name[1] = 'D';
	check(shstk_demangle(&pool, name, false));
	check(shstk_demangle(&pool, name + 2, false));
	text = shstk_haskell_name(&pool, name + 2);
	if (text)
		check(text);
	check(shstk_shorten(&pool, name + 2, strlen(name + 2)));
	free(name);
	shstk_pool_deinit(&pool);
	return 0;
}
