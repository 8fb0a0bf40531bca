// SPDX-License-Identifier: GPL-2.0-or-later
/* target_processes.c - what the target does with processes, files and its own rights. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#include "target.h"

static _Atomic int raw_stop;

/* Returns the number of timers that this process has. */
static int timers(void)
{
	FILE *in = fopen("/proc/self/timers", "r");
	char line[200];
	int n = 0;

	while (in && fgets(line, sizeof(line), in))
		n += !strncmp(line, "ID:", 3);
	if (in)
		fclose(in);
	return n;
}

static NOINLINE int raw_thread_work(void *arg)
{
	volatile unsigned int x = 0;
	double start, used;

	/* The first thread checks whether this one was found. */
	while (!raw_stop)
		for (int i = 0; i < 20000; i++)
			x += i;
	start = clock_s(CLOCK_THREAD_CPUTIME_ID);
	do {
		for (int i = 0; i < 20000; i++)
			x += i;
		used = clock_s(CLOCK_THREAD_CPUTIME_ID) - start;
	} while (used < atof(arg));
	raw_stop = 2;
	syscall(SYS_exit, 0);
	return 0;
}

/*
 * raw SECONDS: makes a thread that libc does not know. The thread works for this long after the
 * agent has found it, which shows by its timer.
 */
int do_raw(char **arg)
{
	size_t size = 1 << 20;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int cut = 0;

	if (clone(raw_thread_work, stack + size,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		  arg[0]) < 0)
		return 1;
	/* The agent looks for the thread in this thread, and must not shorten its sleep. */
	while (timers() < 2)
		cut |= usleep(10000);
	raw_stop = 1;
	while (raw_stop < 2)
		usleep(10000);
	return cut ? 2 : 0;
}

/* exec SECONDS: works, then executes itself as another program. */
int do_exec(char **arg)
{
	burn(atof(arg[0]));
	execl("/proc/self/exe", "target", "after-exec", arg[0], NULL);
	return 1;
}

/*
 * no-room SECONDS: executes nothing while no memory can be mapped, then itself as another program, without
 * an environment.
 */
int do_no_room(char **arg)
{
	char *argv[] = { "target", "after-exec", arg[0], NULL }, *nothing[] = { NULL };
	struct rlimit before, little = { 1, RLIM_INFINITY };

	if (syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &before))
		return 1;
	little.rlim_max = before.rlim_max;
	syscall(SYS_prlimit64, 0, RLIMIT_AS, &little, NULL);
	execve("/nowhere", argv, nothing);
	syscall(SYS_prlimit64, 0, RLIMIT_AS, &before, NULL);
	execve("/proc/self/exe", argv, nothing);
	return 2;
}

int do_after_exec(char **arg)
{
	after_exec_work(atof(arg[0]));
	return 0;
}

/* spawn HOW SECONDS: makes a child without the environment of its parent. */
int do_spawn(char **arg)
{
	char *argv[] = { "target", "after-exec", arg[1], NULL };
	char *envp[] = { "PATH=/bin", NULL };
	const char *self = "/proc/self/exe";
	int status = 1;
	pid_t pid = 0;

	if (!strcmp(arg[0], "spawn")) {
		if (posix_spawn(&pid, self, NULL, NULL, argv, envp))
			return 1;
	} else if (!strcmp(arg[0], "vfork")) {
		pid = vfork();
		if (!pid) {
			execve(self, argv, envp);
			_exit(1);
		}
	} else {
		pid = fork();
		if (!pid) {
			clearenv();
			execv(self, argv);
			_exit(1);
		}
	}
	waitpid(pid, &status, 0);
	return !!status;
}

/* daemon SECONDS: makes a child that outlives its parent. */
int do_daemon(char **arg)
{
	int ready[2];
	pid_t pid;
	char c;

	burn(0.2);
	if (pipe(ready))
		return 1;
	pid = fork();
	if (pid) {
		printf("%d\n", pid);
		return read(ready[0], &c, 1) != 1;
	}
	setsid();
	if (write(ready[1], "x", 1) != 1)
		return 1;
	sleep(atoi(arg[0]));
	return 0;
}

#ifndef STATIC
/*
 * plugins: loads two libraries one after the other, probably at the same address. They are found by
 * this program's DT_RUNPATH, which the loader uses only if it sees that this program calls
 * dlopen(), and not somebody in between.
 */
