// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tunables.c - reads what the environment tells glibc: GLIBC_TUNABLES=name=value:name=value...
 */
#include <stdlib.h>
#include <string.h>

#include "tools/run/tunables.h"

const char *tunable_find(const char *name, int *len)
{
	const char *p = getenv("GLIBC_TUNABLES"), *found = "";
	size_t n = strlen(name);

	while (p && *p) {
		if (!strncmp(p, name, n) && p[n] == '=')
			found = p + n + 1;
		p += strcspn(p, ":");
		p += *p == ':';
	}
	*len = (int)strcspn(found, ":");
	return found;
}
