// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * notify.c - tells systemd, or any other starter of a service, the state of the service, by a
 * datagram to a socket whose name is in the environment.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/rules/notify.h"

void notify_state(const char *fmt, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	char text[512];
	va_list ap;
	int fd;

	if (len < 2 || len >= sizeof(to.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(to.sun_path, path, len);
	/* A name that is not in a file system begins with a 0 byte. */
	if (*path == '@')
		to.sun_path[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to,
	       offsetof(struct sockaddr_un, sun_path) + len);
	close(fd);
}

int notify_interval(void)
{
	const char *text = getenv("WATCHDOG_USEC"), *who = getenv("WATCHDOG_PID");
	unsigned long long us = text ? strtoull(text, NULL, 10) : 0;

	if (us < 2000 || us > 1000ull * 1000 * 1000 * 1000 || (who && atol(who) != getpid()))
		return -1;
	return (int)(us / 2000);
}
