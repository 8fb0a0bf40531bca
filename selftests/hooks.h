/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hooks.h - calls each function of a preloaded object in a child, and tells whether all are called.
 * Shared by the tests of the agent and of the heap agent.
 */
#ifndef SELFTESTS_HOOKS_H
#define SELFTESTS_HOOKS_H

#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

/**
 * struct hook - a function of the object
 * @name: its name.
 * @call: calls it.
 */
struct hook {
	const char *name;
	void (*call)(void);
};

/* Functions of newer C libraries, of which the objects have hooks everywhere. */
typedef int spawn_function(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
spawn_function pidfd_spawn, pidfd_spawnp;

static inline void hooks_spawn(spawn_function *call, const char *path, char *const argv[],
			       char *const envp[])
{
	int fd;

	if (!call(&fd, path, NULL, NULL, argv, envp))
		waitid(P_PIDFD, (id_t)fd, NULL, WEXITED);
}

static inline void hooks_popen(void)
{
	FILE *out = popen("true", "r");

	if (out)
		pclose(out);
}

static inline void hooks_wordexp(void)
{
	wordexp_t found;

	if (!wordexp("$(echo a)", &found, 0))
		wordfree(&found);
}

/* Runs @run, which does not return, in a child. Returns whether the child ended with status 0. */
static inline bool hook_survives(const struct hook *hook, void (*run)(const struct hook *hook))
{
	pid_t pid = fork();
	int how = 0;

	if (!pid)
		run(hook);
	waitpid(pid, &how, 0);
	if (how)
		printf("# %s: status %#x\n", hook->name, how);
	return !how;
}

static inline bool hooks_have(const struct hook *hooks, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(hooks[i].name, name))
			return true;
	return false;
}

/* Returns whether @hooks are all functions that the shared object @path defines, and no others. */
static inline bool hooks_are_all(const struct hook *hooks, size_t nr, const char *path)
{
	char command[4200], name[128];
	bool good = true;
	size_t found = 0;
	FILE *list;

	snprintf(command, sizeof(command), "nm -D --defined-only %s | awk '/ T /{print $3}'", path);
	list = popen(command, "r");
	while (list && fscanf(list, "%127s", name) == 1) {
		found++;
		if (hooks_have(hooks, nr, name))
			continue;
		printf("# no call of %s\n", name);
		good = false;
	}
	if (list)
		pclose(list);
	return good && found == nr;
}

#endif
