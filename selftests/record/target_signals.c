// SPDX-License-Identifier: GPL-2.0-or-later
/* target_signals.c - what the target does with signals, their actions and signal masks. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

static _Atomic int profs;

static void on_prof(int signo)
{
	(void)signo;
	profs++;
}

/* sigprof SECONDS: is a program with a profiler of its own. */
int do_sigprof(char **arg)
{
	struct itimerval it = { { 0, 10000 }, { 0, 10000 } };

	signal(SIGPROF, on_prof);
	setitimer(ITIMER_PROF, &it, NULL);
	/* Without its signals it would not end. */
	do
		burn(atof(arg[0]));
	while (profs < 10);
	return 0;
}

/* mask: prints which real-time signals are blocked, as a number. */
int do_mask(char **arg)
{
	uint64_t mask = 0;
	sigset_t set;

	(void)arg;
	sigprocmask(SIG_SETMASK, NULL, &set);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		mask |= (uint64_t) !!sigismember(&set, signo) << (signo - 1);
	printf("%" PRIx64 "\n", mask);
	return 0;
}

/* Writes a byte after half a second. */
static void *write_later(void *arg)
{
	usleep(500000);
	return write(*(int *)arg, "a", 1) == 1 ? NULL : arg;
}

static void on_changing(int signo)
{
	(void)signo;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/*
 * Returns whether a handler for @signo does not end calls any more once that is asked for, before there is
 * a handler or after it.
 */
static bool restarts_again(int signo, bool has_handler)
{
	struct sigaction act = { .sa_handler = on_changing };

	if (has_handler)
		sigaction(signo, &act, NULL);
	siginterrupt(signo, 0);
	signal(signo, on_changing);
	return !sigaction(signo, NULL, &act) && act.sa_flags & SA_RESTART;
}

/* interrupts: asks that handlers of every signal end calls, and reads what comes after a while. */
int do_interrupts(char **arg)
{
	pthread_t thread;
	int ends[2];
	char c;

	(void)arg;
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		siginterrupt(signo, 1);
	if (pipe(ends) || pthread_create(&thread, NULL, write_later, &ends[1]))
		return 1;
	if (read(ends[0], &c, 1) != 1)
		return 2;
	return restarts_again(SIGRTMAX - 2, true) && restarts_again(SIGRTMAX - 3, false) ? 0 : 3;
}

static _Atomic int held_came;

static void on_held(int signo)
{
	(void)signo;
	held_came++;
}

/* Returns whether System V's calls hold a signal back, release it and ignore it. */
static bool can_hold(int signo)
{
	sigset_t pending;

	held_came = 0;
	if (signal(signo, SIG_ERR) != SIG_ERR || sigset(signo, SIG_HOLD) != SIG_DFL ||
	    raise(signo) || sigpending(&pending) || !sigismember(&pending, signo) ||
	    sigset(signo, on_held) != SIG_HOLD || held_came != 1)
		return false;
	if (sighold(signo) || raise(signo) || held_came != 1 || sigrelse(signo) || held_came != 2)
		return false;
	return !sigignore(signo) && !raise(signo) && held_came == 2;
}

static NOINLINE void old_work(double s)
{
	BURN(s);
}

/* old-calls SECONDS: uses System V's calls for signals, and works. */
int do_old_calls(char **arg)
{
	for (int signo = SIGRTMAX - 2; signo > SIGRTMAX - 6; signo--)
		if (!can_hold(signo))
			return signo;
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		sigignore(signo);
	old_work(atof(arg[0]));
	return 0;
}
#pragma GCC diagnostic pop

static atomic_bool changed;

/* Sets a handler and ignores the signal, very often. */
static void *change_action(void *arg)
{
	for (int i = 0; i < 30000; i++) {
		signal(*(int *)arg, on_changing);
		signal(*(int *)arg, SIG_IGN);
	}
	changed = true;
	return NULL;
}

/* changes: gets a signal all the time while another thread changes what is to be done for it. */
int do_changes(char **arg)
{
	int signo = SIGRTMAX - 2;
	pthread_t thread;

	(void)arg;
	signal(signo, on_changing);
	if (pthread_create(&thread, NULL, change_action, &signo))
		return 1;
	while (!changed)
		raise(signo);
	return 0;
}

/* spawns PROGRAM: blocks all signals and works, but executes the program in children very often. */
int do_spawns(char **arg)
{
	char *argv[] = { arg[0], "mask", NULL };
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < 60; i++) {
		if (posix_spawn(&pid, arg[0], NULL, NULL, argv, environ) ||
		    waitpid(pid, NULL, 0) != pid)
			return 1;
		burn(0.02);
	}
	return 0;
}

/* pending: prints which real-time signals are pending, as a number. */
int do_pending(char **arg)
{
	sigset_t set;
	uint64_t mask = 0;

	(void)arg;
	sigpending(&set);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		if (sigismember(&set, signo))
			mask |= (uint64_t)1 << (signo - 1);
	printf("%" PRIx64 "\n", mask);
	return 0;
}

/* Has a shell execute the program. Returns its status. */
static int hand_on_by_shell(const char *how, const char *program, const char *what)
{
	char command[256], line[64] = "";
	FILE *out;

	snprintf(command, sizeof(command), "exec %s %s", program, what);
	if (!strcmp(how, "system"))
		return system(command);
	out = popen(command, "r");
	if (!out || !fgets(line, sizeof(line), out))
		return 1;
	fputs(line, stdout);
	return pclose(out);
}

/* ignored: prints which real-time signals are ignored, as a number. */
int do_ignored(char **arg)
{
	struct sigaction act;
	uint64_t mask = 0;

	(void)arg;
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		if (!sigaction(signo, NULL, &act) && act.sa_handler == SIG_IGN)
			mask |= (uint64_t)1 << (signo - 1);
	printf("%" PRIx64 "\n", mask);
	return 0;
}

