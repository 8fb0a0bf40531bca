// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * crash.c - reports a crash from the handler of its signal; see shstk_crash.h.
 *
 * What works in a crashed program is not known: locks may be held and the heap may be damaged. So the
 * handler takes the registers, starts `shstk crash --caught`, tells it by a socket, and waits for its
 * answer. That command stops all threads, this one included, and reads their stacks from outside.
 *
 * System calls are made by syscall(2) where the C library's function is a cancellation point.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/cfi.h"
#include "libshstk/crash/apart.h"
#include "libshstk/crash/message.h"
#include "libshstk/shstk_crash.h"
#include "native.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#if defined(__x86_64__)
#define REGISTERS 16 /* general registers, by DWARF number */
#else
#define REGISTERS 32
#endif

#define DEPTH 128 /* addresses that are written where the command does not run */
#define TIMEOUT 10 /* seconds */
#define MAX_ARGS 32 /* of the caller's */
#define POLL_NS 2000000
#define READ_LIMIT 1 /* seconds until who reads standard error has made room */
#define STACK_SIZE 65536 /* bytes of an alternate stack, without the kernel's signal frame */

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT };

/* Variables that the command gets, if the program had them when the handlers were installed. */
static const char *const wanted_env[] = {
	"PATH=", "HOME=", "LANG=", "TERM=", "DEBUGINFOD_URLS=", "XDG_CACHE_HOME="
};
#define MAX_ENV (sizeof(wanted_env) / sizeof(*wanted_env))

static struct {
	struct shstk_crash_opts opts;
	char *env[MAX_ENV + 1];
	bool installed;
	uint64_t reporter; /* who reports: the process ID in the upper half, the thread's in the lower */
	int done; /* ID of the process that has reported */
} crash = { .opts = { .command = CRASH_COMMAND, .timeout = TIMEOUT } };

/* ---- The report ---- */

/* What the new process needs. */
struct start {
	struct apart apart;
	const char *command;
	char numbers[2][24];
	char *argv[MAX_ARGS + 8];
	char **env;
	int in;
};

/* Executes the command. */
static int execute(void *arg)
{
	const struct start *s = arg;

	if (s->in)
		dup2(s->in, STDIN_FILENO);
	else
		syscall(SYS_fcntl, STDIN_FILENO, F_SETFD, 0);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execve(s->command, s->argv, s->env);
	_exit(127);
}