static int run_plugin(const char *name, int close)
{
	char path[64], symbol[64];
	int (*fn)(long);
	void *handle;
	double start;

	snprintf(path, sizeof(path), "plugin-%s.so", name);
	snprintf(symbol, sizeof(symbol), "plugin_%s", name);
	handle = dlopen(path, RTLD_NOW);
	if (!handle)
		return 1;
	*(void **)&fn = dlsym(handle, symbol);
	start = clock_s(CLOCK_THREAD_CPUTIME_ID);
	fn(250);
	tell(symbol, clock_s(CLOCK_THREAD_CPUTIME_ID) - start);
	printf("%s at %p\n", name, (void *)fn);
	if (close)
		dlclose(handle);
	return 0;
}

int do_plugins(char **arg)
{
	(void)arg;
	return run_plugin("one", 1) || run_plugin("two", 1);
}

/* late: loads a library, uses it and ends at once. */
int do_late(char **arg)
{
	(void)arg;
	if (run_plugin("two", 0))
		return 1;
	_exit(0);
}

static NOINLINE void child_sleeps(void)
{
	sleep(100);
}

static bool is_sleeping(pid_t pid)
{
	char path[32], text[64] = "";
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	in = fopen(path, "r");
	if (!in || !fgets(text, sizeof(text), in))
		return false;
	fclose(in);
	return strstr(text, ") S ");
}

/* raw-fork: a child that was made without fork() waits when this process ends. */
int do_raw_fork(char **arg)
{
	pid_t pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	(void)arg;
	if (!pid)
		child_sleeps();
	while (!is_sleeping(pid))
		syscall(SYS_sched_yield);
	kill(pid, SIGKILL);
	return 0;
}

/* Finds the agent's timer for the first thread, which has no other timer. */
static bool find_timer(siginfo_t *si)
{
	unsigned long long value;
	char line[128];
	FILE *in = fopen("/proc/self/timers", "r");

	*si = (siginfo_t){ .si_code = SI_TIMER };
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "signal: %d/%llx", &si->si_signo, &value) == 2)
			break;
	if (in)
		fclose(in);
	si->si_value.sival_ptr = (void *)(unsigned long)value;
	return si->si_signo;
}

static void *get_signals_of_others(void *arg)
{
	siginfo_t *si = arg;

	for (int i = 0; i < 100; i++) {
		syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), si->si_signo, si);
		usleep(1000);
	}
	return NULL;
}

/* others-signal: a thread gets the signal that the timer of another thread sent. */
int do_others_signal(char **arg)
{
	pthread_t thread;
	siginfo_t si;

	(void)arg;
	if (!find_timer(&si) || pthread_create(&thread, NULL, get_signals_of_others, &si))
		return 1;
	return pthread_join(thread, NULL);
}

static sem_t has_lock, give_it_back;

static int hold_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size, (void)arg;
	sem_post(&has_lock);
	sem_wait(&give_it_back);
	return 1;
}

static void *hold_lock_in_thread(void *arg)
{
	(void)arg;
	dl_iterate_phdr(hold_lock, NULL);
	return NULL;
}

static pid_t fork_to(void (*end)(int))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(200); /* ends a child that hangs */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	end(3);
	return 0;
}

/*
 * forks-locked: children end while a thread, which does not exist in them, holds the loader's lock.
 */
int do_forks_locked(char **arg)
{
	void (*const ends[])(int) = { _exit, exit };
	pthread_t thread;
	int bad = 0;

	(void)arg;
	sem_init(&has_lock, 0, 0);
	sem_init(&give_it_back, 0, 0);
	if (pthread_create(&thread, NULL, hold_lock_in_thread, NULL))
		return 2;
	sem_wait(&has_lock);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		int status = 0;
		pid_t pid = fork_to(ends[i]);

		waitpid(pid, &status, 0);
		bad |= !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	}
	sem_post(&give_it_back);
	pthread_join(thread, NULL);
	burn(0.1);
	return bad;
}
#endif

/* Returns the KiB in a line of /proc/self/status. */
static long status_kib(const char *name)
{
	char line[128];
	long kib = -1;
	FILE *in = fopen("/proc/self/status", "r");

	while (in && fgets(line, sizeof(line), in))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name));
	if (in)
		fclose(in);
	return kib;
}

