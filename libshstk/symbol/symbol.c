// SPDX-License-Identifier: LGPL-2.1-or-later
/* symbol.c - the symbol store: making it, releasing it, and looking up the names of an address. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "hash.h"
#include "store.h"

/* The account of a process. The table's elements belong to the pool. */
struct process_account {
	UT_hash_handle hh;
	int pid;
	struct shstk_account account;
};

/*
 * The page that the kernel puts into a program for uprobes of others, and the name that is shown
 * for code there.
 */
#define UPROBES "[uprobes]"

struct lookup_key {
	const struct shstk_symmap *map;
	uint64_t pc;
	uint64_t how; /* bit 0: exact; from bit 1: edition of the perf-map */
};

struct lookup {
	UT_hash_handle hh;
	struct lookup_key key;
	struct shstk_symbol symbol;
};

static const struct shstk_symframe no_memory_frame = {
	.function = "[out of memory]",
	.linkage = "[out of memory]",
};

static const struct shstk_symbol no_memory = {
	.nr = 1,
	.frames = &no_memory_frame,
};

int shstk_symbols_create(const struct shstk_symbols_opts *opts, struct shstk_symbols **ret)
{
	struct shstk_symbols *symbols = calloc(1, sizeof(*symbols));
	const char *dirs = "/usr/lib/debug";
	char *copy;

	if (!symbols)
		return -ENOMEM;
	shstk_pool_init(&symbols->pool);
	if (opts)
		symbols->opts = *opts;
	shstk_budget_init(&symbols->budget, symbols->opts.memory, symbols->opts.time);
	if (opts && opts->debug_dirs)
		dirs = opts->debug_dirs;
	copy = shstk_pool_alloc(&symbols->pool, strlen(dirs) + 1);
	if (!copy) {
		shstk_symbols_destroy(symbols);
		return -ENOMEM;
	}
	symbols->opts.debug_dirs = strcpy(copy, dirs);
	*ret = symbols;
	return 0;
}

void shstk_symbols_destroy(struct shstk_symbols *symbols)
{
	struct shstk_symproc *proc;

	if (!symbols)
		return;
	while ((proc = symbols->procs)) {
		symbols->procs = proc->next;
		shstk_symproc_destroy(proc);
	}
	shstk_former_perfmaps_destroy(symbols);
	HASH_CLEAR(hh, symbols->lookups);
	shstk_functions_clear(symbols);
	HASH_CLEAR(hh, symbols->process_accounts);
	shstk_objects_destroy(symbols);
	shstk_root_put_all(&symbols->roots);
	shstk_pool_deinit(&symbols->pool);
	free(symbols);
}

struct shstk_account *shstk_symbols_account(struct shstk_symbols *symbols, const char *name)
{
	struct shstk_account *account = shstk_pool_alloc(&symbols->pool, sizeof(*account));

	name = shstk_pool_text(&symbols->pool, name, strlen(name));
	if (!account || !name)
		return NULL;
	shstk_account_open(account, &symbols->budget, name);
	return account;
}

static const char *process_name(struct shstk_pool *pool, int pid)
{
	char path[64], comm[32] = "", name[80];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = '\0';
	if (file)
		fclose(file);
	snprintf(name, sizeof(name), *comm ? "process %d (%s)" : "process %d", pid, comm);
	return shstk_pool_text(pool, name, strlen(name));
}

struct shstk_account *shstk_symbols_process_account(struct shstk_symbols *symbols, int pid)
{
	struct process_account *found;
	const char *name;

	HASH_FIND_INT(symbols->process_accounts, &pid, found);
	if (found)
		return &found->account;
	found = shstk_pool_alloc(&symbols->pool, sizeof(*found));
	name = process_name(&symbols->pool, pid);
	if (!found || !name)
		return NULL;
	memset(found, 0, sizeof(*found));
	found->pid = pid;
	HASH_ADD_INT(symbols->process_accounts, pid, found);
	if (!found->hh.tbl)
		return NULL;
	shstk_account_open(&found->account, &symbols->budget, name);
	return &found->account;
}

const char *shstk_symbols_excess(const struct shstk_symbols *symbols, size_t i, unsigned int *what)
{
	const struct shstk_account *account = symbols->budget.over;

	for (; account && i; i--)
		account = account->next;
	if (!account)
		return NULL;
	*what = account->excess;
	return account->name;
}

struct shstk_pool *shstk_symbols_pool(struct shstk_symbols *symbols)
{
	return &symbols->pool;
}

/*
 * Makes a frame of which only the name is known. Returns NULL when memory runs out, or @name is
 * NULL.
 */
static const struct shstk_symframe *plain_frame(struct shstk_pool *pool, const char *name)
{
	struct shstk_symframe *frame;

	frame = shstk_pool_alloc(pool, sizeof(*frame));
	if (!frame || !name)
		return NULL;
	frame->function = name;
	frame->linkage = name;
	return frame;
}

static bool resolve_in_object(const struct shstk_map *map, uint64_t pc, uint64_t addr,
			      struct shstk_symbol *symbol)
{
	uint64_t offset = addr - map->pub.start + map->pub.offset, where;
	const struct shstk_resolved *found;

