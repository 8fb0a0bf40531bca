// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * population.c - keeps processes and threads as the kernel's records tell of them. See
 * population.h.
 *
 * The kernel reports every fork, exec, mapping, name and exit, so that addresses are tied to the
 * files that were mapped when a sample was taken. What existed before is read from /proc once
 * recording has begun. A process that is not sampled costs the memory for its mappings until it
 * ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "tools/convert/contexts.h"
#include "tools/convert/living_golabels.h"
#include "tools/convert/population.h"
#include "tools/language/languages.h"
#include "tools/proc/about.h"
#include "tools/shstk.h"

#define MAX_PROCESSES (1u << 18)
#define MAX_TASKS (1u << 19)
#define READ_INTERVAL \
	100000000 /* ns between two reads of /proc/PID/maps, but where it has changed */
#define EARLY_PART 20 /* the part of all time that may be spent with earlier reads */
#define EARLY_MOST 50000000 /* ns of CPU time of earlier reads, one after the other */
#define LINGER 5000000000 /* ns for which a thread that ended may still be seen */

int population_init(struct population *all, struct shstk_symbols *symbols,
		    const struct mappings_files *past)
{
	*all = (struct population){ .symbols = symbols, .files = past, .early = EARLY_MOST };
	if (past)
		return 0;
	all->live = live_create(symbols);
	if (!all->live)
		return -ENOMEM;
	all->files = live_files(all->live);
	return 0;
}

/* ---- Processes ---- */

struct process *population_find_process(struct population *all, int pid)
{
	struct process *p;

	HASH_FIND_INT(all->processes, &pid, p);
	return p;
}

static void free_process(struct process *p)
{
	if (p->proc)
		shstk_symproc_end(p->proc);
	mappings_put(p->mappings);
	golabels_destroy(p->golabels);
	context_watch_free(p->context);
	free(p);
}

/*
 * Removes a process from the table, so that its number is free. Threads that refer to it keep it.
 */
static void hide_process(struct population *all, struct process *p)
{
	HASH_DEL(all->processes, p);
	p->pid = 0;
	if (!p->refs)
		free_process(p);
}

/*
 * Adds a process and takes over the reference to @mappings. Process IDs are used again: an older
 * process with the same number is over. Returns NULL if there is no memory.
 */
static struct process *add_process(struct population *all, int pid, struct mappings *mappings)
{
	struct process *old = population_find_process(all, pid);
	struct process *p = calloc(1, sizeof(*p));

	if (old)
		hide_process(all, old);
	if (!p || !mappings) {
		mappings_put(mappings);
		free(p);
		return NULL;
	}
	p->pid = pid;
	p->mappings = mappings;
	HASH_ADD_INT(all->processes, pid, p);
	if (p->hh.tbl)
		return p;
	free_process(p);
	return NULL;
}

/* Takes a mapping of which no record told. Returns 0 or -ENOMEM. */
static int found_map(void *arg, pid_t pid, const struct mappings_map *map)
{
	struct population *all = arg;
	const struct mappings_files *files = all->files;
	struct process *p = population_find_process(all, pid);

	const struct perf_map told = {
		.pid = pid,
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.path = map->path,
		.id = map->id,
		.dev = map->dev,
		.inode = map->inode,
	};

	if (all->writer)
		perf_writer_map(all->writer, all->time, &told);
	return p && p->proc ? files->name(files->arg, pid, p->proc, map) : 0;
}

void population_maps_changed(struct process *p)
{
	p->maps_changed = true;
}

/* Returns whether it is not long ago that the process's maps were read. */
static bool is_early(const struct process *p, uint64_t now)
{
	return p->read_at && now - p->read_at < READ_INTERVAL;
}

/* Returns how many ns of CPU time may be spent now with earlier reads. */
static int64_t early_left(const struct population *all, uint64_t now)
{
	const uint64_t more = (now - all->early_at) / EARLY_PART;

	return more < (uint64_t)(EARLY_MOST - all->early) ? all->early + (int64_t)more : EARLY_MOST;
}

