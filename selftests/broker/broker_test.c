// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * broker_test.c - tests `shstk broker` as its users see it, and as attackers do.
 *
 *   broker_test [SHSTK]
 *
 * It starts the broker and becomes several ordinary users. Prints KTAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "facts.h"
#include "selftests/own_mounts.h"

/* IDs of users that do not exist. */
enum { FIRST = 65000, SECOND, SILENT, STOPPED, FLOOD };

#define FURTHER 200000 /* the first of FIRST's further ids */
#define EVENTS 4 /* that a user may have on each CPU */
#define PAGES 16

static char folder[] = "/tmp/broker-XXXXXX";
static char burner[PATH_MAX], setuid_burner[PATH_MAX];
static pid_t broker;

/* ---- Events that are given ---- */

static void spin(double seconds)
{
	clock_t until = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < until)
		;
}

/* Returns whether the callchain at @chain has only addresses of user space. */
static bool is_users(const uint64_t *chain)
{
	for (uint64_t i = 0; i < chain[0]; i++)
		if (chain[i + 1] >> 63 && chain[i + 1] != (uint64_t)PERF_CONTEXT_USER)
			return false;
	return true;
}

/* Returns the number of samples in a ring buffer, or -1 if one has an address of the kernel. */
static int samples_of(struct perf_event_mmap_page *page)
{
	const char *data = (char *)page + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = 0;
	const uint64_t room = PAGES * sysconf(_SC_PAGESIZE);
	int n = 0;

	/* The ring buffer is never read, so it keeps the first records and loses the others. */
	while (at < head && head <= room) {
		const struct perf_event_header *h = (const void *)(data + at);

		/* The fields before the callchain are: identifier, thread, time, period. */
		if (h->type == PERF_RECORD_SAMPLE && !is_users((const uint64_t *)(h + 1) + 4))
			return -1;
		n += h->type == PERF_RECORD_SAMPLE;
		at += h->size;
	}
	return n;
}

/*
 * Samples this process itself with an event of the kind at @arg. Returns 0 if there are samples and
 * all are of user space alone.
 */
static int sees_itself(void *arg)
{
	struct broker_request r = request_of(getpid(), proof_of(getpid()));
	struct perf_event_mmap_page *page;
	cpu_set_t one;
	int event, n = 0;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	r.kind = *(uint32_t *)arg;
	r.flags = r.kind == BROKER_SWITCHES ? BROKER_TELLS : 0;
	r.copy = 256;
	event = ask(&r);
	if (event < 0 || sched_setaffinity(0, sizeof(one), &one))
		return 1;
	page = mmap(NULL, (PAGES + 1) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
		    event, 0);
	if (page == MAP_FAILED || ioctl(event, PERF_EVENT_IOC_ENABLE, 0))
		return 2;
	for (int i = 0; i < 1000 && !n; i++) {
		spin(0.02);
		nap();
		n = samples_of(page);
	}
	return n > 0 ? 0 : 3;
}

static void test_given(void)
{
	uint32_t kinds[] = { BROKER_CPU_CLOCK, BROKER_TASK_CLOCK, BROKER_SWITCHES };

	verdict(!as(FIRST, sees_itself, &kinds[0]),
		"a user's own process is sampled, with addresses of user space alone");
	verdict(!as(FIRST, sees_itself, &kinds[1]), "also by its own clock");
	verdict(!as(FIRST, sees_itself, &kinds[2]), "and at switches");
}

/* ---- Wrong requests ---- */

static int wrong_fields(void *arg)
{
	const struct broker_request good = request_of(getpid(), proof_of(getpid()));
	static const struct {
		size_t at;
		uint32_t value;
		int error;
	} cases[] = {
		{ offsetof(struct broker_request, version), 0, EPROTO },
		{ offsetof(struct broker_request, version), BROKER_VERSION + 1, EPROTO },
		{ offsetof(struct broker_request, kind), BROKER_KINDS, EINVAL },
		{ offsetof(struct broker_request, flags), 8, EINVAL },
		{ offsetof(struct broker_request, flags), 1u << 31, EINVAL },
		{ offsetof(struct broker_request, tid), 0, EINVAL },
		{ offsetof(struct broker_request, tid), -1u, EINVAL },
		{ offsetof(struct broker_request, tid), INT_MAX, ESRCH },
		{ offsetof(struct broker_request, proof), -1u, EINVAL },
		{ offsetof(struct broker_request, proof), 1000000, EPERM },
		{ offsetof(struct broker_request, cpu), BROKER_MAX_CPUS, EINVAL },
		{ offsetof(struct broker_request, cpu), -1u, EINVAL },
		{ offsetof(struct broker_request, freq), 0, EINVAL },
		{ offsetof(struct broker_request, freq), BROKER_MAX_FREQ + 1, EINVAL },
		{ offsetof(struct broker_request, copy), 65536, EINVAL },
		{ offsetof(struct broker_request, copy), 100, EINVAL },
		{ offsetof(struct broker_request, max_stack), 65536, EINVAL },
		{ offsetof(struct broker_request, lease), 1, EOPNOTSUPP },
	};
	int wrong = 0;

	(void)arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct broker_request bad = good;
		int got;

		memcpy((char *)&bad + cases[i].at, &cases[i].value, sizeof(uint32_t));
		got = ask(&bad);
		if (got != -cases[i].error) {
			printf("# word %zu as %u: %d\n", cases[i].at / 4, cases[i].value, got);
			wrong++;
		}
	}
	return wrong;
}

