// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * interleave.c - a signal of the program and the agent's signal come while a call waits, the second
 * one a number of instructions after the first, for every number up to where nothing happens any
 * more (or for one in STRIDE).
 *
 *  interleave STRIDE
 *  interleave STRIDE ends|twice|alone|asked
 *
 * The handler of the program's signal has no SA_RESTART, so the call must end, whatever the order
 * of the signals. A call that has a signal mask while it waits must also end if the first signal
 * comes at any instruction before it waits. And the agent's signal may come once more, at any
 * instruction after the program's signal was delivered.
 *
 * With "ends": what ends a call comes once, at any instruction before it waits, and the agent's signal at
 * the same one or not at all. Calls that wait for a file while all signals are blocked are ended by
 * bytes. A wait that began because the agent did something else first would not end.
 *
 * With "twice": a call is ended by a handler that runs in the agent's hook, before the call is made; a
 * second signal, whose handler has SA_RESTART, comes at any instruction after that.
 *
 * With "alone": the child asks to be traced as programs do, from which moment the agent leaves it alone.
 * A handler runs at any instruction of the hook; its tracer sees no signal of the agent's.
 *
 * With "asked": a call is ended by a handler that runs in the agent's hook, and the agent's signal comes
 * while the hook asks whether the call would wait.
 *
 * With a STRIDE above 1 only the children for the first call are such in which the agent has not
 * taken a sample yet; with 1 all are.
 *
 * The program is recorded, by CPU time or by wall-clock time. A child is stepped by ptrace(2). The agent's signal is sent
 * as its timer does it, with the facts about the timer in /proc/PID/timers. Status 1: a signal was
 * lost; a line says where.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "traced.h"

#define ENDED 42 /* the result of a call that was ended as it should */
#define LIMIT 20 /* seconds after which a child counts as hung */

static int pipes[2];
static int feed[2]; /* its bytes end a call of kind FED */
static int full[2]; /* sockets that take no more bytes */
static char many[65536]; /* more than a call that sends them takes at once */
static bool asks; /* children ask to be traced by the C library */
static volatile int *result; /* result of the child's call, 0 before its end */
static volatile sig_atomic_t handled;
static sigset_t chld; /* SIGCHLD, which is blocked and waited for */

static void on_usr1(int signo)
{
	(void)signo;
	handled = 1;
}

static long in_nanosleep(void)
{
	struct timespec ts = { .tv_sec = 1000 };

	return nanosleep(&ts, NULL);
}

static long in_poll(void)
{
	return poll(NULL, 0, -1);
}
static long in_read(void)
{
	char c;

	return read(pipes[0], &c, 1);
}

static long in_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigsuspend(&none);
}

static long in_ppoll(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, NULL, &none);
}

/* A handler that runs in the agent's hook, before the call is made, ends it all the same. */
static long in_sigwaitinfo(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	return sigwaitinfo(&set, NULL);
}

static long in_send(void)
{
	return send(full[0], many, sizeof(many), 0);
}

static long in_full_poll(void)
{
	struct pollfd fd = { .fd = feed[0], .events = POLLIN };

	return poll(&fd, 1, -1);
}

static long in_full_ppoll(void)
{
	struct pollfd fd = { .fd = feed[0], .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	return ppoll(&fd, 1, NULL, &all);
}

static long in_full_select(void)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(feed[0], &in);
	return select(feed[0] + 1, &in, NULL, NULL, NULL);
}