bool population_may_read_maps(const struct population *all, const struct process *p)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	return all->live && (!is_early(p, now) || (p->maps_changed && early_left(all, now) > 0));
}

bool population_read_maps(struct population *all, struct process *p)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	const bool early = is_early(p, now);
	uint64_t used;
	bool ret;

	if (!population_may_read_maps(all, p))
		return false;
	p->read_at = now;
	p->maps_changed = false;
	used = early ? now_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	ret = !live_read(all->symbols, &p->mappings, p->pid, found_map, all);
	if (early) {
		all->early =
			early_left(all, now) - (int64_t)(now_ns(CLOCK_THREAD_CPUTIME_ID) - used);
		all->early_at = now;
	}
	return ret;
}

bool population_is_later(const struct population *all, const struct process *p)
{
	return all->executes && all->executes(all->executes_arg, p->pid, all->time);
}

struct process *population_process(struct population *all, int pid)
{
	struct process *p = population_find_process(all, pid);

	if (p)
		return p;
	p = add_process(all, pid, mappings_create(all->files));
	if (p)
		population_read_maps(all, p);
	return p;
}

int process_language(struct process *p, struct languages *languages)
{
	int number = mappings_language(p->mappings, p->pid, languages);

	if (number != p->language)
		languages_set(languages, p->pid, number);
	p->language = number;
	return number;
}

uint64_t process_function(void *p, uint64_t pc)
{
	const struct process *of = p;

	return mappings_function(of->mappings, of->pid, pc);
}

/* Says what process it is, in labels of its samples. Returns 0 or -ENOMEM. */
static int add_labels(struct population *all, struct process *p)
{
	char labels[ABOUT_MAX];
	size_t size = all->live && all->labels ? about_process(p->pid, labels) : 0;

	return size ? shstk_symproc_set_labels(p->proc, labels, size) : 0;
}

struct shstk_symproc *population_names(struct population *all, struct process *p)
{
	if (p->proc)
		return p->proc;
	if (all->live ? shstk_symproc_create(all->symbols, p->pid, &p->proc) :
			shstk_symproc_create_past(all->symbols, p->pid, &p->proc))
		return NULL;
	if (add_labels(all, p))
		return NULL;
	return mappings_name(p->mappings, p->pid, p->proc) ? NULL : p->proc;
}

void population_renew(struct population *all, struct shstk_symbols *symbols)
{
	struct process *p, *next_p;
	struct task *t, *next_t;

	all->symbols = symbols;
	if (all->live)
		live_renew(all->live, symbols);
	HASH_ITER(hh, all->processes, p, next_p)
	{
		p->proc = NULL;
		p->sampled = false;
	}
	HASH_ITER(hh, all->tasks, t, next_t)
	{
		t->proc = NULL;
		t->sampled = false;
		t->process->proc = NULL;
	}
}

/* ---- Threads ---- */

static void set_comm(struct task *t, const char *from, size_t size)
{
	memset(t->comm, 0, sizeof(t->comm));
	memcpy(t->comm, from, strnlen(from, size < TASK_COMM ? size : TASK_COMM - 1));
	printable(t->comm);
}

/* The name of a thread is read as it is: stdio would ask for the size of a block and allocate one. */
static void read_comm(struct task *t)
{
	char path[64], name[64];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", t->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	size = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (size <= 0)
		return;
	name[size] = '\0';
	name[strcspn(name, "\n")] = '\0';
	set_comm(t, name, strlen(name));
}

struct task *population_find_task(struct population *all, int tid)
{
	struct task *t;

	HASH_FIND_INT(all->tasks, &tid, t);
	return t;
}

static void set_process(struct population *all, struct task *t, struct process *p)
{
	struct process *old = t->process;

	if (old == p)
		return;
	if (old)
		DL_DELETE2(old->tasks, t, prev_of, next_of);
	if (p) {
		DL_APPEND2(p->tasks, t, prev_of, next_of);
		p->refs++;
	}
	if (p && !t->exited)
		p->living++;
	if (old && !t->exited)
		old->living--;
	t->process = p;
	if (!old || --old->refs)
		return;
	if (old->pid)
		hide_process(all, old);
	else
		free_process(old);
}