/*
 * Sends packets that are no requests, of all lengths up to twice that of a request. Returns the
 * number of wrong answers.
 */
static int no_requests(void *arg)
{
	char text[2 * sizeof(struct broker_request)];
	int wrong = 0;

	(void)arg;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i <= sizeof(text); i++) {
		double until = now() + PATIENCE;
		int got;

		if (i == sizeof(struct broker_request))
			continue;
		do {
			int fd = dial();

			send(fd, text, i, MSG_NOSIGNAL);
			got = answer(fd);
			close(fd);
			if (got == -EBUSY)
				nap();
		} while (got == -EBUSY && now() < until);
		wrong += got != -EPIPE;
	}
	return wrong;
}

/* Sends a request with a descriptor. */
static int send_along(int fd, const struct broker_request *r, int along)
{
	struct iovec vec = { .iov_base = (void *)r, .iov_len = sizeof(*r) };
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr msg = {
		.msg_iov = &vec,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &along, sizeof(along));
	return sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof(*r) ? 0 : -1;
}

static int with_descriptors(void *arg)
{
	const struct broker_request r = request_of(getpid(), proof_of(getpid()));
	double until = now() + PATIENCE;
	int got;

	(void)arg;
	do {
		int fd = dial();

		send_along(fd, &r, 0);
		got = answer(fd);
		close(fd);
		nap();
	} while (got == -EBUSY && now() < until);
	return got != -EPIPE;
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Returns a value at or near a bound, a random one, or the good one. */
static uint32_t strange(uint64_t *state, uint32_t good)
{
	static const uint32_t values[] = { 0,	  1,	 2,	7,	 8,	   99,	9999, 10000,
					   65528, 65535, 65536, INT_MAX, 1u << 31, -1u, -2u };
	uint32_t which = next_random(state) % 24;

	return which < 15 ? values[which] : which < 18 ? next_random(state) : good;
}

/*
 * Sends requests with strange values on a few connections. An event is only given for this process:
 * a request with another number must not be answered with one.
 */
static int strange_requests(void *arg)
{
	const struct broker_request good = request_of(getpid(), proof_of(getpid()));
	uint64_t state = 1;
	int fd = dial(), given = 0;

	(void)arg;
	for (int i = 0; i < 3000; i++) {
		struct broker_request r = good;
		uint32_t *words = (uint32_t *)&r;
		int event;

		for (size_t k = 0; k < 3; k++) {
			size_t at = next_random(&state) % (sizeof(r) / 4);

			words[at] = strange(&state, words[at]);
		}
		if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) < 0)
			event = -EPIPE;
		else
			event = answer(fd);
		if (event >= 0) {
			given++;
			close(event);
			if (r.tid != getpid())
				return 1;
		}
		if (event == -EPIPE || event == -EBUSY) {
			close(fd);
			nap();
			fd = dial();
		}
	}
	printf("# %d of 3000 strange requests were good\n", given);
	fflush(stdout);
	close(fd);
	return given ? ask(&good) < 0 : 2;
}

static void test_wrong(void)
{
	verdict(!as(FIRST, wrong_fields, NULL), "each field of a request has its bounds");
	verdict(!as(FIRST, strange_requests, NULL),
		"of thousands of strange requests only those for the process itself are answered");
	verdict(!as(FIRST, no_requests, NULL), "what is no request ends the connection");
	verdict(!as(FIRST, with_descriptors, NULL), "and so does one with a descriptor");
}

/* ---- Processes that the user may not trace ---- */

static int other_process(void *arg)
{
	const struct broker_request r = request_of(*(pid_t *)arg, proof_of(getpid()));

	return ask(&r) != -EPERM || proof_of(*(pid_t *)arg) >= 0;
}

