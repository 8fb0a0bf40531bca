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

/* Makes room for one more process. Returns 0, -E2BIG or -ENOMEM. */
static int more_pids(struct targets *t)
{
	const unsigned int max = t->max_pids ? 2 * t->max_pids : 16;
	pid_t *more;

	if (t->nr_pids >= TARGETS_ALL)
		return -E2BIG;
	if (t->nr_pids < t->max_pids)
		return 0;
	more = reallocarray(t->pids, max, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->pids = more;
	t->max_pids = max;
	return 0;
}

/* Adds a process that is not in the list. Returns 0, -E2BIG or -ENOMEM. */
static int append_pid(struct targets *t, pid_t pid)
{
	const int ret = more_pids(t);

	if (!ret)
		t->pids[t->nr_pids++] = pid;
	return ret;
}

/* Adds a process that is given, once. Returns 0, -E2BIG or -ENOMEM. */
static int give_pid(struct targets *t, pid_t pid)
{
	if (has(t->pids, t->nr_pids, pid))
		return 0;
	return t->nr_pids < TARGETS_MAX ? append_pid(t, pid) : -E2BIG;
}

/* Adds a thread that is given, once. Returns 0 or -E2BIG. */
static int give_tid(struct targets *t, pid_t tid)
{
	if (has(t->tids, t->nr_tids, tid))
		return 0;
	if (t->nr_tids == TARGETS_MAX)
		return -E2BIG;
	t->tids[t->nr_tids++] = tid;
	return 0;
}

static void parse_list(struct argp_state *state, struct targets *t, const char *what,
		       const char *arg, int (*give)(struct targets *t, pid_t number))
{
	char *copy = strdup(arg), *save = NULL, *word;

	if (!copy)
		argp_failure(state, EXIT_OWN, ENOMEM, "%s", what);
	word = strtok_r(copy, ", \t\n", &save);
	if (!word)
		parse_number(state, what, arg, 1, INT_MAX);
	for (; word; word = strtok_r(NULL, ", \t\n", &save)) {
		int err = give(t, parse_number(state, what, word, 1, INT_MAX));

		if (err == -E2BIG)
			argp_failure(state, EXIT_USAGE, 0, "%s: at most %d can be given", what,
				     TARGETS_MAX);
		else if (err)
			argp_failure(state, EXIT_OWN, -err, "%s", what);
	}
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
		parse_list(state, t, "process ID", arg, give_pid);
		return 0;
	case 't':
		parse_list(state, t, "thread ID", arg, give_tid);
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

/* Returns the process ID that the word is, or 0. */
static pid_t process_id(const char *word)
{
	char *end;
	long number = strtol(word, &end, 10);

	return isdigit((unsigned char)*word) && !*end && number >= 1 && number <= INT_MAX ? number :
											    0;
}

bool targets_take_words(struct targets *t, char *const *words)
{
	for (char *const *word = words; *word; word++)
		if (!process_id(*word))
			return false;
	for (char *const *word = words; *word; word++)
		if (give_pid(t, process_id(*word)))
			return false;
	return true;
}

void targets_deinit(struct targets *t)
{
	free(t->pids);
	t->pids = NULL;
	t->nr_pids = t->max_pids = 0;
}

/* Says why a process of those that were found cannot be recorded. Returns an exit status. */
static int too_many(int err)
{
	if (err == -E2BIG)
		complain("more than %d processes are to be recorded: see --all", TARGETS_ALL);
	else
		complain("processes to be recorded: %s", strerror(-err));
	return EXIT_OWN;
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
	const unsigned int given = t->nr_pids;
	bool found = false;
	int err = 0;
	pid_t pid;

	while (dir && !err && (pid = tasks_next(dir))) {
		if (pid == getpid() || !is_called(pid, name))
			continue;
		found = true;
		if (!has(t->pids, given, pid))
			err = append_pid(t, pid);
	}
	if (dir)
		closedir(dir);
	if (err)
		return too_many(err);
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
	struct task_stat stat;
	size_t max = 0;
	pid_t pid;

	*nr = 0;
	while (dir && *nr < PARENTS_MAX && (pid = tasks_next(dir))) {
		if (task_stat(pid, 0, &stat))
			continue;
		if (*nr == max) {
			max = max ? 2 * max : 512;
			more = reallocarray(list, max, sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		list[(*nr)++] = (struct birth){ stat.parent, pid };
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

/*
 * Adds the children of a process, each of which has no other parent: only those that were given may be
 * in the list already. Returns 0, -E2BIG or -ENOMEM.
 */
static int add_children_of(struct targets *t, pid_t parent, const struct birth *births, size_t nr)
{
	size_t lo = 0, hi = nr, mid;
	int ret = 0;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (births[mid].parent < parent)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < nr && births[lo].parent == parent && !ret; lo++) {
		if (births[lo].pid == getpid())
			continue;
		if (!is_ours(births[lo].pid))
			t->refused++;
		else if (!has(t->pids, t->given, births[lo].pid))
			ret = append_pid(t, births[lo].pid);
	}
	return ret;
}

/*
 * Adds the children of all processes in the list. The list grows meanwhile, so their children are
 * added too. Returns 0, -E2BIG or -ENOMEM.
 */
static int find_children(struct targets *t)
{
	struct birth *births;
	size_t nr;
	int ret = 0;

	births = list_births(&nr);
	for (unsigned int i = 0; births && i < t->nr_pids && !ret; i++)
		ret = add_children_of(t, t->pids[i], births, nr);
	free(births);
	return ret;
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
	int status = 0, err;

	for (unsigned int i = 0; !status && i < t->nr_names; i++)
		status = find_name(t, t->names[i]);
	t->given = t->nr_pids;
	report_gone(t);
	if (status || !t->nr_pids || t->alone)
		return status;
	err = find_children(t);
	return err ? too_many(err) : 0;
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
	const pid_t *list = t->nr_tids ? t->tids : t->pids;
	unsigned int nr = t->nr_tids ? t->nr_tids : t->nr_pids;
	struct task_stat stat;
	pid_t first;
	int n;

	*buf = '\0';
	if (!nr)
		return;
	first = *list;
	if (task_stat(first, t->nr_tids ? first : 0, &stat))
		n = snprintf(buf, size, "; %s %d has ended", what, (int)first);
	else
		n = snprintf(buf, size, "; %s %d (%s) %s", what, (int)first, stat.name,
			     what_it_does(&stat));
	if (nr > 1 && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - n, ", and so on for %u others", nr - 1);
}
