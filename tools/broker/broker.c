// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk broker - perf events for ordinary users' own processes.
 *
 * This process accepts connections. A child process of its own answers each of them (lend.c).
 * Whatever a user blocks (a lock of a process, a file system, the connection itself), only that
 * child waits for it, and is killed if it takes too long. Each user has at most one such child at a
 * time. A user also cannot make this process close a file of the user's, which may take as long as
 * the user wants: descriptors that were sent are dropped by the child, which closes the connection
 * last.
 *
 * This process itself keeps the leases by which stacks are walked in the kernel (leases.c). The child
 * that answers a user passes requests for these on. It is trusted with nothing but that user's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/broker/held_events.h"
#include "tools/broker/leases.h"
#include "tools/broker/lend.h"
#include "tools/perf/borrow_protocol.h"
#include "tools/perf/borrow_reply.h"
#include "tools/perf/rings.h"
#include "tools/rules/notify.h"
#include "tools/rules/subordinate.h"
#include "tools/shstk.h"

#define MAX_USERS 512
/*
 * Most of them that count as one user: somebody with further ids (subuid(5)) can run set-user-ID programs
 * by each.
 */
#define MAX_IDS 8
#define EVENTS 128 /* default of --events */
#define LISTEN_FD 3 /* the descriptor that systemd passes */
#define BACKLOG 128
#define NEW ".new" /* suffix of a socket's name while it is made */
#define LOOK_MS 1000 /* interval in which children are checked for their deadline */
#define HELD_NS 1000000000ull /* least time between two looks at what a user holds */
#define IDLE 600 /* default of --idle */
/*
 * Seconds after which the process that makes tables is begun again when it has ended: twice as many each
 * time, up to MOST_PAUSE, unless it had run for longer than that.
 */
#define LEAST_PAUSE 1
#define MOST_PAUSE 600

/**
 * struct user - a user who was answered, and may hold events
 * @uid: the user.
 * @set: the set of the user's events (held_events.h).
 * @looked: CLOCK_MONOTONIC in ns, when the broker last looked whether the user holds any.
 * @child: the process that answers the user now, or 0.
 * @deadline: time when @child is killed, CLOCK_MONOTONIC in ns.
 * @asks: socket by which @child asks for leases, or -1.
 * @waits: @packet is to be answered when the leases have come further.
 * @packet: a request of @child's.
 */
struct user {
	uid_t uid;
	int set;
	uint64_t looked;
	int asks;
	pid_t child;
	uint64_t deadline;
	bool waits;
	union broker_packet packet;
};

/**
 * struct broker - the broker
 * @path: name of its socket, if it makes the socket itself.
 * @opts: what users may have.
 * @socket: accepts connections.
 * @signals: descriptor that reads the signals to end and those of children that ended.
 * @subordinate: ids that count as other users.
 * @users: the users.
 * @nr_users: number of users in @users.
 * @no_walk: lend no walks of stacks.
 * @idle: seconds after which the broker ends when nobody has anything of it, if systemd starts it again.
 * @used: CLOCK_MONOTONIC in ns, when somebody had last been seen to have something.
 * @leases: what is lent of them.
 * @pause: seconds between the last end of the process that makes tables and its next beginning.
 * @begun: CLOCK_MONOTONIC in ns, when that process last began.
 * @begin_at: CLOCK_MONOTONIC in ns, when it is begun again; 0: it runs, or there is none.
 */
struct broker {
	const char *path;
	bool no_walk;
	unsigned int idle;
	uint64_t used;
	struct leases leases;
	unsigned int pause;
	uint64_t begun;
	uint64_t begin_at;
	struct lend_opts opts;
	int socket;
	int signals;
	struct subordinate subordinate;
	struct user users[MAX_USERS];
	unsigned int nr_users;
};

enum { OPT_SOCKET = 256, OPT_EVENTS, OPT_KERNEL_TIME, OPT_NO_WALK, OPT_IDLE };

