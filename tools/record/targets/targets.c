// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * targets.c - finds the running processes and threads that are to be recorded: by number, by name,
 * and as children of others. See targets.h.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/proc/tasks.h"
#include "tools/record/targets/targets.h"
#include "tools/shstk.h"

#define PARENTS_MAX (1u << 20) /* processes of this machine, at most */
#define COMM 15 /* bytes of a process's name that the kernel keeps */
#define KERNEL_THREAD 0x00200000 /* the kernel's PF_KTHREAD */

enum {
	OPT_NAME = 1024,
	OPT_NO_CHILDREN,
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0,
	  "running processes (1234 or 1234,1235), with the children they have and all they start; may be repeated",
	  0 },
	{ "name", OPT_NAME, "NAME", 0,
	  "all processes that are called NAME, or run a program of that name, as with --pid; may be repeated",
	  0 },
	{ "no-children", OPT_NO_CHILDREN, NULL, 0,
	  "with --pid and --name: not the children that they have already", 0 },
	{ "tid", 't', "TID", 0,
	  "running threads, and what they start, not the rest of their processes; may be repeated",
	  0 },
	{ 0 },
};

/* A process and its parent. */
struct birth {
	pid_t parent;
	pid_t pid;
};

bool targets_any(const struct targets *t)
{
	return t->nr_pids || t->nr_tids || t->nr_names;
}

const char *targets_option(const struct targets *t)
{
	return t->nr_tids ? "--tid" : t->nr_names ? "--name" : "--pid";
}

static bool has(const pid_t *list, unsigned int nr, pid_t pid)
{
	for (unsigned int i = 0; i < nr; i++)
		if (list[i] == pid)
			return true;
	return false;
}

/* Adds a number unless it is in the list already. Returns false if there is no room. */
static bool add(pid_t *list, unsigned int *nr, pid_t pid)
{
	if (has(list, *nr, pid))
		return true;
	if (*nr == TARGETS_MAX)
		return false;
	list[(*nr)++] = pid;
	return true;
}

static void parse_list(struct argp_state *state, const char *what, const char *arg, pid_t *list,
		       unsigned int *nr)
{
	char *copy = strdup(arg), *save = NULL, *word;

	if (!copy)
		argp_failure(state, EXIT_OWN, ENOMEM, "%s", what);
	word = strtok_r(copy, ", \t\n", &save);
	if (!word)
		parse_number(state, what, arg, 1, INT_MAX);
	for (; word; word = strtok_r(NULL, ", \t\n", &save))
		if (!add(list, nr, parse_number(state, what, word, 1, INT_MAX)))
			argp_failure(state, EXIT_USAGE, 0, "%s: at most %d can be given", what,
				     TARGETS_MAX);
	free(copy);
}

