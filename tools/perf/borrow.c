// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * borrow.c - asks the broker to open perf events, for users who may not open them. See borrow.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/borrow_protocol.h"
#include "tools/perf/borrow_reply.h"
#include "tools/perf/borrow.h"

/*
 * Seconds. A broker that the connection starts loads its BPF programs first, which may take long on a
 * slow machine; one that runs ends each connection sooner by itself.
 */
#define PATIENCE 60
#define TRIES 600 /* requests while the broker answers another process of this user */
#define PAUSE_NS 5000000 /* ns between these requests */

static int kind_of(const struct perf_event *e)
{
	if (e->type != PERF_TYPE_SOFTWARE || !e->clock || e->no_user)
		return -1;
	return e->config == PERF_COUNT_SW_CPU_CLOCK  ? BROKER_CPU_CLOCK :
	       e->config == PERF_COUNT_SW_TASK_CLOCK ? BROKER_TASK_CLOCK :
						       -1;
}

bool borrow_possible(const struct perf_opts *opts)
{
	return opts->borrow && opts->nr_pids && !opts->kernel && opts->cgroup < 0 &&
	       !opts->program && !opts->wakings && !opts->nr_more && !opts->count &&
	       !opts->count_all && (!opts->main || kind_of(opts->main) >= 0);
}

/*
 * Returns whether the other end of the socket is root's. The broker is; anybody could listen at a
 * name that the user chose.
 */
static bool is_roots(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && !peer.uid;
}

int borrow_begin(void)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	const char *path = getenv("SHSTK_BROKER");
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd, err;

	path = path ? path : BROKER_SOCKET;
	if (!*path || strlen(path) >= sizeof(name.sun_path))
		return -ENOENT;
	strcpy(name.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)))
		err = errno == ECONNREFUSED ? -ENOENT : -errno;
	else if (is_roots(fd))
		return fd;
	else
		err = -EPERM;
	close(fd);
	return err;
}

int borrow_proof(pid_t tid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

/*
 * Sends a request of @size bytes and receives its answer, which may be there though the broker has
 * closed the connection meanwhile. Returns what broker_receive() does; without an answer @ret is 0.
 */
static int ask(int broker, const void *r, size_t size, struct broker_reply *ret)
{
	ssize_t n = send(broker, r, size, MSG_NOSIGNAL);

	*ret = (struct broker_reply){ 0 };
	if (n != (ssize_t)size && errno != EPIPE && errno != ECONNRESET)
		return -errno;
	return broker_receive(broker, ret);
}

/* Makes @broker a new connection. Returns 0 or a negative errno. */
static int connect_again(int broker)
{
	const int other = borrow_begin();
	int ret;

	if (other < 0)
		return other;
	ret = dup3(other, broker, O_CLOEXEC) < 0 ? -errno : 0;
	close(other);
	return ret;
}

/*
 * Sends a request as ask() does, again and again while the broker answers another process of this
 * user. Each time @broker becomes a new connection.
 */
static int ask_until(int broker, const void *r, size_t size, struct broker_reply *ret)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int fd = ask(broker, r, size, ret);

	for (int i = 0; fd == -EBUSY && i < TRIES; i++) {
		nanosleep(&pause, NULL);
		fd = connect_again(broker);
		if (!fd)
			fd = ask(broker, r, size, ret);
	}
	return fd;
}

int borrow_lease(int broker, const struct perf_walk *walk, uint32_t *ret)
{
	const struct broker_request request = {
		.version = BROKER_VERSION,
		.kind = BROKER_LEASE,
		.flags = walk->guesses ? BROKER_GUESSES : 0,
		.max_stack = walk->max,
	};
	struct broker_reply reply;
	int fd = ask_until(broker, &request, sizeof(request), &reply);

	*ret = fd < 0 ? 0 : reply.lease;
	return fd;
}

int borrow_output(int broker, uint32_t lease, int cpu)
{
	const struct broker_request request = {
		.version = BROKER_VERSION,
		.kind = BROKER_OUTPUT,
		.cpu = cpu,
		.lease = lease,
	};
	struct broker_reply reply;

	return ask_until(broker, &request, sizeof(request), &reply);
}

/*
 * Sends a request about a process. Returns 0 or a negative errno; -ENOMSG: the connection ended without an answer,
 * as a broker of before ends it.
 */
static int ask_process(int broker, const struct broker_process *packet)
{
	struct broker_reply reply;
	const int ret = ask_until(broker, packet, sizeof(*packet), &reply);

	return ret == -EPIPE && !reply.version ? -ENOMSG : ret;
}

int borrow_process(int broker, uint32_t lease, pid_t pid, const struct lent_process *process)
{
	const struct broker_process packet = {
		.request = {
			.version = BROKER_VERSION,
			.kind = BROKER_PROCESS,
			.tid = pid,
			.lease = lease,
		},
		.layout = LANGUAGE_LAYOUT,
		.process = *process,
	};
	int ret = ask_process(broker, &packet);

	/*
	 * A connection may also end because the process that answers it did. So only a broker that does it again is
	 * taken for one of before.
	 */
	if (ret == -ENOMSG && !(ret = connect_again(broker)))
		ret = ask_process(broker, &packet);
	return ret == -ENOMSG ? -EOPNOTSUPP : ret;
}

int borrow_event(int broker, const struct perf_opts *opts, int which, pid_t tid, int proof, int cpu,
		 uint32_t lease, bool *user_only)
{
	struct broker_request request = {
		.version = BROKER_VERSION,
		.kind = which == PERF_OFF ? BROKER_SWITCHES : (uint32_t)kind_of(opts->main),
		.flags = (opts->on_exec ? BROKER_ON_EXEC : 0) | (opts->main ? 0 : BROKER_TELLS) |
			 (opts->main && opts->main->no_kernel ? BROKER_NO_KERNEL : 0),
		.tid = tid,
		.proof = proof,
		.cpu = cpu,
		.freq = opts->freq,
		.copy = opts->copy,
		.max_stack = opts->max_stack,
		.lease = lease,
	};
	struct broker_reply reply;
	int fd = ask_until(broker, &request, sizeof(request), &reply);

	*user_only |= fd >= 0 && reply.flags & BROKER_USER_ONLY;
	return fd;
}

const char *borrow_error(int error)
{
	switch (error < 0 ? -error : error) {
	case EPERM:
	case EACCES:
		return "the broker opens no events of a process that this user may not trace, or that is in a container";
	case EDQUOT:
		return "this user has as many events as the broker allows (see shstk broker --events)";
	case EPROTO:
		return "the broker is of another version";
	case EBUSY:
	case EUSERS:
		return "the broker is busy with other requests";
	case EPIPE:
	case EAGAIN:
		return "the broker did not answer";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
