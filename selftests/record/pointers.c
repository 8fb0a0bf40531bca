// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pointers.c - calls with pointers that cannot be read: the kernel returns EFAULT, or libc itself
 * ends the program. The outcome of each call is printed, and has to be the same whatever is
 * preloaded.
 *
 *	pointers		all calls, each in a child
 *	pointers handled	the same with handlers for the signals; the program goes on
 *	pointers environment N	prints how many variables have arrived, of N variables that were
 *				passed by a thread with a small stack
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 65536ul /* no machine has larger pages */

static char *volatile bad; /* points to nothing */
static char *end; /* end of memory: nothing is mapped behind it */

/* These functions return a string, and arrays of pointers, that end where memory ends. */
static char *last_text(const char *text)
{
	return strcpy(end - strlen(text) - 1, text);
}

static char **last_words(char *one, char *two)
{
	char **at = (char **)(void *)(end - 64) + 5;

	at[0] = one;
	at[1] = two;
	at[2] = NULL;
	return at;
}

static char **words_without_end(void)
{
	char **at = (char **)(void *)(end - 8);

	*at = (char *)"A=b";
	return at;
}

static char *words[] = { (char *)"true", NULL };

static long run_spawn(const char *path, char **argv, char **envp)
{
	pid_t pid;
	int status, ret = posix_spawn(&pid, path, NULL, NULL, argv, envp);

	return ret ? -ret : waitpid(pid, &status, 0) == pid && !status;
}

static sigset_t *last_set(void)
{
	sigset_t *set = (sigset_t *)(void *)(end - 8);

	memset(set, 0, 8);
	return set;
}

static void illegal(void)
{
#if defined(__x86_64__)
	__asm__ volatile("ud2");
#else
	raise(SIGILL);
#endif
}

static volatile char *behind_file(void)
{
	int fd = memfd_create("empty", 0);

	return mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
}

static const struct timespec none;