static int bad_proofs(void *arg)
{
	pid_t one = idle(), other = idle();
	const int fds[] = { proof_of(one), open("/proc/self/maps", O_RDONLY),
			    open("/dev/null", O_RDONLY), dial() };
	int wrong = 0;

	(void)arg;
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		struct broker_request r = request_of(other, fds[i]);

		/* The last descriptor is a connection, for which ask() would wait. */
		wrong += i < 3 && ask(&r) != -EPERM;
		if (i == 1)
			close(fds[3]);
	}
	end(one);
	end(other);
	return wrong;
}

/* Asks for a process that makes itself not dumpable after the proof was opened. */
static int not_dumpable(void *arg)
{
	int go[2], done[2], proof, event;
	struct broker_request r;
	pid_t pid;
	char c;

	(void)arg;
	if (pipe(go) || pipe(done))
		return 9;
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) != 1 || prctl(PR_SET_DUMPABLE, 0) ||
		    write(done[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	proof = proof_of(pid);
	r = request_of(pid, proof);
	event = ask(&r);
	if (event < 0 || write(go[1], "", 1) != 1 || read(done[0], &c, 1) != 1)
		return 1;
	close(event);
	event = ask(&r);
	end(pid);
	return event != -EPERM;
}

/* Makes a process that gets the number of one that has ended. */
static pid_t take_number(pid_t number_, uid_t uid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&number_,
		.set_tid_size = 1,
	};
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid)
		return pid;
	become(uid);
	for (;;)
		pause();
}

/* Opens the proof of a process that may not have become this user's yet. */
static int await_proof_of(pid_t tid)
{
	double until = now() + PATIENCE;
	int proof;

	while ((proof = proof_of(tid)) < 0 && now() < until)
		nap();
	return proof;
}

static int ask_after_reuse(void *arg)
{
	const int *way = arg; /* process ID, descriptor for ready, descriptor for go */
	int proof = await_proof_of(way[0]);
	struct broker_request r = request_of(way[0], proof);
	int event = ask(&r);
	char c;

	if (proof < 0 || event < 0 || write(way[1], "", 1) != 1 || read(way[2], &c, 1) != 1) {
		printf("# proof %d, event %d\n", proof, event);
		fflush(stdout);
		return 1;
	}
	close(event);
	event = ask(&r);
	if (event != -EPERM)
		printf("# answered with %d\n", event);
	fflush(stdout);
	return event != -EPERM;
}

/*
 * Gives the number of a process of FIRST to a process of @uid, when FIRST has a proof of the old
 * one.
 */