static const struct argp_option options[] = {
	{ "socket", OPT_SOCKET, "PATH", 0, "listen on this socket (/run/shstk/broker)", 0 },
	{ "events", OPT_EVENTS, "N", 0,
	  "open at most N events at a time for a user on each CPU (128)", 0 },
	{ "kernel-time", OPT_KERNEL_TIME, NULL, 0,
	  "sample also while the kernel works for a thread, with the stack of user space", 0 },
	{ "no-walk", OPT_NO_WALK, NULL, 0,
	  "load no BPF program that walks stacks of users' processes in the kernel", 0 },
	{ "idle", OPT_IDLE, "SECONDS", 0,
	  "end after so long without users, if systemd starts the broker again (600)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct broker *b = state->input;

	switch (key) {
	case OPT_SOCKET:
		b->path = arg;
		return 0;
	case OPT_EVENTS:
		b->opts.events = parse_number(state, "events", arg, 1, 65536);
		return 0;
	case OPT_KERNEL_TIME:
		b->opts.kernel_time = true;
		return 0;
	case OPT_IDLE:
		b->idle = parse_number(state, "idle", arg, 1, 1000000000);
		return 0;
	case OPT_NO_WALK:
		b->no_walk = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_failure(state, EXIT_USAGE, 0, "unexpected argument '%s'", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp broker_argp = {
	.options = options,
	.parser = parse,
	.doc = "Open perf events for ordinary users' own processes."
	       "\v"
	       "Needs root. Ends with SIGTERM or SIGINT. Users' recorders ask it where "
	       "kernel.perf_event_paranoid forbids them to open events themselves.",
};

/* ---- Users ---- */

static bool holds_nothing(const struct user *u)
{
	static struct held held;
	int file = held_open(u->set);
	bool ret = file >= 0 && !held_count(file, &held) && !held.nr;

	if (file >= 0)
		close(file);
	return ret;
}

/*
 * Returns whether a user may be forgotten. The kernel lists all events of a user for that, which may be very
 * many, and anybody can make the broker look, by connecting again and again. So it looks at each user
 * once in a second at most.
 */
static bool may_forget(struct user *u)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (u->child || now - u->looked < HELD_NS)
		return false;
	u->looked = now;
	return holds_nothing(u);
}

/* Returns the user as whom an id counts. It is asked each time, so what was changed holds for all at once. */
static uid_t counted(const struct broker *b, uid_t uid)
{
	return subordinate_user(&b->subordinate, uid);
}

/* Makes room by removing users who hold nothing, of all or of those who count as @of. */
static void forget_users(struct broker *b, const uid_t *of)
{
	for (unsigned int i = b->nr_users; i--;) {
		if ((of && counted(b, b->users[i].uid) != *of) || !may_forget(&b->users[i]))
			continue;
		close(b->users[i].set);
		b->users[i] = b->users[--b->nr_users];
	}
}

/* Returns whether one more may count as this user. */
static bool has_ids(const struct broker *b, uid_t counts_as)
{
	unsigned int ids = 0;

	for (unsigned int i = 0; i < b->nr_users; i++)
		ids += counted(b, b->users[i].uid) == counts_as;
	return ids < MAX_IDS;
}

/* Returns whether there is room for one more that counts as this user, and makes it if it can. */
static bool has_room(struct broker *b, uid_t counts_as)
{
	if (!has_ids(b, counts_as))
		forget_users(b, &counts_as);
	if (b->nr_users == MAX_USERS)
		forget_users(b, NULL);
	return b->nr_users < MAX_USERS && has_ids(b, counts_as);
}

/* Adds a user. Returns NULL if there is no room. */
static struct user *add_user(struct broker *b, uid_t uid)
{
	struct user *u;

	/* If they cannot be read, those that are known hold. */
	subordinate_renew(&b->subordinate);
	if (!has_room(b, counted(b, uid)))
		return NULL;
	u = &b->users[b->nr_users];
	*u = (struct user){ .uid = uid, .set = held_create(), .asks = -1 };
	b->nr_users += u->set >= 0;
	return u->set >= 0 ? u : NULL;
}

/* Returns the user, or NULL if there is no room for one more. */
static struct user *find_user(struct broker *b, uid_t uid)
{
	for (unsigned int i = 0; i < b->nr_users; i++)
		if (b->users[i].uid == uid)
			return &b->users[i];
	return add_user(b, uid);
}

/* ---- Children ---- */

/*
 * Waits until the parent of this process has closed the connection, so that this process closes it
 * last.
 */
static void await_parent(const int pair[2])
{
	char none;

	close(pair[1]);
	while (read(pair[0], &none, 1) < 0 && errno == EINTR)
		;
	close(pair[0]);
}

static _Noreturn void be_child(const struct broker *b, int socket, const int pair[2], int asks,
			       const struct ucred *peer, const struct user *u, int error)
{
	struct lend_opts opts = b->opts;
	sigset_t none;

	await_parent(pair);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (error)
		lend_refuse(socket, error);
	opts.program = asks < 0 ? 0 : leases_program(&b->leases);
	opts.leases = asks;
	lend(socket, peer, u->set, &opts);
}

/* Returns an errno that says why the user is refused now, or 0. Root needs no broker. */
static int refusal(const struct user *u, const struct ucred *peer)
{
	if (peer->uid == 0 || peer->pid <= 0)
		return EPERM;
	if (!u)
		return EUSERS;
	return u->child ? EBUSY : 0;
}

/*
 * Makes the sockets by which a child asks for leases: @ret[0] is for this process, @ret[1] for the
 * child. Both are -1 if no walks are lent.
 */
static void make_asks(const struct broker *b, int ret[2])
{
	ret[0] = ret[1] = -1;
	if (leases_program(&b->leases) &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret))
		ret[0] = ret[1] = -1;
}

static void close_any(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void begin_child(struct user *u, pid_t child, int asks)
{
	u->child = child;
	u->asks = asks;
	u->waits = false;
	u->deadline = now_ns(CLOCK_MONOTONIC) + LEND_SECONDS * 1000000000ull;
}

/* Answers a connection. It is closed here first, and then by the child. */
static void serve(struct broker *b, int socket)
{
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	struct user *u = NULL;
	int pair[2], asks[2] = { -1, -1 }, error;
	pid_t child;

	if (!getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid)
		u = find_user(b, peer.uid);
	error = refusal(u, &peer);
	if (pipe2(pair, O_CLOEXEC)) {
		close(socket);
		return;
	}
	if (!error)
		make_asks(b, asks);
	child = fork();
	if (!child)
		be_child(b, socket, pair, asks[1], &peer, u, error);
	close(socket);
	close(pair[0]);
	close(pair[1]);
	close_any(asks[1]);
	if (child > 0 && !error)
		begin_child(u, child, asks[0]);
	else
		close_any(asks[0]);
}

static void end_asks(struct user *u)
{
	close_any(u->asks);
	u->asks = -1;
	u->waits = false;
}

/* Answers the request about a lease, or has it wait. */
static void answer_packet(struct broker *b, struct user *u)
{
	struct broker_reply reply = { .version = BROKER_VERSION };
	int ret;

	subordinate_renew(&b->subordinate);
	ret = leases_answer(&b->leases, &b->subordinate, u->uid, &u->packet, &reply);
	u->waits = ret == -EINPROGRESS;
	if (!u->waits && !broker_answer(u->asks, &reply, ret))
		end_asks(u);
}

/* Answers a request about a lease, which the user's child passes on. */
static void answer_child(struct broker *b, struct user *u)
{
	if (broker_is_whole(&u->packet, recv(u->asks, &u->packet, sizeof(u->packet), MSG_DONTWAIT)))
		answer_packet(b, u);
	else
		end_asks(u);
}

/* Answers the requests that wait, as the leases have come further. */
static void answer_waiting(struct broker *b)
{
	places_heard(b->leases.places);
	for (unsigned int i = 0; i < b->nr_users; i++)
		if (b->users[i].waits)
			answer_packet(b, &b->users[i]);
}

/* ---- The process that makes tables ---- */

/* Plans to begin the process again, which has ended or could not begin for the reason @why. */
static void plan_leases(struct broker *b, const char *why)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!b->pause || now - b->begun > MOST_PAUSE * 1000000000ull)
		b->pause = LEAST_PAUSE;
	else
		b->pause = b->pause < MOST_PAUSE / 2 ? 2 * b->pause : MOST_PAUSE;
	b->begin_at = now + b->pause * 1000000000ull;
	complain(
		"the process that makes tables of unwind rules %s: it is begun again in %u s, and no stacks are walked until then",
		why, b->pause);
}

/*
 * Ends what there was of the process. Processes that answer users have a program without leases: they
 * get no more of these.
 */
static void lose_leases(struct broker *b)
{
	for (unsigned int i = 0; i < b->nr_users; i++)
		end_asks(&b->users[i]);
	plan_leases(b, "has ended");
}

static void begin_again(struct broker *b)
{
	struct reason why;
	char text[sizeof(why.text) + 32];

	if (!b->begin_at || now_ns(CLOCK_MONOTONIC) < b->begin_at)
		return;
	b->begin_at = 0;
	b->begun = now_ns(CLOCK_MONOTONIC);
	if (leases_begin(&b->leases, &why)) {
		snprintf(text, sizeof(text), "does not begin (%s)", why.text);
		plan_leases(b, text);
	}
}

static void forget_child(struct broker *b, pid_t child)
{
	for (unsigned int i = 0; i < b->nr_users; i++) {
		if (b->users[i].child != child)
			continue;
		b->users[i].child = 0;
		end_asks(&b->users[i]);
	}
	if (leases_lost(&b->leases, child))
		lose_leases(b);
}

static void reap_children(struct broker *b)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	pid_t child;

	while ((child = waitpid(-1, NULL, WNOHANG)) > 0)
		forget_child(b, child);
	for (unsigned int i = 0; i < b->nr_users; i++)
		if (b->users[i].child && now > b->users[i].deadline)
			kill(b->users[i].child, SIGKILL);
}

