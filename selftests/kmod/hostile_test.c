// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hostile_test.c - tests what any user may do to the modules, at the worst moment
 *
 *	hostile_test MODULE.ko...	these modules are loaded, in the order of loading
 *
 * The callers and their targets are uid 65534. A target may run with a wrong shadow stack pointer,
 * set by a debugger or by itself; it may be changed while it is looked at, or become another user's
 * by exec. Callers wait forever for their own pages. Signals pretend to be violations. The modules
 * are unloaded meanwhile. Each call has to end in time, or at least by SIGKILL, with a documented
 * answer. The runner checks that the kernel stays well.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "answer.h"
#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "number.h"
#include "sampler.h"
#include "unload.h"
#include "linux/shstk.h"

#define NOBODY 65534
#define LIMIT 300 /* seconds that nothing may take, even on a busy host */
#define ROUNDS 20 /* of each call, for each wrong pointer */
#define STORM_ROUNDS 150 /* while a debugger changes the target */
#define EXECS 3
#define ENTRIES 64
#define PERIOD_NS 100000
#define PLANTED 0x5a5a5a5a5000UL
#define SHARED_FD 100 /* the scene, for programs that are executed */
#define SUID_PROGRAM "/tmp/hostile-suid"
#define VIOLATIONS "/sys/class/misc/shstk/violations"

#ifdef __x86_64__
#define REGSET 0x204 /* NT_X86_SHSTK: the pointer */
#define REGSET_WORDS 1
#define REGSET_POINTER 0
#else
#define REGSET 0x410 /* NT_ARM_GCS: enabled, locked, pointer */
#define REGSET_WORDS 3
#define REGSET_POINTER 2
#endif

/* What the target, the callers and the test tell each other. */
static struct scene {
	volatile int ready; /* the target has set everything below */
	volatile int go; /* the target shall do its deed now */
	volatile unsigned long ssp; /* the target's pointer, as it should be */
	volatile unsigned long memory; /* ordinary pages, full of PLANTED */
	volatile unsigned long hole; /* an unmapped page */
	volatile unsigned long file; /* mapped beyond the end of a file */
	volatile unsigned long other; /* the middle of another shadow stack */
	volatile int executed; /* the target is another program now */
	volatile int blocked; /* a caller waits for its page */
	volatile int stop;
	volatile unsigned long calls, answers, changes, late;
	volatile long odd; /* an answer that is not documented */
	volatile unsigned long leaked; /* a word that is on no shadow stack */
} * scene;

static int dev;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Resets the scene for the next act. */
static void clear_scene(void)
{
	memset((void *)scene, 0, sizeof(*scene));
}

static bool await(volatile int *what)
{
	double until = now() + LIMIT;

	while (!*what) {
		if (now() > until)
			return false;
		usleep(1000);
	}
	return true;
}

/* Prints where in the kernel the process is. */
static void show_stack(pid_t pid)
{
	char name[64], line[256];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stack", pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f))
		ksft_print_msg("%d: %s", pid, line);
	if (f)
		fclose(f);
}

/* Returns whether a child has ended in time. */
static bool gone(pid_t pid)
{
	double until = now() + LIMIT;

	while (!waitpid(pid, NULL, WNOHANG)) {
		if (now() > until) {
			show_stack(pid);
			return false;
		}
		usleep(1000);
	}
	return true;
}

static bool end(pid_t pid)
{
	kill(pid, SIGKILL);
	return gone(pid);
}

/*
 * Forks a child that runs as nobody, may be traced by processes of nobody, and ends with the test.
 */
static pid_t fork_nobody(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(100);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return 0;
}

/* ---- Targets ---- */

enum deed { SPIN, SPIN_UNALIGNED, EXEC, EXEC_SUID };

static void lay_out(void)
{
	long page = getpagesize();
	uint64_t *p =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("empty", 0);
	void *file = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED || file == MAP_FAILED)
		_exit(101);
	for (int i = 0; i < 2 * page / 8; i++)
		p[i] = PLANTED + i;
	munmap((char *)p + 2 * page, page);
	scene->memory = (unsigned long)p;
	scene->hole = (unsigned long)p + 2 * page;
	scene->file = (unsigned long)file;
	scene->other = ss_map(0, 4 * page, 0) + 2 * page;
}

