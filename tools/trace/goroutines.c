// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * goroutines.c - take and print the stacks of all goroutines. See goroutines.h.
 *
 * A goroutine that runs has the registers of its thread. The others continue with the registers
 * that the runtime saved. Their stacks may lie anywhere, so memory is read page by page, and pages
 * are kept (kept_pages.h) while the program stands still.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/go/goroutine.h"
#include "tools/shstk.h"
#include "tools/trace/goroutines.h"
#include "tools/trace/kept_pages.h"

#define IDS_SHOWN 8

struct label {
	char *key, *value;
};

struct goroutine {
	struct shstk_goroutine runtime;
	struct trace_stack stack;
	struct label labels[GO_LABELS_MAX];
	unsigned int nr_labels;
	bool on_thread;
	bool failed; /* out of memory */
};

struct goroutines {
	const struct goroutine_source *from;
	struct shstk_goruntime rt;
	struct kept_pages pages;
	uint64_t *pcs; /* of one stack, as are the two below */
	uint64_t *sps;
	uint8_t *marks;
	struct goroutine **list;
	size_t nr, room;
};

int goroutines_find(const struct goroutine_source *from, struct goroutines **ret)
{
	struct goroutines *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	all->from = from;
	all->pcs = calloc(from->opts->depth, sizeof(*all->pcs));
	all->sps = calloc(from->opts->depth, sizeof(*all->sps));
	all->marks = calloc(from->opts->depth, 1);
	if (kept_pages_init(&all->pages, from->read, from->arg) || !all->pcs || !all->sps ||
	    !all->marks) {
		goroutines_destroy(all);
		return -ENOMEM;
	}
	err = shstk_goruntime_find(&all->rt, from->space, from->read, from->arg);
	if (err) {
		goroutines_destroy(all);
		return err;
	}
	all->rt.read = kept_pages_read;
	all->rt.arg = &all->pages;
	*ret = all;
	return 0;
}

/* ---- Taking ---- */

