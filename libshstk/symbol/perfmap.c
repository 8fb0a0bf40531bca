// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfmap.c - names of code made at run time, from perf-map files.
 *
 * Each line has a start and a size, both hexadecimal, and a name that is the rest of the line.
 * Compilers append a line per piece of code and never remove one: where ranges overlap the later
 * line is right. All lines are kept.
 *
 * For searches the lines are flattened into disjoint ranges, in layers: the lines since the last
 * layer become a layer of their own, and layers of similar size are merged, so that a file can be
 * read as it grows. A search begins with the newest layer.
 *
 * Lines have no time. A caller that reads a file while it grows says at which time the lines read
 * so far were there for sure. It can then search what was there at a time: later lines are in no
 * layer yet.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap.h"
#include "pool.h"

#define ENTRIES_MAX (8u << 20)
#define NAME_MAX_LEN 4096
#define ENTRY_COST 192 /* bytes that an entry takes in addition to its name */

struct entry_range {
	uint64_t start;
	uint64_t end;
	size_t entry;
};

/**
 * struct layer - some lines, flattened
 * @flat: ranges, sorted and disjoint; NULL if memory ran out.
 * @nr: number of ranges.
 * @first: number of the first line.
 * @end: number behind the last line.
 */
struct layer {
	struct entry_range *flat;
	size_t nr;
	size_t first;
	size_t end;
};

#define LAYERS 32 /* each older one has more than twice the lines */
#define BATCHES 16
#define SCAN 4096 /* lines in no layer that a search looks through */

/**
 * struct batch - lines that were read at one time
 * @time: time at which all of them were there, in ns.
 * @end: number behind the last line.
 */
struct batch {
	uint64_t time;
	size_t end;
};

struct shstk_perfmap {
	struct shstk_pool pool;
	struct shstk_perfmap_entry **entries;
	size_t nr;
	size_t max;
	struct layer layers[LAYERS]; /* oldest lines first */
	unsigned int nr_layers; /* number of layers */
	size_t layered; /* lines in all layers */
	struct batch batches[BATCHES]; /* lines in no layer, as far as their time is known */
	unsigned int nr_batches;
	size_t cost;
	size_t most;
	bool cut; /* some lines are left out */
	bool anew; /* lines are read again that may be known */
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
	for (unsigned int i = 0; i < map->nr_layers; i++)
		free(map->layers[i].flat);
	free(map->entries);
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
	struct shstk_perfmap_entry **entries, *entry;

