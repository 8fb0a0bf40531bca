// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * enable.c - reports the result of enabling shadow stacks and completes it.
 */
#include <errno.h>

#include "enable.h"

static const char *reason(long err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return "this processor or kernel has none";
	case -EINVAL:
		return "this kernel does not know them";
	case -ENOMEM:
		return "no memory; a smaller stack limit (ulimit -s) may help";
	case -EPERM:
		return "not permitted (locked, or a seccomp filter)";
	default:
		return "arch_prctl() failed";
	}
}

void start_switched(long err)
{
	if (err) {
		start_give_up("no shadow stack: ", reason(err));
		return;
	}
	start_faults();
	if (!start_settings.quiet && start_is_first())
		start_say("shadow stack on, by the start-up object",
			  start_settings.lock ? ", locked" : "");
	start_first_done();
}
