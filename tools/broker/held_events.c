// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * held_events.c - counts the events that a user holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tools/broker/held_events.h"

#define LINE "tfd:"
#define DATA "data:"

int held_create(void)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	return set < 0 ? -errno : set;
}

int held_open(int set)
{
	char path[48];
	int file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	file = open(path, O_RDONLY | O_CLOEXEC);
	return file < 0 ? -errno : file;
}

/*
 * Counts a line of fdinfo, "tfd: NUMBER events: MASK data: CPU ...", with the CPU in hexadecimal.
 */
static void count_line(const char *line, struct held *ret)
{
	const char *data = strstr(line, DATA);
	unsigned long cpu;

	if (strncmp(line, LINE, strlen(LINE)) || !data)
		return;
	cpu = strtoul(data + strlen(DATA), NULL, 16);
	ret->nr++;
	if (cpu < BROKER_MAX_CPUS)
		ret->of_cpu[cpu]++;
}

int held_count(int file, struct held *ret)
{
	int copy = lseek(file, 0, SEEK_SET) ? -1 : dup(file);
	FILE *lines = copy < 0 ? NULL : fdopen(copy, "r");
	char line[256];
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!lines) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	while (fgets(line, sizeof(line), lines))
		count_line(line, ret);
	err = ferror(lines) ? -EIO : 0;
	fclose(lines);
	return err;
}

int held_add(int set, int event, uint32_t cpu)
{
	struct epoll_event item = { .data.u64 = cpu };

	return epoll_ctl(set, EPOLL_CTL_ADD, event, &item) ? -errno : 0;
}