	entries = shstk_grow(map->entries, map->nr, &map->max, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	map->entries = entries;
	entry = shstk_pool_alloc(&map->pool, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	*entry = (struct shstk_perfmap_entry){ .start = start, .end = end, .name = name };
	map->entries[map->nr++] = entry;
	return 0;
}

static const struct shstk_perfmap_entry *find_in_layers(const struct shstk_perfmap *map,
							uint64_t addr);

/* Returns whether the newest entry in the layers is the same as this one. */
static bool is_known(const struct shstk_perfmap *map, uint64_t start, uint64_t end,
		     const char *name)
{
	const struct shstk_perfmap_entry *entry = find_in_layers(map, start);

	return entry && entry->start == start && entry->end == end && !strcmp(entry->name, name);
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
	name = shstk_pool_text(&map->pool, s, end - s);
	if (name && map->anew && is_known(map, start, start + size, name))
		return 0;
	map->cost += ENTRY_COST + (end - s);
	return name ? add(map, start, start + size, name) : -ENOMEM;
}

int shstk_perfmap_add(struct shstk_perfmap *map, uint64_t start, uint64_t end, const char *name)
{
	size_t len = strlen(name);

	if (map->nr >= ENTRIES_MAX)
		return 0;
	if (len > NAME_MAX_LEN)
		len = NAME_MAX_LEN;
	name = shstk_pool_text(&map->pool, name, len);
	return name ? add(map, start, end, name) : -ENOMEM;
}

/* Adds all complete lines; *@used receives their bytes. Returns 0 or -ENOMEM. */
static int parse(struct shstk_perfmap *map, const char *text, size_t size, size_t *used)
{
	const char *first = text, *end = text + size, *stop;
	int err = 0;

	/* A last line without an end is still being written. */
	while (!err && (stop = memchr(text, '\n', end - text))) {
		if (map->nr >= ENTRIES_MAX || map->cost >= map->most) {
			map->cut = true;
			break;
		}
		err = parse_line(map, text, stop);
		text = stop + 1;
	}
	*used = text - first;
	return err;
}

int shstk_perfmap_parse(struct shstk_perfmap *map, const char *text, size_t size)
{
	size_t used;

	return parse(map, text, size, &used);
}

static int read_all(int fd, char *buf, size_t size, uint64_t from, size_t *done)
{
	ssize_t n = 1;

	for (*done = 0; *done < size && n; *done += n) {
		do
			n = pread(fd, buf + *done, size - *done, from + *done);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return -errno;
	}
	return 0;
}

void shstk_perfmap_anew(struct shstk_perfmap *map, bool anew)
{
	if (anew)
		shstk_perfmap_find(map, 0); /* puts all lines into layers, where is_known() looks */
	map->anew = anew;
}

int shstk_perfmap_read(struct shstk_perfmap *map, int fd, size_t most, uint64_t *from)
{
	size_t size, done, used;
	struct stat st;
	char *buf;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size <= *from)
		return 0;
	map->most = most > SIZE_MAX - map->cost ? SIZE_MAX : map->cost + most;
	size = st.st_size - *from < most ? st.st_size - *from : most;
	map->cut |= st.st_size - *from > size;
	buf = malloc(size + 1);
	if (!buf)
		return -ENOMEM;
	err = read_all(fd, buf, size, *from, &done);
	if (!err)
		err = parse(map, buf, done, &used);
	if (!err)
		*from += used;
	free(buf);
	return err;
}

/*
 * Flattening goes through all starts and ends in order. Of the entries open at a point, the newest
 * one names the piece up to the next point. The open ones are in a heap, with the newest on top;
 * those that have ended are dropped when they come to the top.
 */
struct sweep {
	struct shstk_perfmap_entry *const *entries;
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
	const struct entry_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_piece(struct layer *layer, uint64_t start, uint64_t end, size_t entry)
{
	struct entry_range *last = layer->flat + layer->nr - 1;

	if (layer->nr && last->entry == entry && last->end == start)
		last->end = end;
	else
		layer->flat[layer->nr++] = (struct entry_range){ start, end, entry };
}

static void sweep_all(struct layer *layer, struct sweep *sweep, const struct entry_range *sorted,
		      const uint64_t *points)
{
	size_t i, next = 0, nr = layer->end - layer->first;

	for (i = 0; i + 1 < 2 * nr; i++) {
		while (next < nr && sorted[next].start <= points[i])
			heap_push(sweep, sorted[next++].entry);
		while (sweep->nr && sweep->entries[sweep->heap[0]]->end <= points[i])
			heap_pop(sweep);
		if (sweep->nr && points[i] < points[i + 1])
			add_piece(layer, points[i], points[i + 1], sweep->heap[0]);
	}
}

static void flatten(const struct shstk_perfmap *map, struct layer *layer)
{
	struct sweep sweep = { .entries = map->entries };
	size_t i, nr = layer->end - layer->first;
	struct entry_range *sorted;
	uint64_t *points;

	layer->nr = 0;
	layer->flat = calloc(2 * nr, sizeof(*layer->flat));
	sorted = calloc(nr, sizeof(*sorted));
	points = calloc(2 * nr, sizeof(*points));
	sweep.heap = calloc(nr, sizeof(*sweep.heap));
	if (!layer->flat || !sorted || !points || !sweep.heap)
		goto out;
	for (i = 0; i < nr; i++) {
		const struct shstk_perfmap_entry *entry = map->entries[layer->first + i];

		sorted[i].start = points[2 * i] = entry->start;
		points[2 * i + 1] = entry->end;
		sorted[i].entry = layer->first + i;
	}
	qsort(sorted, nr, sizeof(*sorted), by_start);
	qsort(points, 2 * nr, sizeof(*points), by_value);
	sweep_all(layer, &sweep, sorted, points);
out:
	free(sweep.heap);
	free(points);
	free(sorted);
}

/* Puts the lines up to number @end into a layer. */
static void add_layer(struct shstk_perfmap *map, size_t end)
{
	struct layer new = { .first = map->layered, .end = end };

	if (end <= map->layered)
		return;
	while (map->nr_layers) {
		const struct layer *last = &map->layers[map->nr_layers - 1];

		if (map->nr_layers < LAYERS && last->end - last->first > 2 * (end - new.first))
			break;
		new.first = last->first;
		free(last->flat);
		map->nr_layers--;
	}
	flatten(map, &new);
	map->layers[map->nr_layers++] = new;
	map->layered = end;
}

static const struct shstk_perfmap_entry *find_in_layer(const struct shstk_perfmap *map,
						       const struct layer *layer, uint64_t addr)
{
	size_t lo = 0, hi, mid;

	for (hi = layer->nr; lo < hi;) {
		mid = lo + (hi - lo) / 2;
		if (layer->flat[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == layer->nr || addr < layer->flat[lo].start)
		return NULL;
	return map->entries[layer->flat[lo].entry];
}

static const struct shstk_perfmap_entry *find_in_layers(const struct shstk_perfmap *map,
							uint64_t addr)
{
	const struct shstk_perfmap_entry *entry = NULL;

	for (unsigned int i = map->nr_layers; i-- && !entry;)
		entry = find_in_layer(map, &map->layers[i], addr);
	return entry;
}

const struct shstk_perfmap_entry *shstk_perfmap_find(struct shstk_perfmap *map, uint64_t addr)
{
	add_layer(map, map->nr);
	map->nr_batches = 0;
	return find_in_layers(map, addr);
}

void shstk_perfmap_stamp(struct shstk_perfmap *map, uint64_t time)
{
	if (map->nr_batches == BATCHES)
		shstk_perfmap_advance(map, map->batches[0].time);
	map->batches[map->nr_batches++] = (struct batch){ time, map->nr };
}

bool shstk_perfmap_advance(struct shstk_perfmap *map, uint64_t time)
{
	unsigned int nr = 0;

	while (nr < map->nr_batches && map->batches[nr].time <= time)
		nr++;
	if (!nr)
		return false;
	add_layer(map, map->batches[nr - 1].end);
	map->nr_batches -= nr;
	memmove(map->batches, map->batches + nr, map->nr_batches * sizeof(*map->batches));
	return true;
}

const struct shstk_perfmap_entry *shstk_perfmap_find_now(const struct shstk_perfmap *map,
							 uint64_t addr)
{
	const struct shstk_perfmap_entry *entry = find_in_layers(map, addr);

	/*
	 * Code may run before its line was read. Then the first line for the address is right:
	 * later ones are of later code.
	 */
	for (size_t i = map->layered; !entry && i < map->nr && i - map->layered < SCAN; i++)
		if (addr - map->entries[i]->start < map->entries[i]->end - map->entries[i]->start)
			entry = map->entries[i];
	return entry;
}
