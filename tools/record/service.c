// SPDX-License-Identifier: GPL-2.0-or-later
/* service.c - tells systemd how a recording goes. See service.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/record/service.h"
#include "tools/rules/notify.h"
#include "tools/shstk.h"

#define TELL_NS 1000000000 /* between two messages */

static bool is_service(const struct recording *r)
{
	return !r->pid && !r->opts->live && getenv("NOTIFY_SOCKET");
}

void service_ready(const struct recording *r)
{
	if (is_service(r))
		notify_state("READY=1\nSTATUS=recording");
}

void service_watch(struct recording *r, uint64_t at)
{
	struct spool_waiting waiting;
	char so_far[200];

	if (!is_service(r) || at - r->told < TELL_NS)
		return;
	r->told = at;
	r->backend->describe(r, so_far, sizeof(so_far));
	if (!r->opts->push.to) {
		notify_state("WATCHDOG=1\nSTATUS=%s", so_far);
		return;
	}
	waiting = spool_waiting_again(&r->pusher.spool, &r->pusher.seen);
	notify_state("WATCHDOG=1\nSTATUS=%s; %zu requests wait, %" PRIu64 " KiB", so_far,
		     waiting.nr, waiting.bytes / 1024);
}

void service_reloads(const struct recording *r)
{
	if (is_service(r))
		notify_state("RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reading options anew",
			     now_ns(CLOCK_MONOTONIC) / 1000);
}

void service_ends(const struct recording *r)
{
	if (is_service(r))
		notify_state("STOPPING=1");
}