static const struct call {
	const char *name;
	long (*make)(void);
	enum {
		CLOSED, /* blocks the agent's signal while it waits, and not the program's */
		OPEN, /* blocks neither signal */
		MASKED, /* blocks SIGUSR1, except while it waits */
		FED, /* blocks all signals, and waits for bytes */
		MADE, /* blocks the agent's signal while it waits; is made also where a handler ran */
		ASKED, /* where a handler ran, it is made only if it need not wait */
	} kind;
} calls[] = {
	{ "nanosleep", in_nanosleep, CLOSED },
	{ "poll", in_poll, CLOSED },
	{ "read", in_read, OPEN },
	{ "sigsuspend", in_sigsuspend, MASKED },
	{ "ppoll", in_ppoll, MASKED },
	{ "sigwaitinfo", in_sigwaitinfo, MADE },
	{ "send", in_send, ASKED },
	{ "poll, all blocked", in_full_poll, FED },
	{ "ppoll, all blocked", in_full_ppoll, FED },
	{ "select, all blocked", in_full_select, FED },
};

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void be_child(const struct call *call)
{
	struct sigaction act = { .sa_handler = on_usr1 };
	sigset_t usr1, all;
	long ret;

	sigprocmask(SIG_UNBLOCK, &chld, NULL);
	sigaction(SIGUSR1, &act, NULL);
	act.sa_flags = SA_RESTART;
	sigaction(SIGUSR2, &act, NULL);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	if (call->kind == MASKED)
		sigprocmask(SIG_BLOCK, &usr1, NULL);
	sigfillset(&all);
	if (call->kind == FED)
		sigprocmask(SIG_BLOCK, &all, NULL);
	if (!asks)
		be_traced();
	else if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	ret = call->make();
	if (call->kind == FED)
		*result = ret == 1 ? ENDED : 1;
	else
		*result = ret < 0 && errno == EINTR && handled ? ENDED : 1;
	syscall(SYS_tgkill, getpid(), getpid(), SIGSTOP);
	_exit(0);
}

/* Returns the letter of a process's state. */
static char state_of(pid_t pid)
{
	char path[32], text[256];
	const char *end;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	in = fopen(path, "r");
	if (!in || !fgets(text, sizeof(text), in))
		die(path);
	fclose(in);
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

enum event { STEPPED, SLEEPS, DONE, HANGS };

struct run {
	pid_t pid;
	int status;
	int signo; /* signal to be delivered when it goes on */
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/*
 * Waits for a moment until the child stops or ends. Returns false if it does not. The C library's
 * function is a call that the agent has a hook for.
 */
static bool child_stops(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	return syscall(SYS_rt_sigtimedwait, &chld, NULL, &moment, 8) == SIGCHLD;
}

/*
 * Waits for what becomes of the child. Remembers a signal for which it stops. Its state is looked at
 * only if it does not stop at once, as it does after nearly all steps.
 */
static enum event await(struct run *r)
{
	double start = seconds();

	for (;;) {
		if (waitpid(r->pid, &r->status, WNOHANG) == r->pid)
			break;
		if (child_stops())
			continue;
		if (state_of(r->pid) == 'S' && waitpid(r->pid, &r->status, WNOHANG) != r->pid)
			return SLEEPS;
		if (seconds() - start > LIMIT)
			return HANGS;
	}
	if (!WIFSTOPPED(r->status) || *result)
		return DONE;
	r->signo = WSTOPSIG(r->status) == SIGTRAP ? 0 : WSTOPSIG(r->status);
	return STEPPED;
}

static enum event step(struct run *r)
{
	int signo = r->signo;

	r->signo = 0;
	if (ptrace(PTRACE_SINGLESTEP, r->pid, NULL, (void *)(long)signo))
		die("PTRACE_SINGLESTEP");
	return await(r);
}

/* Sends the agent's signal as the kernel does for the timer of the child's agent. */
static void send_agents(pid_t pid)
{
	unsigned long long value = 0;
	siginfo_t si = { 0 };
	char path[32], line[128];
	int signo = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/timers", pid);
	in = fopen(path, "r");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "signal: %d/%llx", &signo, &value) == 2)
			break;
	if (!in || !signo) {
		puts("no timer of an agent");
		exit(3);
	}
	fclose(in);
	si.si_signo = signo;
	si.si_code = SI_TIMER;
	si.si_value.sival_ptr = (void *)(unsigned long)value;
	if (syscall(SYS_rt_tgsigqueueinfo, pid, pid, signo, &si))
		die("rt_tgsigqueueinfo");
}

static void post(struct run *r, int agents)
{
	if (agents)
		send_agents(r->pid);
	else
		syscall(SYS_tgkill, r->pid, r->pid, SIGUSR1);
}

/* Lets the child go on after all signals were sent. Returns whether the call ended as it must. */
static int ends(struct run *r, enum event event)
{
	while (event == STEPPED) {
		int signo = r->signo;

		r->signo = 0;
		ptrace(PTRACE_CONT, r->pid, NULL, (void *)(long)signo);
		event = await(r);
		for (int i = 0; event == SLEEPS && i < 2000; i++) {
			/* It may be about to wake up. */
			usleep(100);
			event = await(r);
		}
	}
	return event == DONE && *result == ENDED;
}

