// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * areas.c - shadow stacks among the mappings of a process: smaps calls them "ss".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/areas.h"

int areas_read(pid_t pid, struct areas *ret)
{
	char path[64], *line = NULL;
	struct area now = { 0, 0 }, *v;
	size_t room = 0;
	FILE *file;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (getline(&line, &room, file) > 0) {
		struct area a;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &a.start,
			   &a.end) == 2 && strchr(line, '-') < strchr(line, ' '))
			now = a;
		else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " ss")) {
			v = reallocarray(ret->v, ret->n + 1, sizeof(*v));
			if (!v)
				break;
			ret->v = v;
			v[ret->n++] = now;
		}
	}
	free(line);
	fclose(file);
	return 0;
}
