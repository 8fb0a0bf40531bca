// SPDX-License-Identifier: GPL-2.0-or-later
/* starter.c - the program that started the one that serves. See starter.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bpf/starter.h"

/*
 * Watches one descriptor. Its other end being closed is always told. No process that is started from here
 * gets it: else the starter would wait for the end of that one, too.
 */
static int watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };

	if (fd < 0)
		return 0;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	return 0;
}

int starter_watch(const struct rules_starter *who, int *stop, struct reason *why)
{
	int set, err;

	*stop = -1;
	if (who->tell < 0 && who->until < 0)
		return 0;
	set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0) {
		err = -errno;
		because(why, "watching the starter: %s", strerror(-err));
		return err;
	}
	err = watch(set, who->tell);
	if (err)
		because(why, "--tell=%d: %s", who->tell, strerror(-err));
	if (!err) {
		err = watch(set, who->until);
		if (err)
			because(why, "--until=%d: %s", who->until, strerror(-err));
	}
	*stop = set;
	return err;
}

void starter_tell(const struct rules_starter *who, const char *fmt, ...)
{
	char text[640];
	va_list ap;

	if (who->tell < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send(who->tell, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void rules_starter_failed(const struct rules_starter *starter, int err, const char *why)
{
	starter_tell(starter, "ERRNO=%d\nSTATUS=%s", -err, why);
}