static struct task *add_task(struct population *all, int tid, struct process *p)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tid = tid;
	above_init(&t->above, &all->kept);
	HASH_ADD_INT(all->tasks, tid, t);
	if (!t->hh.tbl) {
		free(t);
		return NULL;
	}
	set_process(all, t, p);
	return t;
}

struct task *population_task(struct population *all, int pid, int tid)
{
	struct task *t = population_find_task(all, tid);
	struct process *p = t && t->process->pid == pid ? t->process : population_process(all, pid);

	if (!p)
		return NULL;
	if (t) {
		/* The thread's process was forgotten. */
		p->ours |= !t->process->pid && t->process->ours;
		set_process(all, t, p);
		return t;
	}
	t = add_task(all, tid, p);
	if (!t)
		return NULL;
	if (all->live)
		read_comm(t);
	if (all->writer)
		perf_writer_comm(all->writer, all->time, pid, tid, t->comm);
	return t;
}

void task_forget_stack(struct task *t)
{
	free(t->stack.pcs);
	t->stack = (struct stack){ 0 };
	t->left = t->woken = 0;
}

static void drop_task(struct population *all, struct task *t)
{
	HASH_DEL(all->tasks, t);
	if (t->exited)
		DL_DELETE(all->exited, t);
	task_forget_stack(t);
	outer_deinit(&t->whole);
	above_deinit(&t->above);
	set_process(all, t, NULL);
	free(t);
}

/* ---- Records ---- */

void population_make_room(struct population *all)
{
	while (HASH_COUNT(all->tasks) >= MAX_TASKS && !all->tasks->process->waiting)
		drop_task(all, all->tasks);
	while (HASH_COUNT(all->processes) >= MAX_PROCESSES && !all->processes->waiting)
		hide_process(all, all->processes);
}

int population_map(struct population *all, const struct perf_map *m)
{
	const struct mappings_files *files = all->files;
	const struct mappings_map map = {
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = (char *)m->path,
		.id = m->id,
		.dev = m->dev,
		.inode = m->inode,
	};
	struct process *p;
	int ret;

	if (m->pid <= 0)
		return 0;
	p = population_process(all, m->pid);
	if (!p)
		return -ENOMEM;
	ret = mappings_add(&p->mappings, p->pid, &map);
	if (ret > 0)
		ret = p->proc ? files->name(files->arg, p->pid, p->proc, &map) : 0;
	return ret;
}

/* Begins another program in a process; its mappings follow. Returns 0 or -ENOMEM. */
static int execute(struct population *all, const struct task *t, struct process *p)
{
	struct mappings *mappings = mappings_create(all->files);

	if (!mappings)
		return -ENOMEM;
	if (p->proc && !t->left)
		shstk_symproc_end(p->proc);
	mappings_put(p->mappings);
	golabels_destroy(p->golabels);
	context_watch_free(p->context);
	p->mappings = mappings;
	p->golabels = NULL;
	p->context = NULL;
	p->proc = NULL;
	p->executed = true;
	/* A thread that executes a program becomes the first one. */
	p->leader_ended = false;
	p->read_at = 0;
	p->shadow = p->no_shadow = false;
	p->unknown_since = p->ask_at = 0;
	return 0;
}

/*
 * Leaves only the first thread to a process that executes a program. Where another thread did that,
 * it has the first one's number from then on: the first, which ended before, lives again, and
 * nothing more is heard of the other's former number.
 */
static void end_others(struct population *all, struct task *first)
{
	struct process *p = first->process;
	struct task *t, *next;

	if (first->exited) {
		DL_DELETE(all->exited, first);
		first->exited = 0;
		p->living++;
	}
	DL_FOREACH_SAFE2(p->tasks, t, next, next_of)
	if (t != first && !t->exited)
		drop_task(all, t);
}