static int take_label(void *arg, const char *key, const char *value)
{
	struct goroutine *g = arg;
	struct label *l = &g->labels[g->nr_labels];

	if (g->nr_labels == GO_LABELS_MAX)
		return 1;
	l->key = strdup(key);
	l->value = strdup(value);
	g->nr_labels++;
	g->failed |= !l->key || !l->value;
	return g->failed;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

/*
 * Unwinds a goroutine. There may be a million goroutines, so its stack gets just the memory that it
 * needs.
 */
static int unwind(struct goroutines *all, struct goroutine *g, const struct shstk_regs *regs)
{
	struct trace_stack *s = &g->stack;
	struct shstk_opts opts = { .size = sizeof(opts), .marks = all->marks, .sps = all->sps };

	memset(all->marks, 0, all->from->opts->depth);
	s->info = (struct shstk_info){ .size = sizeof(s->info) };
	s->nr = shstk_unwind(all->from->space, regs, kept_pages_read, &all->pages, all->pcs,
			     all->from->opts->depth, &opts, &s->info);
	if (s->nr < 0)
		return s->nr;
	s->pcs = malloc(s->nr * sizeof(*s->pcs));
	s->marks = malloc(s->nr);
	if (!s->pcs || !s->marks)
		return -ENOMEM;
	memcpy(s->pcs, all->pcs, s->nr * sizeof(*s->pcs));
	memcpy(s->marks, all->marks, s->nr);
	s->taken = true;
	return 0;
}

static void forget_stack(struct goroutine *g)
{
	free(g->stack.pcs);
	free(g->stack.marks);
	g->stack = (struct trace_stack){ 0 };
}

/*
 * Returns true if a goroutine's thread has left it, and the thread's stack does not lead to the
 * goroutine's stack. Such a goroutine waits already or could run again, while its thread is on its
 * own stack and about to look for another goroutine. The runtime also does some work for a
 * goroutine on the thread's stack while the goroutine is marked as waiting: that stack leads to the
 * goroutine's.
 */
static bool has_left(const struct goroutines *all, const struct goroutine *g)
{
	const struct trace_stack *s = &g->stack;
	struct shstk_gostack own;

	if (!g->on_thread || s->nr <= 0 ||
	    (g->runtime.state != SHSTK_GO_WAITING && g->runtime.state != SHSTK_GO_RUNNABLE))
		return false;
	return s->info.end == SHSTK_END_COMPLETE &&
	       shstk_goroutine_stack(&all->rt, g->runtime.g, &own) &&
	       (all->sps[s->nr - 1] <= own.lo || all->sps[s->nr - 1] > own.hi);
}

static void goroutine_free(struct goroutine *g)
{
	for (unsigned int i = 0; i < g->nr_labels; i++) {
		free(g->labels[i].key);
		free(g->labels[i].value);
	}
	forget_stack(g);
	free(g);
}

static int add(struct goroutines *all, struct goroutine *g)
{
	struct goroutine **more;

	if (all->nr == all->room) {
		all->room = all->room ? 2 * all->room : 64;
		more = reallocarray(all->list, all->room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		all->list = more;
	}
	all->list[all->nr++] = g;
	return 0;
}

static int take_one(void *arg, const struct shstk_goroutine *from)
{
	struct goroutines *all = arg;
	struct goroutine *g = calloc(1, sizeof(*g));
	const struct shstk_regs *regs = NULL;
	int err = -ENOMEM;

	if (!g)
		return err;
	g->runtime = *from;
	if (from->tid)
		regs = all->from->regs(all->from->arg, from->tid);
	g->on_thread = regs;
	if (!regs && from->state != SHSTK_GO_RUNNING)
		regs = &from->regs;
	shstk_goroutine_labels(&all->rt, from, take_label, g);
	if (!g->failed)
		qsort(g->labels, g->nr_labels, sizeof(*g->labels), by_key);
	err = g->failed ? -ENOMEM : 0;
	if (!err && regs)
		err = unwind(all, g, regs);
	if (!err && has_left(all, g)) {
		forget_stack(g);
		g->on_thread = false;
		err = unwind(all, g, &from->regs);
	}
	if (!err)
		err = add(all, g);
	if (err)
		goroutine_free(g);
	return err;
}

int goroutines_take(struct goroutines *all)
{
	kept_pages_forget(&all->pages);
	return shstk_goruntime_each(&all->rt, take_one, all);
}

size_t goroutines_count(const struct goroutines *all)
{
	return all->nr;
}

void goroutines_destroy(struct goroutines *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->nr; i++)
		goroutine_free(all->list[i]);
	free(all->list);
	kept_pages_deinit(&all->pages);
	free(all->pcs);
	free(all->sps);
	free(all->marks);
	free(all);
}

/* ---- Groups ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_labels(const struct goroutine *a, const struct goroutine *b)
{
	int diff = compare_numbers(a->nr_labels, b->nr_labels);

	for (unsigned int i = 0; i < a->nr_labels && !diff; i++) {
		diff = strcmp(a->labels[i].key, b->labels[i].key);
		if (!diff)
			diff = strcmp(a->labels[i].value, b->labels[i].value);
	}
	return diff;
}

/* Compares two goroutines. Returns 0 if they are shown as one. */
static int compare(const struct goroutine *a, const struct goroutine *b)
{
	int diff = compare_numbers(a->runtime.state, b->runtime.state);

	if (!diff)
		diff = strcmp(a->runtime.reason, b->runtime.reason);
	if (!diff)
		diff = compare_numbers(a->runtime.gopc, b->runtime.gopc);
	if (!diff)
		diff = compare_numbers(a->runtime.startpc, b->runtime.startpc);
	if (!diff)
		diff = compare_numbers(a->on_thread ? a->runtime.id : 0,
				       b->on_thread ? b->runtime.id : 0);
	if (!diff)
		diff = compare_numbers(a->stack.nr, b->stack.nr);
	if (!diff)
		diff = compare_numbers(a->stack.info.end, b->stack.info.end);
	if (!diff && a->stack.nr > 0)
		diff = memcmp(a->stack.pcs, b->stack.pcs, a->stack.nr * sizeof(*a->stack.pcs));
	return diff ? diff : compare_labels(a, b);
}

static int by_group(const void *a, const void *b)
{
	const struct goroutine *x = *(struct goroutine *const *)a;
	const struct goroutine *y = *(struct goroutine *const *)b;
	int diff = compare(x, y);

	return diff ? diff : compare_numbers(x->runtime.id, y->runtime.id);
}

/* A group of @nr goroutines with equal stacks, which begins at @first of the sorted list. */
struct group {
	struct goroutine *const *first;
	size_t nr;
};

static int by_first(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return compare_numbers((*x->first)->runtime.id, (*y->first)->runtime.id);
}

static size_t make_groups(const struct goroutines *all, struct group *groups)
{
	size_t n = 0;

	qsort(all->list, all->nr, sizeof(*all->list), by_group);
	for (size_t i = 0; i < all->nr; i++) {
		if (i && !compare(all->list[i - 1], all->list[i]))
			groups[n - 1].nr++;
		else
			groups[n++] = (struct group){ all->list + i, 1 };
	}
	qsort(groups, n, sizeof(*groups), by_first);
	return n;
}

/* ---- Printing ---- */

static const char *state_name(const struct goroutine *g)
{
	static const char *const names[] = {
		[SHSTK_GO_RUNNABLE] = "runnable", [SHSTK_GO_RUNNING] = "running",
		[SHSTK_GO_SYSCALL] = "syscall",	  [SHSTK_GO_WAITING] = "waiting",
		[SHSTK_GO_OTHER] = "stopped",
	};

	return names[g->runtime.state];
}

static void print_text(const char *text)
{
	char copy[GO_TEXT_MAX];

	snprintf(copy, sizeof(copy), "%s", text);
	printable(copy);
	fputs(copy, stdout);
}

static void print_head(const struct group *group)
{
	const struct goroutine *g = *group->first;

	if (group->nr > 1)
		printf("\n%zu goroutines", group->nr);
	else
		printf("\ngoroutine");
	for (size_t i = 0; i < group->nr && i < IDS_SHOWN; i++)
		printf("%s %" PRIu64, i ? "," : "", group->first[i]->runtime.id);
	fputs(group->nr > IDS_SHOWN ? ", ... [" : " [", stdout);
	print_text(*g->runtime.reason ? g->runtime.reason : state_name(g));
	if (g->on_thread)
		printf(", thread %d", g->runtime.tid);
	putchar(']');
	for (unsigned int i = 0; i < g->nr_labels; i++) {
		fputs(i ? ", " : " labels ", stdout);
		print_text(g->labels[i].key);
		putchar('=');
		print_text(g->labels[i].value);
	}
	puts(":");
}

static const struct shstk_symframe *creator(const struct goroutine *g, struct shstk_symproc *proc)
{
	const struct shstk_symbol *sym;

	if (!g->runtime.gopc)
		return NULL;
	sym = shstk_symproc_lookup(proc, g->runtime.gopc, SHSTK_SYMADDR_RETURN);
	return &sym->frames[0];
}

static void print_group(const struct trace_opts *o, struct shstk_symproc *proc,
			const struct group *group)
{
	const struct goroutine *g = *group->first;
	const struct shstk_symframe *by = creator(g, proc);

	print_head(group);
	if (g->stack.taken)
		trace_print_stack(o, proc, &g->stack);
	else
		puts("  it runs on a thread that is not known: no stack");
	if (!by)
		return;
	printf("  made by %s", by->function);
	if (by->file)
		printf(" at %s:%u", by->file, by->line);
	putchar('\n');
}

static void put_creator(struct json *json, const struct shstk_symframe *by)
{
	if (!by) {
		shstk_json_null(json, "made_by");
		return;
	}
	shstk_json_open(json, "made_by", '{');
	shstk_json_string(json, "function", by->function);
	shstk_json_string(json, "file", by->file);
	shstk_json_int(json, "line", by->line);
	shstk_json_close(json);
}

static void put_group(const struct trace_opts *o, struct shstk_symproc *proc,
		      const struct group *group)
{
	const struct goroutine *g = *group->first;
	struct json *json = o->json;

	shstk_json_open(json, NULL, '{');
	shstk_json_open(json, "ids", '[');
	for (size_t i = 0; i < group->nr; i++)
		shstk_json_int(json, NULL, group->first[i]->runtime.id);
	shstk_json_close(json);
	shstk_json_string(json, "state", state_name(g));
	shstk_json_string(json, "reason", *g->runtime.reason ? g->runtime.reason : NULL);
	if (g->on_thread)
		shstk_json_int(json, "thread", g->runtime.tid);
	else
		shstk_json_null(json, "thread");
	shstk_json_open(json, "labels", '{');
	for (unsigned int i = 0; i < g->nr_labels; i++)
		shstk_json_string(json, g->labels[i].key, g->labels[i].value);
	shstk_json_close(json);
	put_creator(json, creator(g, proc));
	shstk_json_bool(json, "complete",
			g->stack.taken && g->stack.info.end == SHSTK_END_COMPLETE);
	shstk_json_string(json, "end", g->stack.taken ? shstk_end_name(g->stack.info.end) : NULL);
	trace_put_frames(json, proc, &g->stack);
	shstk_json_close(json);
}

bool goroutines_print(const struct goroutines *all, struct shstk_symproc *proc)
{
	const struct trace_opts *o = all->from->opts;
	struct group *groups = calloc(all->nr ? all->nr : 1, sizeof(*groups));
	bool ok = true;
	size_t n;

	if (!groups) {
		complain("out of memory");
		return false;
	}
	n = make_groups(all, groups);
	if (o->json)
		shstk_json_open(o->json, "goroutines", '[');
	for (size_t i = 0; i < n; i++) {
		ok &= (*groups[i].first)->stack.taken;
		(o->json ? put_group : print_group)(o, proc, &groups[i]);
	}
	if (o->json)
		shstk_json_close(o->json);
	free(groups);
	return ok;
}
