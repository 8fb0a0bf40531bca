// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf_module.c - finds out whether the kernel module shstk_perf.ko is loaded, and reads its counts
 * of callchains. See perf_module.h.
 */
#include <stdio.h>
#include <unistd.h>

#include "tools/record/perf_module.h"
#include "tools/rules/chain_status.h"

bool module_loaded(void)
{
	return !access("/sys/module/shstk_perf", F_OK);
}

static uint64_t read_count(const char *name)
{
	char path[64];
	uint64_t count;

	snprintf(path, sizeof(path), "chains/%s", name);
	rules_module_number(path, &count);
	return count;
}

void module_read_chains(struct module_chains *ret)
{
	uint64_t by_rules, whole;

	if (!rules_totals(&by_rules, &whole))
		by_rules = whole = 0;
	ret->exact = whole + read_count("served") + read_count("served_switched") +
		     read_count("served_deferred");
	ret->unread = read_count("no_pointer") + read_count("not_present");
	ret->other = by_rules - whole + read_count("no_shadow_stack") + read_count("other_mode") +
		     ret->unread;
}
