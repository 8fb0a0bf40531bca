// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * subordinate.c - the further ids that users have (subuid(5)), so that they can be counted as those
 * users.
 *
 * Only root writes the files that are read here. They are read with bounds nevertheless: a daemon
 * that all depend on is not to end because of a mistake in them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/rules/subordinate.h"

#define SUBUID "/etc/subuid"
#define PASSWD "/etc/passwd"

/* Longer lines are skipped. A name of a user has 256 bytes at most, and a number 10. */
#define MAX_LINE 512

/* More lines are not read, whatever is in them. */
#define MAX_LINES (1u << 20)

/* The greatest number is no id: it says "none". */
#define MAX_ID (UINT32_MAX - 1)

/*
 * Ids of a piece of root's, as many as programs expect to find where they run as several users: what runs
 * containers gives so many to each.
 */
#define PIECE 65536

/* Whose ids are root's, too, unless there is a user of that name: podman's containers with "--userns=auto". */
#define CONTAINERS "containers"

/**
 * struct entry - what a line says
 * @name: the user, as the line names it.
 * @first: the first id.
 * @nr: number of ids.
 * @user: the id as whom they count; 0: not known yet.
 * @is_root: the user is root; @user stays 0.
 * @line: number of the line, from 0.
 */
struct entry {
	char *name;
	uint32_t first, nr, user;
	bool is_root;
	uint32_t line;
};

struct entries {
	struct entry *v;
	size_t nr, room;
};

/* ---- Reading ---- */

/* Opens a regular file. Nothing else is waited for. */
static FILE *open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	FILE *f;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/* Reads a number that is all of @text. Returns whether it is one, of 0 to @most. */
static bool read_id(const char *text, uint32_t most, uint32_t *ret)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > most)
			return false;
	}
	*ret = (uint32_t)n;
	return true;
}

/*
 * Reads "NAME:FIRST:NUMBER" into @e, whose name is within @line. Returns whether it is that. No user's name
 * begins with '#': such a line was taken back, and must not decide about ids that another line has.
 */
static bool read_entry(char *line, struct entry *e)
{
	char *first = strchr(line, ':'), *nr;

	if (!first || first == line || *line == '#')
		return false;
	*first++ = '\0';
	nr = strchr(first, ':');
	if (!nr)
		return false;
	*nr++ = '\0';
	e->name = line;
	return read_id(first, MAX_ID, &e->first) && e->first && read_id(nr, MAX_ID, &e->nr) &&
	       e->nr && e->nr - 1 <= MAX_ID - e->first;
}

