// SPDX-License-Identifier: LGPL-2.1-or-later
/* otlp_resource.c - what the name of a control group says of a process. See otlp_resource.h. */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "otlp_resource.h"

#define SERVICE ".service"
#define USER_MANAGER "user@"
#define UID 36 /* characters of a pod's UID: 32 digits in five groups */

/*
 * How control groups are called whose names say a service: a unit of systemd's, or a container that has
 * a name. Those of other containers have only an ID.
 */
static const struct {
	const char *before, *after;
} names[] = {
	{ "systemd-nspawn@", SERVICE },
	{ "machine-", ".scope" }, /* systemd-machined */
	{ "lxc.payload.", "" },
	{ "", SERVICE },
};

/* Finds the name of a service in a component of a path. Returns its length, or 0. */
static size_t find_name(const char **part, size_t len)
{
	if (!strncmp(*part, USER_MANAGER, strlen(USER_MANAGER)))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const size_t before = strlen(names[i].before), after = strlen(names[i].after);

		if (len <= before + after || strncmp(*part, names[i].before, before) ||
		    memcmp(*part + len - after, names[i].after, after))
			continue;
		*part += before;
		return len - before - after;
	}
	return 0;
}

/* Copies a name without its instance. systemd writes a hyphen within a name of a container as \x2d. */
static void copy_name(const char *name, size_t len, char *to)
{
	const char *end = memchr(name, '@', len);

	len = end ? (size_t)(end - name) : len;
	if (!len || len >= SHSTK_RESOURCE_TEXT)
		return;
	for (size_t i = 0; i < len; to++) {
		bool hyphen = len - i >= 4 && !memcmp(name + i, "\\x2d", 4);

		*to = hyphen ? '-' : name[i];
		i += hyphen ? 4 : 1;
	}
	*to = '\0';
}

bool shstk_resource_unit(const char *cgroup, char *unit)
{
	size_t len, nr;

	*unit = '\0';
	for (const char *part = cgroup; *part; part += len) {
		const char *name;

		part += *part == '/';
		len = strcspn(part, "/");
		name = part;
		nr = find_name(&name, len);
		if (nr)
			copy_name(name, nr, unit);
	}
	return *unit;
}

bool shstk_resource_is_split(const char *cgroup)
{
	return strstr(cgroup, SERVICE "/libpod-payload-");
}

/*
 * Copies a UID. systemd's names of units have underscores in it where others have hyphens, because a
 * hyphen there means another level. Returns false if there is none at @text.
 */
static bool copy_uid(const char *text, char *uid)
{
	for (size_t i = 0; i < UID; i++) {
		bool group = i == 8 || i == 13 || i == 18 || i == 23;

		if (group ? text[i] != '-' && text[i] != '_' : !isxdigit((unsigned char)text[i]))
			return false;
		uid[i] = group ? '-' : text[i];
	}
	uid[UID] = '\0';
	return !isalnum((unsigned char)text[UID]);
}

bool shstk_resource_pod(const char *cgroup, char *uid)
{
	for (const char *at = cgroup; (at = strstr(at, "pod")); at++)
		if (at > cgroup && (at[-1] == '/' || at[-1] == '-') && copy_uid(at + 3, uid))
			return true;
	*uid = '\0';
	return false;
}

bool shstk_resource_machine(char id[SHSTK_MACHINE_ID])
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, id, SHSTK_MACHINE_ID - 1);

	if (fd >= 0)
		close(fd);
	id[n > 0 ? n : 0] = '\0';
	return strspn(id, "0123456789abcdef") == SHSTK_MACHINE_ID - 1;
}
