// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfmap.c - names of code made at run time, from perf-map files.
 *
 * Each line has a start and a size, both hexadecimal, and a name that is the
 * rest of the line. Compilers append a line per piece of code and never take
 * one back: where ranges overlap the later line is right. All lines are kept;
 * before a search they are flattened once into disjoint ranges.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "private.h"

#define ENTRIES_MAX (8u << 20)
#define NAME_MAX_LEN 4096
#define ENTRY_COST 192 /* bytes that an entry takes beside its name */

struct range {
	uint64_t start;
	uint64_t end;
	size_t entry;
};

struct shstk_perfmap {
	struct shstk_pool pool;
	struct shstk_perfmap_entry *entries;
	size_t nr;
	size_t max;
	struct range *flat;
	size_t nr_flat;
	bool dirty;
	size_t cost;
	size_t most;
	bool cut; /* some lines are left out */
};

struct shstk_perfmap *shstk_perfmap_create(void)
{
	struct shstk_perfmap *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	shstk_pool_init(&map->pool);
	map->most = SIZE_MAX;
	return map;
}

void shstk_perfmap_destroy(struct shstk_perfmap *map)
{
	if (!map)
		return;
	shstk_pool_deinit(&map->pool);
	free(map->entries);
	free(map->flat);
	free(map);
}

size_t shstk_perfmap_size(const struct shstk_perfmap *map)
{
	return map->nr;
}

size_t shstk_perfmap_cost(const struct shstk_perfmap *map)
{
	return map ? map->cost : 0;
}