void forbid(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(4);
	/* A call with a hook, which would ask for the calling process, as SYS_getpid does. */
	sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

static int after_vfork(char **arg, bool filter)
{
	double s = atof(arg[0]);
	pthread_t thread;
	pid_t pid = vfork();
	int status;

	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (filter)
			forbid(SYS_getpid);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	return pthread_create(&thread, NULL, thread_work, &s) || pthread_join(thread, NULL);
}

/* vfork-rights SECONDS: a child from vfork() gives up its rights; then a thread works. */
int do_vfork_rights(char **arg)
{
	return after_vfork(arg, false);
}

/* vfork-filter SECONDS: the child installs a filter, too. */
int do_vfork_filter(char **arg)
{
	return after_vfork(arg, true);
}

/*
 * vfork-exec-filter PROGRAM: with all signals blocked, a child from vfork() executes the program. Then the
 * process unblocks them, forbids itself a call, and fails to execute another program.
 */
int do_vfork_exec_filter(char **arg)
{
	char *argv[] = { arg[0], "mask", NULL };
	sigset_t all, old;
	int status;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = vfork();
	if (!pid) {
		execv(arg[0], argv);
		_exit(2);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	sigprocmask(SIG_SETMASK, &old, NULL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	forbid(SYS_getpid);
	execv("/nowhere", argv);
	return errno != ENOENT;
}

/*
 * bad-filter program|code: forbids itself a call, and then tries to install a filter that cannot be read, or of which
 * the code can't.
 */
int do_bad_filter(char **arg)
{
	struct sock_fprog prog = { .len = 1, .filter = (struct sock_filter *)8 };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	forbid(SYS_getpid);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
		     strcmp(arg[0], "code") ? (void *)8 : (void *)&prog) != -1 ||
	       errno != EFAULT;
}

/* no-filter SECONDS: asks in both ways whether there are filters of system calls, and works in a new thread. */
int do_no_filter(char **arg)
{
	double s = atof(arg[0]);
	pthread_t thread;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -1 || errno != EFAULT)
		return 4;
	return pthread_create(&thread, NULL, thread_work, &s) || pthread_join(thread, NULL);
}

/* Has the C library execute a shell with a command that prints a line. Returns 0, or another number. */
static int run_shell(const char *how, const char *command)
{
	char line[4096], words[4096];
	wordexp_t found;
	FILE *out;

	if (!strcmp(how, "system"))
		return system(command);
	if (!strcmp(how, "wordexp")) {
		snprintf(words, sizeof(words), "\"$(%s)\"", command);
		return wordexp(words, &found, WRDE_SHOWERR) || found.we_wordc != 1 ||
		       puts(found.we_wordv[0]) < 0;
	}
	out = popen(command, "r");
	if (!out || !fgets(line, sizeof(line), out))
		return 1;
	fputs(line, stdout);
	return pclose(out);
}

/*
 * root FOLDER HOW: gives up new privileges, as sandboxes do, and executes a shell with this root, which
 * says what is preloaded.
 */
int do_root(char **arg)
{
	static const char command[] = "echo \"$LD_PRELOAD\"";
	char *argv[] = { "sh", "-c", (char *)command, NULL };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || chroot(arg[0]) || chdir("/"))
		return 1;
	if (!strcmp(arg[1], "exec"))
		execv("/bin/sh", argv);
	if (!strcmp(arg[1], "execveat"))
		execveat(AT_FDCWD, "/bin/sh", argv, environ, 0);
	if (!strcmp(arg[1], "number"))
		syscall(SYS_execve, "/bin/sh", argv, environ);
	return run_shell(arg[1], command);
}

/* locks SECONDS: locks its memory and works, also in a thread and in a child. */
int do_locks(char **arg)
{
	double s = atof(arg[0]);
	pthread_t thread;
	pid_t pid;

	if (mlockall(MCL_CURRENT))
		return 4;
	printf("%ld KiB locked\n", status_kib("VmLck:"));
	fflush(stdout);
	burn(s);
	if (pthread_create(&thread, NULL, thread_work, &s) || pthread_join(thread, NULL))
		return 1;
	pid = fork();
	if (!pid) {
		child_work(s);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) != pid;
}

/*
 * scribble SECONDS: a child writes nonsense into the memory that it shares with the recorder; the
 * parent goes on.
 */
