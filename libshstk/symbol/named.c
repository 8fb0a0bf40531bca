// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * named.c - entries of stacks that have their names already, in profiles that are read. They become
 * locations that bring their symbol along, so that formats need not tell them from others.
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "hex.h"
#include "htlhash.h"
#include "store.h"

/**
 * struct shstk_named_map - a mapping that was read
 * @hh: link in the profile's table.
 * @key: what tells the mapping from others; strings are of the pool.
 * @map: the mapping that is handed out.
 */
struct shstk_named_map {
	UT_hash_handle hh;
	struct {
		const char *path;
		const char *build_id;
		uint64_t start;
		uint64_t end;
		uint64_t offset;
	} key;
	struct shstk_map map;
};

/**
 * struct shstk_named_entry - an entry that was read
 * @hh: link in the profile's table.
 * @next: next equal entry of the same source.
 * @source: number of the source that had the entry last.
 * @location: number of the entry's location, from 0.
 * @key: mapping, address, whether it was guessed, and five words for each frame.
 */
struct shstk_named_entry {
	UT_hash_handle hh;
	struct shstk_named_entry *next;
	unsigned int source;
	uint32_t location;
	uint64_t key[];
};

#define KEY_HEAD 3
#define KEY_FRAME 5
#define MAX_EQUAL 16 /* equal entries of one source that are kept apart */

void shstk_named_deinit(struct shstk_profile *profile)
{
	HASH_CLEAR(hh, profile->named);
	HASH_CLEAR(hh, profile->named_maps);
	HASH_CLEAR(hh, profile->named_procs);
}

/* Returns the bytes of a text of @size pairs of digits, of the pool; NULL when memory runs out. */
static uint8_t *bytes_of(struct shstk_profile *profile, const char *hex, size_t size)
{
	uint8_t *ret = shstk_pool_alloc(profile->text, size);

	for (size_t i = 0; ret && i < size; i++)
		ret[i] = shstk_hex_digit(hex[2 * i]) << 4 | shstk_hex_digit(hex[2 * i + 1]);
	return ret;
}

/*
 * Sets the build id of a mapping; a text that is not in hexadecimal digits is no build id. Returns
 * false when memory runs out.
 */
static bool set_build_id(struct shstk_profile *profile, struct shstk_symmap *map, const char *hex)
{
	size_t size = strlen(hex) / 2;
	uint8_t *id;

	if (!size || strspn(hex, "0123456789abcdef") != 2 * size || hex[2 * size])
		return true;
	id = bytes_of(profile, hex, size);
	if (!id)
		return false;
	map->build_id = id;
	map->build_id_size = size;
	return true;
}

bool shstk_profile_hash_map(struct shstk_profile *profile, const struct shstk_symmap *map,
			    const char *hex)
{
	struct shstk_named_map *named =
		(struct shstk_named_map *)((char *)map - offsetof(struct shstk_named_map, map.pub));

	if (strspn(hex, "0123456789abcdefABCDEF") != 2 * SHSTK_HTLHASH || hex[2 * SHSTK_HTLHASH])
		return true;
	named->map.pub.htlhash = bytes_of(profile, hex, SHSTK_HTLHASH);
	return named->map.pub.htlhash;
}

static int kind_of(const char *path)
{
	if (*path == '/' && path[1] != '/')
		return SHSTK_SYMMAP_FILE;
	return strcmp(path, "[vdso]") ? SHSTK_SYMMAP_ANON : SHSTK_SYMMAP_VDSO;
}

const struct shstk_symmap *shstk_profile_name_map(struct shstk_profile *profile, const char *path,
						  uint64_t start, uint64_t end, uint64_t offset,
						  const char *build_id)
{
	struct shstk_named_map search = { 0 }, *map;
	const char *slash;

	search.key.path = shstk_pool_text(profile->text, path, strlen(path));
	search.key.build_id = shstk_pool_text(profile->text, build_id, strlen(build_id));
	search.key.start = start;
	search.key.end = end;
	search.key.offset = offset;
	if (!search.key.path || !search.key.build_id)
		return NULL;
	HASH_FIND(hh, profile->named_maps, &search.key, sizeof(search.key), map);
	if (map)
		return &map->map.pub;
	map = shstk_pool_alloc(&profile->pool, sizeof(*map));
	if (!map)
		return NULL;
	map->key = search.key;
	map->map.pub.kind = kind_of(search.key.path);
	map->map.pub.start = start;
	map->map.pub.end = end;
	map->map.pub.offset = offset;
	map->map.pub.path = search.key.path;
	slash = strrchr(search.key.path, '/');
	map->map.pub.name = slash ? slash + 1 : search.key.path;
	if (!set_build_id(profile, &map->map.pub, build_id))
		return NULL;
	HASH_ADD(hh, profile->named_maps, key, sizeof(map->key), map);
	return map->hh.tbl ? &map->map.pub : NULL;
}