/* Nothing is called and nothing returns from here on, so the pointer may have any value. */
static void __attribute__((noreturn, noinline)) perform(enum deed deed)
{
	static char *const suid[] = { SUID_PROGRAM, "--executed", NULL };
	static char *const self[] = { "/proc/self/exe", "--executed", NULL };
	static char *const none[] = { NULL };
	char *const *argv = deed == EXEC_SUID ? suid : self;

	scene->ssp = ss_pointer();
#ifdef __x86_64__
	if (deed == SPIN_UNALIGNED)
		asm volatile("incsspd %0" : : "r"(1));
#endif
	scene->ready = 1;
	while (!scene->go)
		;
	if (deed == EXEC || deed == EXEC_SUID)
		ss_syscall(__NR_execve, (unsigned long)argv[0], (unsigned long)argv,
			   (unsigned long)none, 0, 0);
	for (;;)
		;
}

/* This is one call deep, so that the shadow stack has a word of which half can be dropped. */
static void __attribute__((noreturn, noinline)) target(enum deed deed)
{
	if (ss_enable(SS_ENABLE))
		ss_syscall(__NR_exit_group, 102, 0, 0, 0, 0);
	perform(deed);
}

static pid_t start_target(enum deed deed)
{
	pid_t pid = fork_nobody();

	if (!pid) {
		if (dup2(SHARED_FD, SHARED_FD) < 0)
			_exit(103);
		lay_out();
		target(deed);
	}
	if (!await(&scene->ready))
		ksft_print_msg("the target does not start\n");
	return pid;
}

/* Is what the target executes: it reports that, and keeps running. */
static int executed(void)
{
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (scene == MAP_FAILED)
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	scene->executed = geteuid() ? 1 : 2;
	while (!scene->stop)
		usleep(1000);
	return 0;
}

/* ---- The debugger ---- */

static bool stop(pid_t pid)
{
	return !ptrace(PTRACE_INTERRUPT, pid, 0, 0) && waitpid(pid, NULL, __WALL) == pid;
}

static long set_pointer(pid_t pid, unsigned long to)
{
	uint64_t word[REGSET_WORDS];
	struct iovec iov = { word, sizeof(word) };
	long ret = 0;

	if (!stop(pid))
		return -errno;
	if (ptrace(PTRACE_GETREGSET, pid, REGSET, &iov))
		ret = -errno;
	word[REGSET_POINTER] = to;
	if (!ret && ptrace(PTRACE_SETREGSET, pid, REGSET, &iov))
		ret = -errno;
	if (ptrace(PTRACE_CONT, pid, 0, 0))
		ret = -errno;
	return ret;
}

/* Starts a process that changes the target's pointer until it is told to stop. */
static pid_t start_changer(pid_t pid)
{
	pid_t changer = fork_nobody();

	if (changer)
		return changer;
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		_exit(1);
	while (!scene->stop) {
		const unsigned long to[] = {
			scene->ssp,	 scene->memory + 8,    scene->other,
			scene->hole - 8, scene->ssp & -4096UL, scene->ssp + 4,
		};

		set_pointer(pid, to[scene->changes % (sizeof(to) / sizeof(*to))]);
		scene->changes++;
	}
	_exit(0);
}

/* ---- Callers ---- */

/* Notes an answer. @allowed is an answer that only this act may give, or 0. */
static void answer(long ret, long allowed)
{
	scene->calls++;
	if (!ret)
		scene->answers++;
	else if (!may_be_refused(ret) && ret != allowed && ret != -EACCES * !!allowed)
		scene->odd = ret;
}

static long trace(int pidfd, struct shstk_ioc_thread *thread, uint64_t *entry)
{
	struct shstk_ioc_trace arg = {
		.pidfd = pidfd,
		.max_entries = ENTRIES,
		.max_threads = 1,
		.threads = (unsigned long)thread,
		.entries = (unsigned long)entry,
	};

	return ioctl(dev, SHSTK_IOC_TRACE, &arg) ? -errno : 0;
}

static void check_trace(const struct shstk_ioc_thread *thread, const uint64_t *entry, long allowed)
{
	answer(thread->error, allowed);
	for (unsigned int i = 0; !thread->error && i < thread->nr && i < ENTRIES; i++)
		if (entry[i] < 4096 || entry[i] >> 48 || entry[i] - PLANTED < 8192)
			scene->leaked = entry[i];
}

/* Makes all calls about a process, @rounds times. MAP also asks for @addr. */
static void ask(int pidfd, int rounds, unsigned long addr, long allowed)
{
	struct shstk_ioc_thread thread;
	uint64_t entry[ENTRIES];
	long ret;

	for (int i = 0; i < rounds; i++) {
		struct shstk_ioc_status status = { .pidfd = pidfd };
		struct shstk_ioc_map map = { .pidfd = pidfd, .addr = addr };

		answer(ioctl(dev, SHSTK_IOC_STATUS, &status) ? -errno : 0, allowed);
		answer(ioctl(dev, SHSTK_IOC_MAP, &map) ? -errno : 0, allowed);
		ret = trace(pidfd, &thread, entry);
		answer(ret, allowed);
		if (!ret)
			check_trace(&thread, entry, allowed);
	}
}

