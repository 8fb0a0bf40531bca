// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * waiting_tasks.c - reads and prints the tasks of asyncio. See waiting_tasks.h.
 *
 * In the tree, what a task waits for stands below it. A task for which several wait stands below the first of
 * them; below the others a line names it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/shstk.h"
#include "tools/language/read.h"
#include "tools/report/screen_name.h"
#include "tools/shstk.h"
#include "tools/trace/kept_pages.h"
#include "tools/trace/waiting_tasks.h"

#define INDENT 4
#define MAX_LEVELS 10 /* that are indented */
#define NAME_BYTES 2048 /* of a task, at most: those that are read, in UTF-8 */
#define FUTURE "_asyncio.FutureIter" /* what a coroutine that awaits a future waits for */

/* ---- Reading ---- */

bool waiting_tasks_may_be(const char *path)
{
	return languages_may_be(path) || awaits_may_be_asyncio(path);
}

void waiting_tasks_look(struct waiting_tasks *w, const char *path,
			const struct language_module *module)
{
	int err = awaits_may_be_asyncio(path) ? -ENOENT :
						awaits_take_python(module, &w->layout, &w->why);

	if (!err || err == -ENOENT)
		err = w->layout.asyncio ? 0 : awaits_take_asyncio(module, &w->layout, &w->why);
	if (err == -EFAULT)
		because(&w->why, "memory of its Python cannot be read");
	w->refused |= err && err != -ENOENT;
}

bool waiting_tasks_known(const struct waiting_tasks *w, const struct interpreted *of,
			 struct reason *why)
{
	const char *refused = of->all ? languages_refused(of->all) : NULL;

	if (w->refused)
		*why = w->why;
	else if (refused)
		because(why, "%s", refused);
	else if (!of->number || !w->layout.minor)
		because(why, "it runs no Python that is known");
	else if (!w->layout.asyncio)
		because(why,
			"it has no tasks of asyncio: its Python has not loaded the module _asyncio");
	else
		return true;
	return false;
}

static int place(void *arg, uint64_t code, int at, uint64_t *ret)
{
	return language_reading_place(arg, code, at, ret);
}

/* The pages of a process, and for how long they may be read. */
struct pages_in_time {
	struct kept_pages pages;
	const struct interpreted *of;
};

/* Reads memory, all or nothing, as long as there is time, also for what is kept already. */
static int read_in_time(void *arg, uint64_t addr, void *buf, size_t size)
{
	struct pages_in_time *from = arg;

	return interpreted_in_time(from->of) ? kept_pages_read(&from->pages, addr, buf, size) :
					       -ETIMEDOUT;
}

/* Reads the tasks from @pages. */
static int take_from(struct waiting_tasks *w, struct interpreted *of, struct pages_in_time *pages)
{
	const struct language_thread thread = {
		.read = read_in_time,
		.arg = pages,
		.account = of->account,
		.stop = of->stop,
	};
	struct awaits_source from = {
		.read = thread.read,
		.arg = thread.arg,
		.place = place,
		.place_arg = language_reading_create(of->all, of->number, &thread),
		.account = of->account,
	};
	const int err = from.place_arg ? awaits_read(&w->layout, &from, &w->all) : -ENOMEM;

	language_reading_destroy(from.place_arg);
	return err;
}

int waiting_tasks_take(struct waiting_tasks *w, struct interpreted *of)
{
	struct pages_in_time from = { .of = of };
	int err = kept_pages_init(&from.pages, interpreted_read_memory, of);

	if (!err)
		err = take_from(w, of, &from);
	kept_pages_deinit(&from.pages);
	return err;
}

void waiting_tasks_complain(const char *whose, int err)
{
	if (err == -EAGAIN)
		complain("%s: its tasks were in the middle of a change", whose);
	else if (err == -EBUSY)
		complain("%s: a thread of it cannot be stopped, or new ones begin all the time",
			 whose);
	else if (err == -E2BIG)
		complain("%s: it has more tasks, or longer lists of them, than are read", whose);
	else if (err == -ETIMEDOUT)
		complain(
			"%s: reading its tasks takes longer than threads may be held, or than --read-limit allows",
			whose);
	else
		complain("%s: its tasks cannot be read: %s", whose, strerror(-err));
}

