// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox.c - works, forbids itself system calls that whoever samples it may need, and goes on.
 *
 *   sandbox HOW WHAT SECONDS     of CPU time, before and after the filter
 *
 * HOW: how the filter is installed.
 *   prctl       by prctl(), twice
 *   seccomp     by prctl() and seccomp(2), as libseccomp does
 *   calls       by syscall(), twice
 *   privileged  by seccomp(2) alone, as root may
 *   unseen      by instructions of its own, in a program that is executed for this; all signals
 *               are blocked
 *   none        there is no filter, but prctl() that usually comes before it
 * WHAT: what does the work of the second half.
 *   self, fork, exec, spawn
 *   deep        on a part of the stack that was not in use before
 *   made        code that was made at run time calls the working function
 *   thread      a thread that is made then
 *   waiting     a thread that was there before, and has the filter, too
 *   held        the same, with a sample being taken while the filter is installed
 *   loads       a library from before, after another one was loaded
 *   closes      the same, after one from before was closed, too
 *
 * A forbidden call ends the process. Exits with 17; 4: filters are not available; 8: no sample was
 * taken for a long time.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../libshstk/sys.h"

#define NOINLINE __attribute__((noinline))
#define DONE 17
#define NOT_HELD 8
#define PART 0.01 /* seconds of CPU time */
#define MOST_PARTS 3000

extern char **environ;

static volatile unsigned long sum;
static const char *seconds;

static void read_clock(clockid_t clock, struct timespec *ts)
{
	sys2(SYS_clock_gettime, clock, ts);
}

static __thread bool to_be_held;
static _Atomic bool is_held, installs;

static void *(*next_getspecific)(pthread_key_t);

/*
 * Stands in for a function that only the code that samples calls. The handler of a thread that is
 * to be held stays in it until the filter is being installed, and a bit longer; then it makes a
 * call that is forbidden.
 */
void *pthread_getspecific(pthread_key_t key)
{
	struct timespec pause = { 0, 1000000 };
	struct rusage usage;

	if (to_be_held) {
		to_be_held = false;
		is_held = true;
		while (!installs)
			sys2(SYS_nanosleep, &pause, NULL);
		pause.tv_nsec = 200000000;
		sys2(SYS_nanosleep, &pause, NULL);
		sys2(SYS_getrusage, RUSAGE_THREAD, &usage);
	}
	if (!next_getspecific)
		*(void **)&next_getspecific = dlsym(RTLD_NEXT, "pthread_getspecific");
	return next_getspecific(key);
}

static void burn(double s)
{
	struct timespec begin, now;

	read_clock(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 100000; i++)
			sum += i;
		read_clock(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - begin.tv_sec) + (now.tv_nsec - begin.tv_nsec) / 1e9 < s);
}

static NOINLINE void free_work(double s)
{
	burn(s);
	sum++;
}

static NOINLINE void sandboxed_work(double s)
{
	burn(s);
	sum++;
}

static bool unseen;

static long install_unseen(const struct sock_fprog *prog)
{
	uint64_t all = ~0ull;

	unseen = true;
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	sys6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return sys3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog);
}

static bool install(const char *how)
{
	static const int forbidden[] = {
		SYS_timer_create,
		SYS_timer_settime,
		SYS_timer_delete,
		SYS_timer_getoverrun,
		SYS_perf_event_open,
		SYS_memfd_create,
		SYS_process_vm_readv,
		SYS_membarrier,
		SYS_getrusage,
		SYS_rt_tgsigqueueinfo,
		SYS_ioctl,
		SYS_fcntl,
		SYS_prctl,
		SYS_mincore,
		SYS_getpid,
		SYS_gettid,
		SYS_getppid,
		SYS_lseek,
		SYS_readlinkat,
	};
	enum { N = sizeof(forbidden) / sizeof(forbidden[0]) };
	struct sock_filter code[N + 3];
	struct sock_fprog prog = { .len = N + 3, .filter = code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (int i = 0; i < N; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i],
							   N - i, 0);
	code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (!strcmp(how, "unseen"))
		return !install_unseen(&prog);
	if (!strcmp(how, "calls") && syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	if (strcmp(how, "calls") && strcmp(how, "privileged") &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	if (!strcmp(how, "none"))
		return true;
	if (!strcmp(how, "prctl"))
		return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0);
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
}

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(7);
}

static void *work_in_thread(void *arg)
{
	sandboxed_work(atof(arg));
	return NULL;
}

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 6;
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static sem_t go;

