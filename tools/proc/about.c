// SPDX-License-Identifier: GPL-2.0-or-later
/* about.c - reads from /proc what process a sample is of. See about.h. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/proc/about.h"

#define COMMAND_MAX 1024
#define CONTAINER_ID 64 /* hexadecimal digits in the ID of a container */

/*
 * Reads the beginning of a file of /proc/PID. Returns its length, and puts a zero behind it. Of a
 * process that is gone nothing is read.
 */
static size_t read_file(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	*text = '\0';
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, size - 1);
	close(fd);
	n = n < 0 ? 0 : n;
	text[n] = '\0';
	return n;
}

static size_t put(char *labels, size_t at, const char *key, const char *value)
{
	if (!*value || at + strlen(key) + strlen(value) + 2 > ABOUT_MAX)
		return at;
	at = stpcpy(labels + at, key) + 1 - labels;
	return stpcpy(labels + at, value) + 1 - labels;
}

static size_t put_name(pid_t pid, char *labels, size_t at)
{
	char text[64];

	read_file(pid, "comm", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	return put(labels, at, "process", text);
}

/* The arguments of a command end with zero bytes. */
static size_t put_command(pid_t pid, char *labels, size_t at)
{
	char text[COMMAND_MAX];
	size_t nr = read_file(pid, "cmdline", text, sizeof(text));

	while (nr && !text[nr - 1])
		nr--;
	for (size_t i = 0; i < nr; i++)
		if (!text[i])
			text[i] = ' ';
	return put(labels, at, "command", text);
}

/*
 * Finds the ID of a container in the name of its control group: as many hexadecimal digits as it has
 * and no more, and returns it, or NULL.
 */
static const char *find_container(char *group)
{
	size_t nr = 0;

	for (char *p = group;; p++) {
		if (isxdigit((unsigned char)*p)) {
			nr++;
			continue;
		}
		if (nr == CONTAINER_ID) {
			*p = '\0';
			return p - nr;
		}
		nr = 0;
		if (!*p)
			return NULL;
	}
}

/* Returns the process's control group: of version 2 if it is in one, else that of systemd. */
static char *find_group(char *text)
{
	char *line = strstr(text, "0::/"), *group;

	if (!line || (line != text && line[-1] != '\n'))
		line = strstr(text, ":name=systemd:/");
	group = line ? strchr(line, '/') : NULL;
	if (group)
		group[strcspn(group, "\n")] = '\0';
	return group;
}

static size_t put_group(pid_t pid, char *labels, size_t at)
{
	char text[2048], *group;
	const char *container;

	read_file(pid, "cgroup", text, sizeof(text));
	group = find_group(text);
	if (!group)
		return at;
	at = put(labels, at, "cgroup", group);
	container = find_container(group);
	return container ? put(labels, at, "container", container) : at;
}

size_t about_process(pid_t pid, char *labels)
{
	size_t at = put_name(pid, labels, 0);

	at = put_command(pid, labels, at);
	return put_group(pid, labels, at);
}
