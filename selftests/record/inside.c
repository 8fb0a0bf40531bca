// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inside.c - the agent's signal comes while the program is in one of the agent's own functions, at
 * each of their instructions (from the 100th on, at one in STRIDE), where it is met for the first time.
 *
 *  inside STRIDE
 *
 * The program is recorded, with one sample a second. For each instruction, a child makes one call,
 * runs to a breakpoint there, gets the signal as its timer sends it, and goes on. Where the call makes a
 * thread, which would meet the breakpoint, too, the child is stepped to the instruction by ptrace(2).
 * The call must have the same result, errno and signal mask as without the signal; otherwise the
 * status is 1. For each call, its name and the number of delivered signals are printed: the profile
 * must have as many samples in a function "in_NAME" or in the call itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "traced.h"

#include "../../libshstk/sys.h"

#define NOINLINE __attribute__((noinline, noclone))
#define LIMIT 400 /* seconds after which the whole program counts as hung */
#define FINE 100
#define BEFORE 12345 /* errno before the call */
#define MOST_PLACES 20000
#define MOST_CODE (1 << 20) /* bytes of code */

static void *library;

static void *do_nothing(void *arg)
{
	return arg;
}

static int do_no_more(void *arg)
{
	return !arg;
}

static void on_usr1(int signo)
{
	(void)signo;
}

static NOINLINE long in_sigaction(void)
{
	struct sigaction act = { .sa_handler = on_usr1 };

	return sigaction(SIGUSR1, &act, NULL);
}

static NOINLINE long in_sigprocmask(void)
{
	sigset_t all;

	/* The process that steps this one unblocks SIGTRAP. */
	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	return sigprocmask(SIG_BLOCK, &all, NULL);
}

static NOINLINE long in_nanosleep(void)
{
	struct timespec ts = { 0, 1000 };

	return nanosleep(&ts, NULL);
}

static NOINLINE long in_poll(void)
{
	return poll(NULL, 0, 1);
}

static NOINLINE long in_select(void)
{
	struct timeval tv = { 0, 1000 };
	fd_set none;

	FD_ZERO(&none);
	return select(1, &none, NULL, NULL, &tv);
}

static NOINLINE long in_ppoll(void)
{
	struct timespec ts = { 0, 1000 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &ts, &none);
}

static NOINLINE long in_pthread_create(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL);
}

static NOINLINE long in_thrd_create(void)
{
	thrd_t thread;

	return thrd_create(&thread, do_no_more, NULL) || thrd_join(thread, NULL);
}

static NOINLINE long in_dlclose(void)
{
	return dlclose(library);
}

static NOINLINE long in_setrlimit(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	return setrlimit(RLIMIT_AS, &limit);
}

static NOINLINE long in_waitpid(void)
{
	return waitpid(-1, NULL, 0);
}

static const struct call {
	const char *name;
	long (*make)(void);
	bool makes_thread;
} calls[] = {
	{ "sigaction", in_sigaction, false },
	{ "sigprocmask", in_sigprocmask, false },
	{ "nanosleep", in_nanosleep, false },
	{ "poll", in_poll, false },
	{ "select", in_select, false },
	{ "ppoll", in_ppoll, false },
	{ "pthread_create", in_pthread_create, true },
	{ "thrd_create", in_thrd_create, true },
	{ "dlclose", in_dlclose, false },
	{ "setrlimit", in_setrlimit, false },
	{ "waitpid", in_waitpid, false },
};

/**
 * struct result - what the child saw of the call
 * @done: the call has returned.
 * @ret: its result.
 * @error: errno after it.
 * @mask: the kernel's signal mask after it.
 */
struct result {
	int done;
	long ret;
	int error;
	uint64_t mask;
};

static volatile struct result *result;

/**
 * struct timer - the timer of the agent in the child
 * @id: the kernel's number of the timer.
 * @signo: its signal.
 * @value: the value that is sent with the signal.
 */
struct timer {
	int id;
	int signo;
	unsigned long long value;
};

