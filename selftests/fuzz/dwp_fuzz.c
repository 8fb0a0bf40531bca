// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dwp_fuzz.c - the index of a .dwp file: any bytes. The first eight bytes are the id of the unit
 * that is looked for.
 */
#include <stdlib.h>
#include <string.h>

#include "symbol/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_dwp_part parts[SHSTK_DWP_KINDS];
	uint64_t id;

	if (size < sizeof(id))
		return 0;
	memcpy(&id, data, sizeof(id));
	if (shstk_dwp_find(data + sizeof(id), size - sizeof(id), id, parts) &&
	    (!parts[SHSTK_DWP_INFO].size || !parts[SHSTK_DWP_ABBREV].size))
		abort(); /* a unit without a description */
	return 0;
}
