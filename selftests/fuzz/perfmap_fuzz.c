// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfmap_fuzz.c - perf-map files: whatever they contain, a search finds the newest line that
 * covers the address.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/perfmap.h"

#define MOST_LINES 12
#define MOST_ADDRESSES (2 + 4 * MOST_LINES)

/*
 * struct expected - what a search for an address is to find
 * @addr: the address.
 * @name: the name in the newest line that covers it, or NULL if none does.
 * @start: where that line begins.
 * @end: where that line ends.
 */
struct expected {
	uint64_t addr;
	char *name;
	uint64_t start;
	uint64_t end;
};

/* Takes the addresses that this line covers, as it is newer than those before it. */
static void expect_line(struct expected *expected, int n, const char *line, size_t len)
{
	struct shstk_perfmap *one = shstk_perfmap_create();
	const struct shstk_perfmap_entry *entry;

	if (!one || shstk_perfmap_parse(one, line, len))
		abort();
	for (int i = 0; i < n; i++) {
		entry = shstk_perfmap_find(one, expected[i].addr);
		if (!entry)
			continue;
		free(expected[i].name);
		expected[i].name = strdup(entry->name);
		expected[i].start = entry->start;
		expected[i].end = entry->end;
	}
	shstk_perfmap_destroy(one);
}

/* Fills in what is found, in the simplest way: each line is read by itself; the last one wins. */
static void expect(struct expected *expected, int n, const char *text, size_t size)
{
	const char *end = text + size, *stop;

	for (; (stop = memchr(text, '\n', end - text)); text = stop + 1)
		expect_line(expected, n, text, stop + 1 - text);
}

static void check(struct shstk_perfmap *map, struct expected *want)
{
	const struct shstk_perfmap_entry *entry = shstk_perfmap_find(map, want->addr);

	if (!entry != !want->name)
		abort();
	if (entry && (want->start != entry->start || want->end != entry->end ||
		      strcmp(want->name, entry->name)))
		abort();
	free(want->name);
}

/* Chooses addresses: two small ones, and both edges of the first lines. Returns their number. */
static int choose(struct expected *expected, char *text)
{
	char *line = text, *end;
	uint64_t start, stop;
	int n = 0;

	expected[n++].addr = 0;
	expected[n++].addr = 16;
	for (int i = 0; line && i < MOST_LINES; i++, line = strchr(line, '\n')) {
		line += *line == '\n';
		start = strtoull(line, &end, 16);
		stop = start + strtoull(end, NULL, 16);
		expected[n++].addr = start - 1;
		expected[n++].addr = start;
		expected[n++].addr = stop - 1;
		expected[n++].addr = stop;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct expected expected[MOST_ADDRESSES] = { 0 };
	struct shstk_perfmap *map = shstk_perfmap_create();
	char *text = malloc(size + 1);
	int n;

	if (!map || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (shstk_perfmap_parse(map, text, size))
		abort();
	n = choose(expected, text);
	expect(expected, n, text, size);
	for (int i = 0; i < n; i++)
		check(map, &expected[i]);
	shstk_perfmap_destroy(map);
	free(text);
	return 0;
}
