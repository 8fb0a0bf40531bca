// SPDX-License-Identifier: GPL-2.0-or-later
/* interpreted.c - functions that an interpreter runs, in the stacks of threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/address_space.h"
#include "libshstk/symbol/budget.h"
#include "tools/convert/living_files.h"
#include "tools/java/methods.h"
#include "tools/language/read.h"
#include "tools/proc/maps.h"
#include "tools/proc/stop.h"
#include "tools/shstk.h"
#include "tools/stack_pointer.h"
#include "tools/trace/fold.h"
#include "tools/trace/interpreted.h"

#define ASKED_HOLD_MS 2000 /* as STOP_HOLD_MS, for what the user asked for by name */
#define NS_PER_MS 1000000ull

/* Begins to know languages. Returns 0 or -ENOMEM. */
static int begin(struct interpreted *i)
{
	if (!i->all)
		i->all = languages_create(NULL);
	if (!i->room)
		i->room = malloc(sizeof(*i->room));
	if (!i->all || !i->room)
		return -ENOMEM;
	languages_stopped_only(i->all);
	return 0;
}

int interpreted_find_in(struct interpreted *i, const struct language_module *module,
			struct shstk_account *account, struct shstk_symbols *symbols)
{
	struct language_module whole = *module;
	int number;

	if (!i->account)
		i->account = account;
	if (!i->account || begin(i))
		return -ENOMEM;
	whole.read = i->read;
	whole.arg = i->arg;
	whole.account = i->account;
	number = languages_find(i->all, &whole);
	if (number <= 0)
		return 0;
	i->number = number;
	shstk_symbols_set_functions(symbols, languages_function, i->all);
	return 0;
}

/* Looks whether a mapped file is an interpreter. Returns 0 or -ENOMEM. */
static int find_in_file(struct interpreted *i, int pid, const struct mapping *m,
			struct shstk_symbols *symbols)
{
	const struct mappings_map map = live_map(m);
	const struct language_module module = {
		.fd = live_open(NULL, pid, &map),
		.start = m->start,
		.offset = map.offset,
	};
	int err;

	if (module.fd < 0)
		return 0;
	err = interpreted_find_in(i, &module, shstk_symbols_process_account(symbols, pid), symbols);
	close(module.fd);
	return err;
}

int interpreted_find(struct interpreted *i, int pid, struct shstk_symbols *symbols)
{
	struct mapping m;
	struct maps maps;
	int err = 0;

	if (maps_open(pid, "maps", &maps))
		return 0;
	while (!err && !i->number && maps_next(&maps, &m))
		if (m.exec && languages_may_be(m.path))
			err = find_in_file(i, pid, &m, symbols);
	maps_close(&maps);
	return err;
}

int interpreted_add_java(struct interpreted *i, struct jit *jit, struct shstk_symbols *symbols)
{
	if (!jit)
		return 0;
	i->methods = java_methods_create();
	if (!i->methods || begin(i))
		return -ENOMEM;
	i->jit = jit;
	shstk_symbols_set_functions(symbols, languages_function, i->all);
	return 0;
}

void interpreted_deinit(struct interpreted *i)
{
	java_methods_destroy(i->methods);
	languages_destroy(i->all);
	free(i->room);
}

void interpreted_stop(struct interpreted *i)
{
	i->stop++;
	i->until = now_ns(CLOCK_MONOTONIC) + STOP_HOLD_MS * NS_PER_MS;
}

void interpreted_hold(struct interpreted *i)
{
	i->until = now_ns(CLOCK_MONOTONIC) + ASKED_HOLD_MS * NS_PER_MS;
}

bool interpreted_in_time(const struct interpreted *i)
{
	return !i->until || now_ns(CLOCK_MONOTONIC) <= i->until;
}

int interpreted_read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct interpreted *i = arg;

	if (!interpreted_in_time(i))
		return -ETIMEDOUT;
	return i->read(i->arg, addr, buf, size);
}

void interpreted_read(const struct interpreted *i, const struct trace_thread *t)
{
	struct language_thread thread = {
		.read = interpreted_read_memory,
		.arg = (void *)i,
		.account = i->account,
		.stop = i->stop,
		.tid = t->tid,
		.pointer = t->regs.thread_pointer,
		.pc = t->regs.pc,
		.sp = stack_pointer(i->arch, &t->regs),
		.live = { t->regs.r[14], t->regs.r[15] },
	};

	/* Without memory for it, the stack shows the interpreter's own functions. */
	if (i->number && t->sampled)
		language_read(i->all, i->number, &thread);
}

/*
 * Makes the @nr entries of @room the stack. One of more than @o->depth entries is shortened as stacks
 * without interpreters are; without memory for that, or if nothing may be folded, it is cut.
 */
static void take_placed(struct java_entries *room, unsigned int nr, const struct trace_opts *o,
			struct trace_stack *s)
{
	struct trace_stack placed = { .pcs = room->pcs, .marks = room->marks, .nr = (int)nr };

	if (nr > o->depth && (!o->fold || fold_stack(&placed, o->depth))) {
		placed.nr = (int)o->depth;
		placed.nr_folds = 0;
		s->info.end = SHSTK_END_CAPACITY;
	}
	memcpy(s->pcs, placed.pcs, placed.nr * sizeof(*s->pcs));
	memcpy(s->marks, placed.marks, placed.nr);
	s->nr = placed.nr;
	free(s->folds);
	s->folds = placed.folds;
	s->nr_folds = placed.nr_folds;
}

/* Puts the functions of an interpreter into the stack @native. Returns how many entries it has then. */
static unsigned int place_functions(const struct interpreted *i, const struct trace_thread *t,
				    const struct native_stack *native)
{
	const struct language_sample of = {
		.number = i->number,
		.tid = t->tid,
		.pc = t->regs.pc,
		.sp = stack_pointer(i->arch, &t->regs),
	};

	return i->number ? languages_place(i->all, &of, native, i->room->pcs, i->room->marks,
					   LANGUAGES_MOST) :
			   0;
}

/* Does the same for the methods of Java. */
static unsigned int place_methods(const struct interpreted *i, const struct trace_thread *t,
				  const struct native_stack *native, shstk_read_fn read, void *arg)
{
	const struct java_stack stack = { *native, &t->regs, read, arg };

	return i->jit && java_place(i->methods, i->jit, i->all, &stack, i->room) ? i->room->nr : 0;
}

static uint64_t function_at(void *space, uint64_t pc)
{
	return shstk_space_function(space, pc);
}

void interpreted_place(const struct interpreted *i, const struct trace_opts *o,
		       struct shstk_space *space, struct trace_thread *t, shstk_read_fn read,
		       void *arg)
{
	struct trace_stack *s = &t->unwound;
	const struct native_stack native = {
		.pcs = s->pcs,
		.marks = s->marks,
		.sps = s->sps,
		.nr = s->nr > 0 ? s->nr : 0,
		.function = function_at,
		.arg = space,
	};
	struct language_counts before, after;
	unsigned int nr;

	if (!i->all || !s->taken || !s->sps || !native.nr || s->nr_folds || o->compare ||
	    t->hardware.taken)
		return;
	languages_count(i->all, &before);
	nr = place_functions(i, t, &native);
	languages_count(i->all, &after);
	s->too_deep = after.too_deep > before.too_deep;
	if (!nr)
		nr = place_methods(i, t, &native, read, arg);
	if (nr)
		take_placed(i->room, nr, o, s);
}
