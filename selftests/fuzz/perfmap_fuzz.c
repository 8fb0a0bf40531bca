// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfmap_fuzz.c - perf-map files: whatever they contain, a search finds the newest line that
 * covers the address.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/perfmap.h"

/*
 * Returns the newest line that covers the address, in the simplest way: it reads each line by
 * itself; the last one that covers wins.
 */
static const char *newest(const char *text, size_t size, uint64_t addr, size_t *len)
{
	const char *end = text + size, *stop, *found = NULL;
	struct shstk_perfmap *one;
	const struct shstk_perfmap_entry *entry;

	for (; (stop = memchr(text, '\n', end - text)); text = stop + 1) {
		one = shstk_perfmap_create();
		if (!one || shstk_perfmap_parse(one, text, stop + 1 - text))
			abort();
		entry = shstk_perfmap_find(one, addr);
		if (entry) {
			found = text;
			*len = stop + 1 - text;
		}
		shstk_perfmap_destroy(one);
	}
	return found;
}

static void check(struct shstk_perfmap *map, const char *text, size_t size, uint64_t addr)
{
	const struct shstk_perfmap_entry *entry, *want;
	struct shstk_perfmap *one;
	const char *line;
	size_t len;

	entry = shstk_perfmap_find(map, addr);
	line = newest(text, size, addr, &len);
	if (!line != !entry)
		abort();
	if (!entry)
		return;
	one = shstk_perfmap_create();
	if (!one || shstk_perfmap_parse(one, line, len))
		abort();
	want = shstk_perfmap_find(one, addr);
	if (!want || want->start != entry->start || want->end != entry->end ||
	    strcmp(want->name, entry->name))
		abort();
	shstk_perfmap_destroy(one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_perfmap *map = shstk_perfmap_create();
	char *text = malloc(size + 1), *line, *end;
	uint64_t start;
	int n = 0;

	if (!map || !text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (shstk_perfmap_parse(map, text, size))
		abort();
	check(map, text, size, 0);
	check(map, text, size, 16);
	/* Check both edges of the first lines. */
	for (line = text; line && n < 12; n++, line = strchr(line, '\n')) {
		line += *line == '\n';
		start = strtoull(line, &end, 16);
		check(map, text, size, start - 1);
		check(map, text, size, start);
		start += strtoull(end, NULL, 16);
		check(map, text, size, start - 1);
		check(map, text, size, start);
	}
	shstk_perfmap_destroy(map);
	free(text);
	return 0;
}
