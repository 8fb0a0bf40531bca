// SPDX-License-Identifier: GPL-2.0-or-later
/* versions.c - the tables of offsets, as the headers of each version of Ruby give them. */
#include <stddef.h>
#include <string.h>

#include "tools/language/ruby/ruby.h"

static const struct ruby_version versions[] = {
	{
		.name = "3.1.",
		.main_thread = 40,
		.thread_context = 40,
		.frame_bytes = 64,
		.instructions = 1,
		.path = 8,
		.label = 10,
		.first_line = 11,
		.entries = 15,
		.nr_entries = 17,
		.table = 18,
		.entry_bytes = 12,
		.stack_begin = 144,
		.string = {
			.kind_mask = 31,
			.string = 5,
			.list = 7,
			.first_at = 16,
			.outside = 1u << 13,
			.address_at = 24,
			.length_at = 16,
			.inside_at = 16,
			.inside_shift = 14,
			.inside_mask = 31,
		},
	},
	{
		.name = "3.3.",
		.main_thread = 40,
		.thread_context = 48,
		.frame_bytes = 56,
		.instructions = 1,
		.path = 8,
		.label = 10,
		.first_line = 11,
		.entries = 14,
		.nr_entries = 16,
		.table = 17,
		.entry_bytes = 12,
		.stack_begin = 152,
		.errinfo = 120,
		.thread = 48,
		.hidden = true,
		.rows_elsewhere = true,
		.plain_line = true,
		.string = {
			.kind_mask = 31,
			.string = 5,
			.list = 7,
			.first_at = 16,
			.outside = 1u << 13,
			.address_at = 24,
			.length_at = 16,
			.inside_at = 24,
		},
	},
};

const struct ruby_version *ruby_version(const char *version)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (!strncmp(version, versions[i].name, strlen(versions[i].name)))
			return &versions[i];
	return NULL;
}