static void start(struct run *r, const struct call *call)
{
	*result = 0;
	*r = (struct run){ .pid = fork() };
	if (!r->pid)
		be_child(call);
	if (waitpid(r->pid, &r->status, 0) != r->pid || !WIFSTOPPED(r->status))
		die("child");
}

static void stop(struct run *r)
{
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
}

/* Steps up to @most instructions, or until the child sleeps. Returns what happened then. */
static enum event step_on(struct run *r, long most, long *steps)
{
	enum event event = STEPPED;

	for (*steps = 0; *steps < most && event == STEPPED; ++*steps)
		event = step(r);
	return event;
}

/*
 * Sends the first signal in the waiting call, or @before instructions into the call, and the second
 * signal @gap instructions later. Returns 0 if @gap is beyond the end, -1 if the call did not end,
 * otherwise 1.
 */
static int one(const struct call *call, int agents_first, long before, long gap)
{
	enum event event;
	struct run r;
	long steps;
	int ret;

	start(&r, call);
	event = before < 0 ? STEPPED : step_on(&r, before, &steps);
	if (before < 0) {
		ptrace(PTRACE_CONT, r.pid, NULL, NULL);
		while ((event = await(&r)) != SLEEPS)
			if (event == STEPPED)
				ptrace(PTRACE_CONT, r.pid, NULL, NULL);
	}
	post(&r, agents_first);
	/* The signal wakes the child up, unless it is blocked. */
	if (event == SLEEPS)
		for (int i = 0; i < 20 && (event = await(&r)) == SLEEPS; i++)
			usleep(100);
	if (event == STEPPED)
		event = step_on(&r, gap, &steps);
	ret = event == STEPPED;
	if (event != DONE) {
		post(&r, !agents_first);
		for (int i = 0; i < 2000 && event == SLEEPS; i++) {
			event = await(&r);
			if (event == SLEEPS)
				usleep(100);
		}
	}
	if (!ends(&r, event))
		ret = -1;
	stop(&r);
	return ret;
}

static long lost;

/* Tests the gaps: the first @fine one by one, the others in steps of @stride. */
static long every_gap(const struct call *call, int agents_first, long before, long fine,
		      long stride)
{
	long number = 0;
	int ret = 1;

	for (long gap = 0; ret; gap += gap < fine ? 1 : stride) {
		ret = one(call, agents_first, before, gap);
		number++;
		if (ret >= 0)
			continue;
		printf("%s: %s signal %ld instructions into it, the other one %ld later: lost\n",
		       call->name, agents_first ? "agent's" : "own", before, gap);
		if (++lost > 10)
			exit(1);
	}
	return number;
}

/* Lets the child go on until @signo is about to be delivered. */
static enum event run_to(struct run *r, int signo)
{
	enum event event;

	do {
		int given = r->signo;

		r->signo = 0;
		ptrace(PTRACE_CONT, r->pid, NULL, (void *)(long)given);
		event = await(r);
	} while (event == STEPPED && r->signo != signo);
	return event;
}

/*
 * Sends the program's signal while the child is in the agent's handler, and, @gap instructions
 * after its delivery, the agent's signal again. Returns whether the call ended.
 */
static int between_agents(const struct call *call, long gap)
{
	enum event event;
	struct run r;
	long steps;
	int ret;

	start(&r, call);
	event = run_to(&r, -1);
	if (event != SLEEPS)
		die(call->name);
	post(&r, 1);
	for (int i = 0; i < 2000 && (event = await(&r)) == SLEEPS; i++)
		usleep(100);
	if (event == STEPPED)
		event = step_on(&r, 3, &steps);
	post(&r, 0);
	if (event == STEPPED)
		event = run_to(&r, SIGUSR1);
	if (event == STEPPED)
		event = step_on(&r, gap, &steps);
	if (event == STEPPED)
		post(&r, 1);
	ret = ends(&r, event);
	stop(&r);
	return ret;
}

static long every_third(const struct call *call)
{
	long gap;

	for (gap = 0; gap < 60; gap++)
		if (!between_agents(call, gap)) {
			printf("%s: agent's signal, own one, agent's %ld instructions later: lost\n",
			       call->name, gap);
			lost++;
		}
	return gap;
}

/* Waits until the child no longer sleeps, for as long as may be a moment: a page is read, say. */
static enum event wake_up(struct run *r, enum event event, int most)
{
	for (int i = 0; event == SLEEPS && i < most; i++) {
		usleep(100);
		event = await(r);
	}
	return event;
}

