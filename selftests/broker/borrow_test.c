// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * borrow_test.c - tests what a recorder makes of connections to the broker that end without an answer, or that
 * lead to somebody else.
 *
 * A child of the test stands for the broker. The linker replaces getsockopt(), so that it may be any user's.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/perf/borrow.h"
#include "tools/perf/borrow_protocol.h"
#include "tools/perf/borrow_reply.h"

#include "kselftest_harness.h"

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);

/* Whose process it is that listens. */
static uid_t listener;

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	const struct ucred peer = { .pid = 1, .uid = listener };

	(void)fd, (void)level, (void)name;
	memcpy(value, &peer, *size);
	return 0;
}

/*
 * Serves a connection for each letter: c closes it, b answers that another process of this user is served, e that
 * the process behind it has ended, d that what was asked for is done. Any further connection is closed.
 */
static _Noreturn void serve(int socket, const char *steps)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		const int fd = accept(socket, NULL, NULL);
		union broker_packet packet;
		struct broker_reply reply = {
			.version = BROKER_VERSION,
			.error = *steps == 'e' ? EPIPE :
				 *steps == 'b' ? EBUSY :
						 0,
			.flags = *steps == 'd' ? BROKER_DONE : 0,
		};

		if (fd < 0 || recv(fd, &packet, sizeof(packet), 0) < 0)
			_exit(1);
		if (*steps && *steps != 'c')
			send(fd, &reply, sizeof(reply), MSG_NOSIGNAL);
		close(fd);
		steps += *steps != '\0';
	}
}

FIXTURE(lost)
{
	char folder[32];
	struct sockaddr_un name;
	int socket;
};

FIXTURE_SETUP(lost)
{
	strcpy(self->folder, "/tmp/borrow-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->folder));
	self->name.sun_family = AF_UNIX;
	snprintf(self->name.sun_path, sizeof(self->name.sun_path), "%s/socket", self->folder);
	self->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_EQ(0, bind(self->socket, (struct sockaddr *)&self->name, sizeof(self->name)));
	ASSERT_EQ(0, listen(self->socket, 8));
	setenv("SHSTK_BROKER", self->name.sun_path, 1);
}

FIXTURE_TEARDOWN(lost)
{
	unlink(self->name.sun_path);
	rmdir(self->folder);
}

FIXTURE_VARIANT(lost)
{
	const char *steps;
	uid_t listener;
	int want;
};

FIXTURE_VARIANT_ADD(lost, a_broker_of_before_ends_each_connection){
	.steps = "cc",
	.want = -EOPNOTSUPP,
};

FIXTURE_VARIANT_ADD(lost, a_connection_that_ends_once_is_made_again){
	.steps = "cd",
	.want = 0,
};

FIXTURE_VARIANT_ADD(lost, so_is_one_that_ends_after_another_was_served){
	.steps = "bcd",
	.want = 0,
};

FIXTURE_VARIANT_ADD(lost, one_that_ends_behind_the_broker_is_no_broker_of_before){
	.steps = "e",
	.want = -EPIPE,
};

FIXTURE_VARIANT_ADD(lost, what_is_answered_is_asked_once){
	.steps = "d",
	.want = 0,
};

FIXTURE_VARIANT_ADD(lost, nobody_but_root_is_a_broker){
	.steps = "d",
	.listener = 65534,
	.want = -EPERM,
};

TEST_F(lost, request_about_a_process)
{
	static const struct lent_process process;
	const pid_t child = fork();
	int fd;

	ASSERT_GE(child, 0);
	if (!child)
		serve(self->socket, variant->steps);
	close(self->socket);
	listener = variant->listener;
	errno = ENOENT; /* of an earlier call */
	fd = borrow_begin();
	EXPECT_EQ(variant->want, fd < 0 ? fd : borrow_process(fd, 1, 1, &process));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Sends an answer with a descriptor twice. Returns whether it was sent. */
static bool send_two(int socket, const struct broker_reply *reply)
{
	struct iovec vec = { .iov_base = (void *)reply, .iov_len = sizeof(*reply) };
	const int fds[] = { STDIN_FILENO, STDIN_FILENO };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control = {
		.head = { CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS },
	};
	const struct msghdr msg = {
		.msg_iov = &vec,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	return sendmsg(socket, &msg, 0) == sizeof(*reply);
}

/* Returns the lowest number that no descriptor has. */
static int next_number(void)
{
	const int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

TEST(an_answer_with_two_descriptors_is_none_and_leaves_none)
{
	struct broker_reply reply = { .version = BROKER_VERSION };
	int ends[2], next;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	next = next_number();
	ASSERT_TRUE(send_two(ends[0], &reply));
	EXPECT_EQ(-EPROTO, broker_receive(ends[1], &reply));
	EXPECT_EQ(next, next_number());
}

/* Without a number for the descriptor that comes with an answer, that is what is wrong, not the broker. */
TEST(an_answer_whose_descriptor_has_no_room_says_so)
{
	struct broker_reply reply = { .version = BROKER_VERSION };
	struct rlimit limit, none;
	int ends[2], got;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	ASSERT_TRUE(broker_answer(ends[0], &reply, dup(STDIN_FILENO)));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = (struct rlimit){ (rlim_t)next_number(), limit.rlim_max };
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	got = broker_receive(ends[1], &reply);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, got);
	EXPECT_STREQ(strerror(EMFILE), borrow_error(got));
}

/* The errors of answers are errnos, so that no descriptor is made of one. */
TEST(an_answer_with_another_error_is_none)
{
	static const int errors[] = { -7, INT32_MIN, INT32_MAX };
	int ends[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct broker_reply reply = { .version = BROKER_VERSION, .error = errors[i] };

		ASSERT_EQ((ssize_t)sizeof(reply), send(ends[0], &reply, sizeof(reply), 0));
		EXPECT_EQ(-EPROTO, broker_receive(ends[1], &reply));
	}
}

TEST_HARNESS_MAIN
