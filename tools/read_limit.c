// SPDX-License-Identifier: GPL-2.0-or-later
/* read_limit.c - the option --read-limit. See read_limit.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/output.h"
#include "tools/read_limit.h"
#include "tools/shstk.h"

#define MAX_NAMED 5
#define SECOND 1000000000ull

/*
 * Returns the number of bytes at *@text and moves *@text behind it. Returns 0 if there is no
 * number.
 */
static uint64_t parse_size(const char **text)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	uint64_t ret;
	int shift;

	errno = 0;
	ret = **text >= '0' && **text <= '9' ? strtoull(*text, &end, 10) : 0;
	if (!ret || errno)
		return 0;
	unit = *end ? strchr(units, *end) : NULL;
	shift = unit ? 10 * (unit - units + 1) : 0;
	*text = end + !!unit;
	return ret <= (uint64_t)INT64_MAX >> shift ? ret << shift : 0;
}

void read_limit_parse(const struct argp_state *state, const char *arg, struct read_limit *ret)
{
	const char *at = arg;

	ret->memory = parse_size(&at);
	if (!ret->memory || (*at && *at != ','))
		argp_failure(state, EXIT_USAGE, 0,
			     "read-limit '%s' is not SIZE[,SECONDS], such as 6G or 6G,300", arg);
	if (*at)
		ret->time = SECOND * parse_number(state, "read-limit, seconds", at + 1, 1, 1000000);
}

void read_limit_apply(const struct read_limit *limit, struct shstk_symbols_opts *opts)
{
	opts->memory = limit->memory;
	opts->time = limit->time;
}

static const char *what_of(unsigned int what)
{
	return what == (SHSTK_EXCESS_MEMORY | SHSTK_EXCESS_TIME) ? "memory and time" :
	       what == SHSTK_EXCESS_MEMORY			 ? "memory" :
								   "time";
}

void read_limit_report(const struct shstk_symbols *symbols, const struct caution_place *place)
{
	unsigned int what;
	const char *name;
	size_t i;

	for (i = 0; (name = shstk_symbols_excess(symbols, i, &what)); i++)
		if (i < MAX_NAMED)
			caution_of(
				place,
				"%s takes too much %s to read: some of its lines, inlined functions, names or allocations are left out; raise the limit by --read-limit=SIZE,SECONDS",
				name, what_of(what));
	if (i > MAX_NAMED)
		caution_of(place, "%zu other files take too much memory or time to read, too",
			   i - MAX_NAMED);
}
