// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * safety.c - see safety.h.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "tools/probes/safety.h"
#include "tools/proc/shadow.h"
#include "tools/proc/tasks.h"

#define VERSION(major, minor) ((major)*1000 + (minor))

#define OLDEST VERSION(6, 1) /* hash tables of BPF that grow as they are filled */

#ifdef __x86_64__
#define KNOWS_SHADOW_STACKS VERSION(6, 11)
#define RETURNS_BY_CALL VERSION(6, 11)
#define FILTERS_KNOW VERSION(6, 14)
#else
#define KNOWS_SHADOW_STACKS VERSION(6, 18)
#define RETURNS_BY_CALL 0
#define FILTERS_KNOW 0
#endif

static int kernel_version(struct utsname *name)
{
	int major, minor;

	if (uname(name) || sscanf(name->release, "%d.%d", &major, &minor) != 2)
		return 0;
	return VERSION(major, minor);
}

/* Has the thread a filter of system calls, or may it make only a few? */
static bool is_filtered(pid_t pid, pid_t tid)
{
	char mode[16];

	return task_field(pid, tid, "Seccomp", mode, sizeof(mode)) && *mode != '0';
}

static bool some_filtered(pid_t pid)
{
	DIR *dir = tasks_open(pid);
	bool filtered = false;
	pid_t tid;

	while (dir && !filtered && (tid = tasks_next(dir)))
		filtered = is_filtered(pid, tid);
	if (dir)
		closedir(dir);
	return filtered;
}

bool probes_unsafe(pid_t pid, char *why, size_t size)
{
	struct utsname name = { .release = "" };
	int version = kernel_version(&name);

	if (version < OLDEST)
		snprintf(why, size, "Linux 6.1 or later is needed, this is %s", name.release);
	else if (version < KNOWS_SHADOW_STACKS && shadow_stacks_any(pid) > 0)
		snprintf(
			why, size,
			"process %d has shadow stacks, of which probes of Linux %s know nothing: it would be killed",
			(int)pid, name.release);
	else if (version >= RETURNS_BY_CALL && version < FILTERS_KNOW && some_filtered(pid))
		snprintf(
			why, size,
			"process %d has a filter of system calls (seccomp), and on Linux %s probes make one that filters do not know: it might be killed",
			(int)pid, name.release);
	else
		return false;
	return true;
}
