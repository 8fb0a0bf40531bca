// SPDX-License-Identifier: GPL-2.0-or-later
/* versions.c - the offsets that V8 does not export, as its headers and its own code have them. */
#include <stddef.h>

#include "tools/language/v8/v8.h"

static const struct v8_version versions[] = {
	{ 10, 2, 0x4538, 0x100, 128, 0, 40, 48, 56 }, /* Node.js 18 */
	{ 11, 3, 0x180, 0xe8, 16, 40, 56, 48, 54 }, /* Node.js 20 */
};

const struct v8_version *v8_version(int32_t major, int32_t minor)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (versions[i].major == major && versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