/* Executes a program in one way, after a call that fails where there is one. Returns its status. */
static int hand_on(const char *how, char **argv)
{
	int status = 1, failed = 1;
	pid_t pid;

	if (!strcmp(how, "system") || !strcmp(how, "popen")) {
		status = hand_on_by_shell(how, argv[0], argv[1]);
		burn(0.1);
		return status;
	}
	if (!strcmp(how, "exec")) {
		execv("/nowhere", argv);
		burn(0.1);
		execv(argv[0], argv);
	} else if (!strcmp(how, "number")) {
		syscall(SYS_execveat, AT_FDCWD, "/nowhere", argv, environ, 0);
		burn(0.1);
		syscall(SYS_execve, argv[0], argv, environ);
	} else if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (!pid) {
			execv("/nowhere", argv);
			execv(argv[0], argv);
			_exit(2);
		}
		failed = pid < 0;
	} else if (!strcmp(how, "fork")) {
		pid = fork();
		if (!pid) {
			execv(argv[0], argv);
			_exit(2);
		}
		failed = pid < 0;
	} else {
		failed = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	}
	if (failed || waitpid(pid, &status, 0) != pid)
		return 1;
	burn(0.1);
	return status;
}

/*
 * hands-on HOW PROGRAM mask|ignored: blocks or ignores all signals and executes the program, which prints
 * those that it has got.
 */
int do_hands_on(char **arg)
{
	char *argv[] = { arg[1], arg[2], NULL };
	sigset_t all;

	sigfillset(&all);
	if (!strcmp(arg[2], "mask"))
		sigprocmask(SIG_BLOCK, &all, NULL);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX && strcmp(arg[2], "mask"); signo++)
		signal(signo, SIG_IGN);
	return hand_on(arg[0], argv);
}

/* Bytes of an alternate stack that has no room for the agent's handler anywhere; Linux takes no smaller one. */
#define LEAST_STACK 2048

static char **small_arg;

/* What the executed program does, and how the process gives up rights before, or NULL. */
static char *next_does = "mask";
static const char *gives_up;

static void hand_on_in_handler(int signo)
{
	char *argv[] = { small_arg[2], next_does, NULL };

	(void)signo;
	exit(hand_on(small_arg[1], argv));
}

static void give_up_rights(void)
{
	if (gives_up)
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (gives_up && !strcmp(gives_up, "filter"))
		forbid(SYS_getpid);
	if (gives_up && !strcmp(gives_up, "lenient"))
		forbid(SYS_acct);
}

/*
 * small-hands-on unused|handler|roomy HOW PROGRAM: executes the program, which prints what it has got blocked.
 * The thread has an alternate stack that is small, and executes it beside that stack or in a handler on it; or in
 * one on a large stack. Ends with 4 if the kernel does not take such a stack.
 */
int do_small_hands_on(char **arg)
{
	static char bytes[262144];
	bool unused = !strcmp(arg[0], "unused"), roomy = !strcmp(arg[0], "roomy");
	struct sigaction act = { .sa_handler = hand_on_in_handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = bytes,
			  .ss_size = unused ? LEAST_STACK :
				     roomy  ? sizeof(bytes) :
					      32768 };
	char *argv[] = { arg[2], next_does, NULL };
	pid_t pid = getpid();

	if (sigaltstack(&stack, NULL))
		return 4;
	burn(0.05);
	sigaction(SIGUSR1, &act, NULL);
	give_up_rights();
	if (unused)
		return hand_on(arg[1], argv);
	small_arg = arg;
	return kill(pid, SIGUSR1);
}

/*
 * sandbox-hands-on rights|filter|lenient mask|pending unused|handler|roomy HOW PROGRAM: the same after it has given up new
 * privileges, and perhaps installed a filter of system calls. The program prints what it has got blocked or
 * pending.
 */
int do_sandbox_hands_on(char **arg)
{
	gives_up = arg[0];
	next_does = arg[1];
	return do_small_hands_on(arg + 2);
}

static void hand_on_masked(int signo)
{
	char *argv[] = { small_arg[3], "mask", NULL };
	sigset_t none;

	(void)signo;
	if (!strcmp(small_arg[0], "returns"))
		return;
	sigemptyset(&none);
	if (!strcmp(small_arg[0], "unblocks"))
		sigprocmask(SIG_SETMASK, &none, NULL);
	exit(hand_on(small_arg[2], argv));
}

/*
 * masked-hands-on stays|unblocks|returns rights|none HOW PROGRAM: executes the program, which prints what it has got
 * blocked, in a handler that blocks all signals, which it may unblock, or when that handler has returned. It may
 * have given up new privileges before, with a handler on an alternate stack.
 */
int do_masked_hands_on(char **arg)
{
	static char bytes[262144];
	const stack_t stack = { .ss_sp = bytes, .ss_size = sizeof(bytes) };
	bool rights = !strcmp(arg[1], "rights");
	struct sigaction act = { .sa_handler = hand_on_masked,
				 .sa_flags = rights ? SA_ONSTACK : 0 };
	char *argv[] = { arg[3], "mask", NULL };
	pid_t pid = getpid();

	small_arg = arg;
	sigfillset(&act.sa_mask);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &act, NULL))
		return 1;
	gives_up = rights ? "rights" : NULL;
	give_up_rights();
	if (kill(pid, SIGUSR1))
		return 1;
	return hand_on(arg[2], argv);
}

static char small_bytes[LEAST_STACK];
static const char *handler_does;

static void on_alarm(int signo)
{
	(void)signo;
	if (!strcmp(handler_does, "uses"))
		signal(SIGRTMAX - 2, plain_handler);
	else
		handler_does = system("true") ? NULL : "";
}

/*
 * small-handler uses|runs: has a shell send a signal to this thread, which has an alternate stack that is too small
 * for the agent's handler. The program's handler, on the thread's own stack, takes a signal that the agent may
 * have, or runs another shell. Fails if the kernel has put anything onto the alternate stack. Ends with 4 if it
 * does not take one so small.
 */
int do_small_handler(char **arg)
{
	stack_t stack = { .ss_sp = small_bytes, .ss_size = sizeof(small_bytes) };

	if (sigaltstack(&stack, NULL))
		return 4;
	handler_does = arg[0];
	signal(SIGALRM, on_alarm);
	memset(small_bytes, 1, sizeof(small_bytes));
	if (system("kill -ALRM $PPID; sleep 0.2") || !handler_does)
		return 1;
	for (size_t i = 0; i < sizeof(small_bytes); i++)
		if (small_bytes[i] != 1)
			return 2;
	return 0;
}