/* Writes a number; @base is 10 or 16. Returns where the text begins, in @buf. */
static char *digits(uint64_t v, unsigned int base, char buf[24])
{
	char *at = buf + 23;

	*at = '\0';
	do {
		*--at = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	return at;
}

static void prepare(struct start *s, int in)
{
	static char words[][12] = { "shstk", "crash", "--caught", "-p", "", "--timeout", "" };
	unsigned int n = 0;

	for (; n < 7; n++)
		s->argv[n] = words[n];
	s->argv[4] = digits(getpid(), 10, s->numbers[0]);
	s->argv[6] = digits(crash.opts.timeout, 10, s->numbers[1]);
	for (const char *const *arg = crash.opts.args; arg && *arg && n < MAX_ARGS + 7; arg++)
		s->argv[n++] = (char *)*arg;
	s->argv[n] = NULL;
	s->command = crash.opts.command;
	s->env = crash.env;
	s->in = in;
	s->apart.execute = execute;
	s->apart.arg = s;
}

static void sleep_shortly(void)
{
	const struct timespec t = { .tv_nsec = POLL_NS };

	syscall(SYS_nanosleep, &t, NULL);
}

static uint64_t seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Waits for the command's answer. Returns 0 if it wrote a report. */
static int await(int answers)
{
	struct timespec limit = { .tv_sec = crash.opts.timeout + 1 };
	struct pollfd p = { .fd = answers, .events = POLLIN };
	char answer;
	long got;

	do {
		got = syscall(SYS_ppoll, &p, 1, &limit, NULL, 0);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got ? -errno : -ETIMEDOUT;
	got = syscall(SYS_read, answers, &answer, 1);
	return got == 1 && answer == CRASH_ANSWER ? 0 : -ECHILD;
}

/* Starts the command and sends it the message. Returns 0 if it wrote a report. */
static __attribute__((noinline)) int run(const struct crash_message *message)
{
	struct start s;
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	prepare(&s, ends[1]);
	err = apart_start(&s.apart);
	syscall(SYS_close, ends[1]);
	if (!err) {
		/* Where Yama restricts ptrace(2), a process must name who may trace it. */
		prctl(PR_SET_PTRACER, s.apart.pid);
		/* If the command is not there any more, there is no answer. */
		syscall(SYS_sendto, ends[0], message, sizeof(*message), MSG_NOSIGNAL, NULL, 0);
		err = await(ends[0]);
	}
	syscall(SYS_close, ends[0]);
	return err;
}

static void fill(struct crash_message *m, int signo, const siginfo_t *info, const void *ucontext)
{
	struct regs regs;

	native_context(ucontext, &regs);
	*m = (struct crash_message){
		.magic = CRASH_MESSAGE_MAGIC,
		.tid = syscall(SYS_gettid),
		.signo = signo,
		.code = info->si_code,
		.regs = { .size = sizeof(m->regs), .pc = regs.r[REG_PC] },
	};
	if (info->si_code > 0)
		m->addr = (uintptr_t)info->si_addr;
	else
		m->sender = info->si_pid;
	for (unsigned int i = 0; i < REGISTERS; i++)
		m->regs.r[i] = regs.r[i];
	m->regs.known = REGISTERS == 32 ? ~0u : (1u << REGISTERS) - 1;
}

/*
 * Writes to standard error if there is room soon, and somebody who reads: else the program would never
 * end, or get SIGPIPE. Returns whether it did.
 */
static bool put(const char *text)
{
	struct timespec limit = { .tv_sec = READ_LIMIT };
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return syscall(SYS_ppoll, &p, 1, &limit, NULL, 0) == 1 && p.revents == POLLOUT &&
	       syscall(SYS_write, STDERR_FILENO, text, strlen(text)) > 0;
}

static bool put_address(uint64_t v)
{
	char buf[24];

	return put("0x") && put(digits(v, 16, buf));
}

static bool put_reason(int err)
{
	if (err == -ETIMEDOUT)
		return put("; the report took too long\n");
	return put("; there is no report by ") && put(crash.opts.command) && put("\n");
}

/* Writes what can be told without the command. */
static __attribute__((noinline)) void report_addresses(const struct crash_message *m,
						       const void *ucontext, int err)
{
	uint64_t pcs[DEPTH];
	char buf[24];
	bool written = put("shstk-crash: signal ") && put(digits(m->signo, 10, buf)) &&
		       put(", pc ") && put_address(m->regs.pc) && put_reason(err);
	int n = shstk_capture_context(ucontext, pcs, DEPTH, NULL, NULL);

	for (int i = 0; i < n && written; i++)
		written = put("  ") && put_address(pcs[i]) && put("\n");
}

/* Waits while another thread reports. */
static void await_reporter(void)
{
	uint64_t end = seconds_now() + crash.opts.timeout + 2;
	const int pid = getpid();

	while (__atomic_load_n(&crash.done, __ATOMIC_ACQUIRE) != pid && seconds_now() <= end)
		sleep_shortly();
}

/*
 * Makes a thread the one that reports, unless another one of its process is. Other processes do not
 * count: their memory was copied, or is shared (vfork). Returns 0, or the ID of the thread that is.
 */
static int claim_report(int tid)
{
	const uint64_t pid = getpid(), own = pid << 32 | (uint32_t)tid;
	uint64_t before = __atomic_load_n(&crash.reporter, __ATOMIC_ACQUIRE);

	do {
		if (before >> 32 == pid)
			return (int)before;
	} while (!__atomic_compare_exchange_n(&crash.reporter, &before, own, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return 0;
}

static int report(int signo, const siginfo_t *info, const void *ucontext)
{
	const int tid = syscall(SYS_gettid), other = claim_report(tid);
	struct crash_message message;
	int err;

	if (other) {
		if (other != tid)
			await_reporter();
		return -EALREADY;
	}
	fill(&message, signo, info, ucontext);
	err = run(&message);
	if (err)
		report_addresses(&message, ucontext, err);
	__atomic_store_n(&crash.done, getpid(), __ATOMIC_RELEASE);
	return err;
}

SHSTK_CRASH_API int shstk_crash_report(int signo, const siginfo_t *info, const void *ucontext)
{
	int saved = errno, err;
	sigset_t all, before;

	if (!info || !ucontext)
		return -EINVAL;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = report(signo, info, ucontext);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return err;
}

/* ---- Handlers ---- */

/*
 * Reports, and sends the signal again as it was, for the kernel's own action. It is blocked until the
 * handler returns, so that a core file has the registers of the crash.
 */
static void on_signal(int signo, siginfo_t *info, void *ucontext)
{
	struct sigaction act = { .sa_handler = SIG_DFL };
	int saved = errno;

	shstk_crash_report(signo, info, ucontext);
	sigaction(signo, &act, NULL);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signo, info);
	errno = saved;
}

static int install_handlers(void)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigfillset(&act.sa_mask);
	for (unsigned int i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction old;

		if (sigaction(signals[i], NULL, &old))
			return -errno;
		if (!(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL &&
		    sigaction(signals[i], &act, NULL))
			return -errno;
	}
	return 0;
}

/* Of a program with more rights than who started it, nothing is kept: it is the caller's. */
static void keep_environment(void)
{
	unsigned int n = 0;

	for (char **e = environ; e && *e && !getauxval(AT_SECURE); e++)
		for (unsigned int i = 0; i < MAX_ENV; i++)
			if (n < MAX_ENV && !strncmp(*e, wanted_env[i], strlen(wanted_env[i])))
				crash.env[n++] = *e;
	crash.env[n] = NULL;
}

static int take_options(const struct shstk_crash_opts *o)
{
	size_t n = 0;

	if (o->size < sizeof(*o) || o->timeout > 3600)
		return -EINVAL;
	for (; o->args && o->args[n]; n++)
		if (n == MAX_ARGS)
			return -EINVAL;
	crash.opts.args = o->args;
	if (o->command)
		crash.opts.command = o->command;
	if (o->timeout)
		crash.opts.timeout = o->timeout;
	return 0;
}

SHSTK_CRASH_API int shstk_crash_install(const struct shstk_crash_opts *opts)
{
	int err = opts ? take_options(opts) : 0;

	if (!err)
		err = shstk_crash_thread();
	if (err || crash.installed)
		return err;
	keep_environment();
	crash.installed = true;
	return install_handlers();
}

/* ---- Alternate stacks ---- */

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_err;

static size_t stack_size(void)
{
	size_t page = getauxval(AT_PAGESZ);

	return (STACK_SIZE + getauxval(AT_MINSIGSTKSZ) + page - 1) & -page;
}

/* Frees the alternate stack of a thread that ends. */
static void free_stack(void *stack)
{
	size_t page = getauxval(AT_PAGESZ);
	stack_t old, none = { .ss_flags = SS_DISABLE };

	if (!sigaltstack(NULL, &old) && old.ss_sp == (char *)stack + page)
		sigaltstack(&none, NULL);
	munmap(stack, page + stack_size());
}

static void make_key(void)
{
	key_err = pthread_key_create(&key, free_stack);
}

SHSTK_CRASH_API int shstk_crash_thread(void)
{
	size_t page = getauxval(AT_PAGESZ), size = stack_size();
	stack_t old, own = { .ss_size = size };
	char *stack;
	int err;

	pthread_once(&key_once, make_key);
	if (key_err)
		return -key_err;
	if (sigaltstack(NULL, &old))
		return -errno;
	if (!(old.ss_flags & SS_DISABLE))
		return 0;
	/* The first page is a guard. */
	stack = mmap(NULL, page + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return -errno;
	own.ss_sp = stack + page;
	if (mprotect(own.ss_sp, size, PROT_READ | PROT_WRITE) || sigaltstack(&own, NULL))
		err = errno;
	else
		err = pthread_setspecific(key, stack);
	if (err)
		free_stack(stack);
	return -err;
}
