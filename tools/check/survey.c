// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * survey.c - counts which objects of a system keep how many of its programs from shadow stacks.
 *
 * Each program is checked as `shstk check` does it. For each object that is not marked it counts
 * the programs that load it, and those in which it is the only one.
 */
#include <elf.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "tools/check/survey.h"
#include "tools/elf/objects.h"
#include "tools/shstk.h"

#define SHOWN 20 /* rows of the table, if not all are wanted */
#define OWNERS 256 /* objects in one question to dpkg */

/**
 * struct culprit - an object that is not marked
 * @path: its path.
 * @programs: number of programs that load it.
 * @alone: number of programs in which only this object is not marked.
 * @is_program: it is a program itself.
 * @package: package that owns it, or NULL.
 */
struct culprit {
	UT_hash_handle hh;
	char *path;
	unsigned long programs;
	unsigned long alone;
	bool is_program;
	char *package;
};

struct survey {
	const struct survey_opts *opts;
	struct culprit *culprits;
	unsigned long programs;
	unsigned long marked;
	unsigned long incomplete; /* programs of which a library was not found */
	unsigned long unreadable;
	bool out_of_memory;
};

static struct culprit *find_culprit(struct survey *s, const char *path)
{
	struct culprit *c;

	HASH_FIND_STR(s->culprits, path, c);
	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (c)
		c->path = strdup(path);
	if (c && c->path) {
		HASH_ADD_KEYPTR(hh, s->culprits, c->path, strlen(c->path), c);
		if (c->hh.tbl)
			return c;
		free(c->path);
	}
	free(c);
	s->out_of_memory = true;
	return NULL;
}

static void count_program(struct survey *s, const struct objects *set)
{
	size_t unmarked = 0;

	for (size_t i = 0; i < set->n; i++)
		unmarked += !set->v[i].marked;
	s->programs++;
	s->incomplete += set->missing_n > 0;
	s->marked += !unmarked && !set->missing_n && set->v[0].bits == 64;
	for (size_t i = 0; i < set->n && unmarked; i++) {
		struct culprit *c = set->v[i].marked ? NULL : find_culprit(s, set->v[i].path);

		if (!c)
			continue;
		c->programs++;
		c->alone += unmarked == 1;
		c->is_program |= !i;
	}
}

/*
 * Returns whether the first object is a program. Libraries may be executable files too, but
 * programs name a dynamic linker.
 */
static bool is_program(const struct objects *set)
{
	return !set->script && (set->v[0].type == ET_EXEC || set->v[0].interp || set->v[0].pie);
}

/* Checks the file at @path, which is its path within the root folder. */
static void check_file(struct survey *s, const char *path)
{
	struct objects set;
	int err = objects_load(path, s->opts->root, &set);

	if (err == -ENOMEM)
		s->out_of_memory = true;
	if (err) {
		s->unreadable += err != -ENOEXEC;
		return;
	}
	if (is_program(&set))
		count_program(s, &set);
	objects_deinit(&set);
}

static bool is_left_out(const char *path)
{
	return !strcmp(path, "/usr/lib/debug") || !strcmp(path, "/usr/share") ||
	       !strcmp(path, "/usr/src") || !strcmp(path, "/usr/include");
}

/*
 * Returns whether the file is an ELF file that may be executed. Other executable files, such as
 * scripts, have no marks of their own.
 */
static bool may_be_program(const FTSENT *e)
{
	char head[SELFMAG];
	bool elf;
	FILE *in;

	if (e->fts_info != FTS_F || !(e->fts_statp->st_mode & 0111))
		return false;
	in = fopen(e->fts_accpath, "re");
	elf = in && fread(head, 1, sizeof(head), in) == sizeof(head) &&
	      !memcmp(head, ELFMAG, SELFMAG);
	if (in)
		fclose(in);
	return elf;
}