/* The addresses of the agent's code in this process, which are the same in its children. */
static uint64_t agent_begins, agent_ends;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static bool find_timer(pid_t pid, struct timer *timer)
{
	char path[32], line[128];
	FILE *in;

	*timer = (struct timer){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/timers", pid);
	in = fopen(path, "r");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "ID: %d", &timer->id) != 1 &&
		    sscanf(line, "signal: %d/%llx", &timer->signo, &timer->value) == 2)
			break;
	if (in)
		fclose(in);
	return timer->signo;
}

/* Stops the agent's timer, so that only the signals that are sent here come. */
static bool stop_timer(void)
{
	struct itimerspec never = { 0 };
	struct timer timer;

	return find_timer(getpid(), &timer) &&
	       !syscall(SYS_timer_settime, timer.id, 0, &never, NULL);
}

/* Stops this process. syscall() is not used, because the agent has a hook for it. */
static void stop(void)
{
	int pid = sys0(SYS_getpid);

	sys3(SYS_tgkill, pid, pid, SIGSTOP);
}

#define NO_TIMER 3

static NOINLINE void be_child(const struct call *call)
{
	if (!stop_timer())
		_exit(NO_TIMER);
	be_traced();
	stop();
	errno = BEFORE;
	result->ret = call->make();
	result->error = errno;
	sys4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &result->mask, sizeof(result->mask));
	result->done = 1;
	stop();
	_exit(0);
}

/* Starts a child, and repeats this as long as the recorder has no slot for the child. */
static pid_t start(const struct call *call)
{
	int status;
	pid_t pid;

	for (;;) {
		*result = (struct result){ 0 };
		pid = fork();
		if (!pid)
			be_child(call);
		if (waitpid(pid, &status, 0) != pid)
			die("waitpid");
		if (WIFSTOPPED(status))
			return pid;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != NO_TIMER)
			die(call->name);
		usleep(1000);
	}
}

/* Returns the signal for which the child stops; 0: no signal, but a step; -1: the call is over. */
static int go(pid_t pid, int request, int signo)
{
	int status;

	if (ptrace(request, pid, NULL, (void *)(long)signo) || waitpid(pid, &status, 0) != pid)
		die("child");
	if (!WIFSTOPPED(status)) {
		printf("status %#x\n", status);
		exit(1);
	}
	if (result->done && WSTOPSIG(status) == SIGSTOP)
		return -1;
	return WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

static uint64_t pc_of(pid_t pid)
{
	return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), NULL);
}

static bool in_agent(pid_t pid)
{
	uint64_t pc = pc_of(pid);

	return pc >= agent_begins && pc < agent_ends;
}

/* Steps to instruction @number in the agent's code. Returns false if there are fewer. */
static bool step_to(pid_t pid, long number)
{
	int signo = 0;

	for (long met = -1; met < number; met += in_agent(pid)) {
		signo = go(pid, PTRACE_SINGLESTEP, signo);
		if (signo < 0)
			return false;
	}
	return true;
}

static void send(pid_t pid, const struct timer *timer)
{
	siginfo_t si = { .si_signo = timer->signo, .si_code = SI_TIMER };

	si.si_value.sival_ptr = (void *)(uintptr_t)timer->value;
	if (syscall(SYS_rt_tgsigqueueinfo, pid, pid, timer->signo, &si))
		die("rt_tgsigqueueinfo");
}

/* Lets the call go on to its end. Returns how often @own, the agent's signal, was delivered. */
static int finish(pid_t pid, int own)
{
	int signo = 0, delivered = 0;

	while ((signo = go(pid, PTRACE_CONT, signo)) >= 0)
		delivered += signo == own;
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	waitpid(pid, NULL, 0);
	return delivered;
}

