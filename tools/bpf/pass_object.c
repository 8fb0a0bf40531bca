// SPDX-License-Identifier: GPL-2.0-or-later
/* pass_object.c - hand a BPF program to another process. See pass_object.h. */
#if __has_include(<bpf/libbpf.h>)
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/bpf/libbpf.h"
#include "tools/bpf/pass_object.h"

#define DESCRIPTORS (1 + BPF_LOADED_MAPS) /* the program, then its maps */

/**
 * struct packet - what is sent beside the descriptors
 * @err: 0, or why there are none, as a negative errno.
 * @why: reason of @err.
 * @nr_maps: number of maps.
 * @maps: the maps.
 */
struct packet {
	int err;
	struct reason why;
	unsigned int nr_maps;
	struct bpf_loaded_map maps[BPF_LOADED_MAPS];
};

union rights {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
};

int bpf_loaded_send(int socket, const struct bpf_loaded *l, int err, const struct reason *why)
{
	struct packet packet = { .err = err, .nr_maps = l->nr_maps };
	struct iovec vec = { &packet, sizeof(packet) };
	union rights rights = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };
	const size_t size = (1 + l->nr_maps) * sizeof(int);

	if (err) {
		packet.why = *why;
	} else {
		memcpy(packet.maps, l->maps, sizeof(packet.maps));
		rights.header.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&rights.header), &l->program, sizeof(l->program));
		memcpy(CMSG_DATA(&rights.header) + sizeof(int), l->fds, size - sizeof(int));
		msg.msg_control = &rights;
		msg.msg_controllen = CMSG_SPACE(size);
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Takes the descriptors over. Returns 0 or a negative errno. */
static int take(const struct packet *packet, const struct msghdr *msg, struct bpf_loaded *ret)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(msg);
	const size_t size = (1 + packet->nr_maps) * sizeof(int);

	/* There are fewer if this process may not open as many files. */
	if (!head || head->cmsg_type != SCM_RIGHTS || msg->msg_flags & MSG_CTRUNC ||
	    head->cmsg_len != CMSG_LEN(size))
		return -EMFILE;
	memcpy(&ret->program, CMSG_DATA(head), sizeof(ret->program));
	memcpy(ret->fds, CMSG_DATA(head) + sizeof(int), size - sizeof(int));
	memcpy(ret->maps, packet->maps, sizeof(ret->maps));
	ret->nr_maps = packet->nr_maps;
	return 0;
}

int bpf_loaded_receive(int socket, bool wait, const char *what, struct bpf_loaded *ret,
		       struct reason *why)
{
	struct packet packet;
	struct iovec vec = { &packet, sizeof(packet) };
	union rights rights;
	struct msghdr msg = { .msg_iov = &vec,
			      .msg_iovlen = 1,
			      .msg_control = &rights,
			      .msg_controllen = sizeof(rights) };
	ssize_t size;
	int err;

	*ret = (struct bpf_loaded){ .what = what, .lib = libbpf_load(), .program = -1 };
	do
		size = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	while (size < 0 && errno == EINTR);
	err = size < 0 ? -errno : size != sizeof(packet) ? -EPIPE : packet.err;
	if (!err && !ret->lib)
		err = -EOPNOTSUPP;
	if (!err)
		err = take(&packet, &msg, ret);
	if (size == sizeof(packet) && packet.err)
		*why = packet.why;
	else if (err == -EPIPE)
		because(why, "%s: the process that loads it has ended", what);
	else if (err)
		because(why, "%s: %s", what, strerror(-err));
	return err;
}
#endif
