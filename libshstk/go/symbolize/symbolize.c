// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * symbolize.c - the symbolizer function for Go's runtime; see shstk_go_symbolize.h.
 *
 * Sources: golang/go, src/runtime/traceback.go (SetCgoTraceback).
 */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "service.h"
#include "shstk_go_symbolize.h"
#include "symbol/symbol.h"

struct symbolizer_arg {
	uintptr_t pc;
	const char *file;
	uintptr_t lineno;
	const char *func;
	uintptr_t entry;
	uintptr_t more;
	uintptr_t data; /* the struct shstk_symframe for the next call, or 0 */
};

/*
 * The symbols. Only the thread of service.h uses them. They are kept until the process ends,
 * because the answers point into them.
 */
static struct {
	struct shstk_symbols *store;
	struct shstk_symproc *process;
	unsigned long long loads; /* loads and unloads of modules when the maps were read */
} names;

static int count_loads(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(unsigned long long *)arg = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

/* Returns the mapping that contains @pc. Reads the maps again if modules were loaded since. */
static const struct shstk_symmap *find_map(uintptr_t pc)
{
	unsigned long long loads = 0;
	const struct shstk_symmap *map;

	dl_iterate_phdr(count_loads, &loads);
	if (loads == names.loads) {
		map = shstk_symproc_find(names.process, pc);
		if (map->kind == SHSTK_SYMMAP_FILE)
			return map;
	}
	if (shstk_symproc_read_maps(names.process) >= 0)
		names.loads = loads;
	return shstk_symproc_find(names.process, pc);
}

static const void *look_up(uintptr_t pc)
{
	const struct shstk_symbol *symbol;
	const struct shstk_symmap *map = find_map(pc);

	symbol = shstk_symbols_lookup(names.store, map, pc, SHSTK_SYMADDR_PC);
	if (!symbol->resolved && map->kind != SHSTK_SYMMAP_FILE && map->kind != SHSTK_SYMMAP_VDSO)
		return NULL;
	return symbol;
}

static int open_names(void)
{
	struct shstk_symbols_opts opts = { .no_servers = true };
	int err;

	err = shstk_symbols_create(&opts, &names.store);
	if (err)
		return err;
	err = shstk_symproc_create(names.store, getpid(), &names.process);
	if (err)
		shstk_symbols_destroy(names.store);
	return err;
}

static int started;

static void start(void)
{
	started = open_names();
	if (!started)
		started = service_start(look_up);
}

SHSTK_API int shstk_go_symbolize_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	return started;
}

static void fill_frame(struct symbolizer_arg *a, const struct shstk_symframe *frame)
{
	a->file = frame->file;
	a->lineno = frame->line;
	a->func = frame->function;
	/* The last frame is the function that was not inlined. */
	a->more = frame->inlined;
	a->data = frame->inlined ? (uintptr_t)(frame + 1) : 0;
}

SHSTK_API void shstk_go_symbolize(void *arg)
{
	struct symbolizer_arg *a = arg;
	const struct shstk_symbol *symbol;
	int saved = errno;

	if (a->data) {
		fill_frame(a, (const struct shstk_symframe *)a->data);
		return;
	}
	a->file = a->func = NULL;
	a->lineno = a->entry = a->more = 0;
	symbol = a->pc ? service_ask(a->pc) : NULL;
	if (symbol) {
		fill_frame(a, symbol->frames);
		a->entry = symbol->start;
	}
	errno = saved;
}
