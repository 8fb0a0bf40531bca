// SPDX-License-Identifier: GPL-2.0-or-later
/* attach.c - put probes into a process. See attach.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/regs.h"
#include "tools/probes/allocators.h"
#include "tools/probes/attach.h"
#include "tools/probes/safety.h"
#include "tools/probes/uprobe.h"
#include "tools/proc/tasks.h"

/**
 * struct attach_plan - a process that gets probes
 * @programs: the BPF programs.
 * @pid: the process.
 * @number: the number that stands for the process in records.
 * @type: type of the perf events.
 * @found: the functions that get probes.
 */
struct attach_plan {
	const struct programs *programs;
	pid_t pid;
	uint32_t number;
	int type;
	struct allocators found;
};

static int attach(const struct attach_plan *plan, const struct allocator_function *f,
		  enum probe_program which, struct attached *a)
{
	struct uprobe u = {
		.pid = plan->pid,
		.path = plan->found.files[f->file],
		.offset = f->offset,
		.returns = which == PROBE_LEAVE,
	};
	int fd = uprobe_open(plan->type, &u), link;

	if (fd < 0)
		return fd;
	a->fds[a->nr++] = fd;
	link = programs_attach(plan->programs, which, fd,
			       (uint64_t)plan->number << PROBE_KIND_BITS | f->kind);
	if (link < 0)
		return link;
	a->fds[a->nr++] = link;
	return 0;
}

/*
 * Attaches all probes. The probes at returns come first, so that a call whose beginning is seen is
 * also seen to end. The probes at functions that free come next: no free of a block may be missed
 * whose allocation is seen. realloc() counts as a function that allocates; its probes do both.
 */
static int attach_all(const struct attach_plan *plan, struct attached *a)
{
	static const enum probe_program order[] = { PROBE_LEAVE, PROBE_RELEASE, PROBE_ENTER };
	const struct allocators *found = &plan->found;

	a->functions = found->nr;
	a->fds = calloc(4 * found->nr + 2, sizeof(*a->fds));
	if (!a->fds)
		return -ENOMEM;
	for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++) {
		for (size_t i = 0; i < found->nr; i++) {
			const struct allocator_function *f = &found->functions[i];
			int ret;

			if ((f->kind == PROBE_FREE) != (order[k] == PROBE_RELEASE))
				continue;
			ret = attach(plan, f, order[k], a);
			if (ret)
				return ret;
		}
	}
	/* Without it the mappings are read after a while only. */
	if (found->has_loader)
		attach(plan, &found->loader, PROBE_TELLS_MAPPED, a);
	return 0;
}

static void explain(pid_t pid, int error, struct reason *why)
{
	switch (-error) {
	case ESRCH:
	case ENOENT:
		because(why, "process %d: %s", (int)pid, strerror(ESRCH));
		break;
	case EACCES:
	case EPERM:
		because(why,
			"process %d: probes are not permitted: be root, or have CAP_BPF, CAP_PERFMON and the right to trace it",
			(int)pid);
		break;
	case EMFILE:
		because(why, "process %d: too many open files (see ulimit -n)", (int)pid);
		break;
	default:
		because(why, "process %d: probes of its allocator: %s", (int)pid, strerror(-error));
	}
}

/* Finds the functions of the process. Sets @why after a failure. */
static int find_functions(struct attach_plan *plan, struct reason *why)
{
	int ret = allocators_find(plan->pid, &plan->found);

	if (ret == -ENODATA && tasks_living(plan->pid) != plan->pid)
		because(why,
			"process %d: its first thread has ended: no probes can be attached to such a process",
			(int)plan->pid);
	else if (ret == -ENODATA)
		because(why,
			"process %d: no malloc() and free() are found by their names: it is stripped and static, or has none (Go without C)",
			(int)plan->pid);
	else if (ret == -ENOEXEC)
		because(why, "process %d runs code of another kind of CPU (32-bit?)",
			(int)plan->pid);
	else if (ret)
		explain(plan->pid, ret, why);
	return ret;
}

int probes_attach(const struct programs *p, pid_t pid, uint32_t number, struct attached *ret,
		  struct reason *why)
{
	struct attach_plan plan = { p, pid, number, uprobe_type(), { .nr = 0 } };
	int error;

	*ret = (struct attached){ .nr = 0 };
	if (probes_unsafe(perf_regs_arch(), pid, why))
		return -EOPNOTSUPP;
	if (plan.type < 0) {
		because(why, "this kernel has no probes (CONFIG_UPROBE_EVENTS)");
		return -EOPNOTSUPP;
	}
	error = find_functions(&plan, why);
	if (!error) {
		error = attach_all(&plan, ret);
		if (error)
			explain(pid, error, why);
	}
	allocators_deinit(&plan.found);
	return error;
}

void probes_detach(struct attached *a)
{
	for (size_t i = a->nr; i--;)
		close(a->fds[i]);
	free(a->fds);
	*a = (struct attached){ .nr = 0 };
}