/*
 * Lets what ends the call come @before instructions into it: a byte if the call is of kind FED, else the
 * program's signal; and the agent's signal there, too, if @agents. Returns 0 if the child waited
 * before that, -1 if the call did not end, otherwise 1.
 */
static int ended_at(const struct call *call, int agents, long before)
{
	enum event event;
	struct run r;
	long steps;
	int ret;
	char c;

	start(&r, call);
	event = wake_up(&r, step_on(&r, before, &steps), 20);
	ret = event == STEPPED;
	if (agents)
		post(&r, 1);
	if (call->kind != FED)
		post(&r, 0);
	else if (write(feed[1], "", 1) != 1)
		die("write");
	event = wake_up(&r, event, 2000);
	if (!ends(&r, event))
		ret = -1;
	stop(&r);
	if (call->kind == FED && read(feed[0], &c, 1) != 1)
		die("read");
	return ret;
}

/* Tests all numbers of instructions up to where the call waits, or one in @stride. */
static long every_place(const struct call *call, int agents, long stride)
{
	long number = 0;
	int ret = 1;

	for (long before = 0; ret; before += stride) {
		ret = ended_at(call, agents, before);
		number++;
		if (ret >= 0)
			continue;
		printf("%s: %s %ld instructions into it%s: lost\n", call->name,
		       call->kind == FED ? "a byte" : "own signal", before,
		       agents ? ", and the agent's signal" : "");
		if (++lost > 10)
			exit(1);
	}
	return number;
}

/*
 * Lets the agent take a sample and, by wall-clock time, meet a wait. What it learns of the code
 * then, in many thousands of instructions, children need not learn again: their calls end sooner.
 */
static void meet_all_code(void)
{
	send_agents(getpid());
	usleep(1000);
}

/* Returns whether the child is about to make system call @nr. */
static bool is_about_to(pid_t pid, long nr)
{
#ifdef __x86_64__
	struct user_regs_struct regs;

	return !ptrace(PTRACE_GETREGS, pid, NULL, &regs) && regs.rax == (unsigned long)nr &&
	       (ptrace(PTRACE_PEEKTEXT, pid, (void *)regs.rip, NULL) & 0xffff) == 0x050f;
#else
	(void)pid;
	(void)nr;
	return false;
#endif
}

/* Lets the child go on until it has made system call @nr. */
static enum event step_over(struct run *r, long nr)
{
	enum event event = STEPPED;

	while (event == STEPPED && !is_about_to(r->pid, nr))
		event = step(r);
	return event == STEPPED ? step(r) : event;
}

/*
 * Sends SIGUSR1 in the agent's hook of the call, which has blocked the agent's signal, and SIGUSR2
 * @gap instructions after the hook has set the timer that is to end the call. Returns 0 if the child waited or was through before that, -1 if the call did not
 * end, otherwise 1.
 */
static int ended_before(const struct call *call, long gap)
{
	enum event event;
	struct run r;
	long steps;
	int ret;

	start(&r, call);
	event = step_over(&r, SYS_rt_sigprocmask);
	post(&r, 0);
	if (event == STEPPED)
		event = step_over(&r, SYS_timer_settime);
	if (event == STEPPED)
		event = step_on(&r, gap, &steps);
	ret = event == STEPPED;
	if (ret) {
		syscall(SYS_tgkill, r.pid, r.pid, SIGUSR2);
		event = step(&r);
	}
	if (!ends(&r, wake_up(&r, event, 2000)))
		ret = -1;
	stop(&r);
	return ret;
}

#define HOOK 64 /* instructions from that timer to the call */

static long every_second(const struct call *call, long stride)
{
	long number = 0, gap = 0;
	int ret = 1;

	if (call->kind != MADE)
		return 0;
	if (stride > 1)
		meet_all_code();
	for (; gap < HOOK && (ret = ended_before(call, gap)) > 0; gap += 1 + stride / 1000)
		number++;
	if (ret < 0) {
		printf("%s: own signal before it, another one %ld instructions later: lost\n",
		       call->name, gap);
		lost++;
	}
	return number;
}

/* Lets the child go on until it is in the kernel to make system call @nr. */
static enum event step_into(struct run *r, long nr)
{
	enum event event = STEPPED;

