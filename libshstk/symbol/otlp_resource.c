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

/* Returns whether a component of a path is the unit of a service, and not a user's manager. */
static bool is_service(const char *part, size_t len)
{
	const size_t end = strlen(SERVICE);

	return len > end && !memcmp(part + len - end, SERVICE, end) &&
	       strncmp(part, USER_MANAGER, strlen(USER_MANAGER));
}

bool shstk_resource_unit(const char *cgroup, char *unit)
{
	size_t len;

	*unit = '\0';
	for (const char *part = cgroup; *part; part += len) {
		part += *part == '/';
		len = strcspn(part, "/");
		if (!is_service(part, len))
			continue;
		len -= strlen(SERVICE);
		for (size_t i = 0; i < len; i++)
			if (part[i] == '@')
				len = i;
		if (len && len < SHSTK_RESOURCE_TEXT) {
			memcpy(unit, part, len);
			unit[len] = '\0';
		}
		len = strcspn(part, "/");
	}
	return *unit;
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