/*
 * small-foreign PROGRAM mask|ignored: has a child in another namespace of process IDs execute the program, with an
 * alternate stack that is too small for a handler, or with signals that are ignored. Ends with 4 if there is no
 * such stack or namespace.
 */
int do_small_foreign(char **arg)
{
	static char bytes[LEAST_STACK];
	stack_t stack = { .ss_sp = bytes, .ss_size = sizeof(bytes) };
	char *argv[] = { arg[0], arg[1], NULL };
	int status;
	pid_t pid;

	for (int signo = SIGRTMIN; signo <= SIGRTMAX && strcmp(arg[1], "mask"); signo++)
		signal(signo, SIG_IGN);
	if (sigaltstack(&stack, NULL) ||
	    (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID)))
		return 4;
	pid = fork();
	if (!pid) {
		execv(arg[0], argv);
		_exit(2);
	}
	return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 1;
}

/* small-shell: has a shell sleep, in a thread with an alternate stack that is too small for a handler. */
int do_small_shell(char **arg)
{
	static char bytes[LEAST_STACK];
	stack_t stack = { .ss_sp = bytes, .ss_size = sizeof(bytes) };

	(void)arg;
	return sigaltstack(&stack, NULL) ? 4 : system("sleep 0.5");
}

static sigjmp_buf out_of_shell;

static void leave_shell(int signo)
{
	(void)signo;
	siglongjmp(out_of_shell, 1);
}

static NOINLINE void work_after_leaving(double s)
{
	BURN(s);
}

/*
 * leaves-shell small|ignored SECONDS: leaves system() by a handler, in a thread with an alternate stack that is too
 * small for a handler, which it then gives back, or with signals that are ignored, and works. Ends with 4 if there
 * is no such stack.
 */
int do_leaves_shell(char **arg)
{
	stack_t stack = { .ss_sp = small_bytes, .ss_size = sizeof(small_bytes) };
	const stack_t none = { .ss_flags = SS_DISABLE };
	bool small = !strcmp(arg[0], "small");

	if (small && sigaltstack(&stack, NULL))
		return 4;
	for (int signo = SIGRTMIN; signo <= SIGRTMAX && !small; signo++)
		signal(signo, SIG_IGN);
	signal(SIGALRM, leave_shell);
	if (!sigsetjmp(out_of_shell, 1))
		return system("kill -ALRM $PPID") ? 1 : 2;
	if (sigaltstack(&none, NULL))
		return 3;
	work_after_leaving(atof(arg[1]));
	return 0;
}

static NOINLINE void after_shell(double s)
{
	BURN(s);
}

static NOINLINE void beside_shell(double s)
{
	BURN(s);
}

static void *run_command(void *arg)
{
	return system(arg) ? arg : NULL;
}

/* A shell that runs until it is told to end, and the thread that waits for it. */
struct waiting_shell {
	pthread_t thread;
	int there[2], go[2];
};

/* Has a shell executed with a signal ignored. Returns whether it runs. */
static bool begin_shell(struct waiting_shell *s)
{
	/* A shell may take numbers of one digit only. */
	static char command[] = "echo >&8; read a <&9";
	char c;

	signal(SIGRTMAX - 2, SIG_IGN);
	return !pipe(s->there) && !pipe(s->go) && dup2(s->there[1], 8) == 8 &&
	       dup2(s->go[0], 9) == 9 && !pthread_create(&s->thread, NULL, run_command, command) &&
	       read(s->there[0], &c, 1) == 1;
}

/* Ends the shell. Returns whether all went well. */
static bool end_shell(struct waiting_shell *s)
{
	void *failed;

	return write(s->go[1], "\n", 1) == 1 && !pthread_join(s->thread, &failed) && !failed;
}

/*
 * beside-shell SECONDS: has a shell executed with a signal ignored, which meanwhile gets its default action.
 * A child that begins meanwhile works, and so does this process later.
 */
int do_beside_shell(char **arg)
{
	struct waiting_shell shell;
	pid_t pid;

	if (!begin_shell(&shell))
		return 1;
	pid = fork();
	if (!pid) {
		beside_shell(atof(arg[0]));
		_exit(0);
	}
	signal(SIGRTMAX - 2, SIG_DFL);
	if (waitpid(pid, NULL, 0) != pid || !end_shell(&shell))
		return 2;
	after_shell(atof(arg[0]));
	return 0;
}

/* Has the program print which real-time signals are ignored, in a child. Returns whether it did. */
static bool print_ignored(char *program)
{
	char *argv[] = { program, "ignored", NULL };
	int status;
	pid_t pid;

	return !posix_spawn(&pid, program, NULL, NULL, argv, environ) &&
	       waitpid(pid, &status, 0) == pid && !status;
}

/*
 * changes-beside-shell PROGRAM: has a shell executed with a signal ignored, which meanwhile gets its default
 * action and is ignored again, and has the program print which real-time signals are ignored each time.
 */
int do_changes_beside_shell(char **arg)
{
	struct waiting_shell shell;

	if (!begin_shell(&shell))
		return 1;
	signal(SIGRTMAX - 2, SIG_DFL);
	if (!print_ignored(arg[0]))
		return 2;
	signal(SIGRTMAX - 2, SIG_IGN);
	return print_ignored(arg[0]) && end_shell(&shell) && print_ignored(arg[0]) ? 0 : 3;
}

static void *print_often(void *arg)
{
	for (int i = 0; i < 40; i++)
		if (!print_ignored(arg))
			return arg;
	return NULL;
}

/*
 * spawns-together PROGRAM: ignores all real-time signals, and has the program print them often, in children of
 * four threads at once. Then it works.
 */
int do_spawns_together(char **arg)
{
	pthread_t threads[4];
	void *failed;
	int ret = 0;

	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		signal(signo, SIG_IGN);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, print_often, arg[0]))
			return 1;
	for (int i = 0; i < 4; i++)
		ret |= pthread_join(threads[i], &failed) || failed;
	after_shell(0.3);
	return ret;
}