/* Stand for entries without a mapping: with an address, and without. */
static const struct shstk_map no_map = {
	.pub = { .kind = SHSTK_SYMMAP_NONE, .path = "", .name = "[unknown]" },
};
static const struct shstk_map no_address = {
	.pub = { .kind = SHSTK_SYMMAP_NAMED, .path = "", .name = "[unknown]" },
};

static const char *keep(struct shstk_profile *profile, const char *text)
{
	return text ? shstk_pool_text(profile->text, text, strlen(text)) : NULL;
}

/* Returns whether an entry has a function: a name like "[libc.so.6+0x12]" alone is none. */
static bool is_resolved(const struct shstk_named *named, const struct shstk_symframe *frames)
{
	const char *name = frames[0].function;
	size_t len = strlen(name);

	return named->nr > 1 || !named->address || frames[0].file || *name != '[' ||
	       name[len - 1] != ']';
}

const struct shstk_symbol *shstk_named_symbol(struct shstk_profile *profile,
					      const struct shstk_named *named)
{
	struct shstk_symbol *symbol = shstk_pool_alloc(profile->text, sizeof(*symbol));
	struct shstk_symframe *frames =
		shstk_pool_alloc(profile->text, named->nr * sizeof(*frames));

	if (!symbol || !frames)
		return NULL;
	for (unsigned int i = 0; i < named->nr; i++) {
		const struct shstk_symframe *from = named->frames + i;
		const char *name = *from->function ? from->function : "[no name]";

		frames[i] = *from;
		frames[i].function = keep(profile, name);
		frames[i].linkage = keep(profile, from->linkage ? from->linkage : name);
		frames[i].file = from->file && *from->file ? keep(profile, from->file) : NULL;
		frames[i].inlined = i + 1 < named->nr;
		if (!frames[i].function || !frames[i].linkage)
			return NULL;
	}
	symbol->map = named->map ? named->map : named->address ? &no_map.pub : &no_address.pub;
	symbol->resolved = is_resolved(named, frames);
	symbol->nr = named->nr;
	symbol->frames = frames;
	return symbol;
}

/*
 * Fills the key of an entry, and returns its bytes. Equal strings of a pool are the same pointer.
 */
static size_t make_key(const struct shstk_named *named, const struct shstk_symbol *symbol,
		       uint64_t *key)
{
	size_t n = 0;

	key[n++] = (uintptr_t)named->map;
	key[n++] = named->address;
	key[n++] = named->guessed;
	for (unsigned int i = 0; i < symbol->nr; i++) {
		const struct shstk_symframe *f = symbol->frames + i;

		key[n++] = (uintptr_t)f->function;
		key[n++] = (uintptr_t)f->linkage;
		key[n++] = (uintptr_t)f->file;
		key[n++] = f->line;
		key[n++] = f->start_line;
	}
	return n * sizeof(*key);
}

/* Makes the location of an entry that has been found to be new. Returns 0 or -ENOMEM. */
static int add_location(struct shstk_profile *profile, struct shstk_named_entry *entry,
			const struct shstk_named *named, const struct shstk_symbol *symbol)
{
	const struct shstk_location at = {
		.map = symbol->map,
		.pc = named->address,
		.how = SHSTK_SYMADDR_PC,
		.guessed = named->guessed,
		.symbol = symbol,
	};
	struct shstk_location *location = shstk_location_add(profile, &at);

	if (!location)
		return -ENOMEM;
	entry->source = named->source;
	entry->location = location->id - 1;
	return 0;
}

/*
 * Returns the first of the equal entries from @at on that @source has not had. After MAX_EQUAL
 * entries of one source it returns the last one of these, as more would make no sense. Returns NULL
 * if there is none; @last is then the entry behind which the new one is to be added.
 */
static struct shstk_named_entry *choose(struct shstk_named_entry *at, unsigned int source,
					struct shstk_named_entry **last)
{
	unsigned int n = 0;

	for (; at; *last = at, at = at->next)
		if (!source || at->source != source || ++n == MAX_EQUAL)
			return at;
	return NULL;
}

int shstk_profile_name(struct shstk_profile *profile, const struct shstk_named *named,
		       uint32_t *ret)
{
	size_t words = KEY_HEAD + (size_t)KEY_FRAME * named->nr, size;
	const struct shstk_symbol *symbol = shstk_named_symbol(profile, named);
	struct shstk_named_entry *new, *first, *found, *last = NULL;

	new = shstk_pool_alloc(&profile->pool, sizeof(*new) + words * sizeof(new->key[0]));
	if (!symbol || !new)
		return -ENOMEM;
	size = make_key(named, symbol, new->key);
	HASH_FIND(hh, profile->named, new->key, size, first);
	found = choose(first, named->source, &last);
	if (found) {
		found->source = named->source;
		*ret = found->location;
		return 0;
	}
	if (add_location(profile, new, named, symbol))
		return -ENOMEM;
	*ret = new->location;
	if (last) {
		last->next = new;
		return 0;
	}
	HASH_ADD_KEYPTR(hh, profile->named, new->key, size, new);
	return new->hh.tbl ? 0 : -ENOMEM;
}
