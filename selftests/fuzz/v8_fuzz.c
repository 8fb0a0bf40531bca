// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * v8_fuzz.c - any bytes as what was copied of a function of V8, or of its machine code: no read
 * leaves them, names are strings, and no frame runs more functions than there is room for. See
 * function_fuzz.h.
 */
#include "bpf/native.h"
#include "selftests/fuzz/function_fuzz.h"
#include "tools/language/v8/v8.h"

#define MOST_PLACES 32 /* places of an input that are looked at */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const void *version(uint8_t chosen)
{
	static const int32_t versions[][2] = { { 11, 3 }, { 10, 2 }, { 12, 4 }, { 13, 6 } };

	return v8_version(versions[chosen % 4][0], versions[chosen % 4][1]);
}

static void judge(const struct language_function *f, int at)
{
	struct language_part parts[LANGUAGE_PARTS];
	struct language_entry entry = { .at = at };
	const struct language_frame frame = { &entry, f };

	if (strlen(f->name) > 2 * 3 * LANGUAGE_SHORT || strlen(f->file) > 3 * LANGUAGE_SHORT)
		abort();
	v8_line(f, at);
	for (entry.flags = NATIVE_INTERPRETED; entry.flags <= NATIVE_MACHINE; entry.flags++)
		if (v8_expand(&frame, parts, LANGUAGE_PARTS) > LANGUAGE_PARTS)
			abort();
	entry.flags = NATIVE_MACHINE | NATIVE_RETURN;
	for (entry.at = 0; entry.at < MOST_PLACES; entry.at++)
		if (v8_expand(&frame, parts, 2) > 2)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct function_fuzz v8 = { version, v8_function, judge };

	function_fuzz(&v8, data, size);
	return 0;
}