static NOINLINE void handler_work(double s)
{
	BURN(s);
}

static void on_tick(int signo)
{
	(void)signo;
	handler_work(0.02);
}

/* handler SECONDS: spends half of the time in a handler that blocks all signals. */
int do_handler(char **arg)
{
	struct sigaction sa = { .sa_handler = on_tick };

	sigfillset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, NULL);
	for (double left = atof(arg[0]); left > 0; left -= 0.04) {
		burn(0.02);
		raise(SIGALRM);
	}
	return 0;
}

/* Makes frames on several pages, one of which cannot be read while time passes below it. */
static NOINLINE int guard_below(int n, double s)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *page = (char *)(((uintptr_t)&n & -size) + 2 * size);
	volatile char frame[512];

	frame[0] = n;
	if (n)
		return guard_below(n - 1, s) + frame[0] - n;
	burn(s / 3);
	mprotect(page, size, PROT_NONE);
	burn(s / 3);
	mprotect(page, size, PROT_READ | PROT_WRITE);
	burn(s / 3);
	return 0;
}

static NOINLINE void *guarded(void *arg)
{
	guard_below(100, atof(arg));
	return NULL;
}

/* guarded SECONDS: in each of two threads, a page of the stack is a guard for a while. */
int do_guarded(char **arg)
{
	pthread_t thread;

	guarded(arg[0]);
	return pthread_create(&thread, NULL, guarded, arg[0]) || pthread_join(thread, NULL);
}

static void count_alarm(int signo)
{
	(void)signo;
}

static void give_up(int signo)
{
	(void)signo;
	_exit(1);
}

/* ---- Calls that wait for ever, unless a handler ends them. The alarm is set right before. ---- */

static int in_pause(const struct itimerval *alarm)
{
	setitimer(ITIMER_REAL, alarm, NULL);
	return pause();
}

static int in_semop(const struct itimerval *alarm)
{
	struct sembuf down = { 0, -1, 0 };
	int id = semget(IPC_PRIVATE, 1, 0600), ret;

	setitimer(ITIMER_REAL, alarm, NULL);
	ret = semop(id, &down, 1);
	semctl(id, 0, IPC_RMID);
	return ret;
}

static int in_msgrcv(const struct itimerval *alarm)
{
	struct {
		long type;
		char text[1];
	} letter;
	int id = msgget(IPC_PRIVATE, 0600), ret;

	setitimer(ITIMER_REAL, alarm, NULL);
	ret = (int)msgrcv(id, &letter, sizeof(letter.text), 0, 0);
	msgctl(id, IPC_RMID, NULL);
	return ret;
}

static int in_sem_timedwait(const struct itimerval *alarm)
{
	struct timespec late = { .tv_sec = INT32_MAX };
	sem_t sem;

	sem_init(&sem, 0, 0);
	setitimer(ITIMER_REAL, alarm, NULL);
	return sem_timedwait(&sem, &late);
}

static int in_recv(const struct itimerval *alarm)
{
	char bytes[2];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 0;
	setitimer(ITIMER_REAL, alarm, NULL);
	return (int)recv(pair[0], bytes, sizeof(bytes), MSG_WAITALL);
}

/* The call that does not wait is to say so, whether or not a handler came before it. */
static int in_recv_at_once(const struct itimerval *alarm)
{
	char bytes[2];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 0;
	setitimer(ITIMER_REAL, alarm, NULL);
	if (recv(pair[0], bytes, sizeof(bytes), MSG_WAITALL | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		return 0;
	errno = EINTR;
	return -1;
}

/* Waits for two messages where one is there, which is then the result. */
static int in_recvmmsg(const struct itimerval *alarm)
{
	char bytes[2];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct mmsghdr messages[] = {
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
	};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || write(pair[1], "", 1) != 1)
		return 0;
	setitimer(ITIMER_REAL, alarm, NULL);
	if (recvmmsg(pair[0], messages, 2, 0, NULL) != 1)
		return 0;
	errno = EINTR;
	return -1;
}

/* Writes to a full pipe. */
static int in_write(const struct itimerval *alarm)
{
	static char bytes[PIPE_BUF + 1];
	int pair[2];

	if (pipe(pair) || fcntl(pair[1], F_SETFL, O_NONBLOCK))
		return 0;
	while (write(pair[1], bytes, PIPE_BUF) > 0)
		;
	if (fcntl(pair[1], F_SETFL, 0))
		return 0;
	setitimer(ITIMER_REAL, alarm, NULL);
	return (int)write(pair[1], bytes, sizeof(bytes));
}

/*
 * Writes more than a pipe has room for. As it has room for a part, that is the result of a call that
 * a handler ends, or 0 if the part was not yet written.
 */
static int in_large_write(const struct itimerval *alarm)
{
	static char bytes[1 << 20];
	int pair[2];
	ssize_t ret;

	if (pipe(pair))
		return 0;
	setitimer(ITIMER_REAL, alarm, NULL);
	ret = write(pair[1], bytes, sizeof(bytes));
	if (ret == -1 || ret >= (ssize_t)sizeof(bytes))
		return (int)ret;
	errno = EINTR;
	return -1;
}

static int in_large_writev(const struct itimerval *alarm)
{
	static char bytes[1 << 20];
	struct iovec iov[] = { { bytes, PIPE_BUF }, { bytes, sizeof(bytes) } };
	int pair[2];
	ssize_t ret;

	if (pipe(pair))
		return 0;
	setitimer(ITIMER_REAL, alarm, NULL);
	ret = writev(pair[1], iov, 2);
	if (ret == -1 || ret >= (ssize_t)sizeof(bytes))
		return (int)ret;
	errno = EINTR;
	return -1;
}

/* Makes a socket that listens and has as many connections as it takes: another one waits. */
static struct sockaddr_un full_listener(socklen_t *size)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	/* The kernel chooses the name. */
	*size = sizeof(sa_family_t);
	if (bind(listener, (struct sockaddr *)&name, *size) || listen(listener, 0))
		exit(98);
	*size = sizeof(name);
	if (getsockname(listener, (struct sockaddr *)&name, size) ||
	    connect(first, (struct sockaddr *)&name, *size))
		exit(98);
	return name;
}

