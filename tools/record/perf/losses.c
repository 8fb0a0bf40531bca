// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * losses.c - says in a few words which CPUs lost how many records. See losses.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tools/record/perf/losses.h"

#define NAMED 4 /* CPUs that are named, at most */

/* A text that grows in a buffer. */
struct text {
	char *buf;
	size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->length, t->size - t->length, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < t->size - t->length)
		t->length += n;
}

/* Returns how many CPUs lost records. */
static unsigned int count_losers(const struct perf_losses *l)
{
	unsigned int nr = 0;

	for (int cpu = 0; cpu < PERF_MAX_CPUS; cpu++)
		nr += !!l->of[cpu];
	return nr;
}

/*
 * Returns which CPU lost most after @last: fewer than that one, or as many and has a higher number.
 * @last is -1 at first. Returns -1 if there is none.
 */
static int next_loser(const struct perf_losses *l, int last)
{
	int found = -1;

	for (int cpu = 0; cpu < PERF_MAX_CPUS; cpu++) {
		bool later = last < 0 || l->of[cpu] < l->of[last] ||
			     (l->of[cpu] == l->of[last] && cpu > last);

		if (l->of[cpu] && later && (found < 0 || l->of[cpu] > l->of[found]))
			found = cpu;
	}
	return found;
}

void losses_describe(const struct perf_losses *l, char *buf, size_t size)
{
	const unsigned int nr = count_losers(l);
	struct text text = { buf, size, 0 };
	uint64_t rest = l->all;
	unsigned int named = 0;
	int cpu = -1;

	*buf = 0;
	if (nr == 1 && l->of[next_loser(l, -1)] == l->all) {
		append(&text, "all on CPU %d", next_loser(l, -1));
		return;
	}
	while (named < NAMED && (cpu = next_loser(l, cpu)) >= 0) {
		append(&text, "%s%llu on CPU %d", named ? ", " : "", (unsigned long long)l->of[cpu],
		       cpu);
		rest -= l->of[cpu];
		named++;
	}
	if (nr > named)
		append(&text, ", %llu on %u other%s", (unsigned long long)rest, nr - named,
		       nr - named == 1 ? "" : "s");
}
