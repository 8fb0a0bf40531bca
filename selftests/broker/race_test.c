// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * race_test.c - tests the broker when a thread changes between the broker's check of it and the
 * opening of its event.
 *
 * The linker replaces syscall(): before perf_event_open() the process that answers writes to its
 * standard error and waits at its standard input, while the test ends or changes the thread. Prints
 * KTAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"
#include "tools/broker/held_events.h"
#include "tools/broker/lend.h"
#include "tools/perf/borrow_protocol.h"

enum { FIRST = 65000, SECOND };

#define PATIENCE 300 /* seconds */
#define TRIES 5

static char folder[] = "/tmp/broker-XXXXXX", gains[64];
static bool answers; /* this process is the one that answers */

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);

/*
 * Tells the test that an event is about to be opened, and waits for it. It makes only calls that
 * the process which answers makes itself, as its filter forbids others.
 */
static bool is_told_to_go_on(void)
{
	struct iovec vec = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	const struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };
	char c;

	return sendmsg(STDERR_FILENO, &msg, 0) == 1 && read(STDIN_FILENO, &c, 1) == 1;
}

long __wrap_syscall(long nr, ...)
{
	long arg[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (answers && nr == SYS_perf_event_open && !is_told_to_go_on())
		_exit(1);
	return __real_syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(99);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- The thread ---- */

enum { LEAVE, EXECUTE, HIDE };

/**
 * struct target - a process of user FIRST
 * @pid: its process ID.
 * @tell: descriptor to write what the process has to do.
 * @done: descriptor to read a byte when the process has become FIRST's, and another when it has
 *	done that.
 */
struct target {
	pid_t pid;
	int tell;
	int done;
};

static _Noreturn void be_target(int told, int done)
{
	char what;

	become(FIRST);
	if (write(done, "", 1) != 1 || read(told, &what, 1) != 1)
		_exit(1);
	if (what == EXECUTE) {
		dup2(done, STDOUT_FILENO);
		execl(gains, gains, "gains", NULL);
	}
	if (what == HIDE && (prctl(PR_SET_DUMPABLE, 0) || write(done, "", 1) != 1))
		_exit(1);
	for (;;)
		pause();
}

static bool await(int fd, char *ret)
{
	return read(fd, ret, 1) == 1;
}

static bool make_target(struct target *t)
{
	int tell[2], done[2];
	char c;

	if (pipe2(tell, O_CLOEXEC) || pipe2(done, O_CLOEXEC))
		return false;
	t->pid = fork();
	if (!t->pid)
		be_target(tell[0], done[1]);
	close(tell[0]);
	close(done[1]);
	t->tell = tell[1];
	t->done = done[0];
	return t->pid > 0 && await(t->done, &c);
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void end_target(struct target *t)
{
	end(t->pid);
	close(t->tell);
	close(t->done);
}

/* ---- The process that asks ---- */

/*
 * Makes a process of user FIRST that has /proc/@target/mem open as *@proof. Returns 0 if it cannot
 * open that.
 */
static pid_t make_asker(pid_t target, int *proof)
{
	int ready[2];
	char path[32];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)target);
	pid = fork();
	if (!pid) {
		become(FIRST);
		*proof = open(path, O_RDONLY);
		if (write(ready[1], proof, sizeof(*proof)) == sizeof(*proof))
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], proof, sizeof(*proof)) != sizeof(*proof) || *proof < 0) {
		end(pid);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

/* ---- The process that answers ---- */

/**
 * struct answer - a process that answers
 * @pid: its process ID.
 * @socket: the connection.
 * @opens: descriptor to read a byte when the process is about to open an event.
 * @go: descriptor to write a byte that lets it go on.
 */
struct answer {
	pid_t pid;
	int socket;
	int opens;
	int go;
};

static bool make_answer(const struct ucred *peer, struct answer *a)
{
	static const struct lend_opts opts = { .events = 4 };
	int pair[2], opens[2], go[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, opens) || pipe2(go, O_CLOEXEC))
		return false;
	a->pid = fork();
	if (!a->pid) {
		dup2(go[0], STDIN_FILENO);
		dup2(opens[1], STDERR_FILENO);
		answers = true;
		lend(pair[1], peer, held_create(), &opts);
	}
	close(pair[1]);
	close(opens[1]);
	close(go[0]);
	a->socket = pair[0];
	a->opens = opens[0];
	a->go = go[1];
	return true;
}

/* Returns whether the process had ended because the connection had lasted too long. */
static bool end_answer(struct answer *a)
{
	int status = 0;

	close(a->socket);
	close(a->opens);
	close(a->go);
	waitpid(a->pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
}

static int cpu(void)
{
	cpu_set_t set;
	int n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(n, &set))
		n++;
	return n;
}