static int in_connect(const struct itimerval *alarm)
{
	const struct timeval hour = { .tv_sec = 3600 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t size;
	struct sockaddr_un name = full_listener(&size);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &hour, sizeof(hour));
	setitimer(ITIMER_REAL, alarm, NULL);
	return connect(fd, (struct sockaddr *)&name, size);
}

static int in_sigwaitinfo(const struct itimerval *alarm)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	setitimer(ITIMER_REAL, alarm, NULL);
	return sigwaitinfo(&set, NULL);
}

static int in_sigtimedwait(const struct itimerval *alarm)
{
	const struct timespec hour = { .tv_sec = 3600 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	setitimer(ITIMER_REAL, alarm, NULL);
	return sigtimedwait(&set, NULL, &hour);
}

typedef int wait_fn(const struct itimerval *alarm);

static const struct {
	const char *name;
	wait_fn *wait;
} waits[] = {
	{ "pause", in_pause },
	{ "semop", in_semop },
	{ "msgrcv", in_msgrcv },
	{ "sem_timedwait", in_sem_timedwait },
	{ "recv", in_recv },
	{ "write", in_write },
	{ "recv_at_once", in_recv_at_once },
	{ "recvmmsg", in_recvmmsg },
	{ "large_write", in_large_write },
	{ "large_writev", in_large_writev },
	{ "connect", in_connect },
	{ "sigwaitinfo", in_sigwaitinfo },
	{ "sigtimedwait", in_sigtimedwait },
};

static wait_fn *wait_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		if (!strcmp(name, waits[i].name))
			return waits[i].wait;
	return NULL;
}

/*
 * Waits far from the start of the stack: the alarm is to come while a sample reads the stack.
 * Returns 0 if the call ended as a handler ends it.
 */
static NOINLINE int wait_below(int n, long us, wait_fn *wait)
{
	struct itimerval it = { .it_value = { .tv_usec = us } };
	volatile char frame[64];

	frame[0] = n;
	if (n)
		return wait_below(n - 1, us, wait) + frame[0] - (char)n;
	return wait(&it) == -1 && errno == EINTR ? 0 : 2;
}

/*
 * soon CALL: counts how many of 40 processes wait in vain for an alarm, because it comes before
 * they wait. The alarm's handler has no SA_RESTART.
 */
int do_soon(char **arg)
{
	struct sigaction act = { .sa_handler = count_alarm };
	wait_fn *wait = wait_by_name(arg[0]);
	/* Some wait in vain, which is to take no longer than is needed; a call that does not wait never. */
	struct itimerspec limit = { .it_value.tv_sec = wait == in_recv_at_once ? 200 : 2 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	int lost = 0, status;
	timer_t timer;

	sigaction(SIGALRM, &act, NULL);
	signal(SIGUSR2, give_up);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (!pid) {
			timer_create(CLOCK_MONOTONIC, &event, &timer);
			timer_settime(timer, 0, &limit, NULL);
			_exit(wait_below(2000, 50 + 10 * i, wait));
		}
		if (waitpid(pid, &status, 0) != pid)
			return 100;
		lost += !!status;
	}
	return lost;
}

#if defined(__x86_64__)
/* The kernel's struct sigaction, with the handler that the kernel really calls. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

/* Handlers that call another handler without aligning the stack as the ABI demands. */
void *unaligned_to[2] __attribute__((used));
void unaligned_0(int signo);
void unaligned_1(int signo);
__asm__(".text\n"
	"unaligned_0:\n"
	"	call *unaligned_to(%rip)\n"
	"	ret\n"
	"unaligned_1:\n"
	"	call *unaligned_to+8(%rip)\n"
	"	ret\n");

/* Sets and gets an action without libc: what the kernel has, not what the agent says. */
static long kernels_action(long signo, const struct kernel_action *act, struct kernel_action *old)
{
	register long size __asm__("r10") = 8;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(SYS_rt_sigaction), "D"(signo), "S"(act), "d"(old), "r"(size)
			 : "rcx", "r11", "memory");
	return ret;
}

static int put_between(int signo, int nr, void (*handler)(int))
{
	struct kernel_action action;

	if (kernels_action(signo, NULL, &action) || !action.handler)
		return 0;
	unaligned_to[nr] = action.handler;
	action.handler = (void *)handler;
	return !kernels_action(signo, &action, NULL);
}

static volatile sig_atomic_t nr_plain;

/* A handler that realigns the stack, because the compiler may use aligned moves in it. */
__attribute__((force_align_arg_pointer)) static void count_plain(int signo)
{
	(void)signo;
	nr_plain++;
}

/* unaligned SECONDS: works, while its own handler and the agent's are entered unaligned. */
int do_unaligned(char **arg)
{
	int found = 0;

	signal(SIGUSR1, count_plain);
	for (int signo = SIGRTMIN + 1; signo <= SIGRTMAX; signo++)
		found += put_between(signo, 0, unaligned_0);
	if (!put_between(SIGUSR1, 1, unaligned_1))
		return 2;
	for (int i = 0; i < 10; i++) {
		burn(atof(arg[0]) / 10);
		raise(SIGUSR1);
	}
	/* Without the agent there is no handler but its own. */
	return nr_plain != 10 ? 3 : found;
}
#endif

static int differ(const char *what, const sigset_t *wanted, const sigset_t *got)
{
	int bad = 0;

	for (int s = 1; s <= SIGRTMAX; s++) {
		if (s == SIGKILL || s == SIGSTOP || (s > 31 && s < SIGRTMIN) ||
		    sigismember(wanted, s) == sigismember(got, s))
			continue;
		printf("%s: signal %d reads back %d\n", what, s, sigismember(got, s));
		bad = 1;
	}
	return bad;
}

static void *masks_thread(void *arg)
{
	sigset_t got;

	pthread_sigmask(SIG_BLOCK, NULL, &got);
	return (void *)(long)differ("mask of a new thread", arg, &got);
}