	if (!map->object || !shstk_object_address(map->object, offset, &where))
		return false;
	found = shstk_object_resolve(map->object, where);
	if (!found)
		return false;
	symbol->resolved = found->resolved;
	symbol->nr = found->nr;
	symbol->frames = found->frames;
	if (found->start && found->start <= where) {
		symbol->start = addr - (where - found->start);
		symbol->offset = pc - symbol->start;
	}
	return true;
}

static bool resolve_entry(struct shstk_pool *pool, uint64_t pc,
			  const struct shstk_perfmap_entry *entry, struct shstk_symbol *symbol)
{
	symbol->resolved = true;
	symbol->start = entry->start;
	symbol->offset = pc - entry->start;
	symbol->nr = 1;
	symbol->frames = plain_frame(pool, shstk_pool_text(pool, entry->name, strlen(entry->name)));
	return symbol->frames;
}

static bool resolve_generated(const struct shstk_map *map, uint64_t pc, uint64_t addr,
			      struct shstk_symbol *symbol)
{
	const struct shstk_perfmap_entry *entry;

	if (map->pub.kind != SHSTK_SYMMAP_ANON && map->pub.kind != SHSTK_SYMMAP_NONE)
		return false;
	entry = shstk_symproc_generated(map->pub.proc, addr);
	return entry && resolve_entry(&map->pub.proc->symbols->pool, pc, entry, symbol);
}

static bool resolve_not(const struct shstk_map *map, uint64_t pc, uint64_t addr,
			struct shstk_symbol *symbol)
{
	struct shstk_pool *pool = &map->pub.proc->symbols->pool;
	const char *name;

	if (map->pub.kind == SHSTK_SYMMAP_FILE || map->pub.kind == SHSTK_SYMMAP_VDSO)
		name = shstk_place_name(pool, map->pub.name,
					addr - map->pub.start + map->pub.offset);
	else if (!strcmp(map->pub.name, UPROBES))
		name = UPROBES;
	else
		name = shstk_place_name(pool, NULL, pc);
	symbol->nr = 1;
	symbol->frames = plain_frame(pool, name);
	return symbol->frames;
}

/* Returns what changes when names of code made at run time are added, for the key of a lookup. */
static uint64_t edition(const struct shstk_symmap *map)
{
	if (map->kind == SHSTK_SYMMAP_ANON || map->kind == SHSTK_SYMMAP_NONE)
		return map->proc->edition << 1;
	return 0;
}

static struct lookup *find_lookup(struct shstk_symbols *symbols, const struct lookup_key *key)
{
	struct lookup *found;

	HASH_FIND(hh, symbols->lookups, key, sizeof(*key), found);
	return found;
}

const struct shstk_symbol *shstk_symbols_lookup(struct shstk_symbols *symbols,
						const struct shstk_symmap *pub, uint64_t pc,
						int how)
{
	const struct shstk_map *map = (const struct shstk_map *)pub;
	bool exact = how == SHSTK_SYMADDR_PC || !pc;
	struct lookup_key key = { pub, pc, exact | edition(pub) };
	uint64_t addr = exact ? pc : pc - 1;
	struct lookup *lookup;

	lookup = find_lookup(symbols, &key);
	if (lookup)
		return &lookup->symbol;
	lookup = shstk_pool_alloc(&symbols->pool, sizeof(*lookup));
	if (!lookup)
		return &no_memory;
	lookup->symbol.map = pub;
	if (!resolve_in_object(map, pc, addr, &lookup->symbol) &&
	    !resolve_generated(map, pc, addr, &lookup->symbol) &&
	    !resolve_not(map, pc, addr, &lookup->symbol))
		return &no_memory;
	shstk_symmap_build_id(symbols, pub);
	lookup->key = key;
	/* The perf-map may have been read by the lookup. */
	lookup->key.how = exact | edition(pub);
	HASH_ADD(hh, symbols->lookups, key, sizeof(lookup->key), lookup);
	return &lookup->symbol;
}

const struct shstk_symbol *shstk_symbols_generated(struct shstk_symbols *symbols,
						   const struct shstk_symmap *map, uint64_t pc,
						   int how,
						   const struct shstk_perfmap_entry *generated)
{
	bool exact = how == SHSTK_SYMADDR_PC || !pc;
	/*
	 * The key has no edition. It has the address of the entry, which is even and far from all
	 * editions.
	 */
	struct lookup_key key = { map, pc, exact | (uintptr_t)generated };
	struct lookup *lookup = find_lookup(symbols, &key);

	if (lookup)
		return &lookup->symbol;
	lookup = shstk_pool_alloc(&symbols->pool, sizeof(*lookup));
	if (!lookup)
		return &no_memory;
	lookup->symbol.map = map;
	if (!resolve_entry(&symbols->pool, pc, generated, &lookup->symbol))
		return &no_memory;
	lookup->key = key;
	HASH_ADD(hh, symbols->lookups, key, sizeof(lookup->key), lookup);
	return &lookup->symbol;
}

const struct shstk_symbol *shstk_symproc_lookup(struct shstk_symproc *proc, uint64_t pc, int how)
{
	const struct shstk_symbol *function = shstk_symbols_function(proc->symbols, pc);

	return function ?
		       function :
		       shstk_symbols_lookup(proc->symbols, shstk_symproc_find(proc, pc), pc, how);
}
