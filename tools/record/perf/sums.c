// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sums.c - sums up what the kernel counted and lost, over rings that replace each other and
 * profiles that follow each other. See sums.h.
 */
#include <linux/perf_event.h>
#include <unistd.h>

#include "tools/record/perf/sums.h"

static void add(struct perf_losses *to, const struct perf_losses *l)
{
	to->all += l->all;
	for (int cpu = 0; cpu < PERF_MAX_CPUS; cpu++)
		to->of[cpu] += l->of[cpu];
}

static void subtract(struct perf_losses *from, const struct perf_losses *l)
{
	from->all -= l->all;
	for (int cpu = 0; cpu < PERF_MAX_CPUS; cpu++)
		from->of[cpu] -= l->of[cpu];
}

uint64_t sums_take(struct sums *s, const struct perf_record *r)
{
	const uint64_t *body = r->body;

	s->throttled += r->type == PERF_RECORD_THROTTLE;
	if (r->type == PERF_RECORD_LOST_SAMPLES && r->size >= 8)
		perf_losses_add(&s->lost_told, r->cpu, body[0]);
	if (r->type != PERF_RECORD_LOST || r->size < 16)
		return 0;
	perf_losses_add(&s->lost_told, r->cpu, body[1]);
	return body[1];
}

/*
 * The next rings count from before they take over. That part is subtracted, so that it counts only
 * once.
 */
void sums_take_over(struct sums *s, const struct perf_rings *old, const struct perf_rings *next)
{
	uint64_t counted, before;

	for (int which = 0; which < PERF_WHICH; which++)
		if (perf_rings_total(next, which, &before) &&
		    perf_rings_total(old, which, &counted))
			s->counted[which] += counted - before;
}

void sums_close(struct sums *s, const struct perf_rings *old)
{
	struct perf_losses lost;

	if (perf_rings_lost(old, &lost))
		add(&s->lost, &lost);
}

/*
 * Writes to @ret the lost records of all profiles. The records that tell of losses come only once
 * there is room in a ring again, so the kernel's own count is preferred.
 */
static void all_lost(const struct sums *s, const struct perf_rings *rings, struct perf_losses *ret)
{
	if (perf_rings_lost(rings, ret)) {
		add(ret, &s->lost);
	} else {
		*ret = s->lost_told;
		add(ret, &s->lost_before);
	}
}

void sums_lost(const struct sums *s, const struct perf_rings *rings, struct perf_losses *ret)
{
	all_lost(s, rings, ret);
	subtract(ret, &s->lost_before);
}

/*
 * Writes to @ret what event @which counted over all profiles. Returns false if that is not known.
 */
static bool all_counted(const struct sums *s, const struct perf_rings *rings, bool foreign,
			int which, uint64_t *ret)
{
	*ret = 0;
	if (s->total >= 0 && which == PERF_MAIN)
		return read(s->total, ret, sizeof(*ret)) == sizeof(*ret);
	if (foreign || !perf_rings_total(rings, which, ret))
		return false;
	*ret += s->counted[which];
	return true;
}

bool sums_counted(const struct sums *s, const struct perf_rings *rings, bool foreign, int which,
		  uint64_t *ret)
{
	bool known = all_counted(s, rings, foreign, which, ret);

	*ret -= known ? s->counted_before[which] : 0;
	return known;
}

void sums_renew(struct sums *s, const struct perf_rings *rings, bool foreign)
{
	struct perf_losses lost;

	/* all_lost() needs what @lost_before is until now. */
	all_lost(s, rings, &lost);
	s->lost_before = lost;
	for (int which = 0; which < PERF_WHICH; which++)
		all_counted(s, rings, foreign, which, &s->counted_before[which]);
	s->lost_told = (struct perf_losses){ 0 };
	s->throttled = 0;
}
