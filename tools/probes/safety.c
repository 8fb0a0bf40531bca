// SPDX-License-Identifier: GPL-2.0-or-later
/* safety.c - tell whether probes can harm a process. See safety.h. */
#include <dirent.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "libshstk/shstk.h"
#include "tools/probes/safety.h"
#include "tools/proc/shadow.h"
#include "tools/proc/tasks.h"

#define VERSION(major, minor) ((major)*1000 + (minor))

#define OLDEST VERSION(6, 1) /* BPF hash tables grow as they are filled */

/**
 * struct kernels - the versions of Linux from which on an architecture has some features
 * @shadow_stacks: probes at a function's return adjust the shadow stack.
 * @call: the probed return makes a system call; 0: it never does.
 * @filters: filters of system calls let this call pass.
 */
struct kernels {
	int shadow_stacks;
	int call;
	int filters;
};

static const struct kernels x86 = { VERSION(6, 11), VERSION(6, 11), VERSION(6, 14) };
static const struct kernels arm64 = { VERSION(6, 18), 0, 0 };

static int kernel_version(struct utsname *name)
{
	int major, minor;

	if (uname(name) || sscanf(name->release, "%d.%d", &major, &minor) != 2)
		return 0;
	return VERSION(major, minor);
}

/* Returns true if the thread has a filter of system calls, or may make only a few (seccomp). */
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

bool probes_unsafe(int arch, pid_t pid, struct reason *why)
{
	const struct kernels *know = arch == SHSTK_ARCH_X86 ? &x86 : &arm64;
	struct utsname name = { .release = "" };
	int version = kernel_version(&name);

	if (version < OLDEST)
		because(why, "Linux 6.1 or later is needed, this is %s", name.release);
	else if (version < know->shadow_stacks && shadow_stacks_any(pid) > 0)
		because(why,
			"process %d has shadow stacks, of which probes of Linux %s know nothing: it would be killed",
			(int)pid, name.release);
	else if (know->call && version >= know->call && version < know->filters &&
		 some_filtered(pid))
		because(why,
			"process %d has a filter of system calls (seccomp), and on Linux %s probes make one that filters do not know: it might be killed",
			(int)pid, name.release);
	else
		return false;
	return true;
}