void plain_handler(int signo)
{
	(void)signo;
}

/* Returns 1 if the action for @signo is not as it was set, by whichever call. */
static int action_differs(const char *what, int signo, void (*handler)(int), int flags,
			  const sigset_t *mask)
{
	struct sigaction got;

	if (sigaction(signo, NULL, &got))
		return 1;
	got.sa_flags &= ~0x04000000; /* SA_RESTORER, which libc sets itself */
	if (got.sa_handler != handler || got.sa_flags != flags) {
		printf("%s: handler %p flags %#x, not %p %#x\n", what, (void *)got.sa_handler,
		       got.sa_flags, (void *)handler, flags);
		return 1;
	}
	return differ(what, mask, &got.sa_mask);
}

/* masks: checks that masks and actions read back as they were set. */
int do_masks(char **arg)
{
	struct sigaction sa = { .sa_handler = plain_handler }, old;
	sigset_t all, none, one, got;
	pthread_t thread;
	void *ret;
	int bad = 0;

	(void)arg;
	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_BLOCK, NULL, &got);
	bad |= differ("sigprocmask", &all, &got);
	pthread_sigmask(SIG_UNBLOCK, &none, &got);
	bad |= differ("pthread_sigmask", &all, &got);
	pthread_create(&thread, NULL, masks_thread, &all);
	pthread_join(thread, &ret);
	bad |= !!ret;
	sigprocmask(SIG_UNBLOCK, &all, &got);
	bad |= differ("before SIG_UNBLOCK", &all, &got);
	sigprocmask(SIG_SETMASK, NULL, &got);
	bad |= differ("after SIG_UNBLOCK", &none, &got);

	sa.sa_mask = all;
	bad |= sigaction(SIGUSR1, &sa, NULL);
	bad |= action_differs("sigaction", SIGUSR1, plain_handler, 0, &all);
	sa.sa_mask = none;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER;
	bad |= sigaction(SIGUSR1, &sa, &old);
	bad |= old.sa_handler != plain_handler || differ("old action", &all, &old.sa_mask);
	bad |= action_differs("sigaction again", SIGUSR1, plain_handler, sa.sa_flags, &none);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	bad |= signal(SIGUSR1, SIG_DFL) != plain_handler;
	bad |= signal(SIGUSR1, plain_handler) != SIG_DFL;
	bad |= action_differs("signal", SIGUSR1, plain_handler, SA_RESTART, &one);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	siginterrupt(SIGUSR1, 1);
#pragma GCC diagnostic pop
	bad |= action_differs("siginterrupt", SIGUSR1, plain_handler, 0, &one);
	bad |= sysv_signal(SIGUSR1, plain_handler) != plain_handler;
	bad |= action_differs("sysv_signal", SIGUSR1, plain_handler, SA_RESETHAND | SA_NODEFER,
			      &none);
	raise(SIGUSR1);
	bad |= action_differs("behind SA_RESETHAND", SIGUSR1, SIG_DFL, SA_RESETHAND | SA_NODEFER,
			      &none);
	return bad;
}

/* What the system call rt_sigaction takes. */
struct numbered_action {
	void (*handler)(int signo);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static long by_number(int signo, const void *act, void *old)
{
	return syscall(SYS_rt_sigaction, signo, act, old, 8);
}

/*
 * Returns the signals that this process ignores, as the kernel has them. Some are inherited:
 * nohup(1) ignores SIGHUP, a shell's "&" ignores SIGINT and SIGQUIT, and posix_spawn(3) ignores the
 * two signals that libc keeps to itself.
 */
static uint64_t ignored_signals(void)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[200];
	uint64_t set = 0;

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "SigIgn: %" SCNx64, &set) == 1)
			break;
	if (in)
		fclose(in);
	return set;
}

/* Returns true if @act is the action that the signal began with. */
static bool is_inherited(const struct numbered_action *act, int signo, uint64_t ignored)
{
	return act->handler == (ignored >> (signo - 1) & 1 ? SIG_IGN : SIG_DFL);
}

/* Gives all signals their default actions, as programs do in processes that they make. */
static int reset_by_number(uint64_t ignored)
{
	struct numbered_action act;

	for (int s = 1; s <= SIGRTMAX; s++) {
		if (s == SIGKILL || s == SIGSTOP)
			continue;
		if (by_number(s, NULL, &act) || !is_inherited(&act, s, ignored)) {
			printf("signal %d: the action was %p\n", s, (void *)act.handler);
			return 2;
		}
		act.handler = SIG_DFL;
		if (by_number(s, &act, NULL))
			return 3;
	}
	burn(0.3);
	return 7;
}

/* Checks that a child that has reset all signals works and ends by itself. */
static int child_resets(uint64_t ignored)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		status = reset_by_number(ignored);
		fflush(stdout);
		_exit(status);
	}
	if (waitpid(pid, &status, 0) != pid || status == 7 << 8)
		return 0;
	printf("the child ended with %#x\n", status);
	return 1;
}

/* Checks that a bad pointer is an error for all real-time signals. */
static int bad_pointers_are_told(void)
{
	void *bad = (void *)8;

	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		if (!by_number(s, bad, NULL) || errno != EFAULT || !by_number(s, NULL, bad) ||
		    errno != EFAULT) {
			printf("signal %d: a bad pointer\n", s);
			return 1;
		}
	}
	return 0;
}

/* by-number: checks that actions that were set in one way are read in the other. */
int do_by_number(char **arg)
{
	uint64_t ignored = ignored_signals();
	struct numbered_action act;
	struct sigaction got;
	int bad = child_resets(ignored) | bad_pointers_are_told();

	(void)arg;
	signal(SIGUSR1, plain_handler);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		if (by_number(s, NULL, &act) || !is_inherited(&act, s, ignored))
			return 8;
		act = (struct numbered_action){ .handler = SIG_IGN };
		if (by_number(s, &act, NULL) || sigaction(s, NULL, &got))
			return 9;
		if (got.sa_handler != SIG_IGN) {
			printf("signal %d: not the action that was set\n", s);
			bad = 1;
		}
	}
	if (by_number(SIGUSR1, NULL, &act) || act.handler != plain_handler) {
		printf("another handler than the program's\n");
		bad = 1;
	}
	burn(0.1);
	return bad;
}