static int pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

/*
 * Returns whether a separate caller gets through in time; if it does not, whether it can be ended.
 */
static bool ask_in_time(pid_t pid, int rounds, unsigned long addr)
{
	int pidfd = pidfd_open(pid);
	pid_t caller = fork_nobody();
	bool ended;

	if (!caller) {
		ask(pidfd, rounds, addr, 0);
		_exit(0);
	}
	close(pidfd);
	ended = gone(caller);
	if (!ended)
		ksft_print_msg("the call does not end, and %s\n",
			       end(caller) ? "is ended by SIGKILL" : "not even by SIGKILL");
	if (scene->odd)
		ksft_print_msg("an answer that is not documented: %ld\n", scene->odd);
	if (scene->leaked)
		ksft_print_msg("a word that is on no shadow stack: %lx\n", scene->leaked);
	return ended && !scene->odd && !scene->leaked;
}

/* ---- Acts ---- */

static void ignore_sample(void *arg, const struct sample *sample)
{
	(void)arg;
	(void)sample;
}

/*
 * Tests a pointer that is wrong, first while the target runs and is sampled, then while it is
 * stopped.
 */
static void wrong_pointer(const char *name, enum deed deed, int which)
{
	struct sampler sampler = {};
	bool sampled, ok = true;
	long ret = 0;
	pid_t pid;

	clear_scene();
	pid = start_target(deed);
	const unsigned long to[] = {
		scene->ssp,	 scene->ssp + 4,  scene->memory + 4096, scene->hole,
		scene->hole - 8, scene->file,	  scene->other,		0,
		-4096UL,	 (1UL << 47) - 8, scene->ssp & -4096UL, (scene->ssp | 4095) - 3,
	};

	sampled = !sampler_open(&sampler, pid, PERIOD_NS, false);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		ok = false;
	else if (which >= 0)
		ret = set_pointer(pid, to[which]);
	/* The kernel itself refuses some values. */
	if (ret == -EINVAL) {
		ksft_test_result_skip("%s: refused by the kernel\n", name);
	} else {
		which = which < 0 ? 1 : which;
		ok &= !ret && ask_in_time(pid, ROUNDS, to[which]) && stop(pid) &&
		      ask_in_time(pid, ROUNDS, to[which]);
		if (ret)
			ksft_print_msg("the pointer cannot be set: %s\n", strerror(-ret));
		ksft_test_result(ok && sampled, "%s: %lu calls end, %lu with an answer\n", name,
				 scene->calls, scene->answers);
	}
	if (sampled) {
		sampler_drain(&sampler, ignore_sample, NULL);
		sampler_close(&sampler);
	}
	end(pid);
}

static void changing_pointer(void)
{
	pid_t pid, changer;
	bool ok;

	clear_scene();
	pid = start_target(SPIN);
	changer = start_changer(pid);
	ok = ask_in_time(pid, STORM_ROUNDS, scene->ssp);
	scene->stop = 1;
	ok &= gone(changer);
	ksft_test_result(ok && scene->changes,
			 "a debugger changes the pointer meanwhile: %lu calls, %lu changes\n",
			 scene->calls, scene->changes);
	end(pid);
}

/* Checks that nothing is reported from the moment when the target belongs to root. */
static bool ask_until_executed(int pidfd)
{
	struct shstk_ioc_thread thread;
	uint64_t entry[ENTRIES];
	double until = now() + LIMIT;
	long ret;

	scene->go = 1;
	while (!scene->executed && now() < until)
		ask(pidfd, 1, scene->ssp, -EPERM);
	for (int i = 0; i < ROUNDS; i++) {
		struct shstk_ioc_status status = { .pidfd = pidfd };

		ret = trace(pidfd, &thread, entry);
		if (ret != -EPERM && ret != -EACCES)
			scene->late++;
		if (!ioctl(dev, SHSTK_IOC_STATUS, &status))
			scene->late++;
	}
	return scene->executed == 2;
}

