// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * copies_plugin.c - a plugin with a copy of the library inside.
 */
#include "shstk.h"

__attribute__((visibility("default"))) int plugin_capture(uint64_t *pcs, unsigned int max,
							  const struct shstk_opts *opts,
							  struct shstk_info *info);

int plugin_capture(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		   struct shstk_info *info)
{
	int n = shstk_capture(pcs, max, opts, info);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return n;
}