static void test_reuse(uid_t uid, const char *fact)
{
	int ready[2], go[2], way[3], status;
	pid_t pid = fork(), asks, other;
	char c;

	if (!pid) {
		become(FIRST);
		/* Who asks is no parent of it, and Yama's first level lets nobody else trace it. */
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
		for (;;)
			pause();
	}
	if (pipe(ready) || pipe(go))
		return;
	way[0] = pid, way[1] = ready[1], way[2] = go[0];
	asks = fork();
	if (!asks) {
		close(ready[0]);
		become(FIRST);
		alarm(PATIENCE);
		_exit(ask_after_reuse(way));
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		c = 1;
	end(pid);
	other = take_number(pid, uid);
	if (other < 0)
		skip(fact, "the kernel gives no process the number that is asked for");
	if (write(go[1], "", 1) != 1 || waitpid(asks, &status, 0) != asks)
		status = 1;
	if (other > 0) {
		verdict(other == pid && !status, fact);
		end(other);
	}
	close(ready[0]);
	close(go[0]);
	close(go[1]);
}

static void test_others(void)
{
	pid_t second = fork(), own = getpid();

	if (!second) {
		become(SECOND);
		for (;;)
			pause();
	}
	nap();
	verdict(!as(FIRST, other_process, &second), "another user's process is refused");
	verdict(!as(FIRST, other_process, &own), "root's process is refused");
	end(second);
	verdict(!as(FIRST, bad_proofs, NULL),
		"a proof of another process, or that is none, is refused");
	verdict(!as(FIRST, not_dumpable, NULL), "a process that may not be dumped is refused");
	test_reuse(SECOND, "a number that another user's process has now is refused");
	test_reuse(FIRST, "and one that another process of the user has now");
}

/* ---- Namespaces ---- */

static int in_namespace(int flags)
{
	int ready[2], event, proof;
	struct broker_request r;
	pid_t pid;

	if (pipe(ready))
		return 9;
	pid = fork();
	if (!pid) {
		if (unshare(flags))
			_exit(4);
		/* The next child is the first process of a new PID namespace. */
		if (flags & CLONE_NEWPID && (pid = fork())) {
			int own[2] = { pid, 0 };

			if (write(ready[1], own, sizeof(pid)) != sizeof(pid))
				_exit(1);
			waitpid(pid, NULL, 0);
			_exit(0);
		}
		if (!(flags & CLONE_NEWPID)) {
			pid = getpid();
			if (write(ready[1], &pid, sizeof(pid)) != sizeof(pid))
				_exit(1);
		}
		pause();
	}
	close(ready[1]);
	if (read(ready[0], &pid, sizeof(pid)) != sizeof(pid))
		return 4;
	proof = proof_of(pid);
	r = request_of(pid, proof);
	event = ask(&r);
	kill(pid, SIGKILL);
	if (proof < 0)
		return 3;
	return event != -EPERM;
}

static int target_in_user_namespace(void *arg)
{
	(void)arg;
	return in_namespace(CLONE_NEWUSER);
}

static int target_in_pid_namespace(void *arg)
{
	(void)arg;
	return in_namespace(CLONE_NEWUSER | CLONE_NEWPID);
}

static int asks_in_user_namespace(void *arg)
{
	(void)arg;
	if (unshare(CLONE_NEWUSER))
		return 4;
	return ask_for(getpid()) != -EPERM;
}

static int asks_itself(void *arg)
{
	(void)arg;
	return ask_for(getpid()) != -EPERM;
}

static void namespace_verdict(int status, const char *fact)
{
	if (status == 4)
		skip(fact, "ordinary users may not have namespaces here");
	else
		verdict(!status, fact);
}

static void test_namespaces(void)
{
	namespace_verdict(as(FIRST, target_in_user_namespace, NULL),
			  "a process in another user namespace is refused");
	namespace_verdict(as(FIRST, target_in_pid_namespace, NULL),
			  "a process in another namespace of processes is refused");
	namespace_verdict(as(FIRST, asks_in_user_namespace, NULL),
			  "who asks from another user namespace is refused");
	verdict(!as(0, asks_itself, NULL), "root is refused");
}

/* ---- Set-user-ID programs ---- */

/* Waits until it is told to, executes the program with these descriptors, and ends. */
static _Noreturn void execute(const char *program, int go, int begun)
{
	char in[16], out[16], c;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	snprintf(in, sizeof(in), "%d", go);
	snprintf(out, sizeof(out), "%d", begun);
	if (read(go, &c, 1) == 1)
		execl(program, program, "burn", in, out, NULL);
	_exit(9);
}

/* What is executed: says that it has begun, works when it is told to, and returns whether it is root. */
static int burn(int go, int begun)
{
	char c;

	if (write(begun, "", 1) == 1 && read(go, &c, 1) == 1)
		spin(0.5);
	return geteuid() ? 0 : 7;
}

/* Returns the CPU time, in seconds, that an event has counted. Negative: it failed. */
static double read_time(int event)
{
	uint64_t values[2];

	return read(event, values, sizeof(values)) < (ssize_t)sizeof(*values) ? -1 :
										values[0] / 1e9;
}

/*
 * Returns the CPU time, in seconds, that the event of a process counts while it works in a program that
 * it has executed. Negative: it failed.
 */
static double counted(const char *program, int *status)
{
	int go[2], begun[2], event;
	double before, after;
	pid_t pid;
	char c;

	if (pipe(go) || pipe(begun))
		return -1;
	pid = fork();
	if (!pid)
		execute(program, go[0], begun[1]);
	/* If it does not begin, there is nothing to be read. */
	close(begun[1]);
	event = ask_for(pid);
	if (event < 0 || ioctl(event, PERF_EVENT_IOC_ENABLE, 0) || write(go[1], "", 1) != 1 ||
	    read(begun[0], &c, 1) != 1)
		return -2;
	before = read_time(event);
	if (write(go[1], "", 1) != 1)
		return -3;
	waitpid(pid, status, 0);
	after = read_time(event);
	printf("# %s: %.3f s counted, %.3f s before, status %d\n", program, after - before, before,
	       *status);
	close(event);
	return before < 0 || after < 0 ? -4 : after - before;
}

static int ends_at_setuid(void *arg)
{
	int status, plain_status;
	double plain = counted(burner, &plain_status), gained = counted(setuid_burner, &status);

	(void)arg;
	if (plain < 0 || gained < 0)
		return 1;
	/* The program's status tells whether it is root. */
	if (WEXITSTATUS(status) != 7 || WEXITSTATUS(plain_status))
		return 4;
	return !(plain > 0.2 && gained == 0);
}

static void test_setuid(void)
{
	const char *fact = "events end where the process executes a set-user-ID program";
	int status = as(FIRST, ends_at_setuid, NULL);

	if (status == 4)
		skip(fact, "set-user-ID programs gain nothing here");
	else
		verdict(!status, fact);
}

/* ---- Number of events ---- */

/* Asks for events until one is refused. Returns how many there are; the last one's error is behind them. */
static int until_quota(int *events, int max)
{
	int n = 0;

	while (n < max && (events[n] = ask_for(getpid())) >= 0)
		n++;
	return n;
}

/*
 * Asks for as many events as a user may have. What processes before this one have closed, or had when they
 * ended, may go a moment later. Returns 0, or -1 when there were others than EVENTS, or another refusal.
 */
static int all_events(int *events)
{
	const double until = now() + PATIENCE;
	int n = until_quota(events, EVENTS + 2);

	while (n < EVENTS && events[n] == -EDQUOT && now() < until) {
		for (int i = 0; i < n; i++)
			close(events[i]);
		nap();
		n = until_quota(events, EVENTS + 2);
	}
	if (n == EVENTS && events[n] == -EDQUOT)
		return 0;
	printf("# %d events, then %d\n", n, events[n < EVENTS + 2 ? n : n - 1]);
	fflush(stdout);
	return -1;
}

/* Asks for an event, until one of those that were closed is no longer counted. Returns what ask_for() does. */
static int await_event(void)
{
	const double until = now() + PATIENCE;
	int got = ask_for(getpid());

	while (got == -EDQUOT && now() < until) {
		nap();
		got = ask_for(getpid());
	}
	if (got < 0) {
		printf("# an event that was closed is replaced: %d\n", got);
		fflush(stdout);
	}
	return got;
}

static int is_bounded(void *arg)
{
	int events[EVENTS + 2], got;

	(void)arg;
	if (all_events(events))
		return 1;
	close(events[0]);
	events[0] = await_event();
	if (events[0] < 0)
		return 2;
	got = ask_for(getpid());
	if (got != -EDQUOT)
		printf("# one more than permitted: %d\n", got);
	fflush(stdout);
	return got != -EDQUOT;
}

/* Tests that events which were passed on, or are only mapped, count as long as they exist. */
static int counts_what_is_passed_on(void *arg)
{
	int events[EVENTS + 2];
	pid_t holder;

	(void)arg;
	if (all_events(events))
		return 1;
	holder = idle();
	for (int i = 0; i < EVENTS; i++)
		close(events[i]);
	if (ask_for(getpid()) != -EDQUOT)
		return 2;
	end(holder);
	return await_event() < 0;
}

static void test_bounds(void)
{
	verdict(!as(FIRST, is_bounded, NULL), "a user has no more events of a CPU than permitted");
	verdict(!as(FIRST, counts_what_is_passed_on, NULL),
		"also those count that were passed on, until these are closed");
}

/* ---- Bad behaviour ---- */

static int asks_and_gets(void *arg)
{
	(void)arg;
	return ask_for(getpid()) < 0;
}

/* Asks for an event, which must come sooner than anything that these tests wait for. */
static int asks_at_once(void *arg)
{
	double begin = now(), took;
	int event = ask_for(getpid());

	(void)arg;
	took = now() - begin;
	if (took > 1)
		printf("# answered after %.1f s\n", took);
	return event < 0 || took > 200;
}

/* Asks again and again, reads no answer, and stays until the broker has ended the connection. */
static int does_not_read(void *arg)
{
	const struct broker_request r = request_of(getpid(), proof_of(getpid()));
	struct pollfd p = { .fd = dial() };
	int fd = p.fd, n = 0;

	(void)arg;
	while (n < 100000 && send(fd, &r, sizeof(r), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		n++;
	if (poll(&p, 1, PATIENCE * 1000) != 1 || !(p.revents & POLLHUP))
		return 1;
	/* Neither the events that are still in the socket nor the others remain. */
	close(fd);
	return asks_and_gets(NULL);
}

static int second_connection(void *arg)
{
	const struct broker_request r = request_of(getpid(), proof_of(getpid()));
	double until = now() + PATIENCE;
	int first, other, got;

	(void)arg;
	do {
		first = dial();
		send(first, &r, sizeof(r), MSG_NOSIGNAL);
		got = answer(first);
		if (got == -EBUSY)
			close(first), nap();
	} while (got == -EBUSY && now() < until);
	other = dial();
	return got < 0 || answer(other) != -EBUSY;
}

/*
 * Gives this process a network of its own whose loopback works. Without the right to do so, or
 * without such networks in the kernel, it keeps what it has.
 */
static void have_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
}

/*
 * Sends sockets whose last close waits for long, on connections of which all but the first are
 * refused. Writes a byte to @ready: 0 if it is done, 4 if there is no network.
 */
static _Noreturn void send_what_waits(int ready)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 1000 };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct broker_request r = request_of(getpid(), 0);
	int server = socket(AF_INET, SOCK_STREAM, 0), fd;
	socklen_t size = sizeof(to);
	static char bytes[65536];
	char done = 0;

	if (bind(server, (struct sockaddr *)&to, size) || listen(server, 20) ||
	    getsockname(server, (struct sockaddr *)&to, &size))
		done = 4;
	for (int i = 0; i < 20 && !done; i++) {
		int sender = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(sender, (struct sockaddr *)&to, size))
			done = 4;
		while (send(sender, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			;
		setsockopt(sender, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		fd = dial();
		send_along(fd, &r, sender);
		close(sender);
		if (i)
			close(fd);
	}
	if (write(ready, &done, 1) == 1)
		pause();
	_exit(0);
}

static void test_what_waits(void)
{
	const char *fact = "what a user sends along holds up nobody";
	char done = 1;
	int ready[2];
	pid_t pid;

	if (pipe(ready))
		return;
	/* The sender closes its descriptors before the broker receives them. */
	kill(broker, SIGSTOP);
	pid = fork();
	if (!pid) {
		have_loopback();
		become(FIRST);
		send_what_waits(ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &done, 1) != 1)
		done = 1;
	kill(broker, SIGCONT);
	if (done == 4)
		skip(fact, "no loopback network");
	else
		verdict(!done && !as(SECOND, asks_at_once, NULL), fact);
	close(ready[0]);
	end(pid);
}

/* Returns a child of the broker that has a user's identity, or 0. */
static pid_t child_of_broker(uid_t uid)
{
	char path[64];
	struct stat st;
	FILE *list;
	int pid, found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)broker, (int)broker);
	list = fopen(path, "r");
	while (list && fscanf(list, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d", pid);
		if (!stat(path, &st) && st.st_uid == uid)
			found = pid;
	}
	if (list)
		fclose(list);
	return found;
}

/*
 * Waits until a process is behind a filter of system calls. Returns false if it ends before. Not
 * for kernels without filters.
 */
static bool gets_filter(pid_t child)
{
	double until = now() + PATIENCE;
	char path[32], line[256];
	int mode = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
	while (now() < until) {
		FILE *status = fopen(path, "r");

		if (!status)
			return false;
		while (fgets(line, sizeof(line), status) && sscanf(line, "Seccomp: %d", &mode) != 1)
			;
		fclose(status);
		if (mode == SECCOMP_MODE_FILTER)
			return true;
		nap();
	}
	return false;
}

/* Tests that the process that answers cannot be traced, so that its rights cannot be taken over. */
static int cannot_take_over(void *arg)
{
	pid_t child = *(pid_t *)arg;

	return !ptrace(PTRACE_ATTACH, child, NULL, NULL) || proof_of(child) >= 0;
}

static int stop_child(void *arg)
{
	return kill(*(pid_t *)arg, SIGSTOP);
}

static _Noreturn void flood(void)
{
	for (;;) {
		int fd = dial();

		if (fd < 0)
			nap();
		close(fd);
	}
}

/* Makes a process with a connection on which it sends nothing, until the broker closes it. */
static pid_t silence(uid_t uid)
{
	pid_t pid = fork();
	struct pollfd p;

	if (pid)
		return pid;
	become(uid);
	p = (struct pollfd){ .fd = dial(), .events = POLLIN };
	poll(&p, 1, PATIENCE * 1000);
	_exit(p.revents ? 0 : 1);
}

static bool ended_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static pid_t await_child(uid_t uid)
{
	double until = now() + PATIENCE;
	pid_t child;

	while (!(child = child_of_broker(uid)) && now() < until)
		nap();
	return child;
}

static void test_behaviour(void)
{
	pid_t silent = silence(SILENT), stopped = silence(STOPPED);
	const char *fact = "requests are read behind a filter of system calls";
	pid_t child = await_child(STOPPED), floods;

	if (!child || prctl(PR_GET_SECCOMP) < 0)
		skip(fact, "the kernel has none, or does not tell a process's children");
	else
		verdict(gets_filter(child), fact);
	if (child) {
		verdict(!as(STOPPED, cannot_take_over, &child),
			"the process that answers cannot be traced by its user");
		as(STOPPED, stop_child, &child);
	} else {
		skip("the process that answers cannot be traced by its user",
		     "the kernel does not tell a process's children");
	}
	verdict(!as(FIRST, second_connection, NULL), "a user is answered once at a time");
	verdict(!as(FIRST, does_not_read, NULL), "who does not read is cut off, and keeps nothing");
	test_what_waits();
	floods = fork();
	if (!floods) {
		become(FLOOD);
		flood();
	}
	verdict(!as(SECOND, asks_at_once, NULL),
		"beside a flood of connections another is answered");
	end(floods);
	verdict(ended_well(silent), "a connection by which nothing comes is ended");
	verdict(ended_well(stopped), "also if its user has stopped the process that answers");
	verdict(!as(SILENT, asks_and_gets, NULL), "then that user is answered");
	verdict(!kill(broker, 0), "the broker runs");
}

/* ---- Start and end ---- */

static void copy(const char *from, const char *to, mode_t mode)
{
	char bytes[65536];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0755);
	ssize_t n;

	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, n) != n)
			break;
	close(in);
	fchmod(out, mode);
	close(out);
}