/* Runs to the instruction at @pc. Returns false if the call does not get there. */
static bool run_to(pid_t pid, uint64_t pc)
{
	long code = ptrace(PTRACE_PEEKTEXT, pid, pc, NULL);
	int signo = 0;

	ptrace(PTRACE_POKETEXT, pid, pc, (void *)((code & ~0xffl) | 0xcc));
	do
		signo = go(pid, PTRACE_CONT, signo);
	while (signo > 0);
	ptrace(PTRACE_POKETEXT, pid, pc, (void *)code);
	if (signo < 0)
		return false;
	if (pc_of(pid) != pc + 1)
		die("breakpoint");
	ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rip), (void *)pc);
	return true;
}

/**
 * struct place - an instruction of the agent, where a call meets it for the first time
 * @number: how many of the agent's instructions come before it.
 * @pc: its address.
 */
struct place {
	long number;
	uint64_t pc;
};

/*
 * Makes one call with the signal at @place, or without it if that is NULL. Returns how many signals came,
 * or -1 if the call does not get there.
 */
static int run(const struct call *call, const struct place *place)
{
	struct timer timer;
	pid_t pid = start(call);
	bool there;

	if (!find_timer(pid, &timer))
		die("timer");
	there = !place ||
		(call->makes_thread ? step_to(pid, place->number) : run_to(pid, place->pc));
	if (there && place)
		send(pid, &timer);
	if (there)
		return finish(pid, timer.signo);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	waitpid(pid, NULL, 0);
	return -1;
}

static struct place places[MOST_PLACES];
static uint8_t was_met[MOST_CODE];

/* Steps through a call. Returns how many instructions of the agent it meets, which are in places[]. */
static size_t find_places(const struct call *call)
{
	pid_t pid = start(call);
	size_t nr = 0;

	memset(was_met, 0, sizeof(was_met));
	for (long number = -1; go(pid, PTRACE_SINGLESTEP, 0) >= 0;) {
		uint64_t at = pc_of(pid) - agent_begins;

		if (at >= agent_ends - agent_begins)
			continue;
		number++;
		if (at < MOST_CODE && nr < MOST_PLACES && !was_met[at]++)
			places[nr++] = (struct place){ number, at + agent_begins };
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	waitpid(pid, NULL, 0);
	return nr;
}

static bool same(const struct result *a, const struct result *b)
{
	return a->ret == b->ret && a->error == b->error && a->mask == b->mask;
}

/*
 * Tests a call with the signal at every instruction. Returns true if all is as without the signal.
 */
static bool every_instruction(const struct call *call, size_t stride)
{
	size_t nr = find_places(call);
	struct result expected, got;
	long delivered = 0;
	bool good = true;
	int came;

	run(call, NULL);
	expected = *result;
	for (size_t i = 0; i < nr; i += i < FINE ? 1 : stride) {
		came = run(call, &places[i]);
		if (came < 0) /* what it does may depend on the time */
			continue;
		delivered += came;
		got = *result;
		if (same(&got, &expected) && came == 1)
			continue;
		printf("%s, %ld: %d signals, returns %ld, errno %d, mask %llx\n", call->name,
		       places[i].number, came, got.ret, got.error, (unsigned long long)got.mask);
		good = false;
		break;
	}
	printf("%s %ld of %zu\n", call->name, delivered, nr);
	return good && delivered;
}

static bool find_agent(void)
{
	unsigned long long begins, ends;
	char line[512];
	FILE *in = fopen("/proc/self/maps", "r");

	while (in && fgets(line, sizeof(line), in))
		if (strstr(line, "libshstk-agent.so") &&
		    sscanf(line, "%llx-%llx r-xp", &begins, &ends) == 2 && strstr(line, " r-xp ")) {
			agent_begins = begins;
			agent_ends = ends;
		}
	if (in)
		fclose(in);
	return agent_begins;
}

int main(int argc, char **argv)
{
	size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	bool good = true;

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	library = dlopen("plugin-one.so", RTLD_NOW);
	if (result == MAP_FAILED || !library || !find_agent())
		die("start");
	/* With --wall the agent samples waits: let it meet all code once here. */
	in_nanosleep();
	in_select();
	alarm(LIMIT);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		good &= every_instruction(&calls[i], stride);
	return !good;
}
