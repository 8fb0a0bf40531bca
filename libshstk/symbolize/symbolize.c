// SPDX-License-Identifier: LGPL-2.1-or-later
/* symbolize.c - the public interface to libshstk-symbol, as shstk_symbolize.h describes it. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shstk_symbolize.h"
#include "symbol/symbol.h"

struct shstk_symbolizer {
	pthread_mutex_t lock; /* guards all other members: one thread at a time may use the store */
	struct shstk_symbols *store;
	struct shstk_symproc *process;
};

SHSTK_API void shstk_symbolizer_destroy(struct shstk_symbolizer *s)
{
	if (!s)
		return;
	shstk_symbols_destroy(s->store);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

SHSTK_API int shstk_symbolizer_create(int pid, struct shstk_symbolizer **ret)
{
	struct shstk_symbolizer *s;
	int err;

	if (pid < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	err = shstk_symbols_create(NULL, &s->store);
	if (!err)
		err = shstk_symproc_create(s->store, pid ? pid : getpid(), &s->process);
	if (!err)
		err = shstk_symproc_read_maps(s->process);
	if (err < 0) {
		shstk_symbolizer_destroy(s);
		return err;
	}
	*ret = s;
	return 0;
}

static void fill(const struct shstk_symbol *symbol, unsigned int i, size_t size, void *to)
{
	const struct shstk_symframe *frame = &symbol->frames[i];
	const struct shstk_name name = {
		.size = sizeof(name),
		.line = frame->line,
		.inlined = frame->inlined,
		.offset = symbol->offset,
		.function = frame->function,
		.linkage = frame->linkage,
		.file = frame->file,
		.module = symbol->map ? symbol->map->name : "[unknown]",
	};

	memset(to, 0, size);
	memcpy(to, &name, sizeof(name));
}

static const struct shstk_symbol *look_up(struct shstk_symbolizer *s, uint64_t pc, uint8_t mark)
{
	int how = mark & (SHSTK_MARK_PC | SHSTK_MARK_SIGNAL) ? SHSTK_SYMADDR_PC :
							       SHSTK_SYMADDR_RETURN;

	if (shstk_symproc_find(s->process, pc)->kind == SHSTK_SYMMAP_NONE)
		shstk_symproc_read_maps(s->process);
	return shstk_symproc_lookup(s->process, pc, how);
}

SHSTK_API int shstk_symbolize(struct shstk_symbolizer *s, uint64_t pc, uint8_t mark,
			      struct shstk_name *names, unsigned int max, size_t name_size)
{
	const struct shstk_symbol *symbol;

	if (name_size < sizeof(*names))
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	symbol = look_up(s, pc, mark);
	for (unsigned int i = 0; i < symbol->nr && i < max; i++)
		fill(symbol, i, name_size, (char *)names + i * name_size);
	pthread_mutex_unlock(&s->lock);
	return symbol->nr;
}
