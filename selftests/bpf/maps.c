// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps.c - a second of CPU time, or as many as the argument says, most of it in bpf(2), which changes a map.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define VALUE 65536 /* bytes, which the kernel copies while it lets no BPF program run */

static int change(int command, union bpf_attr *attr)
{
	const int ret = syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (ret < 0) {
		perror("bpf");
		exit(1);
	}
	return ret;
}

/* Returns the CPU time of this thread, in seconds. */
static double used(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static char value[VALUE];
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = VALUE, .max_entries = 1
	};
	int key = 1;
	union bpf_attr element = { .map_fd = change(BPF_MAP_CREATE, &map) };

	element.key = (unsigned long)&key;
	element.value = (unsigned long)value;
	while (used() < seconds)
		for (int i = 0; i < 100; i++)
			change(BPF_MAP_UPDATE_ELEM, &element);
	return 0;
}
