// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pieces.c - calls that move more bytes at once than there is room for, to or from a thread that
 * takes its time. If no signal handler of the program runs, each call moves all bytes. Prints the
 * names of the calls that did not, and ends with their number.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SIZE (2 << 20)
#define PIECE (16 << 10)

static char bytes[SIZE], others[PIECE];

static void wait_a_moment(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	nanosleep(&moment, NULL);
}

static void *take_slowly(void *arg)
{
	const int *fd = arg;

	while (read(*fd, others, sizeof(others)) > 0)
		wait_a_moment();
	return NULL;
}

static void *give_slowly(void *arg)
{
	const int *fd = arg;

	for (int given = 0; given < SIZE; given += PIECE) {
		wait_a_moment();
		if (write(*fd, others, PIECE) != PIECE)
			break;
	}
	return NULL;
}

static ssize_t by_write(int fd)
{
	return write(fd, bytes, SIZE);
}

static ssize_t by_writev(int fd)
{
	struct iovec iov[2] = { { bytes, SIZE / 2 }, { bytes + SIZE / 2, SIZE / 2 } };

	return writev(fd, iov, 2);
}

static ssize_t by_send(int fd)
{
	return send(fd, bytes, SIZE, 0);
}

static ssize_t by_sendto(int fd)
{
	return sendto(fd, bytes, SIZE, 0, NULL, 0);
}

static ssize_t by_sendmsg(int fd)
{
	struct iovec iov = { bytes, SIZE };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sendmsg(fd, &message, 0);
}

static ssize_t by_sendfile(int fd)
{
	int from = memfd_create("pieces", 0);
	ssize_t ret = -1;

	if (from >= 0 && !ftruncate(from, SIZE))
		ret = sendfile(fd, from, NULL, SIZE);
	close(from);
	return ret;
}

static ssize_t by_recv(int fd)
{
	return recv(fd, bytes, SIZE, MSG_WAITALL);
}

static ssize_t by_recvfrom(int fd)
{
	return recvfrom(fd, bytes, SIZE, MSG_WAITALL, NULL, NULL);
}

static ssize_t by_recvmsg(int fd)
{
	struct iovec iov = { bytes, SIZE };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(fd, &message, MSG_WAITALL);
}

static ssize_t by_recvmmsg(int fd)
{
	static struct iovec iov[SIZE / PIECE];
	static struct mmsghdr messages[SIZE / PIECE];
	ssize_t moved = 0;
	int nr;

	for (int i = 0; i < SIZE / PIECE; i++) {
		iov[i] = (struct iovec){ bytes + i * PIECE, PIECE };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	nr = recvmmsg(fd, messages, SIZE / PIECE, 0, NULL);
	for (int i = 0; i < nr; i++)
		moved += messages[i].msg_len;
	return moved;
}

static const struct {
	const char *name;
	ssize_t (*move)(int fd);
	void *(*other_end)(void *fd);
	int type; /* of the sockets */
} calls[] = {
	{ "write", by_write, take_slowly, SOCK_STREAM },
	{ "writev", by_writev, take_slowly, SOCK_STREAM },
	{ "send", by_send, take_slowly, SOCK_STREAM },
	{ "sendto", by_sendto, take_slowly, SOCK_STREAM },
	{ "sendmsg", by_sendmsg, take_slowly, SOCK_STREAM },
	{ "sendfile", by_sendfile, take_slowly, SOCK_STREAM },
	{ "recv", by_recv, give_slowly, SOCK_STREAM },
	{ "recvfrom", by_recvfrom, give_slowly, SOCK_STREAM },
	{ "recvmsg", by_recvmsg, give_slowly, SOCK_STREAM },
	{ "recvmmsg", by_recvmmsg, give_slowly, SOCK_SEQPACKET },
};

/* Returns 1 if the call moved all bytes. */
static int is_whole(int i)
{
	pthread_t other;
	ssize_t moved;
	int fd[2];

	if (socketpair(AF_UNIX, calls[i].type, 0, fd) ||
	    pthread_create(&other, NULL, calls[i].other_end, &fd[1]))
		exit(99);
	moved = calls[i].move(fd[0]);
	if (moved != SIZE)
		printf("%s: %zd of %d\n", calls[i].name, moved, SIZE);
	shutdown(fd[0], SHUT_RDWR);
	pthread_join(other, NULL);
	close(fd[0]);
	close(fd[1]);
	return moved == SIZE;
}

int main(void)
{
	int parts = 0;

	signal(SIGPIPE, SIG_IGN); /* the other end of a call that was cut short is closed */
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		parts += !is_whole(i);
	return parts;
}