/*
 * Asks for an event of the target, and calls @meanwhile before it is opened. Returns the errno of
 * the reply, 0 if there is an event, or a negative number. *@late receives whether the connection
 * lasted longer than one may.
 */
static int race_once(void (*meanwhile)(struct target *t), bool *late)
{
	struct broker_request r = {
		.version = BROKER_VERSION,
		.cpu = cpu(),
		.freq = 99,
		.max_stack = 32,
	};
	struct broker_reply reply = { .error = -1 };
	struct ucred peer = { .uid = FIRST, .gid = FIRST };
	struct target t;
	struct answer a;
	char c;

	if (!make_target(&t))
		return -1;
	peer.pid = make_asker(t.pid, &r.proof);
	r.tid = t.pid;
	if (!peer.pid || !make_answer(&peer, &a))
		return -2;
	if (send(a.socket, &r, sizeof(r), 0) == sizeof(r) && await(a.opens, &c)) {
		meanwhile(&t);
		if (write(a.go, "", 1) != 1 || recv(a.socket, &reply, sizeof(reply), 0) < 0)
			reply.error = -3;
	}
	/* What took the target's number has the connection open, too. */
	end_target(&t);
	*late = end_answer(&a);
	end(peer.pid);
	return reply.error;
}

/* The same, and once more where the machine was stopped for as long as a connection may last. */
static int race(void (*meanwhile)(struct target *t))
{
	bool late = false;
	int tries = 0, error;

	do
		error = race_once(meanwhile, &late);
	while (late && ++tries < TRIES);
	return error;
}

/* ---- What happens meanwhile ---- */

static bool taken, gained;

static void nothing(struct target *t)
{
	(void)t;
}

/* Ends the thread; a process of another user gets its number. */
static void ends(struct target *t)
{
	pid_t want = t->pid;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&want,
		.set_tid_size = 1,
	};

	end(t->pid);
	t->pid = syscall(SYS_clone3, &args, sizeof(args), 0L, 0L, 0L, 0L);
	if (!t->pid) {
		become(SECOND);
		for (;;)
			pause();
	}
	taken = t->pid == want;
}

/* Ends the thread. */
static void is_gone(struct target *t)
{
	end(t->pid);
	t->pid = 0;
}

static void executes(struct target *t)
{
	char what = EXECUTE, is_root = 0;

	gained = write(t->tell, &what, 1) == 1 && await(t->done, &is_root) && is_root == 'r';
}

static void hides(struct target *t)
{
	char what = HIDE, c;

	if (write(t->tell, &what, 1) != 1 || !await(t->done, &c))
		abort();
}

static void test_races(void)
{
	const char *reused = "a thread whose number is another user's meanwhile is refused";
	const char *setuid = "and one that executes a set-user-ID program meanwhile";
	int error;

	verdict(!race(nothing), "a thread to which nothing happens has its event");
	error = race(ends);
	if (!taken)
		skip(reused, "the kernel gives no process the number that is asked for");
	else
		verdict(error == ESRCH || error == EPERM, reused);
	verdict(race(is_gone) == ESRCH, "one that ends is gone");
	error = race(executes);
	if (!gained)
		skip(setuid, "set-user-ID programs gain nothing here");
	else
		verdict(error == EPERM, setuid);
	verdict(race(hides) == EPERM, "and one that may not be dumped from then on");
}

/* ---- Start and end ---- */

static void check_requirements(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	int fd;

	if (geteuid())
		skip_all("needs root to be several users");
	fd = syscall(SYS_perf_event_open, &attr, 0L, -1L, -1L, 0L, 0L);
	if (fd < 0)
		skip_all("root may have no perf events here");
	close(fd);
}

/* Makes a copy of this program that is set-user-ID. */
static void make_gains(void)
{
	int in = open("/proc/self/exe", O_RDONLY), out;
	char bytes[65536];
	ssize_t n;

	if (!mkdtemp(folder) || chmod(folder, 0755))
		skip_all("no folder can be made in /tmp");
	snprintf(gains, sizeof(gains), "%s/gains", folder);
	out = open(gains, O_WRONLY | O_CREAT, 0755);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, n) != n)
			break;
	fchmod(out, 04755);
	close(in);
	close(out);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "gains")) {
		if (write(STDOUT_FILENO, geteuid() ? "u" : "r", 1) == 1)
			pause();
		return 0;
	}
	puts("KTAP version 1");
	check_requirements();
	signal(SIGPIPE, SIG_IGN);
	alarm(PATIENCE);
	make_gains();
	puts("1..5");
	test_races();
	unlink(gains);
	rmdir(folder);
	return !!failed;
}