/* ---- Start and end ---- */

/*
 * Returns whether nobody had anything of the broker for so long that it is to end. Then the kernel's
 * memory for tables is free, and the next broker, which the next connection starts, has room for
 * others. Looks at users only after that time without a connection.
 */
static bool is_idle(struct broker *b)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (b->path || now - b->used < b->idle * 1000000000ull)
		return false;
	forget_users(b, NULL);
	if (!b->nr_users && !leases_any(&b->leases))
		return true;
	b->used = now;
	return false;
}

/* Reads signals. Returns false if the broker is to end. */
static bool take_signals(const struct broker *b)
{
	struct signalfd_siginfo si;
	bool on = true;

	while (read(b->signals, &si, sizeof(si)) == sizeof(si))
		on &= si.ssi_signo == SIGCHLD;
	return on;
}

enum { POLL_SOCKET, POLL_SIGNALS, POLL_PLACES, POLL_ASKS };

/* Waits until there is something to do. @p receives what happened, the users' part in their order. */
static void await(const struct broker *b, struct pollfd *p)
{
	p[POLL_SOCKET] = (struct pollfd){ .fd = b->socket, .events = POLLIN };
	p[POLL_SIGNALS] = (struct pollfd){ .fd = b->signals, .events = POLLIN };
	p[POLL_PLACES] = (struct pollfd){ .fd = places_fd(b->leases.places), .events = POLLIN };
	for (unsigned int i = 0; i < b->nr_users; i++) {
		const struct user *u = &b->users[i];

		p[POLL_ASKS + i] =
			(struct pollfd){ .fd = u->waits ? -1 : u->asks, .events = POLLIN };
	}
	poll(p, POLL_ASKS + b->nr_users, LOOK_MS);
}