static uint64_t *find_shared(size_t *words)
{
	unsigned long start = 0, end = 0;
	char line[512];
	FILE *in = fopen("/proc/self/maps", "r");

	while (in && fgets(line, sizeof(line), in))
		if (strstr(line, "/memfd:shstk-record") &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
	if (in)
		fclose(in);
	*words = (end - start) / 8;
	return (uint64_t *)start;
}

static void scribble(uint64_t *shared, size_t words, double s)
{
	double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + s;
	uint64_t x = 88172645463325252ULL;
	/* All slots, and the first 64 rings of 256 KiB. */
	size_t slots = 8192 + 4096 * 256 / 8;
	size_t most = slots + 64 * 32768;

	if (most > words)
		most = words;
	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 2000; i++) {
			size_t at;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* The header is left alone: the agent here must live on. */
			at = 8192 + x % (((x >> 60) & 1 ? slots : most) - 8192);
			/* Small numbers are frequent, because they pass more checks. */
			shared[at] = x >> 59 & 1 ? x : x >> 32 & 0x3ff;
		}
	}
}

int do_scribble(char **arg)
{
	uint64_t *shared;
	size_t words;
	pid_t pid;

	shared = find_shared(&words);
	if (!shared)
		return 1;
	pid = fork();
	if (!pid) {
		scribble(shared, words, atof(arg[0]));
		_exit(0);
	}
	burn(0.3);
	waitpid(pid, NULL, 0);
	return 23;
}

/* Asks to be traced, works and sleeps, and executes a program. */
static void be_traced(double s)
{
	struct timespec moment = { 0, 5000000 };

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGUSR1);
	burn(s);
	for (int i = 0; i < 20; i++)
		nanosleep(&moment, NULL);
	execl("/proc/self/exe", "target", "burn", "0.1", NULL);
	_exit(2);
}

/* tracer SECONDS: traces a child, and tells if it sees a signal that is not the child's own. */
int do_tracer(char **arg)
{
	int status, stops = 0;
	pid_t pid = fork();

	if (!pid)
		be_traced(atof(arg[0]));
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int signo = WSTOPSIG(status);

		if (signo != SIGUSR1 && signo != SIGTRAP) {
			fprintf(stderr, "target: signal %d\n", signo);
			kill(pid, SIGKILL);
			return 1;
		}
		stops++;
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	}
	return stops == 2 && WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}

static NOINLINE void sandboxed_work(double s)
{
	BURN(s);
}

static NOINLINE void *sandboxed_thread(void *arg)
{
	sandboxed_work(atof(arg));
	return NULL;
}

/*
 * sandbox SECONDS: gives up all system calls except those that it needs itself, then works, also in
 * a new thread. Any other call ends the process.
 */
int do_sandbox(char **arg)
{
	static const int allowed[] = {
		SYS_rt_sigreturn,    SYS_exit_group, SYS_exit,		 SYS_clock_gettime,
		SYS_futex,	     SYS_write,	     SYS_mmap,		 SYS_munmap,
		SYS_mprotect,	     SYS_madvise,    SYS_clone3,	 SYS_clone,
		SYS_set_robust_list, SYS_rseq,	     SYS_rt_sigprocmask, SYS_brk,
		SYS_restart_syscall, SYS_getrandom,  SYS_rt_sigaction,
	};
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[N + 3];
	struct sock_fprog prog = { .len = N + 3, .filter = code };
	pthread_t thread;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (int i = 0; i < N; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							   N - i, 0);
	code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return 4;
	sandboxed_work(atof(arg[0]));
	if (pthread_create(&thread, NULL, sandboxed_thread, arg[0]))
		return 5;
	pthread_join(thread, NULL);
	return 17;
}

/*
 * traced SECONDS: asks to be traced, as programs do that want no debugger; then a signal and an
 * exec.
 */
int do_traced(char **arg)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return 1;
	signal(SIGUSR1, plain_handler);
	raise(SIGUSR1);
	burn(atof(arg[0]));
	execl("/proc/self/exe", "target", "exit", "7", NULL);
	return 2;
}

static double limited_work(double s)
{
	BURN(s);
	return s;
}

/* limit SECONDS: limits its address space to 256 MiB, takes half of it, and makes a thread. */
static void *limited_thread(void *arg)
{
	limited_work(atof(arg));
	return NULL;
}

int do_limit(char **arg)
{
	struct rlimit limit = { 256 << 20, 256 << 20 };
	pthread_t thread;

	if (setrlimit(RLIMIT_AS, &limit) || !malloc(128 << 20))
		return 1;
	if (pthread_create(&thread, NULL, limited_thread, arg[0]))
		return 2;
	return pthread_join(thread, NULL);
}