/* Limits the rights as shstk-broker.service does (CapabilityBoundingSet=, NoNewPrivileges=). */
static void limit_rights(void)
{
	static const int rights[] = { CAP_PERFMON_NR, CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID,
				      CAP_KILL };

	keep_rights(rights, sizeof(rights) / sizeof(*rights));
}

static void start(const char *shstk)
{
	char events[32], socket[PATH_MAX + 16], own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	double until = now() + PATIENCE;
	int fd;

	own[n < 0 ? 0 : n] = '\0';
	if (!mkdtemp(folder) || chmod(folder, 0755))
		skip_all("no folder can be made in /tmp");
	snprintf(name, sizeof(name), "%s/socket", folder);
	snprintf(burner, sizeof(burner), "%s/burner", folder);
	snprintf(setuid_burner, sizeof(setuid_burner), "%s/setuid", folder);
	copy(own, burner, 0755);
	copy(own, setuid_burner, 04755);
	snprintf(events, sizeof(events), "--events=%d", EVENTS);
	snprintf(socket, sizeof(socket), "--socket=%s", name);
	broker = fork();
	if (!broker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		limit_rights();
		execl(shstk, "shstk", "broker", events, socket, "--no-walk", NULL);
		_exit(99);
	}
	while ((fd = dial()) < 0 && now() < until && !waitpid(broker, NULL, WNOHANG))
		nap();
	close(fd);
}