static int walk(struct survey *s)
{
	static const char *const folders[] = { "/usr", "/opt", "/bin", "/sbin" };
	const size_t nr = sizeof(folders) / sizeof(*folders);
	const char *root = s->opts->root ? s->opts->root : "";
	size_t length = strlen(root);
	char *tops[5] = { NULL };
	FTS *fts = NULL;
	FTSENT *e;

	while (length && root[length - 1] == '/')
		length--;
	for (size_t i = 0; i < nr; i++)
		if (asprintf(&tops[i], "%.*s%s", (int)length, root, folders[i]) < 0)
			tops[i] = NULL;
	if (tops[0] && tops[1] && tops[2] && tops[3])
		fts = fts_open(tops, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	while (fts && !s->out_of_memory && (e = fts_read(fts))) {
		if (e->fts_info == FTS_D && is_left_out(e->fts_path + length))
			fts_set(fts, e, FTS_SKIP);
		/* A system may lack one of the folders that the walk begins with. */
		if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR ||
		    (e->fts_info == FTS_NS && e->fts_level))
			s->unreadable++;
		if (may_be_program(e))
			check_file(s, e->fts_path + length);
	}
	if (fts)
		fts_close(fts);
	for (size_t i = 0; i < nr; i++)
		free(tops[i]);
	return fts && !s->out_of_memory ? 0 : -ENOMEM;
}

/* Compares objects: those that block most programs come first, then by path. */
static int by_programs(const struct culprit *a, const struct culprit *b)
{
	if (a->programs != b->programs)
		return a->programs > b->programs ? -1 : 1;
	return strcmp(a->path, b->path);
}

/*
 * Asks dpkg for the owners of up to OWNERS objects at once, which takes it a second or so. Returns
 * the first object that was not asked for, or NULL.
 */
static struct culprit *find_owners(const struct survey *s, struct culprit *first)
{
	const char *root = s->opts->root ? s->opts->root : "";
	struct objects set = { .root = (char *)root };
	struct culprit *c = first;
	struct object *o;

	for (; c && set.n < OWNERS && (o = objects_push(&set)); c = c->hh.next) {
		o->path = c->path;
		set.n++;
	}
	objects_find_packages(&set);
	for (size_t i = 0; i < set.n; i++, first = first->hh.next)
		first->package = set.v[i].package;
	free(set.v);
	return c;
}

static void put_json(const struct survey *s)
{
	struct json *json = s->opts->json;

	shstk_json_open(json, NULL, '{');
	shstk_json_int(json, "programs", s->programs);
	shstk_json_int(json, "marked", s->marked);
	shstk_json_int(json, "incomplete", s->incomplete);
	shstk_json_int(json, "unreadable", s->unreadable);
	shstk_json_open(json, "objects", '[');
	for (struct culprit *c = s->culprits; c; c = c->hh.next) {
		shstk_json_open(json, NULL, '{');
		shstk_json_string(json, "path", c->path);
		shstk_json_string(json, "package", c->package);
		shstk_json_int(json, "programs", c->programs);
		shstk_json_int(json, "alone", c->alone);
		shstk_json_bool(json, "is_program", c->is_program);
		shstk_json_close(json);
	}
	shstk_json_close(json);
	shstk_json_close(json);
}

static void print_table(const struct survey *s)
{
	unsigned long left = HASH_COUNT(s->culprits);
	unsigned int n = 0;

	printf("%lu programs: %lu marked with all they load, %lu not", s->programs, s->marked,
	       s->programs - s->marked);
	if (s->incomplete)
		printf("; of %lu a library was not found", s->incomplete);
	if (s->unreadable)
		printf("; %lu files or folders could not be read", s->unreadable);
	putchar('\n');
	if (left)
		printf("%8s %8s  %-20s %s\n", "programs", "alone", "package", "object not marked");
	for (struct culprit *c = s->culprits; c && (s->opts->all || n < SHOWN);
	     c = c->hh.next, n++) {
		printf("%8lu %8lu  ", c->programs, c->alone);
		print_printable(c->package ? c->package : "-");
		printf("%*s ", (int)(20 - (c->package ? strnlen(c->package, 20) : 1)), "");
		print_printable(c->path);
		putchar('\n');
	}
	if (left > n)
		printf("and %lu others (see --all)\n", left - n);
}

static void forget(struct survey *s)
{
	struct culprit *c, *next;

	HASH_ITER(hh, s->culprits, c, next)
	{
		HASH_DEL(s->culprits, c);
		free(c->path);
		free(c->package);
		free(c);
	}
}

long survey(const struct survey_opts *opts)
{
	struct survey s = { .opts = opts };
	struct culprit *c;
	int err = walk(&s);

	if (!err && !s.programs && !s.unreadable)
		err = -ENOENT;

	if (!err) {
		HASH_SORT(s.culprits, by_programs);
		for (c = opts->packages ? s.culprits : NULL; c;)
			c = find_owners(&s, c);
		if (opts->json)
			put_json(&s);
		else
			print_table(&s);
	}
	forget(&s);
	return err ? err : (long)(s.programs - s.marked + s.unreadable);
}
