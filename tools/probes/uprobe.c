// SPDX-License-Identifier: GPL-2.0-or-later
/* uprobe.c - open a perf event for a place in a file. See uprobe.h. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/probes/uprobe.h"

#define TYPE "/sys/bus/event_source/devices/uprobe/type"

int uprobe_type(void)
{
	FILE *file = fopen(TYPE, "re");
	int type = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &type) != 1)
		type = -1;
	fclose(file);
	return type;
}

int uprobe_open(int type, const struct uprobe *u)
{
	/*
	 * The kernel keeps one probe per place in a file, for all processes. The event selects the
	 * process.
	 */
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = u->returns,
		.config1 = (uintptr_t)u->path,
		.config2 = u->offset,
		.remove_on_exec = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, u->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