static void stop(void)
{
	int status;

	kill(broker, SIGTERM);
	waitpid(broker, &status, 0);
	verdict(WIFEXITED(status) && !WEXITSTATUS(status) && access(name, F_OK),
		"SIGTERM ends it, and its socket is gone");
}

/* Makes a socket as systemd does, which listens before there is a broker. Returns it, or -1. */
static int make_socket(void)
{
	struct sockaddr_un as_systemd = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(as_systemd.sun_path, name);
	if (!bind(fd, (struct sockaddr *)&as_systemd, sizeof(as_systemd)) && !chmod(name, 0666) &&
	    !listen(fd, 16))
		return fd;
	close(fd);
	return -1;
}

/* Executes the broker with a socket as sd_listen_fds(3) describes it. */
static _Noreturn void be_activated(const char *shstk, int socket, const char *option)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit_rights();
	if (socket == 3)
		fcntl(3, F_SETFD, 0);
	else
		dup2(socket, 3);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	execl(shstk, "shstk", "broker", "--no-walk", option, NULL);
	_exit(99);
}

static void test_activation(const char *shstk)
{
	int socket = make_socket(), status;
	bool given;

	broker = fork();
	if (!broker)
		be_activated(shstk, socket, NULL);
	close(socket);
	given = !as(FIRST, asks_and_gets, NULL);
	verdict(given, "a broker that systemd starts takes over its socket");
	kill(broker, SIGTERM);
	waitpid(broker, &status, 0);
	verdict(given && WIFEXITED(status) && !WEXITSTATUS(status) && !access(name, F_OK),
		"which remains when it ends");
	unlink(name);
}