/* Names of cases, and the call of each; they are numbered in this order. */
#define EACH(CASE)                                                                                \
	CASE("execve: path", execve(bad, words, environ))                                         \
	CASE("execve: arguments", execve("/bin/true", (char **)bad, environ))                     \
	CASE("execve: an argument", execve("/bin/true", (char *[]){ bad, NULL }, environ))        \
	CASE("execve: variables", execve("/bin/true", words, (char **)bad))                       \
	CASE("execve: a variable", execve("/bin/true", words, (char *[]){ bad, NULL }))           \
	CASE("execve: no variables", execve("/bin/true", words, NULL))                            \
	CASE("execve: path without an end", execve(memset(end - 64, 'x', 64), words, NULL))       \
	CASE("execve: all at the end of memory",                                                  \
	     execve("/bin/true", words, last_words((char *)"A=b", (char *)"C=d")))                \
	CASE("execve: path at the end of memory", execve(last_text("/bin/true"), words, NULL))    \
	CASE("execve: a variable at the end of memory",                                           \
	     execve("/bin/true", words, (char *[]){ last_text("LD_PRELOA=b"), NULL }))            \
	CASE("execve: a variable without an end",                                                 \
	     execve("/bin/true", words, (char *[]){ memset(end - 64, 'x', 64), NULL }))           \
	CASE("execve: variables without an end", execve("/bin/true", words, words_without_end())) \
	CASE("execv: path", execv(bad, words))                                                    \
	CASE("execl: path", execl(bad, "true", NULL))                                             \
	CASE("execle: variables", execle("/bin/true", "true", NULL, bad))                         \
	CASE("execvp: path", execvp(bad, words))                                                  \
	CASE("execvpe: variables", execvpe("true", words, (char **)bad))                          \
	CASE("fexecve: arguments", fexecve(open("/bin/true", O_RDONLY), (char **)bad, environ))   \
	CASE("fexecve: variables", fexecve(open("/bin/true", O_RDONLY), words, (char **)bad))     \
	CASE("posix_spawn: path", run_spawn(bad, words, environ))                                 \
	CASE("posix_spawn: arguments", run_spawn("/bin/true", (char **)bad, environ))             \
	CASE("posix_spawn: variables", run_spawn("/bin/true", words, (char **)bad))               \
	CASE("posix_spawn: no variables", run_spawn("/bin/true", words, NULL))                    \
	CASE("sigsuspend", sigsuspend((sigset_t *)bad))                                           \
	CASE("sigwait", -sigwait((sigset_t *)bad, (int *)end - 1))                                \
	CASE("sigwaitinfo", sigwaitinfo((sigset_t *)bad, NULL))                                   \
	CASE("sigtimedwait: set", sigtimedwait((sigset_t *)bad, NULL, &none))                     \
	CASE("sigtimedwait: time", sigtimedwait(last_set(), NULL, (struct timespec *)bad))        \
	CASE("sigtimedwait: set at the end of memory", sigtimedwait(last_set(), NULL, &none))     \
	CASE("signalfd", signalfd(-1, (sigset_t *)bad, 0))                                        \
	CASE("signalfd: set at the end of memory", signalfd(-1, last_set(), 0) > 0)               \
	CASE("sigprocmask: new", sigprocmask(SIG_BLOCK, (sigset_t *)bad, NULL))                   \
	CASE("sigprocmask: old", sigprocmask(SIG_BLOCK, NULL, (sigset_t *)bad))                   \
	CASE("pthread_sigmask: new", -pthread_sigmask(SIG_BLOCK, (sigset_t *)bad, NULL))          \
	CASE("pthread_sigmask: old", -pthread_sigmask(SIG_BLOCK, NULL, (sigset_t *)bad))          \
	CASE("sigaction: new", sigaction(SIGUSR1, (struct sigaction *)bad, NULL))                 \
	CASE("sigaction: old", sigaction(SIGUSR1, NULL, (struct sigaction *)bad))                 \
	CASE("a bad access", *(volatile char *)bad)                                               \
	CASE("an instruction that is none", (illegal(), 0))                                       \
	CASE("a breakpoint", raise(SIGTRAP))                                                      \
	CASE("a division by zero", raise(SIGFPE))                                                 \
	CASE("behind the end of a file", *behind_file())                                          \
	CASE("poll", poll((struct pollfd *)bad, 1, 0))                                            \
	CASE("ppoll: descriptors", ppoll((struct pollfd *)bad, 1, &none, NULL))                   \
	CASE("ppoll: mask", ppoll(NULL, 0, &none, (sigset_t *)bad))                               \
	CASE("ppoll: mask at the end of memory", ppoll(NULL, 0, &none, last_set()))               \
	CASE("ppoll: time", ppoll(NULL, 0, (struct timespec *)bad, NULL))                         \
	CASE("select: set", select(1, (fd_set *)bad, NULL, NULL, &(struct timeval){ 0 }))         \
	CASE("select: time", select(0, NULL, NULL, NULL, (struct timeval *)bad))                  \
	CASE("pselect: mask", pselect(0, NULL, NULL, NULL, &none, (sigset_t *)bad))               \
	CASE("pselect: time", pselect(0, NULL, NULL, NULL, (struct timespec *)bad, NULL))         \
	CASE("epoll_pwait: mask",                                                                 \
	     epoll_pwait(epoll_create1(0), &(struct epoll_event){ 0 }, 1, 0, (sigset_t *)bad))    \
	CASE("epoll_wait: events", epoll_wait(epoll_create1(0), (struct epoll_event *)bad, 1, 0)) \
	CASE("nanosleep: time", nanosleep((struct timespec *)bad, NULL))                          \
	CASE("clock_nanosleep: time",                                                             \
	     -clock_nanosleep(CLOCK_MONOTONIC, 0, (struct timespec *)bad, NULL))                  \
	CASE("waitpid: status", waitpid(fork() ?: (_exit(3), 0), (int *)bad, 0))                  \
	CASE("wait4: usage", wait4(fork() ?: (_exit(3), 0), NULL, 0, (struct rusage *)bad))       \
	CASE("waitid: information",                                                               \
	     waitid(P_PID, fork() ?: (_exit(3), 0), (siginfo_t *)bad, WEXITED))                   \
	CASE("setrlimit", setrlimit(RLIMIT_CORE, (struct rlimit *)bad))                           \
	CASE("read", read(open("/dev/zero", O_RDONLY), bad, 8))                                   \
	CASE("write", write(open("/dev/full", O_WRONLY), bad, 8))