static void parse_name(struct argp_state *state, struct targets *t, const char *arg)
{
	if (!*arg)
		argp_failure(state, EXIT_USAGE, 0, "name: an empty name is given");
	if (t->nr_names == TARGETS_NAMES)
		argp_failure(state, EXIT_USAGE, 0, "more than %d names", TARGETS_NAMES);
	t->names[t->nr_names++] = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct targets *t = state->input;

	switch (key) {
	case 'p':
		parse_list(state, "process ID", arg, t->pids, &t->nr_pids);
		return 0;
	case 't':
		parse_list(state, "thread ID", arg, t->tids, &t->nr_tids);
		return 0;
	case OPT_NAME:
		parse_name(state, t, arg);
		return 0;
	case OPT_NO_CHILDREN:
		t->alone = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp targets_argp = {
	.options = options,
	.parser = parse,
};

bool targets_take_words(struct targets *t, char *const *words)
{
	struct targets more = { .nr_pids = 0 };

	for (char *const *word = words; *word; word++) {
		char *end;
		long number = strtol(*word, &end, 10);

		if (!isdigit((unsigned char)**word) || *end || number < 1 || number > INT_MAX ||
		    !add(more.pids, &more.nr_pids, number))
			return false;
	}
	for (unsigned int i = 0; i < more.nr_pids; i++)
		if (!add(t->pids, &t->nr_pids, more.pids[i]))
			return false;
	return true;
}

/* ---- Names ---- */

/* Returns whether the process runs a program whose file is called @name. */
static bool exe_is(pid_t pid, const char *name)
{
	char path[32], exe[PATH_MAX], *base;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	size = readlink(path, exe, sizeof(exe) - 1);
	if (size < 0)
		return false;
	exe[size] = '\0';
	base = strrchr(exe, '/');
	base = base ? base + 1 : exe;
	/* The kernel marks a file that was replaced while it runs. */
	size = strlen(base) - strlen(" (deleted)");
	if (size > 0 && !strcmp(base + size, " (deleted)"))
		base[size] = '\0';
	return !strcmp(base, name);
}

static bool is_called(pid_t pid, const char *name)
{
	struct task_stat stat;

	if (task_stat(pid, 0, &stat) || stat.state == 'Z')
		return false;
	return !strncmp(stat.name, name, COMM) || exe_is(pid, name);
}

static int find_name(struct targets *t, const char *name)
{
	DIR *dir = tasks_open(0);
	bool found = false;
	pid_t pid;

	while (dir && (pid = tasks_next(dir))) {
		if (pid == getpid() || !is_called(pid, name))
			continue;
		found = true;
		if (!add(t->pids, &t->nr_pids, pid)) {
			complain("more than %d processes are to be recorded: see --all",
				 TARGETS_MAX);
			closedir(dir);
			return EXIT_OWN;
		}
	}
	if (dir)
		closedir(dir);
	if (found)
		return 0;
	complain("no process is called '%s', and none runs a program of that name", name);
	return EXIT_OWN;
}

/* ---- Children ---- */

static int by_parent(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	return (x->parent > y->parent) - (x->parent < y->parent);
}

/* Lists all processes, sorted by their parents. Returns NULL if there is no memory or no /proc. */
static struct birth *list_births(size_t *nr)
{
	struct birth *list = NULL, *more;
	DIR *dir = tasks_open(0);
	char parent[32];
	size_t max = 0;
	pid_t pid;

	*nr = 0;
	while (dir && *nr < PARENTS_MAX && (pid = tasks_next(dir))) {
		if (!task_field(pid, pid, "PPid", parent, sizeof(parent)))
			continue;
		if (*nr == max) {
			max = max ? 2 * max : 512;
			more = reallocarray(list, max, sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		list[(*nr)++] = (struct birth){ atoi(parent), pid };
	}
	if (dir)
		closedir(dir);
	if (*nr)
		qsort(list, *nr, sizeof(*list), by_parent);
	return list;
}

/*
 * Returns whether we may record the process. The /proc folder of a process with other rights than
 * its user's belongs to root.
 */
static bool is_ours(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return !geteuid() || (!stat(path, &st) && st.st_uid == geteuid());
}

static void add_children_of(struct targets *t, pid_t parent, const struct birth *births, size_t nr)
{
	size_t lo = 0, hi = nr, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (births[mid].parent < parent)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < nr && births[lo].parent == parent; lo++) {
		if (births[lo].pid == getpid())
			continue;
		if (!is_ours(births[lo].pid))
			t->refused++;
		else
			add(t->pids, &t->nr_pids, births[lo].pid);
	}
}

/*
 * Adds the children of all processes in the list. The list grows meanwhile, so their children are
 * added too.
 */
static void find_children(struct targets *t)
{
	struct birth *births;
	size_t nr;

	births = list_births(&nr);
	for (unsigned int i = 0; births && i < t->nr_pids; i++)
		add_children_of(t, t->pids[i], births, nr);
	free(births);
}

/*
 * Prints which of several processes or threads do not exist. If only one was given, recording it
 * fails with its own message.
 */
static void report_gone(const struct targets *t)
{
	const unsigned int nr = t->nr_tids ? t->nr_tids : t->nr_pids;
	const pid_t *list = t->nr_tids ? t->tids : t->pids;

	for (unsigned int i = 0; nr > 1 && i < nr; i++)
		if (process_gone(list[i]))
			complain("%s %d: %s: not recorded", t->nr_tids ? "thread" : "process",
				 (int)list[i], process_gone_why(list[i]));
}

int targets_find(struct targets *t)
{
	int status = 0;

	for (unsigned int i = 0; !status && i < t->nr_names; i++)
		status = find_name(t, t->names[i]);
	t->given = t->nr_pids;
	report_gone(t);
	if (!status && t->nr_pids && !t->alone)
		find_children(t);
	return status;
}

/* ---- Why nothing was recorded ---- */

static const char *what_it_does(const struct task_stat *stat)
{
	if (stat->flags & KERNEL_THREAD)
		return "is a thread of the kernel (see --all --kernel)";
	switch (stat->state) {
	case 'R':
		return "runs now";
	case 'Z':
	case 'X':
		return "has ended";
	case 'T':
	case 't':
		return "is stopped";
	default:
		return "sleeps (see --off-cpu and --wall)";
	}
}

void targets_describe(const struct targets *t, char *buf, size_t size)
{
	const char *what = t->nr_tids ? "thread" : "process";
	pid_t first = t->nr_tids ? t->tids[0] : t->pids[0];
	unsigned int nr = t->nr_tids ? t->nr_tids : t->nr_pids;
	struct task_stat stat;
	int n;

	*buf = '\0';
	if (!nr)
		return;
	if (task_stat(first, t->nr_tids ? first : 0, &stat))
		n = snprintf(buf, size, "; %s %d has ended", what, (int)first);
	else
		n = snprintf(buf, size, "; %s %d (%s) %s", what, (int)first, stat.name,
			     what_it_does(&stat));
	if (nr > 1 && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - n, ", and so on for %u others", nr - 1);
}