static void *wait_and_work(void *arg)
{
	sem_wait(&go);
	return work_in_thread(arg);
}

/*
 * Works until a sample holds the thread. If nobody samples, or no longer, it does not wait for
 * ever.
 */
static void *work_and_be_held(void *arg)
{
	to_be_held = true;
	for (int i = 0; i < MOST_PARTS && !is_held; i++)
		burn(PART);
	if (!is_held)
		_exit(NOT_HELD);
	return work_in_thread(arg);
}

/* Makes a thread that will have the filter, too; for "held", waits until a sample holds it. */
static bool make_thread(const char *what, pthread_t *thread)
{
	bool hold = !strcmp(what, "held");

	if (!hold && strcmp(what, "waiting"))
		return true;
	if (pthread_create(thread, NULL, hold ? work_and_be_held : wait_and_work, (void *)seconds))
		return false;
	while (hold && !is_held)
		sched_yield();
	return true;
}

/* Lets the waiting thread, or a new one, do the work. */
static int go_on_in_thread(pthread_t waiting, bool is_new)
{
	pthread_t thread = waiting;

	if (is_new && pthread_create(&thread, NULL, work_in_thread, (void *)seconds))
		return 5;
	sem_post(&go);
	return pthread_join(thread, NULL) ? 5 : DONE;
}

/* Calls a function from a function without unwind information that is in no file. */
static void call_by_made_code(void (*function)(double))
{
#if defined(__x86_64__)
	static const unsigned char code[] = { 0x53, 0xff, 0xd7, 0x5b, 0xc3 };
#else
	static const uint32_t code[] = { 0xa9bf7bfd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif
	void (*made)(void (*)(double), double) = NULL;
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	memcpy(at, code, sizeof(code));
	__builtin___clear_cache(at, (char *)at + sizeof(code));
	*(void **)&made = at;
	if (!mprotect(at, 4096, PROT_READ | PROT_EXEC))
		made(function, atof(seconds));
}

static void *first, *second;

static bool load_libraries(void)
{
	first = dlopen("plugin-one.so", RTLD_NOW);
	second = dlopen("plugin-two.so", RTLD_NOW);
	return first && second;
}

static NOINLINE int work_in_library(void)
{
	int (*fn)(long);
	int ret;

	*(void **)&fn = dlsym(first, "plugin_one");
	ret = fn(atof(seconds) * 1000);
	sum++;
	return ret;
}

static int load_and_work(bool close)
{
	if (close && dlclose(second))
		return 5;
	if (!dlopen("plugin-three.so", RTLD_NOW))
		return 5;
	work_in_library();
	return DONE;
}

static NOINLINE int call_deep(int n)
{
	char frame[4096];
	int ret = n;

	frame[n] = n;
	sum += frame[n];
	if (n)
		ret = call_deep(n - 1);
	else
		sandboxed_work(atof(seconds));
	sum += frame[n];
	return ret + 1;
}

static int go_on(const char *what)
{
	char *argv[] = { "sandbox", (char *)seconds, NULL };
	pid_t pid;

	if (!strcmp(what, "fork")) {
		pid = fork();
		if (pid)
			return wait_for(pid);
	}
	if (unseen)
		sys3(SYS_execve, "/proc/self/exe", argv, environ);
	if (!strcmp(what, "exec"))
		execve("/proc/self/exe", argv, environ);
	if (!strcmp(what, "spawn"))
		return wait_for(
			posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) ? -1 : pid);
	if (first)
		return load_and_work(!strcmp(what, "closes"));
	if (!strcmp(what, "made"))
		call_by_made_code(sandboxed_work);
	else if (!strcmp(what, "deep"))
		call_deep(500);
	else
		sandboxed_work(atof(seconds));
	return DONE;
}

/* With one argument, this is the program that was executed in the sandbox. */
int main(int argc, char **argv)
{
	pthread_t waiting = 0;
	bool is_new;
	int status;

	/* The recorder is told to end, and passes this on to the command. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	seconds = argv[argc - 1];
	if (argc < 4)
		return go_on("self");
	if (!make_thread(argv[2], &waiting))
		return 5;
	if ((!strcmp(argv[2], "loads") || !strcmp(argv[2], "closes")) && !load_libraries())
		return 5;
	free_work(atof(seconds));
	installs = true;
	if (!install(argv[1]))
		return 4;
	say("in the sandbox\n");
	is_new = !strcmp(argv[2], "thread");
	if (waiting || is_new)
		return go_on_in_thread(waiting, is_new);
	status = go_on(argv[2]);
	say("done\n");
	return status;
}