static void loop(struct broker *b)
{
	static struct pollfd p[POLL_ASKS + MAX_USERS];

	while (take_signals(b)) {
		int socket;

		await(b, p);
		if (p[POLL_PLACES].revents)
			answer_waiting(b);
		for (unsigned int i = 0; i < b->nr_users; i++)
			if (p[POLL_ASKS + i].revents)
				answer_child(b, &b->users[i]);
		reap_children(b);
		begin_again(b);
		leases_tidy(&b->leases);
		socket = p[POLL_SOCKET].revents ? accept4(b->socket, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (socket >= 0) {
			b->used = now_ns(CLOCK_MONOTONIC);
			serve(b, socket);
		} else if (is_idle(b)) {
			return;
		}
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Returns the socket that systemd opened, as sd_listen_fds(3) describes it, or -1. */
static int inherited_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *nr = getenv("LISTEN_FDS");

	if (!pid || atol(pid) != getpid() || !nr || strcmp(nr, "1"))
		return -1;
	fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC);
	fcntl(LISTEN_FD, F_SETFL, O_NONBLOCK);
	return LISTEN_FD;
}

static void make_folder(const char *path)
{
	char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;

	if (slash && slash != folder) {
		*slash = '\0';
		mkdir(folder, 0755);
	}
	free(folder);
}

/*
 * Makes the socket. It gets its name once it accepts connections; only the owner of the folder can
 * replace it.
 */
static int make_socket(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (snprintf(name.sun_path, sizeof(name.sun_path), "%s" NEW, path) >=
	    (int)sizeof(name.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	make_folder(path);
	unlink(name.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof(name)) ||
	    chmod(name.sun_path, 0666) || listen(fd, BACKLOG) || rename(name.sun_path, path))
		return -1;
	return fd;
}

static int open_socket(struct broker *b)
{
	const char *path = b->path ? b->path : BROKER_SOCKET;

	b->socket = b->path ? -1 : inherited_socket();
	if (b->socket >= 0)
		return 0;
	b->path = path;
	b->socket = make_socket(path);
	if (b->socket < 0)
		complain("socket %s: %s", path, strerror(errno));
	return b->socket < 0 ? EXIT_FAILED : 0;
}

/* Loads what walks stacks. Without it events are lent all the same. */
static void begin_leases(struct broker *b)
{
	struct reason why;

	b->begun = now_ns(CLOCK_MONOTONIC);
	if (!b->no_walk && leases_begin(&b->leases, &why))
		complain("stacks are not walked in the kernel, but copied: %s", why.text);
}

int cmd_broker(int argc, char **argv)
{
	static struct broker b = { .idle = IDLE, .opts = { .events = EVENTS } };

	command_parse(&broker_argp, argc, argv, &b);
	if (geteuid()) {
		complain(
			"not permitted: be root, as the broker opens perf events for users who may not");
		return EXIT_FAILED;
	}
	if (open_socket(&b))
		return EXIT_FAILED;
	perf_more_files();
	begin_leases(&b);
	b.signals = open_signals();
	if (b.signals < 0) {
		complain("%s", strerror(errno));
		return EXIT_FAILED;
	}
	b.used = now_ns(CLOCK_MONOTONIC);
	notify_state("READY=1");
	loop(&b);
	notify_state("STOPPING=1");
	leases_end(&b.leases);
	if (b.path)
		unlink(b.path);
	return EXIT_OK;
}
