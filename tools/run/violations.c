// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * violations.c - turns violations into lines for people: where the return is, and where the
 * ordinary and the shadow stack would have it go.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/symbol.h"
#include "tools/run/violations.h"

/*
 * Most places that are reported, one for each place in a file: there are many processes, but few
 * places.
 */
#define MAX_SITES 4096

struct reporter {
	FILE *out;
	struct shstk_symbols *symbols;
	char **sites;
	size_t n;
	bool failed; /* writing failed, which was reported */
};

int reporter_create(const char *path, struct reporter **ret)
{
	struct reporter *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->out = path ? fopen(path, "ae") : stderr;
	if (!r->out) {
		free(r);
		return -errno;
	}
	if (shstk_symbols_create(NULL, &r->symbols)) {
		reporter_destroy(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void reporter_destroy(struct reporter *reporter)
{
	if (!reporter)
		return;
	if (reporter->out != stderr)
		fclose(reporter->out);
	shstk_symbols_destroy(reporter->symbols);
	for (size_t i = 0; i < reporter->n; i++)
		free(reporter->sites[i]);
	free(reporter->sites);
	free(reporter);
}

/*
 * Names an address: function, source line, and the place in the file, which is the same in every
 * process.
 */
void report_address(struct shstk_symproc *proc, uint64_t addr, int how, char *buf, size_t size)
{
	const struct shstk_symbol *sym;
	const struct shstk_symframe *f;
	int n;

	if (!addr) {
		snprintf(buf, size, "nothing");
		return;
	}
	sym = shstk_symproc_lookup(proc, addr, how);
	f = &sym->frames[sym->nr - 1];
	if (sym->map->kind != SHSTK_SYMMAP_FILE)
		snprintf(buf, size, "0x%" PRIx64, addr);
	else if (!sym->resolved)
		snprintf(buf, size, "%s+0x%" PRIx64, sym->map->name,
			 addr - sym->map->start + sym->map->offset);
	else {
		n = snprintf(buf, size, "%s+0x%" PRIx64 " (%s+0x%" PRIx64 ")", f->function,
			     sym->offset, sym->map->name,
			     addr - sym->map->start + sym->map->offset);
		if (f->file && n > 0 && (size_t)n < size)
			snprintf(buf + n, size - (size_t)n, " at %s:%u", f->file, f->line);
	}
}

static int known(struct reporter *r, const char *site)
{
	char **v;

	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->sites[i], site))
			return 1;
	if (r->n >= MAX_SITES)
		return 0;
	v = reallocarray(r->sites, r->n + 1, sizeof(*v));
	if (!v)
		return 0;
	r->sites = v;
	v[r->n] = strdup(site);
	r->n += v[r->n] != NULL;
	return 0;
}

static const char *outcome(const char *action)
{
	if (!strcmp(action, "unwound"))
		return "went on, shadow stack unwound";
	if (!strcmp(action, "jumped"))
		return "went on, taken as a jump";
	return "not repaired";
}

void reporter_take(struct reporter *reporter, char *text)
{
	char where[400], there[400], expected[400], action[16];
	uint64_t at, to, shadow;
	struct shstk_symproc *proc;
	char *maps = strchr(text, '\n');
	int pid, tid;

	if (!maps ||
	    sscanf(text, "violation %d %d %15s at %" SCNx64 " to %" SCNx64 " shadow %" SCNx64, &pid,
		   &tid, action, &at, &to, &shadow) != 6 ||
	    shstk_symproc_create(reporter->symbols, pid, &proc) ||
	    shstk_symproc_set_maps(proc, maps + 1, strlen(maps + 1)) < 0)
		return;
	report_address(proc, at, SHSTK_SYMADDR_PC, where, sizeof(where));
	/* This is often not a return address, so it is looked up unchanged. */
	report_address(proc, to, SHSTK_SYMADDR_PC, there, sizeof(there));
	report_address(proc, shadow, SHSTK_SYMADDR_RETURN, expected, sizeof(expected));
	if (known(reporter, where))
		return;
	fprintf(reporter->out,
		"shstk run: violation in process %d, thread %d: return in %s "
		"goes to %s, the shadow stack has %s: %s\n",
		pid, tid, where, there, expected, outcome(action));
	if (fflush(reporter->out) && !reporter->failed) {
		reporter->failed = true;
		fprintf(stderr, "shstk run: reports cannot be written: %s\n", strerror(errno));
	}
}
