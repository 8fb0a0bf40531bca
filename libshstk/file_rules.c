// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * file_rules.c - unwind rules that programs share. See file_rules.h.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "file_rules.h"
#include "sys.h"

#define FIRST_RULES 1024 /* entries of a table of rules at first */
#define FIRST_SHIFT (64 - 8) /* it has 1 << 8 sets */
#define SET (RULE_TABLE_WAYS * sizeof(struct known_rule)) /* bytes of a set */
#define FIRST_FILES 64 /* entries of the table of files at first */

_Static_assert(FIRST_RULES == RULE_TABLE_WAYS << (64 - FIRST_SHIFT),
	       "as many sets as numbers of them");

/* What tells a file from others, and from itself after a change. */
struct identity {
	uint64_t dev, inode, size;
	int64_t changed[2], modified[2]; /* seconds and nanoseconds */
};

struct numbered_file {
	struct identity identity;
	uint32_t number; /* 0: the entry is free */
};

/**
 * struct file_rules - files and the rules in them
 * @files: a hash table of the files.
 * @size: number of its entries, 0 or a power of two.
 * @nr: how many files there are.
 * @tables: the rules, for each thread.
 */
struct file_rules {
	struct numbered_file *files;
	size_t size;
	uint32_t nr;
	struct rule_table tables[FILE_RULES_USERS];
};

/* ---- Rules ---- */

/* Returns the entry that a key has or gets. */
static struct known_rule *entry_for(struct rule_table *t, uint64_t key)
{
	struct known_rule *set = rule_table_set(t, key);

	for (unsigned int i = 0; i < RULE_TABLE_WAYS; i++)
		if (!set[i].key || set[i].key == key)
			return &set[i];
	return &set[t->pushed_out++ % RULE_TABLE_WAYS];
}

static void put(struct rule_table *t, uint64_t key, uint64_t rule)
{
	struct known_rule *k = entry_for(t, key);

	t->filled += !k->key;
	*k = (struct known_rule){ key, rule };
}

/* Makes the table larger if half of its entries were used. Without memory it stays as it is. */
static void grow_rules(struct rule_table *t, size_t most)
{
	struct rule_table more = {
		.size = t->size ? 2 * t->size : FIRST_RULES,
		.shift = t->size ? t->shift - 1 : FIRST_SHIFT,
	};

	if (t->filled < t->size / 2 || more.size > most)
		return;
	more.rules = aligned_alloc(SET, more.size * sizeof(*more.rules));
	if (!more.rules)
		return;
	memset(more.rules, 0, more.size * sizeof(*more.rules));
	for (size_t i = 0; i < t->size; i++)
		if (t->rules[i].key)
			put(&more, t->rules[i].key, t->rules[i].rule);
	free(t->rules);
	*t = more;
}

void rule_table_put(struct rule_table *t, size_t most, uint64_t key, uint64_t rule)
{
	grow_rules(t, most);
	if (t->size)
		put(t, key, rule);
}

void rule_table_clear(struct rule_table *t)
{
	free(t->rules);
	*t = (struct rule_table){ .rules = NULL };
}

/* ---- Files ---- */

struct file_rules *file_rules_create(void)
{
	return calloc(1, sizeof(struct file_rules));
}

void file_rules_destroy(struct file_rules *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < FILE_RULES_USERS; i++)
		rule_table_clear(&f->tables[i]);
	free(f->files);
	free(f);
}

static bool identify(int fd, struct identity *ret)
{
	struct stat st;

	if (sys_fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	*ret = (struct identity){
		.dev = st.st_dev,
		.inode = st.st_ino,
		.size = st.st_size,
		.changed = { st.st_ctim.tv_sec, st.st_ctim.tv_nsec },
		.modified = { st.st_mtim.tv_sec, st.st_mtim.tv_nsec },
	};
	return true;
}

static size_t hash(const struct identity *id)
{
	return ((id->inode ^ id->dev << 32 ^ id->size << 16 ^ (uint64_t)id->changed[1]) *
		0x9e3779b97f4a7c15) >>
	       32;
}

/* Returns the entry of a file, or the free one that it would have. One is always free. */
static struct numbered_file *find_file(const struct file_rules *f, const struct identity *id)
{
	size_t at = hash(id);

	while (f->files[at & (f->size - 1)].number &&
	       memcmp(&f->files[at & (f->size - 1)].identity, id, sizeof(*id)))
		at++;
	return &f->files[at & (f->size - 1)];
}

/* Makes room for one more file. Returns false without memory. */
static bool grow_files(struct file_rules *f)
{
	struct file_rules more = { .size = f->size ? 2 * f->size : FIRST_FILES };

	if (f->nr < f->size / 2)
		return true;
	more.files = calloc(more.size, sizeof(*more.files));
	if (!more.files)
		return false;
	for (size_t i = 0; i < f->size; i++)
		if (f->files[i].number)
			*find_file(&more, &f->files[i].identity) = f->files[i];
	free(f->files);
	f->files = more.files;
	f->size = more.size;
	return true;
}

uint32_t file_rules_number(struct file_rules *f, int fd)
{
	struct numbered_file *file;
	struct identity id;

	if (!identify(fd, &id) || !grow_files(f))
		return 0;
	file = find_file(f, &id);
	if (!file->number && f->nr < FILE_RULES_FILES)
		*file = (struct numbered_file){ id, ++f->nr };
	return file->number;
}

struct rule_table *file_rules_table(struct file_rules *f, unsigned int user)
{
	return &f->tables[user];
}
