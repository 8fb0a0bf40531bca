// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * running_process.c - `shstk trace -p PID --no-stop`: the shadow stacks of all threads of a process
 * that goes on running, read by the kernel module shstk.ko.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"
#include "linux/shstk.h"
#include "tools/output.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"
#include "tools/trace/trace.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

struct traces {
	struct shstk_ioc_trace call;
	struct shstk_ioc_thread *threads;
	uint64_t *entries;
};

static int allocate(struct traces *t, unsigned int threads)
{
	free(t->threads);
	free(t->entries);
	t->threads = calloc(threads, sizeof(*t->threads));
	t->entries = calloc((size_t)threads * t->call.max_entries, sizeof(*t->entries));
	t->call.max_threads = threads;
	t->call.threads = (uintptr_t)t->threads;
	t->call.entries = (uintptr_t)t->entries;
	return t->threads && t->entries ? 0 : -ENOMEM;
}

/* Takes the shadow stacks. Threads come and go, so this is repeated until there is room for all. */
static int take(struct traces *t, int dev)
{
	unsigned int room = 16;
	int err;

	for (;;) {
		err = allocate(t, room);
		if (!err)
			err = shstk_device_trace(dev, &t->call);
		if (err || t->call.nr_threads <= room || room == SHSTK_MAX_THREADS)
			return err;
		room = t->call.nr_threads + t->call.nr_threads / 8 + 8;
		if (room > SHSTK_MAX_THREADS)
			room = SHSTK_MAX_THREADS;
	}
}

static void describe(const struct trace_opts *o, const struct traces *t, unsigned int i,
		     uint8_t *marks, struct trace_thread *ret)
{
	const struct shstk_ioc_thread *thread = &t->threads[i];

	*ret = (struct trace_thread){
		.tid = thread->tid,
		.sampled = true,
		.hardware = {
			.taken = thread->error != -ENODATA,
			.nr = thread->error ? thread->error : (int)thread->nr,
			.pcs = t->entries + (size_t)i * t->call.max_entries,
			.marks = marks,
			.info = {
				.end = thread->flags & SHSTK_THREAD_CUT ?
					       SHSTK_END_CAPACITY :
					       SHSTK_END_COMPLETE,
			},
		},
	};

	ret->in_handler = !thread->error && thread->flags & SHSTK_THREAD_SIGNAL;
	trace_describe(o->pid, thread->tid, ret);
}

/* Prints all threads. Returns false if a thread has no stack. */
static bool print_threads(const struct trace_opts *o, const struct traces *t, unsigned int nr,
			  uint8_t *marks, struct shstk_symproc *proc)
{
	struct trace_thread *threads = calloc(nr + 1, sizeof(*threads));
	struct trace_thread **list = calloc(nr + 1, sizeof(*list));
	bool ok = threads && list;

	for (unsigned int i = 0; i < nr && ok; i++) {
		describe(o, t, i, marks, &threads[i]);
		list[i] = &threads[i];
	}
	if (ok)
		ok = trace_print(o, proc, list, nr);
	else
		complain("out of memory");
	free(threads);
	free(list);
	return ok;
}

static bool print_all(const struct trace_opts *o, const struct traces *t,
		      const struct shstk_symbols *symbols, struct shstk_symproc *proc)
{
	unsigned int all = t->call.nr_threads, nr = t->call.max_threads;
	uint8_t *marks = calloc(t->call.max_entries, 1);
	struct task_stat stat;
	const char *comm = task_stat(o->pid, o->pid, &stat) ? "?" : stat.name;
	bool ok = marks;

	if (!marks)
		return false;
	marks[0] = SHSTK_MARK_PC;
	nr = all < nr ? all : nr;
	if (o->json) {
		shstk_json_open(o->json, NULL, '{');
		shstk_json_int(o->json, "pid", o->pid);
		shstk_json_string(o->json, "name", comm);
		shstk_json_null(o->json, "stopped_ms");
		shstk_json_open(o->json, "threads", '[');
	} else {
		printf("process %d (%s), %u %s, not stopped\n", o->pid, comm, all,
		       all == 1 ? "thread" : "threads");
	}
	ok = print_threads(o, t, nr, marks, proc);
	if (o->json)
		shstk_json_close(o->json);
	trace_put_missing(o, symbols);
	if (o->json)
		shstk_json_close(o->json);
	free(marks);
	return ok && nr == all;
}

static int refuse(const struct trace_opts *o, int err)
{
	if (err != -ENOENT)
		return trace_refuse(o->pid, " without a stop", err);
	complain("--no-stop needs /dev/shstk: load shstk.ko, or let the process be stopped");
	return EXIT_FAILED;
}

int trace_running(const struct trace_opts *o)
{
	struct shstk_symbols_opts names = { .full_names = o->full_names };
	struct shstk_symbols *symbols = NULL;
	struct shstk_symproc *proc;
	struct traces t = { .call.max_entries = o->depth };
	int status = EXIT_FAILED;
	int dev, pidfd = -1, err;

	read_limit_apply(&o->read_limit, &names);
	if (trace_check(o->pid))
		return EXIT_FAILED;
	if (t.call.max_entries > SHSTK_MAX_ENTRIES)
		t.call.max_entries = SHSTK_MAX_ENTRIES;
	dev = shstk_device_open();
	if (dev < 0)
		return refuse(o, dev);
	pidfd = syscall(SYS_pidfd_open, o->pid, 0);
	err = pidfd < 0 ? -errno : shstk_symbols_create(&names, &symbols);
	if (!err)
		err = shstk_symproc_create(symbols, o->pid, &proc);
	if (!err)
		err = shstk_symproc_read_maps(proc);
	t.call.pidfd = pidfd;
	if (err >= 0)
		err = take(&t, dev);
	if (err)
		refuse(o, err);
	else if (print_all(o, &t, symbols, proc))
		status = EXIT_OK;
	else
		complain("process %d: not every stack could be taken as asked, see above", o->pid);
	free(t.threads);
	free(t.entries);
	shstk_symbols_destroy(symbols);
	if (pidfd >= 0)
		close(pidfd);
	close(dev);
	return status;
}