static void setuid_exec(void)
{
	unsigned long late = 0, calls = 0;
	bool ok = true;
	int i, pidfd;
	pid_t pid, caller;

	for (i = 0; i < EXECS && ok; i++) {
		clear_scene();
		pid = start_target(EXEC_SUID);
		pidfd = pidfd_open(pid);
		caller = fork_nobody();
		if (!caller)
			_exit(!ask_until_executed(pidfd));
		close(pidfd);
		ok = gone(caller) && !scene->odd;
		if (!ok)
			ksft_print_msg("answer %ld\n", scene->odd);
		if (!ok)
			end(caller);
		ok &= scene->executed == 2;
		late += scene->late;
		calls += scene->calls;
		scene->stop = 1;
		end(pid);
	}
	ksft_test_result(ok && !late,
			 "%d programs become root's meanwhile: %lu calls, %lu answered too late\n",
			 i, calls, late);
}

/* ---- Callers that wait for a page that nobody gives them ---- */

static void *blocking_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	long page = getpagesize();
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	reg.range.start = (unsigned long)p;
	reg.range.len = page;
	if (fd < 0 || p == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg))
		return NULL;
	/* Another process can see the fault in which this process waits. */
	if (!fork()) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };

		scene->blocked = poll(&ready, 1, LIMIT * 1000) == 1 ? 1 : -1;
		_exit(0);
	}
	return p;
}

enum call { TRACE_THREADS, TRACE_ENTRIES, STATUS_ARG, PRCTL_ARG, CALLS };
static const char *const call_names[CALLS] = {
	"threads of a trace",
	"entries of a trace",
	"a status",
	"prctl's status",
};

/* Root makes the page, as a system may allow anyone to do; nobody makes the call. */
static pid_t start_blocked(enum call call, int pidfd)
{
	struct shstk_ioc_thread thread;
	uint64_t entry[ENTRIES];
	pid_t pid;
	void *p;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	p = blocking_page();
	if (!p || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(104);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	switch (call) {
	case TRACE_THREADS:
		_exit(trace(pidfd, p, entry) ? 1 : 0);
	case TRACE_ENTRIES:
		_exit(trace(pidfd, &thread, p) ? 1 : 0);
	case STATUS_ARG:
		_exit(ioctl(dev, SHSTK_IOC_STATUS, p) ? 1 : 0);
	default:
		_exit(ss_prctl(SS_PR_GET, (unsigned long)p) ? 1 : 0);
	}
}

/* Tests that a caller that waits does not hold up its target, and that SIGKILL ends the caller. */
static void blocked_caller(enum call call)
{
	bool blocked, execs, killed;
	pid_t pid, caller;
	int pidfd;

	clear_scene();
	pid = start_target(EXEC);
	pidfd = pidfd_open(pid);
	caller = start_blocked(call, pidfd);
	close(pidfd);
	blocked = await(&scene->blocked) && scene->blocked == 1;
	if (!blocked) {
		ksft_test_result_skip("%s: nothing waits for a page\n", call_names[call]);
		end(caller);
		end(pid);
		return;
	}
	scene->go = 1;
	execs = await(&scene->executed);
	killed = end(caller);
	if (!execs)
		ksft_print_msg("the target's exec waits%s\n",
			       await(&scene->executed) ? " until the caller is killed" : "");
	ksft_test_result(execs && killed, "a caller waits for its page, %s: %s and can be killed\n",
			 call_names[call], execs ? "its target executes" : "its target hangs");
	scene->stop = 1;
	end(pid);
}

/* ---- Signals ---- */

static void send_forged(void)
{
	siginfo_t info = { .si_signo = SIGSEGV, .si_code = 10 };

	signal(SIGSEGV, SIG_IGN);
	for (int i = 0; i < 50; i++) {
		syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGSEGV, &info);
		syscall(SYS_rt_sigqueueinfo, getpid(), SIGSEGV, &info);
		info.si_addr = &info;
	}
}

static void forged_signals(void)
{
	long before = read_number(VIOLATIONS), after;
	pid_t pid = fork_nobody();

	if (!pid) {
		send_forged();
		_exit(0);
	}
	gone(pid);
	after = read_number(VIOLATIONS);
	if (before < 0)
		ksft_test_result_skip("violations are not counted here\n");
	else
		ksft_test_result(after == before,
				 "signals that pretend to be violations do not count: %ld\n",
				 after - before);
}

/* ---- Unloading ---- */

static const char *module_name(const char *path)
{
	static char name[64];
	const char *base = strrchr(path, '/');

	snprintf(name, sizeof(name), "%s", base ? base + 1 : path);
	name[strcspn(name, ".")] = 0;
	return name;
}