void waiting_tasks_deinit(struct waiting_tasks *w)
{
	awaits_destroy(w->all);
	w->all = NULL;
}

/* ---- The tree ---- */

/**
 * struct task_tree - what each task waits for
 * @o: the options.
 * @proc: names functions.
 * @a: the tasks.
 * @first: index in @below of the first one for which a task waits; another element ends the last one's.
 * @below: indexes of tasks.
 * @next: index in @below of what is to be printed next below a task.
 * @printed: whether a task was printed.
 * @above: whether a task is in @path.
 * @path: the tasks from a root to the one at hand.
 * @depth: number of elements of @path.
 */
struct task_tree {
	const struct trace_opts *o;
	struct shstk_symproc *proc;
	const struct awaits *a;
	size_t *first;
	size_t *below;
	size_t *next;
	bool *printed;
	bool *above;
	size_t *path;
	size_t depth;
};

static void free_tree(struct task_tree *t)
{
	free(t->first);
	free(t->below);
	free(t->next);
	free(t->printed);
	free(t->above);
	free(t->path);
}

/* Turns "who waits for it" into "for which it waits". Returns false if out of memory. */
static bool make_tree(struct task_tree *t)
{
	const struct awaits *a = t->a;
	size_t nr = 0;

	for (size_t i = 0; i < a->nr; i++)
		nr += a->tasks[i]->nr_by;
	t->first = calloc(a->nr + 1, sizeof(*t->first));
	t->next = calloc(a->nr + 1, sizeof(*t->next));
	t->below = calloc(nr + 1, sizeof(*t->below));
	t->printed = calloc(a->nr + 1, sizeof(*t->printed));
	t->above = calloc(a->nr + 1, sizeof(*t->above));
	t->path = calloc(a->nr + 1, sizeof(*t->path));
	if (!t->first || !t->next || !t->below || !t->printed || !t->above || !t->path)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		for (size_t k = 0; k < a->tasks[i]->nr_by; k++)
			t->first[a->tasks[i]->by[k] + 1]++;
	for (size_t i = 0; i < a->nr; i++)
		t->first[i + 1] += t->first[i];
	memcpy(t->next, t->first, (a->nr + 1) * sizeof(*t->next));
	for (size_t i = 0; i < a->nr; i++)
		for (size_t k = 0; k < a->tasks[i]->nr_by; k++)
			t->below[t->next[a->tasks[i]->by[k]]++] = i;
	memcpy(t->next, t->first, (a->nr + 1) * sizeof(*t->next));
	return true;
}

/* Begins a line at a level. Returns how many columns that takes. */
static size_t indent(size_t level)
{
	if (level > MAX_LEVELS)
		return printf("%*s[level %zu] ", INDENT * MAX_LEVELS, "", level);
	return printf("%*s", (int)(INDENT * level), "");
}

static const char *state_name(const struct awaits_task *task)
{
	static const char *const names[] = {
		[AWAITS_NEW] = "not begun",
		[AWAITS_WAITING] = "waiting",
		[AWAITS_RUNNING] = "running",
		[AWAITS_ENDED] = "ended",
	};

	return names[task->state];
}

/* Prints a task's name behind @used columns, so that on a terminal @behind more fit into the line. */
static void print_name(const struct task_tree *t, size_t i, size_t used, size_t behind)
{
	const size_t limit = t->o->full_names ? 0 : screen_limit();
	const struct awaits_task *task = t->a->tasks[i];
	char name[NAME_BYTES], label[SHSTK_LABEL_MAX];

	used += printf("task ") + behind + strlen("\"\"");
	if (t->o->addresses)
		used += printf("0x%" PRIx64 " ", task->addr);
	snprintf(name, sizeof(name), "%s", task->name);
	printable(name);
	printf("\"%s\"",
	       limit ? shstk_short_name(name, limit > used ? limit - used : 0, label) : name);
}

