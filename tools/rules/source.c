// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * source.c - gets the table of a file from the cache or from a worker.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tools/elf/golang.h"
#include "tools/rules/cache.h"
#include "tools/rules/source.h"
#include "tools/rules/trust.h"
#include "tools/rules/worker.h"

/*
 * Gets the table by the build id that was noted for the file. So nothing is read, and no process is
 * started.
 */
static int get_known(int cache, const struct stat *st, struct compiled_table *ret)
{
	struct build_id id;
	int err = cache_find_id(cache, st, &id);

	return err ? err : cache_get(cache, &id, ret);
}

/* Gets the table from the cache, or from the worker, whose table is then stored. */
static int get_table(int cache, struct worker *w, const struct build_id *id,
		     struct compiled_table *ret, bool *cached)
{
	int err = cache < 0 ? -1 : cache_get(cache, id, ret);

	*cached = !err;
	if (!err)
		return 0;
	err = worker_compile(w, ret);
	/* If the table cannot be stored, it is made again the next time. */
	if (!err && cache >= 0 && id->size)
		cache_put(cache, id, ret);
	return err;
}

/*
 * Has a worker make the table. @st is the status of the file from before it was read; the build id
 * is noted with it if there is a cache.
 */
static int ask_worker(int cache, const struct stat *st, int fd, const struct worker_terms *terms,
		      struct compiled_table *ret, bool *cached)
{
	struct build_id id;
	struct worker w;
	int err = worker_start(&w, fd, terms, &id);

	if (err)
		return err;
	err = get_table(cache, &w, &id, ret, cached);
	worker_end(&w);
	if (!err && cache >= 0 && id.size)
		cache_note_id(cache, st, &id);
	return err;
}

int source_table(const struct source *s, int fd, struct compiled_table *ret, bool *cached)
{
	struct worker_terms terms = { .trusted = trust_file(fd),
				      .stop = s->stop,
				      .leaves_go = s->leaves_go };
	int cache = terms.trusted ? s->cache : -1, err;
	struct compiled_table own;
	struct stat st;
	bool was;

	if (fstat(fd, &st))
		return -errno;
	/*
	 * The cache, which other recorders fill, may have the table. Files of others are left to the
	 * worker.
	 */
	if (terms.trusted && s->leaves_go && golang_kind(fd) != GOLANG_NONE)
		return -EOPNOTSUPP;
	if (!ret)
		ret = &own;
	if (!cached)
		cached = &was;
	*cached = cache >= 0 && !get_known(cache, &st, ret);
	err = *cached ? 0 : ask_worker(cache, &st, fd, &terms, ret, cached);
	if (!err && ret == &own)
		free(own.header);
	return err;
}