/* Returns whether unloading answers in time, whatever the answer is. */
static bool unload_answers(const char *path)
{
	pid_t pid;
	bool ok;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		syscall(SYS_delete_module, module_name(path), O_NONBLOCK);
		_exit(errno == EAGAIN || errno == EBUSY ? 1 : 0);
	}
	ok = gone(pid);
	if (!ok) {
		ksft_print_msg("rmmod %s hangs\n", module_name(path));
		kill(pid, SIGKILL);
	}
	return ok;
}

static int unload(const char *path)
{
	double until = now() + LIMIT;

	while (syscall(SYS_delete_module, module_name(path), O_NONBLOCK)) {
		if (errno == ENOENT)
			return 0;
		if ((errno != EAGAIN && errno != EBUSY) || now() > until)
			return -errno;
		usleep(1000);
	}
	return 0;
}

static void unload_under_all(int count, char **module)
{
	struct sampler sampler = {};
	bool answers = true;
	pid_t pid, child[CALLS + 2];
	int pidfd, ret = 0, n = 0;

	clear_scene();
	pid = start_target(SPIN);
	pidfd = pidfd_open(pid);
	sampler_open(&sampler, pid, PERIOD_NS, false);
	for (enum call call = 0; call < CALLS; call++) {
		scene->blocked = 0;
		child[n++] = start_blocked(call, pidfd);
		await(&scene->blocked);
	}
	child[n++] = start_changer(pid);
	child[n] = fork_nobody();
	if (!child[n]) {
		for (;;)
			ask(pidfd, 1, scene->ssp, 0);
	}
	n++;
	close(pidfd);
	close(dev);
	for (int i = count - 1; i >= 0; i--)
		answers &= unload_answers(module[i]);
	ksft_test_result(answers, "unloading answers in time under all of this\n");

	answers = true;
	for (int i = 0; i < n; i++)
		answers &= end(child[i]);
	end(pid);
	ksft_test_result(answers, "all of these can be killed\n");
	sampler_close(&sampler);
	for (int i = count - 1; i >= 0 && !ret; i--)
		ret = unload(module[i]);
	ksft_test_result(!ret, "then the modules are unloaded: %s\n", strerror(-ret));
	for (int i = 0, one; i < count; i++) {
		one = module_load(module[i]);
		if (one && one != -EEXIST)
			ret = one;
	}
	ksft_test_result(!ret, "and loaded again: %s\n", strerror(-ret));
}

static const struct {
	const char *name;
	enum deed deed;
	int which; /* element of the list in wrong_pointer(); -1: unchanged */
} pointers[] = {
	{ "a pointer made unaligned by the program", SPIN_UNALIGNED, -1 },
	{ "an unaligned pointer", SPIN, 1 },
	{ "an unaligned pointer at a page's end", SPIN, 11 },
	{ "a pointer to ordinary memory", SPIN, 2 },
	{ "a pointer to no memory", SPIN, 3 },
	{ "a pointer to the last word of ordinary memory", SPIN, 4 },
	{ "a pointer beyond a file's end", SPIN, 5 },
	{ "a pointer to another shadow stack", SPIN, 6 },
	{ "a null pointer", SPIN, 7 },
	{ "a pointer to the kernel", SPIN, 8 },
	{ "a pointer to the last word of all", SPIN, 9 },
	{ "a pointer to the begin of a page", SPIN, 10 },
};

static void make_suid_program(void)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "cp /proc/%d/exe " SUID_PROGRAM " && chmod 4755 " SUID_PROGRAM,
		 getpid());
	if (system(cmd))
		ksft_exit_fail_msg("cannot make " SUID_PROGRAM "\n");
}

int main(int argc, char **argv)
{
	enum { POINTERS = sizeof(pointers) / sizeof(*pointers) };
	int fd;

	if (argc > 1 && !strcmp(argv[1], "--executed"))
		return executed();
	ksft_print_header();
	need_shadow_stacks();
	dev = need_device();
	fd = memfd_create("scene", 0);
	if (fd < 0 || ftruncate(fd, sizeof(*scene)) || dup2(fd, SHARED_FD) < 0)
		ksft_exit_fail_msg("memfd: %s\n", strerror(errno));
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (scene == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	make_suid_program();
	ksft_set_plan(POINTERS + 2 + CALLS + 1 + 4);

	for (int i = 0; i < POINTERS; i++)
		wrong_pointer(pointers[i].name, pointers[i].deed, pointers[i].which);
	changing_pointer();
	setuid_exec();
	for (enum call call = 0; call < CALLS; call++)
		blocked_caller(call);
	forged_signals();
	unload_under_all(argc - 1, argv + 1);
	unlink(SUID_PROGRAM);
	ksft_finished();
}
