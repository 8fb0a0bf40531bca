// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hotspot_fuzz.c - any bytes as code of HotSpot: nothing outside of the code is read, and the
 * frames that are found are possible ones.
 *
 * The first two bytes of an input say where the address is, the third is an option.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/java/hotspot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hotspot_frame frame = { 64, true };
	uint8_t *code;
	size_t at;

	if (size < 4)
		return 0;
	/* The code gets memory of its own size, so that the sanitizer sees a read behind it. */
	size -= 3;
	code = malloc(size);
	if (!code)
		return 0;
	memcpy(code, data + 3, size);
	at = (data[0] | data[1] << 8) % (size + 1);
	hotspot_partial(code, size, at, data[2] & 1, &frame);
	if (frame.cfa < 8 || frame.cfa % 8 || frame.cfa > 64 || (frame.fp_saved && frame.cfa < 16))
		abort();
	hotspot_edge(code, size, at, &frame);
	if (frame.cfa != 0 && frame.cfa != (frame.fp_saved ? 16 : 8))
		abort();
	free(code);
	return 0;
}
