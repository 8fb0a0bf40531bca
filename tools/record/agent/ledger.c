// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ledger.c - compares the CPU time of processes with the part of it that was sampled. See
 * ledger.h.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "tools/proc/tasks.h"
#include "tools/record/agent/ledger.h"
#include "tools/record/targets/target.h"

#define MAX_PROCESSES (1u << 18)
#define MAX_GAPS 1024
#define MAX_REAPED (1u << 18) /* processes reaped in one pass over the rings, at most */
#define MAX_WATCHED 256
#define MAX_CPU (1ull << 60)

/**
 * struct account - the account of a process that was not waited for yet
 * @hh: makes it a member of the hash table, by @pid.
 * @pid: process ID.
 * @parent: process ID of its parent.
 * @instance: number of its image.
 * @executed_by: number of the image that executes @path.
 * @agent: an agent is in the process.
 * @ended: the agent has left, because the process exits.
 * @self: CPU time in ns that the process had used when the agent left or @path was executed.
 * @children: CPU time in ns of the children that the process had waited for when the agent left.
 * @seen: CPU time in ns at the last look, for a process without an agent.
 * @followed: the part of its children's CPU time, in ns, of which agents told.
 * @path: the program that it executes without an agent so far, or NULL.
 */
struct account {
	UT_hash_handle hh;
	int pid;
	int parent;
	uint32_t instance;
	uint32_t executed_by;
	bool agent;
	bool ended;
	uint64_t self;
	uint64_t children;
	uint64_t seen;
	uint64_t followed;
	char *path;
};

struct reaped {
	struct reaped *next;
	int pid;
	uint64_t cpu;
	char by[16];
};

struct gap {
	char *program;
	unsigned int processes;
	uint64_t ns;
	bool child; /* @program is the name of the parent */
};

struct ledger {
	struct account *table;
	struct reaped *fresh, *old;
	unsigned int nr_fresh;
	struct gap gaps[MAX_GAPS];
	unsigned int nr_gaps;
};

struct ledger *ledger_create(void)
{
	return calloc(1, sizeof(struct ledger));
}

static void forget(struct ledger *l, struct account *p)
{
	HASH_DEL(l->table, p);
	free(p->path);
	free(p);
}

static void free_list(struct reaped *r)
{
	while (r) {
		struct reaped *next = r->next;

		free(r);
		r = next;
	}
}

void ledger_destroy(struct ledger *l)
{
	struct account *p, *next;

	if (!l)
		return;
	HASH_ITER(hh, l->table, p, next)
	forget(l, p);
	free_list(l->fresh);
	free_list(l->old);
	for (unsigned int i = 0; i < l->nr_gaps; i++)
		free(l->gaps[i].program);
	free(l);
}

static struct account *find(struct ledger *l, int pid)
{
	struct account *p;

	HASH_FIND_INT(l->table, &pid, p);
	return p;
}

static struct account *get(struct ledger *l, int pid)
{
	struct account *p = find(l, pid);