/* Asks for an event on a connection that waits for its broker. Writes a byte for each that is done. */
static _Noreturn void hold(int done)
{
	struct broker_request r;
	int fd;

	become(FIRST);
	fd = dial();
	if (fd < 0 || write(done, "", 1) != 1)
		_exit(1);
	r = request_of(getpid(), proof_of(getpid()));
	if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r) || answer(fd) < 0 ||
	    write(done, "", 1) != 1)
		_exit(1);
	close(fd);
	for (;;)
		pause();
}

/*
 * A broker that ends after a second without users, if systemd has started it. The connection is there
 * before the broker, so that it does not end before.
 */
static void test_idle(const char *shstk)
{
	const double until = now() + PATIENCE;
	int socket = make_socket(), done[2], status = 1;
	pid_t holder, ended;
	bool holds;
	char c;

	if (pipe2(done, O_CLOEXEC))
		return;
	holder = fork();
	if (!holder)
		hold(done[1]);
	close(done[1]);
	holds = read(done[0], &c, 1) == 1;
	broker = fork();
	if (!broker)
		be_activated(shstk, socket, "--idle=1");
	close(socket);
	holds = holds && read(done[0], &c, 1) == 1;
	close(done[0]);
	for (int i = 0; i < 300; i++)
		nap();
	ended = waitpid(broker, &status, WNOHANG);
	verdict(holds && !ended,
		"a broker that systemd starts goes on while somebody has an event");
	end(holder);
	while (!ended && !(ended = waitpid(broker, &status, WNOHANG)) && now() < until)
		nap();
	verdict(ended == broker && WIFEXITED(status) && !WEXITSTATUS(status) && !access(name, F_OK),
		"and ends by itself some time after that");
	unlink(name);
}

