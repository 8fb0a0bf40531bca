// SPDX-License-Identifier: GPL-2.0-or-later
/* interpreted.c - functions that an interpreter runs, in the stacks of threads. */
#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "tools/convert/living_files.h"
#include "tools/language/read.h"
#include "tools/proc/maps.h"
#include "tools/proc/stop.h"
#include "tools/shstk.h"
#include "tools/trace/interpreted.h"

#define NS_PER_MS 1000000ull

/* Returns the number of the interpreter that a mapped file is, 0 if it is none. */
static int ask_file(const struct interpreted *i, int pid, const struct mapping *m)
{
	const struct mappings_map map = live_map(m);
	struct language_module module = {
		.fd = live_open(NULL, pid, &map),
		.start = m->start,
		.offset = map.offset,
		.read = i->read,
		.arg = i->arg,
		.account = i->account,
	};
	int ret;

	if (module.fd < 0)
		return 0;
	ret = languages_find(i->all, &module);
	close(module.fd);
	return ret > 0 ? ret : 0;
}

/* Makes what the first file that may be an interpreter needs. Returns 0 or -ENOMEM. */
static int begin(struct interpreted *i, int pid, struct shstk_symbols *symbols)
{
	if (!i->account)
		i->account = shstk_symbols_process_account(symbols, pid);
	if (!i->all)
		i->all = languages_create(NULL);
	if (!i->all || !i->account)
		return -ENOMEM;
	languages_stopped_only(i->all);
	return 0;
}

int interpreted_find(struct interpreted *i, int pid, struct shstk_symbols *symbols)
{
	struct mapping m;
	struct maps maps;
	int err = 0;

	if (maps_open(pid, "maps", &maps))
		return 0;
	while (!i->number && maps_next(&maps, &m)) {
		if (!m.exec || !languages_may_be(m.path))
			continue;
		err = begin(i, pid, symbols);
		if (err)
			break;
		i->number = ask_file(i, pid, &m);
	}
	maps_close(&maps);
	if (i->number)
		shstk_symbols_set_functions(symbols, languages_function, i->all);
	return err;
}

void interpreted_deinit(struct interpreted *i)
{
	languages_destroy(i->all);
}

void interpreted_stop(struct interpreted *i)
{
	i->stop++;
	i->until = now_ns(CLOCK_MONOTONIC) + STOP_HOLD_MS * NS_PER_MS;
}

#if defined(__x86_64__)
/* Reads memory for as long as threads may be held. A process can have lists as long as it likes. */
static int read_in_time(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct interpreted *i = arg;

	if (now_ns(CLOCK_MONOTONIC) > i->until)
		return -ETIMEDOUT;
	return i->read(i->arg, addr, buf, size);
}

void interpreted_read(const struct interpreted *i, const struct trace_thread *t)
{
	struct language_thread thread = {
		.read = read_in_time,
		.arg = (void *)i,
		.account = i->account,
		.stop = i->stop,
		.tid = t->tid,
		.pc = t->regs.pc,
		.sp = t->regs.r[7],
		.live = { t->regs.r[14], t->regs.r[15] },
	};

	if (!i->number || !t->sampled)
		return;
	errno = 0;
	thread.pointer =
		ptrace(PTRACE_PEEKUSER, t->tid, offsetof(struct user_regs_struct, fs_base), 0);
	/* Without memory for it, the stack shows the interpreter's own functions. */
	if (!errno)
		language_read(i->all, i->number, &thread);
}
#else
void interpreted_read(const struct interpreted *i, const struct trace_thread *t)
{
	(void)i;
	(void)t;
}
#endif

void interpreted_place(const struct interpreted *i, const struct trace_opts *o,
		       struct trace_thread *t)
{
	struct trace_stack *s = &t->unwound;
	const struct native_stack native = { s->pcs, s->marks, s->sps, s->nr > 0 ? s->nr : 0 };
	const struct language_sample of = {
		.number = i->number,
		.tid = t->tid,
		.pc = t->regs.pc,
		.sp = t->regs.r[7],
	};
	unsigned int nr;

	if (!i->number || !s->taken || !s->sps || !native.nr || s->nr_folds || o->compare ||
	    t->hardware.taken)
		return;
	nr = languages_place(i->all, &of, &native, s->pcs, s->marks, o->depth);
	if (nr)
		s->nr = (int)nr;
}