bool shstk_perfmap_cut(const struct shstk_perfmap *map)
{
	return map->cut;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex(const char **s, const char *end, uint64_t *ret)
{
	const char *p = *s, *first;
	uint64_t v = 0;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (first = p; p < end && hex_digit(*p) >= 0; p++) {
		if (v >> 60)
			return false;
		v = v << 4 | hex_digit(*p);
	}
	if (p == first || p == end || (*p != ' ' && *p != '\t'))
		return false;
	*s = p;
	*ret = v;
	return true;
}

static int add(struct shstk_perfmap *map, uint64_t start, uint64_t end, const char *name)
{
	struct shstk_perfmap_entry *entries;

	entries = shstk_grow(map->entries, map->nr, &map->max, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	map->entries = entries;
	map->entries[map->nr++] = (struct shstk_perfmap_entry){
		.start = start,
		.end = end,
		.name = name,
	};
	map->dirty = true;
	return 0;
}

static int parse_line(struct shstk_perfmap *map, const char *s, const char *end)
{
	uint64_t start, size;
	const char *name;

	if (!hex(&s, end, &start) || !hex(&s, end, &size))
		return 0;
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	while (end > s && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (s == end || !size || start + size < start)
		return 0;
	if (end - s > NAME_MAX_LEN)
		end = s + NAME_MAX_LEN;
	map->cost += ENTRY_COST + (end - s);
	name = shstk_pool_text(&map->pool, s, end - s);
	return name ? add(map, start, start + size, name) : -ENOMEM;
}

int shstk_perfmap_add(struct shstk_perfmap *map, uint64_t start, uint64_t end, const char *name)
{
	size_t len = strnlen(name, NAME_MAX_LEN);

	if (map->nr >= ENTRIES_MAX)
		return 0;
	name = shstk_pool_text(&map->pool, name, len);
	return name ? add(map, start, end, name) : -ENOMEM;
}

int shstk_perfmap_parse(struct shstk_perfmap *map, const char *text, size_t size)
{
	const char *end = text + size, *stop;
	int err;

	/* A last line without an end is still being written. */
	while ((stop = memchr(text, '\n', end - text))) {
		if (map->nr >= ENTRIES_MAX || map->cost >= map->most) {
			map->cut = true;
			break;
		}
		err = parse_line(map, text, stop);
		if (err)
			return err;
		text = stop + 1;
	}
	return 0;
}

int shstk_perfmap_read(struct shstk_perfmap *map, int fd, size_t most)
{
	struct stat st;
	size_t size, done = 0;
	ssize_t n;
	char *buf;
	int err = 0;

	if (fstat(fd, &st))
		return -errno;
	map->most = most;
	size = (uint64_t)st.st_size < most ? (size_t)st.st_size : most;
	map->cut = (uint64_t)st.st_size > size;
	buf = malloc(size + 1);
	if (!buf)
		return -ENOMEM;
	while (done < size) {
		n = pread(fd, buf + done, size - done, done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		done += n;
	}
	if (!err)
		err = shstk_perfmap_parse(map, buf, done);
	free(buf);
	return err;
}

/*
 * Flattening: go through all starts and ends in order; of the entries open at
 * a point the newest names the piece up to the next point. The open ones are
 * in a heap, newest on top; those that have ended are dropped when they come
 * to the top.
 */
struct sweep {
	const struct shstk_perfmap_entry *entries;
	size_t *heap;
	size_t nr;
};

static void heap_push(struct sweep *sweep, size_t entry)
{
	size_t i = sweep->nr++, up;

	for (; i; i = up) {
		up = (i - 1) / 2;
		if (sweep->heap[up] > entry)
			break;
		sweep->heap[i] = sweep->heap[up];
	}
	sweep->heap[i] = entry;
}

static void heap_pop(struct sweep *sweep)
{
	size_t last = sweep->heap[--sweep->nr], i = 0, down;

	while ((down = 2 * i + 1) < sweep->nr) {
		if (down + 1 < sweep->nr && sweep->heap[down + 1] > sweep->heap[down])
			down++;
		if (sweep->heap[down] < last)
			break;
		sweep->heap[i] = sweep->heap[down];
		i = down;
	}
	sweep->heap[i] = last;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_piece(struct shstk_perfmap *map, uint64_t start, uint64_t end, size_t entry)
{
	struct range *last = map->flat + map->nr_flat - 1;

	if (map->nr_flat && last->entry == entry && last->end == start)
		last->end = end;
	else
		map->flat[map->nr_flat++] = (struct range){ start, end, entry };
}

static void sweep_all(struct shstk_perfmap *map, struct sweep *sweep, const struct range *sorted,
		      const uint64_t *points)
{
	size_t i, next = 0;

	for (i = 0; i + 1 < 2 * map->nr; i++) {
		while (next < map->nr && sorted[next].start <= points[i])
			heap_push(sweep, sorted[next++].entry);
		while (sweep->nr && map->entries[sweep->heap[0]].end <= points[i])
			heap_pop(sweep);
		if (sweep->nr && points[i] < points[i + 1])
			add_piece(map, points[i], points[i + 1], sweep->heap[0]);
	}
}

static void flatten(struct shstk_perfmap *map)
{
	struct sweep sweep = { .entries = map->entries };
	struct range *sorted;
	uint64_t *points;
	size_t i;

	map->dirty = false;
	map->nr_flat = 0;
	free(map->flat);
	map->flat = calloc(2 * map->nr, sizeof(*map->flat));
	sorted = calloc(map->nr, sizeof(*sorted));
	points = calloc(2 * map->nr, sizeof(*points));
	sweep.heap = calloc(map->nr, sizeof(*sweep.heap));
	if (!map->flat || !sorted || !points || !sweep.heap)
		goto out;
	for (i = 0; i < map->nr; i++) {
		sorted[i].start = points[2 * i] = map->entries[i].start;
		points[2 * i + 1] = map->entries[i].end;
		sorted[i].entry = i;
	}
	qsort(sorted, map->nr, sizeof(*sorted), by_start);
	qsort(points, 2 * map->nr, sizeof(*points), by_value);
	sweep_all(map, &sweep, sorted, points);
out:
	free(sweep.heap);
	free(points);
	free(sorted);
}

const struct shstk_perfmap_entry *shstk_perfmap_find(struct shstk_perfmap *map, uint64_t addr)
{
	size_t lo = 0, hi, mid;

	if (map->dirty && map->nr)
		flatten(map);
	for (hi = map->nr_flat; lo < hi;) {
		mid = lo + (hi - lo) / 2;
		if (map->flat[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == map->nr_flat || addr < map->flat[lo].start)
		return NULL;
	return map->entries + map->flat[lo].entry;
}