/* ---- Further ids ---- */

/* Starts a broker for which @FIRST has the further ids from FURTHER on. Returns whether that is possible. */
static bool start_with_further_ids(const char *shstk)
{
	const int socket = make_socket();
	char ids[PATH_MAX], c;
	int done[2];
	bool good;
	FILE *f;

	snprintf(ids, sizeof(ids), "%s/subuid", folder);
	f = fopen(ids, "w");
	if (!f || pipe2(done, O_CLOEXEC))
		return false;
	fprintf(f, "%u:%u:65536\n", FIRST, FURTHER);
	fclose(f);
	broker = fork();
	if (!broker) {
		if (!own_file(ids, "/etc/subuid") || write(done[1], "", 1) != 1)
			_exit(99);
		be_activated(shstk, socket, NULL);
	}
	close(socket);
	close(done[1]);
	good = read(done[0], &c, 1) == 1;
	close(done[0]);
	if (!good)
		waitpid(broker, NULL, 0);
	return good;
}

/* Makes a process of this user with an event. Returns it, or 0 if it has none, with the reason in @error. */
static pid_t holder(uid_t uid, int *error)
{
	int done[2], event = -EIO;
	pid_t pid;

	if (pipe2(done, O_CLOEXEC))
		return 0;
	pid = fork();
	if (!pid) {
		become(uid);
		event = ask_for(getpid());
		if (write(done[1], &event, sizeof(event)) != sizeof(event) || event < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(done[1]);
	if (read(done[0], &event, sizeof(event)) != sizeof(event))
		event = -EIO;
	close(done[0]);
	*error = event < 0 ? -event : 0;
	if (event >= 0)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

/* Tests that one who has further ids does not have the places of all users. */
static void test_further_ids(const char *shstk)
{
	const char *fact = "a user's further ids have a few users' places, and no more";
	const char *then = "when one of them has no event any more, another may have one";
	pid_t holders[64] = { 0 }, other, late;
	const double until = now() + PATIENCE;
	int nr = 0, error = 0, none;

	if (!start_with_further_ids(shstk)) {
		skip(fact, "there is no /etc/subuid, or nothing can be mounted here");
		skip(then, "there is no /etc/subuid, or nothing can be mounted here");
		unlink(name);
		return;
	}
	while (nr < 64 && (holders[nr] = holder(FURTHER + nr, &error)))
		nr++;
	other = holder(SECOND, &none);
	printf("# %d ids have an event, then: %s\n", nr, strerror(error));
	verdict(nr > 1 && nr < 64 && error == EUSERS && other, fact);
	end(holders[0]);
	while (!(late = holder(FURTHER + nr, &error)) && error == EUSERS && now() < until)
		nap();
	verdict(late, then);
	for (int i = 1; i < nr; i++)
		end(holders[i]);
	if (other)
		end(other);
	if (late)
		end(late);
	end(broker);
	unlink(name);
}

static void remove_files(void)
{
	char ids[PATH_MAX];

	snprintf(ids, sizeof(ids), "%s/subuid", folder);
	unlink(ids);
	unlink(burner);
	unlink(setuid_burner);
	rmdir(folder);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Skips the test if this is not root, or if root may open no events. Chooses the CPU. */
static void check_requirements(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	cpu_set_t set;
	int fd;

	if (geteuid())
		skip_all("needs root to be several users");
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		skip_all("root may have no perf events here");
	close(fd);
	if (as(FIRST, nothing, NULL))
		skip_all("root has no other users here, as in some containers");
	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
}

int main(int argc, char **argv)
{
	char shstk[PATH_MAX + 32], own[PATH_MAX];

	if (argc > 3 && !strcmp(argv[1], "burn"))
		return burn(atoi(argv[2]), atoi(argv[3]));
	strncpy(own, argv[0], sizeof(own) - 1);
	own[sizeof(own) - 1] = '\0';
	snprintf(shstk, sizeof(shstk), "%s/../../shstk", dirname(own));
	puts("KTAP version 1");
	check_requirements();
	if (argc > 1)
		snprintf(shstk, sizeof(shstk), "%s", argv[1]);
	start(shstk);
	puts("1..37");
	test_given();
	test_wrong();
	test_others();
	test_namespaces();
	test_setuid();
	test_bounds();
	test_behaviour();
	stop();
	test_activation(shstk);
	test_idle(shstk);
	test_further_ids(shstk);
	remove_files();
	return !!failed;
}