static _Atomic int seen[65];

static void on_any(int signo, siginfo_t *si, void *context)
{
	(void)si;
	(void)context;
	seen[signo]++;
}

/* signals: uses all real-time signals for itself, in every way there is. */
int do_signals(char **arg)
{
	struct sigaction sa = { .sa_sigaction = on_any, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction old;
	struct timespec zero = { 0, 20000000 };
	siginfo_t si;
	sigset_t all;
	int bad = 0;

	(void)arg;
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		bad |= sigaction(s, NULL, &old) || old.sa_handler != SIG_DFL;
		bad |= sigaction(s, &sa, NULL);
		bad |= sigaction(s, NULL, &old) || old.sa_sigaction != on_any;
	}
	burn(0.3);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		kill(getpid(), s);
	burn(0.1);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		if (seen[s] != 1) {
			printf("signal %d came %d times\n", s, seen[s]);
			bad = 1;
		}
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	burn(0.3);
	while (sigtimedwait(&all, &si, &zero) > 0) {
		printf("signal %d was waiting\n", si.si_signo);
		bad = 1;
	}
	return bad;
}

/*
 * The functions below use a real-time signal that the program does not handle, or handles in some
 * of its threads only: each way in a process of its own, for each signal. They return 0 if all is
 * as it has to be.
 */
static sigset_t just(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	return set;
}

static volatile sig_atomic_t came, came_value, came_code;

static void note_signal(int signo, siginfo_t *si, void *context)
{
	(void)context;
	came = came * 100 + signo;
	came_value = si->si_value.sival_int;
	came_code = si->si_code;
}

static int is_waited_for(int signo)
{
	const union sigval value = { .sival_int = 7 };
	const struct timespec most = { 400, 0 };
	sigset_t set = just(signo);
	siginfo_t si;

	sigprocmask(SIG_BLOCK, &set, NULL);
	burn(0.05);
	if (sigqueue(getpid(), signo, value) || sigtimedwait(&set, &si, &most) != signo)
		return 1;
	return si.si_code != SI_QUEUE || si.si_value.sival_int != 7 || si.si_pid != getpid();
}

static int is_read(int signo)
{
	sigset_t set = just(signo);
	struct signalfd_siginfo si;
	struct pollfd p = { .events = POLLIN };

	sigprocmask(SIG_BLOCK, &set, NULL);
	p.fd = signalfd(-1, &set, 0);
	burn(0.05);
	if (p.fd < 0 || poll(&p, 1, 50)) /* nothing may come but what is sent */
		return 1;
	kill(getpid(), signo);
	return poll(&p, 1, 400000) != 1 || read(p.fd, &si, sizeof(si)) != sizeof(si) ||
	       si.ssi_signo != (uint32_t)signo || si.ssi_code != SI_USER;
}

static int is_pending(int signo)
{
	sigset_t set = just(signo), got;

	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(signo);
	burn(0.05);
	sigpending(&got);
	if (!sigismember(&got, signo))
		return 1;
	signal(signo, SIG_IGN);
	sigpending(&got);
	return sigismember(&got, signo);
}

static int comes_by_timer(int signo)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signo };
	struct itimerspec when = { .it_value = { 0, 20000000 } };
	const struct timespec most = { 400, 0 };
	sigset_t set = just(signo);
	siginfo_t si;
	timer_t timer;

	ev.sigev_value.sival_int = 11;
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &when, NULL))
		return 1;
	burn(0.05);
	return sigtimedwait(&set, &si, &most) != signo || si.si_code != SI_TIMER ||
	       si.si_value.sival_int != 11;
}

static int is_handled(int signo)
{
	struct sigaction act = { .sa_sigaction = note_signal, .sa_flags = SA_SIGINFO }, old;
	const union sigval value = { .sival_int = 5 };
	sigset_t mask, all;

	sigfillset(&all);
	sigemptyset(&act.sa_mask);
	burn(0.05);
	if (sigaction(signo, NULL, &old) || old.sa_handler != SIG_DFL ||
	    sigaction(signo, &act, NULL) || sigaction(signo, NULL, &old) ||
	    old.sa_sigaction != note_signal)
		return 1;
	sigqueue(getpid(), signo, value);
	if (came != signo || came_value != 5 || came_code != SI_QUEUE)
		return 2;
	sigprocmask(SIG_SETMASK, &all, &mask);
	raise(signo);
	burn(0.05);
	if (came != signo)
		return 3;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return came != signo * 101 || signal(signo, SIG_DFL) == SIG_ERR;
}

/*
 * The signal is blocked in a set of all signals, and another process sends it before the program
 * names it.
 */
static int is_kept(int signo)
{
	sigset_t all, got;
	int status;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	pid = fork();
	if (!pid)
		_exit(kill(getppid(), signo));
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	burn(0.05);
	sigpending(&got);
	return !sigismember(&got, signo);
}

static int is_ignored(int signo)
{
	signal(signo, SIG_IGN);
	raise(signo);
	burn(0.05);
	raise(signo);
	return 0;
}

static _Atomic int other_runs, other_ends;

static void *wait_in_thread(void *arg)
{
	const struct timespec most = { 400, 0 };
	sigset_t set = just(*(int *)arg);

	other_runs = 1;
	burn(0.05);
	return (void *)(long)sigtimedwait(&set, NULL, &most);
}

static void *work_in_thread(void *arg)
{
	(void)arg;
	while (!other_ends)
		burn(0.01);
	return NULL;
}

/* All threads block the signal, one waits for it, and the others work meanwhile. */
static int is_taken_by_a_thread(int signo)
{
	sigset_t set = just(signo);
	pthread_t waiter, worker;
	void *ret;

	pthread_create(&worker, NULL, work_in_thread, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&waiter, NULL, wait_in_thread, &signo);
	while (!other_runs)
		usleep(1000);
	burn(0.05);
	pthread_kill(waiter, signo);
	pthread_join(waiter, &ret);
	other_ends = 1;
	pthread_join(worker, NULL);
	return (long)ret != signo;
}

