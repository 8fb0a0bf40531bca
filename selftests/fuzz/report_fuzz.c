// SPDX-License-Identifier: GPL-2.0-or-later
/* report_fuzz.c - messages that a program sends to shstk run: any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/run/violations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] = "violation 1 2 fatal at 0x1000 to 0x2000 shadow ";
	struct reporter *reporter;
	char text[4096];
	size_t at = 0;

	if (!size || reporter_create("/dev/null", &reporter))
		return 0;
	/* Half of the messages start as valid ones, because others do not get far. */
	if (data[0] & 1) {
		memcpy(text, head, sizeof(head) - 1);
		at = sizeof(head) - 1;
	}
	if (size > sizeof(text) - at - 1)
		size = sizeof(text) - at - 1;
	memcpy(text + at, data, size);
	text[at + size] = '\0';
	reporter_take(reporter, text);
	reporter_destroy(reporter);
	return 0;
}