/* Adds an entry, with a name of its own. Returns 0 or -ENOMEM. */
static int add(struct entries *to, const struct entry *e)
{
	if (to->nr == to->room) {
		size_t room = to->room ? 2 * to->room : 16;
		struct entry *v = reallocarray(to->v, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		to->v = v;
		to->room = room;
	}
	to->v[to->nr] = *e;
	to->v[to->nr].name = strdup(e->name);
	if (!to->v[to->nr].name)
		return -ENOMEM;
	to->nr++;
	return 0;
}

/* Reads a line without its end. A line that is too long becomes an empty one. */
static bool next_line(FILE *f, char line[MAX_LINE])
{
	size_t n = 0;
	int c;

	while ((c = fgetc(f)) != EOF && c != '\n') {
		if (n < MAX_LINE)
			line[n] = (char)c;
		n += n < MAX_LINE;
	}
	line[n < MAX_LINE ? n : 0] = '\0';
	return c != EOF || n;
}

/* Reads all lines, as far as the module takes what they say. Returns 0 or -ENOMEM. */
static int read_entries(FILE *f, struct entries *ret)
{
	char line[MAX_LINE];
	int err = 0;

	for (uint32_t i = 0; i < MAX_LINES && ret->nr < SHSTK_RULES_MAX_RANGES && !err; i++) {
		struct entry e = { .line = i };

		if (!next_line(f, line))
			break;
		if (read_entry(line, &e))
			err = add(ret, &e);
	}
	return err;
}

static void free_entries(struct entries *all)
{
	for (size_t i = 0; i < all->nr; i++)
		free(all->v[i].name);
	free(all->v);
}

/* ---- Whose they are ---- */

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int has_name(const void *name, const void *e)
{
	return strcmp(name, ((const struct entry *)e)->name);
}

/* Sets the user of all entries of a name, of which @e is one. */
static void set_user(struct entries *all, struct entry *e, uint32_t user)
{
	const char *name = e->name;

	/* The first line of a user holds if there are several. All entries of a name are set together. */
	if (e->user || e->is_root)
		return;
	while (e > all->v && !strcmp(e[-1].name, name))
		e--;
	for (; e < all->v + all->nr && !strcmp(e->name, name); e++) {
		e->user = user;
		e->is_root = !user;
	}
}

/* Finds the users by their names. The entries are in the order of the names. */
static void find_users(struct entries *all, FILE *passwd)
{
	const struct passwd *pw;

	for (uint32_t i = 0; i < MAX_LINES && (pw = fgetpwent(passwd)); i++) {
		struct entry *e =
			all->nr ? bsearch(pw->pw_name, all->v, all->nr, sizeof(*e), has_name) :
				  NULL;

		if (e && pw->pw_uid <= MAX_ID)
			set_user(all, e, pw->pw_uid);
	}
}

/* Returns the user as whom ids count by an entry whose name is no user's. */
static uint32_t other_user(const struct entry *e)
{
	uint32_t id;

	if (read_id(e->name, MAX_ID, &id))
		return id;
	return strcmp(e->name, CONTAINERS) ? e->first : 0;
}

/* Finds the users that are named by their numbers, and those that are not known. */
static void find_others(struct entries *all)
{
	for (size_t i = 0; i < all->nr; i++) {
		struct entry *e = &all->v[i];

		if (!e->user && !e->is_root)
			set_user(all, e, other_user(e));
	}
}

/* ---- Ranges ---- */

static int by_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* Returns the number of ranges that the entries become at most, with pieces of so many ids. */
static size_t nr_ranges(const struct entries *all, uint64_t piece)
{
	size_t ret = 0;

	for (size_t i = 0; i < all->nr; i++)
		ret += all->v[i].is_root ? (all->v[i].nr + piece - 1) / piece : 1;
	return ret;
}

/*
 * Returns how many ids a piece of root's has: where the module would not take so many ranges, twice as
 * many, or as often twice as is needed. It takes one range for each entry.
 */
static uint64_t piece_size(const struct entries *all)
{
	uint64_t ret = PIECE;

	while (nr_ranges(all, ret) > SHSTK_RULES_MAX_RANGES)
		ret *= 2;
	return ret;
}

/* Adds the ids of root's from @first to below @behind, by pieces that are counted from the entry's beginning. */
static void add_pieces(struct subordinate *ret, const struct entry *e, uint64_t first,
		       uint64_t behind, uint64_t piece)
{
	while (first < behind) {
		const uint64_t next = e->first + ((first - e->first) / piece + 1) * piece;
		const uint64_t end = next < behind ? next : behind;

		ret->ranges[ret->nr++] = (struct shstk_rules_range){ (uint32_t)first,
								     (uint32_t)(end - first),
								     (uint32_t)first };
		first = end;
	}
}

/*
 * Makes ranges of the entries, which are in the order of their first ids. Of ids that two entries
 * have, the earlier entry decides. Returns 0 or -ENOMEM.
 */
static int make_ranges(const struct entries *all, struct subordinate *ret)
{
	const uint64_t piece = piece_size(all);
	uint64_t end = 0;

	ret->ranges = calloc(nr_ranges(all, piece) + 1, sizeof(*ret->ranges));
	if (!ret->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < all->nr; i++) {
		const struct entry *e = &all->v[i];
		uint64_t first = e->first > end ? e->first : end;
		uint64_t behind = (uint64_t)e->first + e->nr;

		if (first >= behind)
			continue;
		if (e->is_root)
			add_pieces(ret, e, first, behind, piece);
		else
			ret->ranges[ret->nr++] =
				(struct shstk_rules_range){ (uint32_t)first,
							    (uint32_t)(behind - first), e->user };
		end = behind;
	}
	return 0;
}

int subordinate_read(const char *subuid, const char *passwd, struct subordinate *ret)
{
	struct entries all = { 0 };
	FILE *f = open_file(subuid);
	int err;

	ret->ranges = NULL;
	ret->nr = 0;
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	err = read_entries(f, &all);
	fclose(f);
	if (!err && all.nr) {
		qsort(all.v, all.nr, sizeof(*all.v), by_name);
		f = open_file(passwd);
		if (f) {
			find_users(&all, f);
			fclose(f);
		}
		find_others(&all);
		qsort(all.v, all.nr, sizeof(*all.v), by_first);
		err = make_ranges(&all, ret);
	}
	free_entries(&all);
	return err;
}

/* ---- Telling ---- */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Notes the states of the files. Returns whether one of them is new. */
static bool have_changed(struct subordinate *s)
{
	const char *path[] = { SUBUID, PASSWD };
	bool changed = false;

	for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++) {
		struct stat now;

		if (stat(path[i], &now))
			memset(&now, 0, sizeof(now));
		changed |= !is_same(&now, &s->files[i]);
		s->files[i] = now;
	}
	return changed;
}

/* Tells the module all ranges. Returns 0, also if it knows no such call, or a negative errno. */
static int tell_ranges(int device, const struct subordinate *s)
{
	const struct shstk_rules_users arg = {
		.ranges = (uintptr_t)s->ranges,
		.nr = (uint32_t)s->nr,
	};

	return ioctl(device, SHSTK_RULES_USERS, &arg) && errno != ENOTTY ? -errno : 0;
}

/* Ends an attempt to renew what @s has by @now, which is taken, or freed if there was an error. Returns @err. */
static int end_renewal(struct subordinate *s, const struct subordinate *now, int err)
{
	/* There may be memory the next time, while a file that is not right stays so until it changes. */
	if (err == -ENOMEM)
		memset(s->files, 0, sizeof(s->files));
	free(err ? now->ranges : s->ranges);
	if (err)
		return err;
	s->ranges = now->ranges;
	s->nr = now->nr;
	return 0;
}

int subordinate_renew(struct subordinate *s)
{
	struct subordinate now;

	if (!have_changed(s))
		return 0;
	return end_renewal(s, &now, subordinate_read(SUBUID, PASSWD, &now));
}

int subordinate_tell(int device, struct subordinate *s)
{
	struct subordinate now;
	int err;

	if (!have_changed(s))
		return 0;
	err = subordinate_read(SUBUID, PASSWD, &now);
	if (!err)
		err = tell_ranges(device, &now);
	return end_renewal(s, &now, err);
}

uid_t subordinate_user(const struct subordinate *s, uid_t uid)
{
	size_t low = 0, high = s ? s->nr : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct shstk_rules_range *r = &s->ranges[middle];

		if (uid < r->first)
			high = middle;
		else if (uid - r->first >= r->nr)
			low = middle + 1;
		else
			return r->user;
	}
	return uid;
}