static void print_task(struct task_tree *t, size_t i)
{
	const struct awaits_task *task = t->a->tasks[i];
	char what[64];

	if (task->tid)
		snprintf(what, sizeof(what), ", %s on thread %d", state_name(task), task->tid);
	else
		snprintf(what, sizeof(what), ", %s%s", state_name(task), task->nr_pcs ? ":" : "");
	print_name(t, i, indent(t->depth), strlen(what));
	puts(what);
	for (size_t k = task->nr_pcs; k--;) {
		const size_t used = indent(t->depth + 1);

		trace_print_function(t->o, t->proc, task->pcs[k], used);
	}
	if (task->what && strcmp(task->what, FUTURE)) {
		indent(t->depth + 1);
		fputs("for an object of type ", stdout);
		print_printable(task->what);
		putchar('\n');
	}
	t->printed[i] = true;
}

/* Prints a line for a task that was printed before. */
static void print_again(struct task_tree *t, size_t i)
{
	const char *what = t->above[i] ? ": see above; so these wait for each other" :
					 ": see above";

	print_name(t, i, indent(t->depth), strlen(what));
	puts(what);
}

/* Prints a task, and begins with all for which it waits. */
static void descend(struct task_tree *t, size_t i)
{
	print_task(t, i);
	t->above[i] = true;
	t->path[t->depth++] = i;
}

/* Prints a task and all for which it waits. */
static void print_from(struct task_tree *t, size_t root)
{
	t->depth = 0;
	descend(t, root);
	while (t->depth) {
		const size_t at = t->path[t->depth - 1];
		size_t i;

		if (t->next[at] == t->first[at + 1]) {
			t->above[at] = false;
			t->depth--;
			continue;
		}
		i = t->below[t->next[at]++];
		if (t->printed[i])
			print_again(t, i);
		else
			descend(t, i);
	}
}

/* First those for which no task waits; then what is left, which waits in circles. */
static void print_tree(struct task_tree *t)
{
	for (size_t i = 0; i < t->a->nr; i++) {
		if (t->a->tasks[i]->nr_by)
			continue;
		putchar('\n');
		print_from(t, i);
	}
	for (size_t i = 0; i < t->a->nr; i++) {
		if (t->printed[i])
			continue;
		putchar('\n');
		print_from(t, i);
	}
}

/* ---- JSON output ---- */

static bool put_task(const struct task_tree *t, const struct awaits_task *task)
{
	struct json *json = t->o->json;
	struct trace_stack stack = { .pcs = task->pcs, .nr = (int)task->nr_pcs };

	stack.marks = malloc(task->nr_pcs + 1);
	if (!stack.marks)
		return false;
	memset(stack.marks, SHSTK_MARK_PC, task->nr_pcs);
	shstk_json_open(json, NULL, '{');
	shstk_json_address(json, "id", task->addr);
	shstk_json_string(json, "name", task->name);
	shstk_json_string(json, "state", state_name(task));
	if (task->tid)
		shstk_json_int(json, "thread", task->tid);
	else
		shstk_json_null(json, "thread");
	shstk_json_string(json, "waits_for", task->what);
	shstk_json_open(json, "awaited_by", '[');
	for (size_t i = 0; i < task->nr_by; i++)
		shstk_json_address(json, NULL, t->a->tasks[task->by[i]]->addr);
	shstk_json_close(json);
	trace_put_frames(json, t->proc, &stack);
	shstk_json_close(json);
	free(stack.marks);
	return true;
}

static bool put_list(const struct task_tree *t)
{
	bool ok = true;

	shstk_json_open(t->o->json, "tasks", '[');
	for (size_t i = 0; i < t->a->nr && ok; i++)
		ok = put_task(t, t->a->tasks[i]);
	shstk_json_close(t->o->json);
	return ok;
}

bool waiting_tasks_print(const struct waiting_tasks *w, const struct trace_opts *o,
			 struct shstk_symproc *proc)
{
	struct task_tree t = { .o = o, .proc = proc, .a = w->all };
	bool ok = o->json || make_tree(&t);

	if (o->json)
		ok = put_list(&t);
	else if (ok)
		print_tree(&t);
	if (!ok)
		complain("out of memory");
	free_tree(&t);
	return ok;
}