	if (p || pid <= 0 || HASH_COUNT(l->table) >= MAX_PROCESSES)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD_INT(l->table, pid, p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static uint64_t bounded(uint64_t ns)
{
	return ns < MAX_CPU ? ns : 0;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void ledger_started(struct ledger *l, int pid, int parent, uint32_t instance)
{
	struct account *p = get(l, pid);

	if (!p)
		return;
	p->parent = parent;
	p->instance = instance;
	p->ended = false;
	/*
	 * An image that is not newer than the one that executes @path does not end the execution of
	 * @path.
	 */
	if (p->path && p->executed_by >= instance)
		return;
	free(p->path);
	p->path = NULL;
	p->agent = true;
}

void ledger_executes(struct ledger *l, int pid, uint64_t cpu, const char *path, uint32_t instance)
{
	struct account *p = get(l, pid);

	/* The agent in the new program was told of before this. */
	if (!p || (p->agent && p->instance > instance))
		return;
	p->executed_by = instance;
	free(p->path);
	p->path = strdup(path);
	for (char *c = p->path; c && *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			*c = '?';
	p->self = bounded(cpu);
	p->agent = false;
}

void ledger_ended(struct ledger *l, int pid, uint64_t self, uint64_t children)
{
	struct account *p = get(l, pid), *parent;

	if (!p)
		return;
	/* The agent is still there, so the exec failed and @path was not executed. */
	free(p->path);
	p->path = NULL;
	p->agent = p->ended = true;
	p->self = bounded(self);
	p->children = bounded(children);
	parent = find(l, p->parent);
	if (parent && parent->path)
		parent->followed += p->self + p->children;
}

void ledger_reaped(struct ledger *l, int pid, uint64_t cpu, const char *by)
{
	struct reaped *r = l->nr_fresh < MAX_REAPED ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return;
	l->nr_fresh++;
	r->pid = pid;
	r->cpu = bounded(cpu);
	snprintf(r->by, sizeof(r->by), "%s", by);
	r->next = l->fresh;
	l->fresh = r;
}

static void add_gap(struct ledger *l, const char *program, bool child, uint64_t ns)
{
	struct gap *g = l->gaps, *end = g + l->nr_gaps;

	while (g < end && (g->child != child || strcmp(g->program, program)))
		g++;
	if (g == l->gaps + MAX_GAPS)
		g--; /* the last entry takes all further programs: better than silence */
	if (g == end) {
		*g = (struct gap){ .program = strdup(program), .child = child };
		if (!g->program)
			return;
		l->nr_gaps++;
	}
	g->ns += ns;
	g->processes++;
}

static void settle(struct ledger *l, const struct reaped *r,
		   void (*exited)(void *arg, uint32_t instance, uint64_t ns), void *arg)
{
	struct account *p = find(l, r->pid);

	if (!p) {
		add_gap(l, r->by, true, r->cpu);
		return;
	}
	if (p->ended)
		exited(arg, p->instance, minus(r->cpu, p->self + p->children));
	else if (p->path)
		add_gap(l, p->path, false, minus(r->cpu, p->self + p->followed));
	forget(l, p);
}

void ledger_settle(struct ledger *l, void (*exited)(void *arg, uint32_t instance, uint64_t ns),
		   void *arg)
{
	for (struct reaped *r = l->old; r; r = r->next)
		settle(l, r, exited, arg);
	free_list(l->old);
	l->old = l->fresh;
	l->fresh = NULL;
	l->nr_fresh = 0;
}

void ledger_watch(struct ledger *l)
{
	struct account *p, *next;
	unsigned int nr = 0;
	struct task_stat stat;

	HASH_ITER(hh, l->table, p, next)
	{
		if (!p->path || nr++ >= MAX_WATCHED)
			continue;
		if (!task_stat(p->pid, 0, &stat) && stat.cpu)
			p->seen = stat.cpu;
	}
}

static int by_size(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

void ledger_gaps(struct ledger *l, bool foreign,
		 void (*fn)(void *arg, const struct ledger_gap *gap), void *arg)
{
	struct account *p, *next;
	char program[64];

	ledger_watch(l);
	/* Programs without an agent whose end their parent's agent did not see. */
	HASH_ITER(hh, l->table, p, next)
	{
		if (p->path && p->seen > p->self)
			add_gap(l, p->path, false, p->seen - p->self);
	}
	qsort(l->gaps, l->nr_gaps, sizeof(l->gaps[0]), by_size);
	for (unsigned int i = 0; i < l->nr_gaps; i++) {
		const struct gap *g = &l->gaps[i];
		struct ledger_gap gap = { .program = g->program,
					  .ns = g->ns,
					  .processes = g->processes };

		if (g->child) {
			snprintf(program, sizeof(program), "children of %s", g->program);
			gap.program = program;
			gap.reason = foreign ? "ran in another PID namespace" :
					       "were not entered by the agent";
		} else {
			gap.reason = target_reason(g->program);
			if (!gap.reason)
				gap.reason = foreign ? "ran in another PID namespace" :
						       "was not entered by the agent";
		}
		fn(arg, &gap);
	}
}