static int ends_it(int signo)
{
	burn(0.05);
	raise(signo);
	return 0;
}

static void *send_to_process(void *arg)
{
	burn(0.05);
	kill(getpid(), *(int *)arg);
	return NULL;
}

/* Another thread than the first gets the signal, which the agent blocks in that one while it waits. */
static int ends_it_in_a_thread(int signo)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, send_to_process, &signo))
		return 1;
	sleep(400);
	return 0;
}

static const struct {
	const char *what;
	int (*use)(int signo);
	bool ends; /* the process has to end by the signal */
} uses[] = {
	{ "is waited for", is_waited_for, false },
	{ "is read", is_read, false },
	{ "is pending", is_pending, false },
	{ "comes by a timer", comes_by_timer, false },
	{ "is handled", is_handled, false },
	{ "is kept", is_kept, false },
	{ "is ignored", is_ignored, false },
	{ "is taken", is_taken_by_a_thread, false },
	{ "ends the program", ends_it, true },
	{ "ends it in a thread", ends_it_in_a_thread, true },
};

/* uses FIRST LAST: tries all these ways with real-time signals, counted from the last one back. */
int do_uses(char **arg)
{
	int bad = 0, status;

	for (int signo = SIGRTMAX - atoi(arg[1]); signo <= SIGRTMAX - atoi(arg[0]); signo++) {
		for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
			pid_t pid = fork();

			if (!pid)
				_exit(uses[i].use(signo));
			while (waitpid(pid, &status, 0) != pid)
				;
			if (status == (uses[i].ends ? signo : 0))
				continue;
			printf("signal %d %s: ended with %#x\n", signo, uses[i].what, status);
			bad = 1;
		}
	}
	return bad;
}

/*
 * Works without the thread's clock, which reads the time stamp counter: getrusage() tells the CPU
 * time.
 */
static NOINLINE void burn_without_tsc(double s)
{
	struct rusage usage;
	volatile double x = 1;

	do {
		for (int i = 0; i < 20000; i++)
			x = x * 1.0000001;
		getrusage(RUSAGE_SELF, &usage);
	} while (usage.ru_utime.tv_sec + 1e-6 * usage.ru_utime.tv_usec < s);
}

static void note_mask(void *arg)
{
	sigset_t *mask = arg;

	pthread_sigmask(SIG_BLOCK, NULL, mask);
}

static void *wait_for_cancellation(void *arg)
{
	pthread_cleanup_push(note_mask, arg);
	sleep(100);
	pthread_cleanup_pop(0);
	return NULL;
}

/*
 * cancelled: checks the signal mask in a thread that is cancelled while it waits: nothing is
 * blocked.
 */
int do_cancelled(char **arg)
{
	struct timespec moment = { 0, 50000000 };
	sigset_t mask;
	pthread_t thread;
	int blocked = 0;

	(void)arg;
	sigfillset(&mask);
	if (pthread_create(&thread, NULL, wait_for_cancellation, &mask))
		return 2;
	nanosleep(&moment, NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	/* The signals that libc keeps to itself do not count. */
	for (int i = 1; i <= SIGRTMAX; i++)
		blocked += (i < 32 || i >= SIGRTMIN) && sigismember(&mask, i) == 1;
	return blocked;
}

/* no-tsc SECONDS: forbids itself the time stamp counter. */
int do_no_tsc(char **arg)
{
	void *p;

#ifdef PR_SET_TSC
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		return 1;
#endif
	p = malloc(1000);
	burn_without_tsc(atof(arg[0]));
	free(p);
#ifdef PR_SET_TSC
	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
#endif
	return !p;
}

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif
#define ALLOW 0
#define BLOCK 1

/* What becomes of system calls: ALLOW or BLOCK. */
static volatile char selector;
static volatile sig_atomic_t dispatched;

static void on_dispatched(int signo)
{
	(void)signo;
	selector = ALLOW;
	dispatched++;
}

/* Works while each system call would be SIGSYS, but for looks at the clock. */
static NOINLINE void burn_dispatched(double s)
{
	double start = clock_s(CLOCK_THREAD_CPUTIME_ID);
	volatile unsigned int x = 0;

	do {
		selector = BLOCK;
		for (int i = 0; i < 20000; i++)
			x += i;
		selector = ALLOW;
	} while (clock_s(CLOCK_THREAD_CPUTIME_ID) - start < s);
}

/*
 * dispatches SECONDS: handles its system calls itself while it works, and makes none; then a child
 * works. Fails if there were any. Ends with 4 if the kernel does not know how.
 */
int do_dispatches(char **arg)
{
	double s = atof(arg[0]);
	int status = 1;
	pid_t pid;

	signal(SIGSYS, on_dispatched);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector))
		return errno == EINVAL ? 4 : 1;
	burn_dispatched(s);
	pid = fork();
	if (!pid) {
		child_work(s);
		exit(0);
	}
	waitpid(pid, &status, 0);
	return dispatched || status;
}

static NOINLINE void work_undispatched(double s)
{
	BURN(s);
}

/* Returns what prctl() or the same call by number returns. */
static long set_dispatch(const char *how, long mode, long offset)
{
	if (!strcmp(how, "number"))
		return syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, offset, 0,
			       mode ? (long)&selector : 0);
	return prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, offset, 0, mode ? &selector : NULL);
}

/*
 * dispatched-before prctl|number|refused SECONDS: begins to handle its system calls itself, by a call that the
 * kernel may refuse, ends that, and works. Ends with 4 if the kernel does not know how.
 */
int do_dispatched_before(char **arg)
{
	bool refused = !strcmp(arg[0], "refused");
	long ret = set_dispatch(arg[0], PR_SYS_DISPATCH_ON, refused);

	if (ret && errno != EINVAL)
		return 1;
	if (!refused && (ret || set_dispatch(arg[0], 0, 0)))
		return ret ? 4 : 2;
	if (refused != !!ret)
		return 3;
	work_undispatched(atof(arg[1]));
	return 0;
}
