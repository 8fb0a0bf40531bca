// SPDX-License-Identifier: GPL-2.0-or-later
/* versions.c - the tables of offsets, as the headers of each version of PHP give them. */
#include <stddef.h>

#include "tools/language/php/php.h"

static const struct php_version versions[] = {
	{ 20220829, "8.2", 480, 488, 80, 88, 112, 152, 160, 72, 1680 },
	{ 20240924, "8.4", 480, 488, 96, 104, 128, 168, 176, 88, 1752 },
};

const struct php_version *php_version(uint32_t api)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (versions[i].api == api)
			return &versions[i];
	return NULL;
}
