/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake_rings.h - replaces the kernel's rings of perf events by a test that hands records out.
 *
 * The test has the functions that open and read rings; it is linked with --wrap for each of them.
 */
#ifndef RECORD_FAKE_RINGS_H
#define RECORD_FAKE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/perf/rings.h"

struct perf_rings {
	int unused;
};

static struct perf_rings fake_rings;

void __wrap_perf_rings_close(struct perf_rings *rings)
{
	(void)rings;
}

void __wrap_perf_rings_stop(struct perf_rings *rings)
{
	(void)rings;
}

/* All threads have inherited their events. */
bool __wrap_perf_rings_began(const struct perf_rings *rings, pid_t tid)
{
	(void)rings;
	return tid > 0;
}

/* A test may say which process has executed another program that no record told of yet. */
static pid_t fake_executes;

bool __wrap_perf_rings_executes(const struct perf_rings *rings, pid_t pid, uint64_t since)
{
	(void)rings;
	(void)since;
	return pid == fake_executes;
}

uint64_t __wrap_perf_rings_memory(const struct perf_rings *rings)
{
	(void)rings;
	return 0;
}

bool __wrap_perf_rings_lost(const struct perf_rings *rings, struct perf_losses *ret)
{
	(void)rings;
	*ret = (struct perf_losses){ 0 };
	return true;
}

/* How often what events counted was read. */
static unsigned int fake_totals;

bool __wrap_perf_rings_total(const struct perf_rings *rings, int which, uint64_t *ret)
{
	(void)rings;
	(void)which;
	fake_totals++;
	*ret = 0;
	return false;
}

#endif