int population_comm(struct population *all, const struct perf_comm *c)
{
	struct process *p;
	struct task *t;

	if (c->pid <= 0 || c->tid <= 0)
		return 0;
	p = population_process(all, c->pid);
	t = population_task(all, c->pid, c->tid);
	if (!p || !t)
		return -ENOMEM;
	set_comm(t, c->comm, strlen(c->comm));
	if (!c->exec)
		return 0;
	if (c->tid == c->pid)
		end_others(all, t);
	t->whole.nr = 0;
	above_forget(&t->above);
	return execute(all, t, p);
}

/* Adds a process with the same mappings as its parent. Returns NULL if there is no memory. */
static struct process *fork_process(struct population *all, int pid, int parent)
{
	struct process *from = population_process(all, parent), *p;

	if (!from)
		return NULL;
	p = add_process(all, pid, mappings_share(from->mappings));
	if (!p)
		return NULL;
	p->ours = from->ours;
	p->shadow = from->shadow;
	return p;
}

#define SAME_FORK 1000000 /* ns between the reports of one thread's beginning by two events */

/*
 * Returns whether the beginning of this thread is known. Two sets of events report it while one takes
 * the place of the other. What is known of the thread by then is kept.
 */
static bool knows_fork(struct population *all, const struct perf_fork *f)
{
	const struct task *t = population_find_task(all, f->tid);

	if (!t || t->process->pid != f->pid || !t->began || (t->exited && t->exited < all->time))
		return false;
	return t->began < all->time + SAME_FORK && all->time < t->began + SAME_FORK;
}

int population_fork(struct population *all, const struct perf_fork *f)
{
	struct task *t, *parent;
	struct process *p;

	/* The parent may be in another PID namespace. */
	if (f->pid <= 0 || f->tid <= 0 || f->parent <= 0 || knows_fork(all, f))
		return 0;
	population_forget(all, f->tid);
	parent = population_task(all, f->parent, f->from);
	p = f->pid == f->parent ? population_process(all, f->pid) :
				  fork_process(all, f->pid, f->parent);
	t = p && parent ? add_task(all, f->tid, p) : NULL;
	if (!t)
		return -ENOMEM;
	memcpy(t->comm, parent->comm, sizeof(t->comm));
	t->began = all->time;
	return 0;
}

void population_forget(struct population *all, int tid)
{
	struct task *t = population_find_task(all, tid);

	if (t)
		drop_task(all, t);
}

struct task *population_exit(struct population *all, const struct perf_fork *f)
{
	struct task *t = population_find_task(all, f->tid);

	return t && !t->exited ? t : NULL;
}

bool population_ends(struct task *t)
{
	struct process *p = t->process;

	if (t->tid == p->pid)
		p->leader_ended = true;
	return p->leader_ended && p->living == 1;
}

void population_leave(struct population *all, struct task *t, bool later)
{
	task_forget_stack(t);
	if (!later) {
		drop_task(all, t);
		return;
	}
	/* Records of a file may have no times. */
	t->exited = all->time ? all->time : 1;
	t->process->living--;
	DL_APPEND(all->exited, t);
}

void population_alive(struct population *all, bool ours, void (*fn)(void *arg, int pid), void *arg)
{
	struct process *p, *next_p;
	struct task *t, *next_t;

	HASH_ITER(hh, all->processes, p, next_p)
	p->alive = false;
	/* Threads that ended are kept for a while: a process may have only threads that ended. */
	HASH_ITER(hh, all->tasks, t, next_t)
	if (!t->exited)
		t->process->alive = true;
	HASH_ITER(hh, all->processes, p, next_p)
	if (p->alive && (p->ours || !ours))
		fn(arg, p->pid);
}

void population_age(struct population *all)
{
	while (all->exited && !all->exited->process->waiting && all->time > all->exited->exited &&
	       all->time - all->exited->exited > LINGER)
		drop_task(all, all->exited);
}

void population_deinit(struct population *all)
{
	struct process *p, *next_p;
	struct task *t, *next_t;

	/* The store of names may be gone already. */
	population_renew(all, NULL);
	HASH_ITER(hh, all->tasks, t, next_t)
	drop_task(all, t);
	HASH_ITER(hh, all->processes, p, next_p)
	{
		HASH_DEL(all->processes, p);
		free_process(p);
	}
	live_destroy(all->live);
}