/* clang-format off */
#define NAME(name, ...) name,
#define RUN(name, ...) if (!which--) return __VA_ARGS__;
/* clang-format on */

static const char *const names[] = { EACH(NAME) };

#define NR (sizeof(names) / sizeof(*names))

static long run(int which)
{
	EACH(RUN)
	return 0;
}

static sigjmp_buf before;

static void go_back(int signo)
{
	siglongjmp(before, signo);
}

/*
 * Checks, after a call was left by a jump, that other calls work and that the signal mask is right.
 */
static void go_on(int to, int signo)
{
	struct sigaction act = { .sa_handler = go_back }, old;
	struct timespec moment = { 0, 1000000 };
	sigset_t mask;
	int blocked = 0;

	sigaction(SIGUSR1, &act, &old);
	sigaction(SIGUSR1, NULL, &old);
	nanosleep(&moment, NULL);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i <= SIGRTMAX; i++)
		blocked += sigismember(&mask, i) == 1;
	dprintf(to, "handled %d, %d blocked, %d", signo, blocked, old.sa_handler == go_back);
	_exit(0);
}

static void handle_faults(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE };
	struct sigaction act = { .sa_handler = go_back };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &act, NULL);
}

/* Makes a call in a child and prints the outcome. If a program is executed, it ends with 0. */
static void tell(int which, bool handled)
{
	int ends[2];
	char text[128] = "";
	int status = 0;
	pid_t pid;

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC))
		exit(1);
	pid = fork();
	if (!pid) {
		long ret;

		int signo = sigsetjmp(before, 1);

		if (signo)
			go_on(ends[1], signo);
		if (handled)
			handle_faults();
		errno = 0;
		ret = run(which);
		dprintf(ends[1], "%ld, errno %d", ret, errno);
		_exit(0);
	}
	close(ends[1]);
	waitpid(pid, &status, 0);
	if (read(ends[0], text, sizeof(text) - 1) < 0)
		exit(1);
	close(ends[0]);
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "signal %d", WTERMSIG(status));
	printf("%s: %s\n", names[which], *text ? text : "executed");
}

static char **variables;

static void *execute_from_thread(void *arg)
{
	char *const args[] = { arg, (char *)"environment", NULL };

	execve("/proc/self/exe", args, variables);
	_exit(errno);
}

/*
 * Executes this program with so many variables that they, or the pointers to them, have no room on
 * the thread's stack.
 */
static int give(char *self, int nr)
{
	pthread_attr_t attr;
	pthread_t id;

	variables = calloc(nr + 1, sizeof(*variables));
	for (int i = 0; variables && i < nr; i++)
		if (asprintf(&variables[i], "V%d=x", i) < 0)
			return 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 4 * PTHREAD_STACK_MIN);
	if (!variables || pthread_create(&id, &attr, execute_from_thread, self))
		return 1;
	pthread_join(id, NULL);
	return 1;
}

static int count_variables(void)
{
	int nr = 0;

	for (char **at = environ; *at; at++)
		nr += **at == 'V';
	printf("%d variables\n", nr);
	return 0;
}

int main(int argc, char **argv)
{
	char *memory =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc == 3)
		return give(argv[0], atoi(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "environment"))
		return count_variables();
	if (memory == MAP_FAILED || munmap(memory + PAGE, PAGE))
		return 1;
	end = memory + PAGE;
	bad = end + 8;
	for (size_t i = 0; i < NR; i++)
		tell(i, argc == 2);
	return 0;
}
