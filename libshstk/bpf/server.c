// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * server.c - the process that makes tables for BPF programs; see shstk_bpf.h.
 *
 * It is `shstk rules serve --bpf`: what compiles tables runs apart from the loader, with memory and
 * limits of its own. It is told by a socket when to end (--tell), and has a descriptor of this process
 * (--until): a child that fork(2) made may have the socket as well, and live on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/crash/apart.h"
#include "libshstk/shstk_bpf.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define TIMEOUT 60 /* seconds until tables are made */
#define MOST_TIMEOUT 3600
#define END_SECONDS 10 /* seconds until the process has ended */
#define REASON 512 /* bytes of a reason */

/* Descriptors of the new process, behind the usual three. */
enum { TELL = 3, UNTIL, FIRST_FREE };

/**
 * struct shstk_bpf - a process that makes tables
 * @socket: this end of the socket.
 * @owner: the process that opened it.
 * @err: 0, or the negative errno with which it ended.
 * @why: the reason of @err.
 */
struct shstk_bpf {
	int socket;
	pid_t owner;
	int err;
	char why[REASON];
};

/* Sets a reason, and returns @err. */
static __attribute__((format(printf, 3, 4))) int because(struct shstk_bpf *b, int err,
							 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(b->why, sizeof(b->why), fmt, ap);
	va_end(ap);
	return err;
}

/* ---- The new process ---- */

/**
 * struct start - what the new process needs
 * @apart: how it is made.
 * @argv: the command's arguments.
 * @command: path of the command.
 * @fds: what its first descriptors are.
 * @err: receives a negative errno if the command could not be executed.
 */
struct start {
	struct apart apart;
	const char *argv[8];
	const char *command;
	int fds[FIRST_FREE];
	int err;
};