	do {
		while (event == STEPPED && (r->signo || !is_about_to(r->pid, nr)))
			event = step(r);
		if (event != STEPPED)
			return event;
		ptrace(PTRACE_SYSCALL, r->pid, NULL, NULL);
		event = await(r);
	} while (event == STEPPED && r->signo);
	return event;
}

/*
 * Sends SIGUSR1 in the agent's hook of the call, and the agent's signal while the hook asks whether
 * the call would wait. Returns whether the call ended.
 */
static int ended_in_question(const struct call *call)
{
	enum event event;
	struct run r;
	int ret;

	start(&r, call);
	event = step_over(&r, SYS_rt_sigprocmask);
	post(&r, 0);
	if (event == STEPPED)
		event = step_over(&r, SYS_timer_settime);
	if (event == STEPPED)
		event = step_into(&r, SYS_ppoll);
	if (event == STEPPED)
		post(&r, 1);
	ret = event == STEPPED && ends(&r, event);
	stop(&r);
	return ret;
}

static long every_question(const struct call *call)
{
	long number = 0;

	if (call->kind != ASKED)
		return 0;
	meet_all_code();
	for (; number < 4 && ended_in_question(call); number++)
		;
	if (number < 4) {
		printf("%s: own signal before it, the agent's in a question: lost\n", call->name);
		lost++;
	}
	return number;
}

/*
 * Sends SIGUSR1 @before instructions into the call, and lets the child go on for a moment. Returns 0
 * if it waited before that, -1 if it got another signal, otherwise 1.
 */
static int alone_at(const struct call *call, long before)
{
	enum event event;
	struct run r;
	long steps;
	int ret;

	start(&r, call);
	event = step_on(&r, before, &steps);
	ret = event == STEPPED;
	post(&r, 0);
	while (event == STEPPED && r.signo <= SIGUSR1) {
		int signo = r.signo;

		r.signo = 0;
		ptrace(PTRACE_CONT, r.pid, NULL, (void *)(long)signo);
		event = wake_up(&r, await(&r), 20);
	}
	if (event == STEPPED)
		ret = -1;
	stop(&r);
	return ret;
}

static long every_alone(const struct call *call, long stride)
{
	long number = 0;
	int ret = 1;

	if (call->kind != MADE && call->kind != CLOSED)
		return 0;
	for (long before = 0; ret > 0; before += 1 + stride / 1000, number++)
		ret = alone_at(call, before);
	if (ret < 0) {
		printf("%s: the tracer sees another signal\n", call->name);
		lost++;
	}
	return number;
}

static long every_order(const struct call *call, long stride)
{
	long number = 0;

	if (call->kind == FED || call->kind == MADE || call->kind == ASKED)
		return 0;
	number = every_gap(call, 0, -1, 40, stride) + every_gap(call, 1, -1, 40, stride);
	if (call->kind == OPEN)
		number += every_third(call);
	for (long before = 0; call->kind == MASKED && before < 400; before += 1 + stride / 100)
		number += every_gap(call, 1, before, 3, stride) +
			  every_gap(call, 0, before, 3, stride);
	return number;
}

/* What comes right before a call of another kind waits is lost without the agent, too. */
static long every_end(const struct call *call, long stride)
{
	const long coarse = 1 + stride / 20;

	if (call->kind != FED && call->kind != MASKED)
		return 0;
	return every_place(call, 0, coarse) + every_place(call, 1, coarse);
}

static long test_call(const struct call *call, long stride, const char *what)
{
	if (!what)
		return every_order(call, stride);
	if (!strcmp(what, "twice"))
		return every_second(call, stride);
	if (!strcmp(what, "asked"))
		return every_question(call);
	return asks ? every_alone(call, stride) : every_end(call, stride);
}

int main(int argc, char **argv)
{
	long stride = argc > 1 ? atol(argv[1]) : 1;
	const char *what = argc > 2 ? argv[2] : NULL;

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	if (pipe(pipes) || pipe(feed) || result == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, full))
		die("pipe");
	while (send(full[0], many, sizeof(many), MSG_DONTWAIT) > 0)
		;
	asks = what && !strcmp(what, "alone");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long orders = test_call(&calls[i], stride, what);

		printf("%s: %ld orders\n", calls[i].name, orders);
		if (orders && stride > 1)
			meet_all_code();
	}
	return !!lost;
}
