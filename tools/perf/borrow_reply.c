// SPDX-License-Identifier: GPL-2.0-or-later
/* borrow_reply.c - what goes over the broker's sockets. See borrow_reply.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/perf/borrow_reply.h"

#define MAX_ERROR 4095 /* the kernel has no larger errno */

/*
 * Sends a reply without waiting, with the descriptor @fd unless it is negative. Returns whether it was
 * sent.
 */
static bool send_reply(int socket, const struct broker_reply *reply, int fd)
{
	struct iovec vec = { .iov_base = (void *)reply, .iov_len = sizeof(*reply) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };

	if (fd >= 0) {
		control.head = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)),
		};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*reply);
}

bool broker_answer(int socket, struct broker_reply *reply, int ret)
{
	const int fd = reply->flags & BROKER_DONE ? -1 : ret;
	bool sent;

	reply->error = fd < 0 && !(reply->flags & BROKER_DONE) ? -ret : 0;
	sent = send_reply(socket, reply, fd);
	if (fd >= 0)
		close(fd);
	return sent;
}

bool broker_is_whole(const union broker_packet *packet, ssize_t size)
{
	if (size < (ssize_t)sizeof(packet->request))
		return false;
	return (size_t)size == (packet->request.kind == BROKER_PROCESS ? sizeof(packet->process) :
									 sizeof(packet->request));
}

/* Returns the descriptor that came with a message, or -1. */
static int descriptor_of(struct msghdr *msg)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(msg);
	int fd;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
	    head->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* Returns whether a reply's error is one, and whether it came with a descriptor if it says so, and only then. */
static bool is_sound(const struct broker_reply *reply, bool handed)
{
	return reply->error >= 0 && reply->error <= MAX_ERROR &&
	       handed == (!reply->error && !(reply->flags & BROKER_DONE));
}

/* Receives a message. A call with a limit of time is interrupted when its process was stopped, too. */
static ssize_t receive(int socket, struct msghdr *msg)
{
	ssize_t n;

	do {
		n = recvmsg(socket, msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	return n;
}

/*
 * Returns why a message that is no answer is none. The kernel hands over no descriptor to who has no number
 * left for it, and only says that something is missing.
 */
static int lacks(int socket, ssize_t size, const struct msghdr *msg)
{
	int fd;

	if (!size)
		return -EPIPE;
	if (!(msg->msg_flags & MSG_CTRUNC) || CMSG_FIRSTHDR(msg))
		return -EPROTO;
	fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	close(fd);
	return -EPROTO;
}

int broker_receive(int socket, struct broker_reply *ret)
{
	struct iovec vec = { .iov_base = ret, .iov_len = sizeof(*ret) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {
		.msg_iov = &vec,
		.msg_iovlen = 1,
		.msg_control = &control,
		/* One descriptor: the kernel closes any others. */
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	ssize_t n = receive(socket, &msg);
	int fd;

	/*
	 * If the broker has closed the connection without reading the request, the first call
	 * reports that, and the second one receives the answer.
	 */
	if (n < 0 && errno == ECONNRESET)
		n = receive(socket, &msg);
	fd = n < 0 ? -1 : descriptor_of(&msg);

	if (n < 0)
		return -errno;
	if (n == sizeof(*ret) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    ret->version == BROKER_VERSION && is_sound(ret, fd >= 0))
		return ret->error ? -ret->error : fd < 0 ? 0 : fd;
	if (fd >= 0)
		close(fd);
	return lacks(socket, n, &msg);
}