/* The program's handlers are not the command's, nor are the signals that it ignores. */
static void reset_signals(void)
{
	struct sigaction act = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		sigaction(signo, &act, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Gives the descriptors their numbers, and closes all others. They are moved out of the way first: any of
 * them may have the number of another one. Returns 0 or a negative errno.
 */
static int arrange(int fds[FIRST_FREE])
{
	for (int i = 0; i < FIRST_FREE; i++) {
		fds[i] = fcntl(fds[i], F_DUPFD, FIRST_FREE);
		if (fds[i] < 0)
			return -errno;
	}
	for (int i = 0; i < FIRST_FREE; i++)
		if (dup2(fds[i], i) < 0)
			return -errno;
	return syscall(SYS_close_range, FIRST_FREE, ~0u, 0) ? -errno : 0;
}

/* Executes the command. Signals of this program's terminal do not reach it. */
static int execute(void *arg)
{
	static char *const no_environment[] = { NULL };
	struct start *s = arg;

	setsid();
	s->err = arrange(s->fds);
	if (!s->err) {
		reset_signals();
		execve(s->command, (char **)s->argv, no_environment);
		s->err = -errno;
	}
	_exit(127);
}

/* Starts the command; all signals are blocked meanwhile. Returns 0 or a negative errno. */
static int start_apart(struct start *s)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = apart_start(&s->apart);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err ? err : s->err;
}

static int run(struct shstk_bpf *b, const struct shstk_bpf_opts *o, const int fds[FIRST_FREE])
{
	char cache[4096 + 16];
	struct start s = {
		.argv = { "shstk", "rules", "serve", "--bpf", "--tell=3", "--until=4" },
		.command = o->command ? o->command : SHSTK_COMMAND,
		.apart.execute = execute,
	};
	int err;

	s.apart.arg = &s;
	memcpy(s.fds, fds, sizeof(s.fds));
	if (o->cache) {
		snprintf(cache, sizeof(cache), "--cache=%s", o->cache);
		s.argv[6] = cache;
	}
	err = start_apart(&s);
	return err ? because(b, err, "%s: %s", s.command, strerror(-err)) : 0;
}

/* ---- What it tells ---- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until there is a message. Returns whether there is. */
static bool await(int fd, unsigned int seconds)
{
	const uint64_t end = now_ms() + (uint64_t)seconds * 1000;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now;
	int got;

	do {
		now = now_ms();
		got = poll(&p, 1, now < end ? (int)(end - now) : 0);
	} while (got < 0 && errno == EINTR);
	return got > 0;
}

/*
 * Receives a message, if there is one, and keeps the reason if it is one of a failure. Returns whether
 * there was one.
 */
static bool hear(struct shstk_bpf *b)
{
	char text[REASON + 64];
	ssize_t n = recv(b->socket, text, sizeof(text) - 1, MSG_DONTWAIT);
	char *status;
	int number;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	n = n < 0 ? 0 : n;
	text[n] = '\0';
	status = strstr(text, "\nSTATUS=");
	if (!n)
		b->err = because(b, -ECHILD, "the process that makes tables has ended");
	else if (status && sscanf(text, "ERRNO=%d", &number) == 1 && number > 0)
		b->err = because(b, -number, "%s", status + 8);
	return true;
}

/* Waits until tables are made. Returns 0 or a negative errno. */
static int begin(struct shstk_bpf *b, const struct shstk_bpf_opts *o)
{
	const unsigned int seconds = o->timeout ? o->timeout : TIMEOUT;

	if (!await(b->socket, seconds))
		return because(b, -ETIMEDOUT, "no tables are made after %u seconds", seconds);
	hear(b);
	if (b->err == -ECHILD)
		because(b, -ECHILD, "%s ended before tables were made",
			o->command ? o->command : SHSTK_COMMAND);
	return b->err;
}

/* ---- The handle ---- */

static const char *wrong_option(const struct shstk_bpf_opts *o)
{
	if (o->size < sizeof(*o))
		return "the size of the options is not that of any version";
	if (o->timeout > MOST_TIMEOUT || o->messages < 0 || o->reserved)
		return "an option has no valid value";
	if (o->cache && (*o->cache != '/' || strlen(o->cache) >= 4096))
		return "the folder of tables has no absolute path";
	return NULL;
}

/* Starts the process with its descriptors. Returns 0 or a negative errno. */
static int start(struct shstk_bpf *b, const struct shstk_bpf_opts *o)
{
	int ends[2], until, null, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return because(b, -errno, "socketpair: %s", strerror(errno));
	b->socket = ends[0];
	until = syscall(SYS_pidfd_open, b->owner, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (until < 0 || null < 0) {
		err = because(b, -errno, "%s: %s", until < 0 ? "pidfd_open" : "/dev/null",
			      strerror(errno));
	} else {
		const int fds[FIRST_FREE] = { null, null, o->messages ? o->messages : null, ends[1],
					      until };

		err = run(b, o, fds);
	}
	if (null >= 0)
		close(null);
	if (until >= 0)
		close(until);
	close(ends[1]);
	return err;
}

/* Opens the handle. Returns 0 or a negative errno, with a reason. */
static int open_handle(struct shstk_bpf *b, const struct shstk_bpf_opts *opts)
{
	static const struct shstk_bpf_opts usual = { .size = sizeof(usual) };
	const struct shstk_bpf_opts *o = opts ? opts : &usual;
	const char *wrong = wrong_option(o);
	int err;

	b->socket = -1;
	b->owner = getpid();
	if (wrong)
		return because(b, -EINVAL, "%s", wrong);
	err = start(b, o);
	return err ? err : begin(b, o);
}

static void explain(const char *text, char *why, size_t size)
{
	if (why && size)
		snprintf(why, size, "%s", text);
}

int shstk_bpf_open(const struct shstk_bpf_opts *opts, struct shstk_bpf **ret, char *why,
		   size_t why_size)
{
	struct shstk_bpf *b = calloc(1, sizeof(*b));
	int err, state;

	*ret = NULL;
	if (!b) {
		explain(strerror(ENOMEM), why, why_size);
		return -ENOMEM;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = open_handle(b, opts);
	explain(b->why, why, why_size);
	if (err)
		shstk_bpf_close(&b);
	*ret = b;
	pthread_setcancelstate(state, NULL);
	return err;
}

int shstk_bpf_fd(const struct shstk_bpf *b)
{
	return b->socket;
}

int shstk_bpf_check(struct shstk_bpf *b, char *why, size_t why_size)
{
	if (b->owner != getpid()) {
		explain("tables are made for another process, which opened the handle", why,
			why_size);
		return -ECHILD;
	}
	while (!b->err && hear(b))
		;
	explain(b->why, why, why_size);
	return b->err;
}

/* Has the process end, and waits until it has. */
static void end(struct shstk_bpf *b)
{
	const uint64_t last = now_ms() + END_SECONDS * 1000;
	uint64_t now;

	shutdown(b->socket, SHUT_WR);
	/* Messages that it sent before may still be there. */
	while (!b->err && (now = now_ms()) < last)
		if (await(b->socket, (unsigned int)((last - now + 999) / 1000)))
			hear(b);
}

void shstk_bpf_close(struct shstk_bpf **handle)
{
	struct shstk_bpf *b = *handle;
	int state;

	*handle = NULL;
	if (!b)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (b->socket >= 0 && b->owner == getpid())
		end(b);
	if (b->socket >= 0)
		close(b->socket);
	free(b);
	pthread_setcancelstate(state, NULL);
}
