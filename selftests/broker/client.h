/* SPDX-License-Identifier: GPL-2.0-or-later */
/* client.h - users of the broker in tests: processes of several users, who ask for events. */
#ifndef SELFTESTS_BROKER_CLIENT_H
#define SELFTESTS_BROKER_CLIENT_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/broker/lend.h"
#include "tools/perf/borrow_protocol.h"

#define CAP_PERFMON_NR 38 /* older headers do not name it */
#define PATIENCE 300 /* seconds; a step that takes longer has failed */

static char name[PATH_MAX]; /* of the broker's socket */
static int cpu; /* the CPU on which events are asked for */

/* Drops all capabilities but the @nr ones in @rights, for this process and what it executes. */
static void keep_rights(const int *rights, size_t nr)
{
	for (int i = 0; i < 64; i++) {
		bool kept = false;

		for (size_t k = 0; k < nr; k++)
			kept |= i == rights[k];
		if (!kept)
			prctl(PR_CAPBSET_DROP, i);
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void nap(void)
{
	usleep(10000);
}

/* ---- Processes of users ---- */

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(99);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Runs a function as a user, in a process of its own. Returns what the function returns. */
static int as(uid_t uid, int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		become(uid);
		alarm(PATIENCE);
		_exit(fn(arg));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Makes a process of this user that does nothing until it is killed. */
static pid_t __attribute__((unused)) idle(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void __attribute__((unused)) end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- The broker ---- */

static int dial(void)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(to.sun_path, name);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Reads an answer to @reply. Returns a descriptor or a negative errno; -EPIPE: the connection has
 * ended.
 */
static int answer_to(int fd, struct broker_reply *reply)
{
	struct iovec vec = { .iov_base = reply, .iov_len = sizeof(*reply) };
	char control[CMSG_SPACE(sizeof(int))];
	struct msghdr msg = {
		.msg_iov = &vec,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;
	int event = -1;

	/* A call with a limit of time is interrupted when its process was stopped, too. */
	do {
		n = recvmsg(fd, &msg, 0);
	} while (n < 0 && errno == EINTR);

	/* If the request was not read, the kernel reports that before it gives the answer. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, &msg, 0);

	if (n != sizeof(*reply))
		return n && errno != ECONNRESET ? -ETIMEDOUT : -EPIPE;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(&event, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(event));
	return reply->error ? -reply->error : event;
}

static int __attribute__((unused)) answer(int fd)
{
	struct broker_reply reply = { 0 };

	return answer_to(fd, &reply);
}

static int proof_of(pid_t tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	return open(path, O_RDONLY);
}

static struct broker_request request_of(pid_t tid, int proof)
{
	return (struct broker_request){
		.version = BROKER_VERSION,
		.tid = tid,
		.proof = proof,
		.cpu = cpu,
		.freq = 999,
		.copy = 8192,
		.max_stack = 64,
	};
}

/* Says that a connection ended before its time, which the broker has no reason for. */
static void tell_end(double took)
{
	printf("# a connection ended without an answer after %.3f s\n", took);
	fflush(stdout);
}

/*
 * Sends one packet on a connection of its own, again as long as another process of the user is answered, and
 * where the connection has lasted as long as one may, as on a machine that has other things to do. Returns what
 * answer_to() returns.
 */
static int ask_packet(const void *packet, size_t size, struct broker_reply *reply)
{
	const double until = now() + PATIENCE;
	bool again;
	int ret;

	do {
		const double begin = now();
		int fd = dial();

		send(fd, packet, size, MSG_NOSIGNAL);
		ret = answer_to(fd, reply);
		close(fd);
		again = ret == -EBUSY || (ret == -EPIPE && now() - begin >= LEND_SECONDS);
		if (ret == -EPIPE && !again)
			tell_end(now() - begin);
		if (again)
			nap();
	} while (again && now() < until);
	return ret;
}

static int ask_to(const struct broker_request *r, struct broker_reply *reply)
{
	return ask_packet(r, sizeof(*r), reply);
}

static int ask(const struct broker_request *r)
{
	struct broker_reply reply = { 0 };

	return ask_to(r, &reply);
}

static int __attribute__((unused)) ask_for(pid_t tid)
{
	const int proof = proof_of(tid);
	const struct broker_request r = request_of(tid, proof);
	int ret = ask(&r);

	close(proof);
	return ret;
}

#endif
