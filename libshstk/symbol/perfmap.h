/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* perfmap.h - names of code made at run time. */
#ifndef SHSTK_SYMBOL_PERFMAP_H
#define SHSTK_SYMBOL_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_perfmap;

/* A name of generated code. It stays as long as its perf-map does. */
struct shstk_perfmap_entry {
	uint64_t start;
	uint64_t end;
	const char *name;
};

struct shstk_perfmap *shstk_perfmap_create(void);
void shstk_perfmap_destroy(struct shstk_perfmap *map);
/* Adds the lines of a file's text, which are newer than all before. Returns 0 or -ENOMEM. */
int shstk_perfmap_parse(struct shstk_perfmap *map, const char *text, size_t size);
/* Adds one name, which is newer than all before. Returns 0 or -ENOMEM. */
int shstk_perfmap_add(struct shstk_perfmap *map, uint64_t start, uint64_t end, const char *name);
/*
 * Does what shstk_perfmap_parse() does, with a file from byte *@from on, until the lines take about
 * @most more bytes of memory. *@from becomes the offset behind the last line that was taken.
 */
int shstk_perfmap_read(struct shstk_perfmap *map, int fd, size_t most, uint64_t *from);
/*
 * Sets whether the lines that come next may be known already. Known lines are not added again while
 * @anew is set.
 */
void shstk_perfmap_anew(struct shstk_perfmap *map, bool anew);
/* Returns about how many bytes of memory the lines of files take; 0 for NULL. */
size_t shstk_perfmap_cost(const struct shstk_perfmap *map);
/* Returns whether a file had more lines than it was allowed to take memory for. */
bool shstk_perfmap_cut(const struct shstk_perfmap *map);
/* Returns the number of entries. */
size_t shstk_perfmap_size(const struct shstk_perfmap *map);
/* Returns the newest entry at an address, or NULL. */
const struct shstk_perfmap_entry *shstk_perfmap_find(struct shstk_perfmap *map, uint64_t addr);

/*
 * Entries by time. shstk_perfmap_stamp() says that all that was added since the last stamp was
 * there at @time (ns of any clock) for sure; times ascend. shstk_perfmap_advance() moves to a time,
 * which ascends as well, and returns whether there are new entries then. shstk_perfmap_find_now()
 * finds the entry that was there at that time, or the first one that came after it.
 */
void shstk_perfmap_stamp(struct shstk_perfmap *map, uint64_t time);
bool shstk_perfmap_advance(struct shstk_perfmap *map, uint64_t time);
const struct shstk_perfmap_entry *shstk_perfmap_find_now(const struct shstk_perfmap *map,
							 uint64_t addr);

#endif
