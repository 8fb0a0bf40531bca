// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * source.c - where tables come from: the cache, or a worker.
 */
#include <stdlib.h>

#include "tools/rules/cache.h"
#include "tools/rules/source.h"
#include "tools/rules/trust.h"
#include "tools/rules/worker.h"

static int get_table(int cache, struct worker *w, const struct build_id *id,
		     struct rules_table *ret, bool *cached)
{
	int err = cache < 0 ? -1 : cache_get(cache, id, ret);

	*cached = !err;
	if (!err)
		return 0;
	err = worker_compile(w, ret);
	/* If it cannot be stored, it is made anew the next time. */
	if (!err && cache >= 0 && id->size)
		cache_put(cache, id, ret);
	return err;
}

int source_table(const struct source *s, int fd, struct rules_table *ret, bool *cached)
{
	struct worker_terms terms = { .trusted = trust_file(fd), .stop = s->stop };
	int cache = terms.trusted ? s->cache : -1, err;
	struct rules_table own;
	struct build_id id;
	struct worker w;
	bool was;

	err = worker_start(&w, fd, &terms, &id);
	if (err)
		return err;
	err = get_table(cache, &w, &id, ret ? ret : &own, cached ? cached : &was);
	worker_end(&w);
	if (!err && !ret)
		free(own.header);
	return err;
}
