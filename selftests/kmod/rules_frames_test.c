// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_frames_test.c - tests walks by unwind rules through frames of each kind, and in other
 * places where the kernel asks for stacks
 *
 *	rules_frames_test SHSTK
 *
 * SHSTK is the command, which compiles this program's own table. A child descends, writes down its
 * own callers as the compiler's library unwinds them, and stays in one function forever. Each chain
 * has to match that, entry by entry.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/shstk_rules.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "copied.h"
#include "kselftest.h"
#include "number.h"
#include "sampler.h"

#include "rules_frames.h"

#define noinline_ __attribute__((noinline, noclone))
#define FOLDER "/tmp/rules_frames"
#define COUNTERS "/sys/module/shstk_perf/rules/"
#define UPROBE "/sys/bus/event_source/devices/uprobe/type"
#define SIGRETURN "/sys/kernel/tracing/events/syscalls/sys_enter_rt_sigreturn/id"
#define DEPTH 20
#define DEEP 300 /* more entries than perf's chains have */
#define SAMPLES 30
#define PATIENCE 6000 /* tries of 50 ms each */
#define BOTTOM_BYTES 256
#define FOREVER_BYTES 8 /* size of forever() alone */
#define VDSO_BYTES 0x4000
#define RETURN_BYTES 16 /* size of the code to which a signal handler returns */
#define PERIOD 200000 /* ns */
#define SHARED_BYTES 0x10000
#define LOSE_BYTES 64 /* size of lose_pages() */

/**
 * struct truth - what the child says
 * @nr: number of callers of bottom().
 * @handler_return: address to which a signal handler returns.
 * @loads: number of times its table was replaced.
 * @ip: callers of bottom(), innermost first.
 */
struct truth {
	volatile unsigned int nr;
	const void *volatile handler_return;
	volatile unsigned long loads;
	volatile uint64_t ip[SAMPLER_DEPTH];
};

/**
 * struct way - how the child gets to the place where it stays
 * @name: what the way tests.
 * @descend: calls itself @depth times, then bottom().
 * @stay: function that bottom() calls, and that stays.
 * @bytes: size of the code in which a sample has to lie.
 * @inside: beginning of that code; NULL for @stay.
 * @more: most entries in front of the callers; if it is 1, there are no callers.
 * @depth: number of calls by which @descend calls itself.
 * @defer: deferred chains are taken.
 * @probes: the test is repeated with return probes at @descend.
 * @probed: another function that gets return probes then; NULL if none.
 * @entries: number of entries of each chain, without the callers; 0: as @more says.
 * @cut: chains may end early; there are @more entries in front of the callers.
 */
struct way {
	const char *name;
	void (*descend)(int n);
	void (*stay)(void);
	unsigned int bytes;
	const void *inside;
	unsigned int more;
	int depth;
	bool defer;
	bool probes;
	unsigned int entries;
	const void *probed;
	bool cut;
};

static struct truth *truth;
static const struct way *way;
static unsigned int tracepoint; /* event of the samples; 0: the clock */
static unsigned int least = 2; /* least entries in front of the callers */
static unsigned long loads; /* how often the table must be replaced meanwhile */
static const char *shstk;
static int device;
static int ready[2];

/* ---- The child ---- */

static noinline_ void forever(void)
{
	for (;;)
		asm volatile("" ::: "memory");
}

/*
 * Code without unwind information, such as is made at run time. It calls @fn, with a frame record
 * of its own or with @record instead.
 */
static void (*made_calls)(void (*fn)(void));
static void (*made_calls_with)(void (*fn)(void), const volatile uint64_t record[2]);

static void make_code(void)
{
#ifdef __x86_64__
	/* push %rbp; mov %rsp, %rbp or mov %rsi, %rbp; call *%rdi; pop %rbp; ret */
	static const unsigned char calls[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	static const unsigned char with[] = { 0x55, 0x48, 0x89, 0xf5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
	/* stp x29, x30, [sp, #-16]!; mov x29, sp or mov x29, x1; blr x0; ldp; ret */
	static const uint32_t calls[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd,
					  0xd65f03c0 };
	static const uint32_t with[] = { 0xa9bf7bfd, 0xaa0103fd, 0xd63f0000, 0xa8c17bfd,
					 0xd65f03c0 };
#endif
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(at + 64, calls, sizeof(calls));
	memcpy(at + 128, with, sizeof(with));
	__builtin___clear_cache(at, at + 4096);
	mprotect(at, 4096, PROT_READ | PROT_EXEC);
	made_calls = (void (*)(void (*)(void)))(at + 64);
	made_calls_with = (void (*)(void (*)(void), const volatile uint64_t *))(at + 128);
}

#ifdef __x86_64__
static noinline_ void stay_behind_record(void)
{
	made_calls(forever);
	asm volatile("");
}
#endif

/* Stays behind a record that looks right, but nothing was called at the place it names. */
static noinline_ void stay_behind_fake(void)
{
	volatile uint64_t record[2] = { 0, (uintptr_t)forever };

	made_calls_with(forever, record);
	asm volatile("");
}

static noinline_ void ask_time(void)
{
	struct timespec ts;

	for (;;)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

static void note_return(int sig)
{
	(void)sig;
	truth->handler_return = __builtin_return_address(0);
}

/* Ends a handler, without a frame between the signal and this function. */
static noinline_ void end_handlers(void)
{
	struct sigaction sa = { .sa_handler = note_return };
	const long pid = getpid();

	sigaction(SIGUSR2, &sa, NULL);
	for (;;) {
#ifdef __x86_64__
		long ret = SYS_kill;

		asm volatile("syscall"
			     : "+a"(ret)
			     : "D"(pid), "S"(SIGUSR2)
			     : "rcx", "r11", "memory");
#else
		register long x0 asm("x0") = pid;
		register long x1 asm("x1") = SIGUSR2;
		register long x8 asm("x8") = SYS_kill;

		asm volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x8) : "memory");
#endif
	}
}

static _Unwind_Reason_Code add_caller(struct _Unwind_Context *context, void *arg)
{
	struct truth *t = arg;
	uint64_t ip = _Unwind_GetIP(context);

	/* The first entry is bottom() itself, so it is left out. */
	if (ip && t->nr <= SAMPLER_DEPTH - 8)
		t->ip[t->nr++] = ip;
	return _URC_NO_REASON;
}

static noinline_ void write_down(void)
{
	_Unwind_Backtrace(add_caller, truth);
	for (unsigned int i = 2; i < truth->nr; i++)
		truth->ip[i - 2] = truth->ip[i];
	truth->nr -= 2;
}

static noinline_ void bottom(void)
{
	char byte = 0;

	/*
	 * With return probes the stack does not show the callers, so they are not written down
	 * again.
	 */
	if (!truth->nr)
		write_down();
	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	way->stay();
	asm volatile(""); /* the asm prevents a tail call */
}

static noinline_ void descend(int n)
{
	if (n)
		descend(n - 1);
	else
		bottom();
	asm volatile("");
}

static noinline_ void on_signal(int sig)
{
	(void)sig;
	bottom();
	asm volatile("");
}

static int shared_depth;

static void begin_shared(void)
{
	descend(shared_depth);
	asm volatile("");
}

/*
 * Returns a stack in shared memory, so that pages that are removed from the page tables do not lose
 * their content.
 */
static void *shared_stack(void)
{
	static void *stack;

	if (!stack)
		stack = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
	return stack;
}

static noinline_ void descend_on_shared(int n)
{
	ucontext_t there, back;

	if (shared_stack() == MAP_FAILED)
		_exit(1);
	shared_depth = n;
	getcontext(&there);
	there.uc_stack.ss_sp = shared_stack();
	there.uc_stack.ss_size = SHARED_BYTES;
	there.uc_link = NULL;
	makecontext(&there, begin_shared, 0);
	swapcontext(&back, &there);
}

/*
 * Loses pages by a system call without the C library's function, whose own frame would touch the
 * stack.
 */
static noinline_ void lose_pages(void)
{
#ifdef __x86_64__
	void *const stack = shared_stack();

	for (;;) {
		long ret = SYS_madvise;

		asm volatile("syscall"
			     : "+a"(ret)
			     : "D"(stack), "S"((long)SHARED_BYTES), "d"((long)MADV_DONTNEED)
			     : "rcx", "r11", "memory");
		for (register int i = 0; i < 100000; i++)
			asm volatile("");
	}
#endif
}

/* Leaves by a tail call: two functions have one return address. */
noinline_ void tail_called(int n);
static noinline_ void descend_by_tail_calls(int n)
{
	tail_called(n);
}

noinline_ void tail_called(int n)
{
	if (n)
		descend_by_tail_calls(n - 1);
	else
		bottom();
	asm volatile("");
}

/* Descends after another function was here and left by longjmp() without returning. */
static noinline_ void descend_behind_jump(int n)
{
	static jmp_buf out;

	if (n < 0)
		longjmp(out, 1);
	if (n)
		descend_behind_jump(n - 1);
	else if (!setjmp(out))
		descend_behind_jump(-1);
	else
		bottom();
	asm volatile("");
}

static noinline_ void descend_in_copy(int n)
{
	if (!copied_in_place(4096))
		_exit(1);
	descend(n);
	asm volatile("");
}

#ifdef __x86_64__
static noinline_ void descend_in_whole_copy(int n)
{
	if (!copied_in_place(0))
		_exit(1);
	descend(n);
	asm volatile("");
}
#endif

/* Descends through a signal in a signal's handler, on a separate stack. */
static noinline_ void descend_by_signals(int n)
{
	if (n)
		descend_by_signals(n - 1);
	else
		raise(SIGUSR1);
	asm volatile("");
}

#ifdef __x86_64__
static noinline_ void descend_by_rbx(int n)
{
	if (n)
		through_rbx(descend_by_rbx, n - 1);
	else
		bottom();
	asm volatile("");
}

static noinline_ void descend_by_word(int n)
{
	if (n)
		through_word(descend_by_word, n - 1);
	else
		bottom();
	asm volatile("");
}

/* Has arguments on the stack, and a variable with an alignment that no stack has: gcc's DRAP. */
static noinline_ void realigned(int n, long a, long b, long c, long d, long e, long f, long g)
{
	__attribute__((aligned(64))) volatile char room[64];

	room[0] = (char)(a + b + c + d + e + f + g);
	if (n)
		realigned(n - 1, a, b, c, d, e, f, room[0]);
	else
		bottom();
	asm volatile("" ::"r"(room));
}

static void descend_realigned(int n)
{
	realigned(n, 1, 2, 3, 4, 5, 6, 7);
	asm volatile("");
}
#endif

uint64_t *upper_stack;

static noinline_ void run_child(void)
{
	static char stack[65536];
	__attribute__((aligned(16))) uint64_t room[64];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char byte;

	sigaltstack(&alt, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	/* Waits until it is told that the probes are there. */
	if (read(ready[0], &byte, 1) != 1)
		_exit(1);
	/* The first stack lies above all memory that is mapped. */
	upper_stack = room;
	way->descend(way->depth);
	asm volatile("");
}

/* ---- The sampling side ---- */

struct verdict {
	unsigned int nr, exact, other;
};

static bool is_in(uint64_t ip, const void *function, unsigned int bytes)
{
	return ip - (uintptr_t)function < bytes;
}

/* Returns whether the chain has some callers, and these are the innermost ones. */
static bool is_beginning(const struct sample *s)
{
	const unsigned int more = way->more;

	if (s->nr <= more || s->nr - more > truth->nr)
		return false;
	for (unsigned int i = more; i < s->nr; i++)
		if (s->ip[i] != truth->ip[i - more])
			return false;
	return true;
}

static bool is_exact(const struct sample *s)
{
	unsigned int n = truth->nr, more = s->nr - n;

	if (way->cut)
		return is_beginning(s);
	if (way->entries)
		return s->nr == way->entries;
	if (way->more == 1)
		return s->nr == 1;
	if (s->nr <= n || more < least || more > way->more ||
	    !is_in(s->ip[more - 1], bottom, BOTTOM_BYTES))
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (s->ip[more + i] != truth->ip[i])
			return false;
	return true;
}

static void judge(void *arg, const struct sample *s)
{
	const void *inside = way->inside ? way->inside : way->stay;
	struct verdict *v = arg;

	if (tracepoint)
		inside = truth->handler_return;

	/* The process may still be in write(). */
	if (!s->nr || s->deferred != way->defer || !is_in(s->ip[0], inside, way->bytes))
		return;
	v->nr++;
	if (is_exact(s))
		v->exact++;
	else if (!v->other++)
		for (unsigned int i = 0; i < s->nr || i < truth->nr; i++)
			ksft_print_msg("first that is not: %#lx of %u, true %#lx of %u\n",
				       i < s->nr ? (unsigned long)s->ip[i] : 0, s->nr,
				       i < truth->nr ? (unsigned long)truth->ip[i] : 0, truth->nr);
}

/* Starts the child, which waits until it is told to continue. */
static pid_t start(void)
{
	int go[2];
	pid_t pid;

	if (pipe(ready) || pipe(go))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		ready[0] = go[0];
		run_child();
		_exit(0);
	}
	close(go[0]);
	close(ready[1]);
	ready[1] = go[1];
	return pid;
}

static void await_bottom(void)
{
	char byte = 0;

	if (write(ready[1], &byte, 1) != 1 || read(ready[0], &byte, 1) != 1)
		ksft_exit_fail_msg("%s: the child died\n", way->name);
	close(ready[0]);
	close(ready[1]);
}

static int open_tracepoint(struct sampler *s, pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = tracepoint,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_kernel = 1,
	};

	return sampler_open_attr(s, pid, &attr);
}

/* Samples a process, and ends it. */
static struct verdict watch(pid_t pid)
{
	struct verdict v = { 0 };
	struct sampler s;
	int err = tracepoint ? open_tracepoint(&s, pid) : sampler_open(&s, pid, PERIOD, way->defer);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	for (int i = 0; i < PATIENCE && (v.nr < SAMPLES || truth->loads < loads); i++) {
		usleep(50000);
		sampler_drain(&s, judge, &v);
	}
	sampler_close(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return v;
}

static void conclude(const struct verdict *v)
{
	ksft_print_msg("%u samples, %u exact, %u callers\n", v->nr, v->exact, truth->nr);
	ksft_test_result(v->nr >= SAMPLES && v->exact == v->nr && truth->nr > (unsigned)way->depth,
			 "%s\n", way->name);
}

/* Returns the offset of a function in its file. */
static uint64_t offset_of(const void *function)
{
	const ElfW(Phdr) *p = (const void *)getauxval(AT_PHDR);

	for (unsigned long n = getauxval(AT_PHNUM); n; n--, p++)
		if (p->p_type == PT_LOAD && (uintptr_t)function - p->p_vaddr < p->p_filesz)
			return (uintptr_t)function - p->p_vaddr + p->p_offset;
	return 0;
}

static int open_return_probe(pid_t pid, const void *function)
{
	struct perf_event_attr attr = {
		.type = (unsigned int)read_number(UPROBE),
		.size = sizeof(attr),
		.config = 1, /* at the return */
		.config1 = (uintptr_t) "/proc/self/exe",
		.config2 = offset_of(function),
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Opens the return probes. @probe receives them, -1 where there is none. */
static void open_return_probes(pid_t pid, int probe[2])
{
	probe[0] = open_return_probe(pid, way->descend);
	probe[1] = way->probed ? open_return_probe(pid, way->probed) : -1;
	if (probe[0] < 0 || (way->probed && probe[1] < 0))
		ksft_print_msg("no probe: %s\n", strerror(errno));
}

/*
 * Tests a way. With return probes the truth is that of an earlier child without them: it has the
 * same callers.
 */
static void test_way(const struct way *w)
{
	way = w;
	truth->nr = 0;
	/*
	 * There is only one call in the source, and so one return address: the volatile counter
	 * keeps compilers from splitting off the first round.
	 */
	for (volatile int round = 0; round <= way->probes; round++) {
		pid_t pid = start();
		int probe[2] = { -1, -1 };
		struct verdict v;

		if (round)
			open_return_probes(pid, probe);
		await_bottom();
		v = watch(pid);
		for (int i = 0; i < 2; i++)
			if (probe[i] >= 0)
				close(probe[i]);
		conclude(&v);
	}
}

/* Tests the system call by which a handler returns. While it is made, pc is behind it. */
static void test_signal_return(void)
{
	static const struct way w = {
		"in the system call that ends a signal handler",
		descend,
		end_handlers,
		RETURN_BYTES,
		NULL,
		3,
		DEPTH,
		false,
		false,
	};

	tracepoint = (unsigned int)read_number(SIGRETURN);
	least = w.more;
	test_way(&w);
	tracepoint = 0;
	least = 2;
}

static void test_return_probes(void)
{
	static const struct way w = {
		"through functions with return probes",
		descend,
		forever,
		FOREVER_BYTES,
		NULL,
		2,
		DEPTH,
		false,
		true,
	};
	long before = read_number(COUNTERS "step_uretprobe");

	static const struct way tails = {
		"through such functions that leave by tail calls to others",
		descend_by_tail_calls,
		forever,
		FOREVER_BYTES,
		NULL,
		2,
		DEPTH,
		false,
		true,
		0,
		tail_called,
	};
	static const struct way jump = {
		"where one of them was left by longjmp()",
		descend_behind_jump,
		forever,
		FOREVER_BYTES,
		NULL,
		2,
		DEPTH,
		false,
		true,
	};

	test_way(&w);
	ksft_test_result(read_number(COUNTERS "step_uretprobe") - before >= DEPTH * SAMPLES,
			 "and their return addresses were hidden\n");
	test_way(&tails);
	test_way(&jump);
}

/* ---- A table that is replaced ---- */

static void replace_for_ever(void)
{
	struct shstk_rules_load arg = { .name = "replaced" };
	char *table = malloc(1 << 22);
	FILE *f = fopen(FOLDER "/table", "re");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	arg.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	arg.table = (uintptr_t)table;
	arg.size = f && table ? fread(table, 1, 1 << 22, f) : 0;
	while (!ioctl(device, SHSTK_RULES_LOAD, &arg))
		truth->loads++;
	_exit(1);
}

/* Tests replacing a table. Each walk finds either the old one or the new one. */
static void test_replaced(void)
{
	static const struct way w = {
		"while its table is replaced all the time",
		descend,
		forever,
		FOREVER_BYTES,
		NULL,
		2,
		DEPTH,
		false,
		false,
		0,
	};
	long unknown = read_number(COUNTERS "first_unknown");
	char command[512];
	pid_t pid;

	snprintf(command, sizeof(command), "%s rules compile -qo " FOLDER "/table /proc/$PPID/exe",
		 shstk);
	if (system(command))
		ksft_exit_fail_msg("%s: failed\n", command);
	fflush(NULL);
	pid = fork();
	if (!pid)
		replace_for_ever();
	loads = SAMPLES;
	test_way(&w);
	loads = 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ksft_print_msg("it was replaced %lu times\n", truth->loads);
	ksft_test_result(truth->loads >= SAMPLES &&
				 read_number(COUNTERS "first_unknown") == unknown,
			 "and no walk found none\n");
}

/* ---- Overlayfs ---- */

static bool load(const char *path)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules load -q %s", shstk, path);
	return !system(command);
}

static void drop_all(void)
{
	struct shstk_rules_drop all = { .fd = -1, .flags = SHSTK_RULES_DROP_ALL };

	ioctl(device, SHSTK_RULES_DROP, &all);
}

/* Runs this program again under another name. The truth of its child is in its own memory. */
static int run_again(const char *path)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		execl(path, path, "again", NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

#define LOWER FOLDER "/lower"
#define MERGED FOLDER "/merged"

static void test_overlay(void)
{
	mkdir(LOWER, 0755);
	mkdir(FOLDER "/empty", 0755);
	mkdir(MERGED, 0755);
	if (mount("none", MERGED, "overlay", 0, "lowerdir=" FOLDER "/empty:" LOWER) ||
	    system("cp /proc/$PPID/exe " LOWER "/program"))
		ksft_print_msg("overlay: %s\n", strerror(errno));
	drop_all();
	ksft_test_result(run_again(MERGED "/program") == 1 << 8,
			 "a program on overlayfs without a table has no exact chains\n");
	ksft_test_result(load(LOWER "/program") && !run_again(MERGED "/program"),
			 "with the layer's table all are\n");
	drop_all();
	ksft_test_result(load(MERGED "/program") && !run_again(MERGED "/program"),
			 "and so with that of the overlay\n");
	ksft_test_result(!umount(MERGED), "it is unmounted\n");
}

static int be_run_again(void)
{
	static const struct way w = {
		"again", descend, forever, FOREVER_BYTES, NULL, 2, DEPTH, false, false,
	};
	struct verdict v;
	pid_t pid;

	way = &w;
	pid = start();
	await_bottom();
	v = watch(pid);
	ksft_print_msg("%u samples, %u exact\n", v.nr, v.exact);
	return v.nr < SAMPLES ? 2 : v.exact == v.nr ? 0 : 1;
}

/* ---- The ways ---- */

static const struct way ways[] = {
	{ "plain frames", descend, forever, FOREVER_BYTES, NULL, 2, DEPTH, false, false },
	{ "a signal handler", descend_by_signals, forever, FOREVER_BYTES, NULL, 2, DEPTH, false,
	  false },
	{ "a frame record that is not behind a call", descend, stay_behind_fake, FOREVER_BYTES,
	  forever, 0, DEPTH, false, false, 2 },
	{ "a return address that is none", descend, returns_nowhere, 2, returns_nowhere_stays, 1,
	  DEPTH, false, false },
	{ "the end of longjmp(), whose frame record is another one's", descend, frame_of_jump, 4,
	  frame_of_jump_stays, 1, DEPTH, false, false },
	{ "code in a copy that lies in its place, but for the ends", descend_in_copy, forever,
	  FOREVER_BYTES, NULL, 2, DEPTH, false, false },
	{ "a CFA on another stack, at a lower address", descend_on_shared, frame_on_upper, 64, NULL,
	  2, DEPTH, false, false },
	{ "such a CFA by a word whose address is on the stack", descend_on_shared, frame_of_link,
	  64, NULL, 2, DEPTH, false, false },
	{ "where a function begins that is marked as a signal frame", descend,
	  begins_as_signal_frame, 2, NULL, 2, DEPTH, false, false },
#ifdef __x86_64__
	{ "all of the code in such a copy", descend_in_whole_copy, forever, FOREVER_BYTES, NULL, 2,
	  DEPTH, false, false },
	{ "through a frame record of code that nothing describes", descend, stay_behind_record,
	  FOREVER_BYTES, forever, 4, DEPTH, false, false },
	{ "in a stub of the linker", descend, stub_first, 2, NULL, 2, DEPTH, false, false },
	{ "behind what it pushes", descend, stub_second, 16, NULL, 2, DEPTH, false, false },
	{ "a CFA in a register", descend, frame_of_register, 64, NULL, 2, DEPTH, false, false },
	{ "a CFA in the stack", descend, frame_in_stack, 64, NULL, 2, DEPTH, false, false },
	{ "such a CFA by a word to which a register leads", descend_on_shared, frame_of_word, 64,
	  NULL, 2, DEPTH, false, false },
	{ "a CFA at a register's place", descend, frame_of_index, 64, NULL, 2, DEPTH, false,
	  false },
	{ "a CFA that no rule can say", descend, frame_of_no_kind, 32, NULL, 1, DEPTH, false,
	  false },
	{ "where clone() failed", descend, clone_failed, 32, NULL, 2, DEPTH, false, false },
	{ "where clone() returned 0", descend, clone_child, 2, clone_child_stays, 1, DEPTH, false,
	  false },
	{ "CFAs in rbx", descend_by_rbx, forever, FOREVER_BYTES, NULL, 2, DEPTH, false, false },
	{ "CFAs in words to which rbx leads", descend_by_word, forever, FOREVER_BYTES, NULL, 2,
	  DEPTH, false, false },
	{ "realigned frames", descend_realigned, forever, FOREVER_BYTES, NULL, 2, DEPTH, false,
	  false },
#else
	{ "a return address in a register", descend, return_in_register, 12, NULL, 2, DEPTH, false,
	  false },
	{ "the same of a function that calls", descend, calls_with_return_in_register, 4,
	  called_with_return_in_register, 3, DEPTH, false, false },
#endif
};

#define NR_WAYS (sizeof(ways) / sizeof(ways[0]))

/*
 * Tests the vdso. A chain has the vdso's function, clock_gettime() and ask_time(); on x86-64 it
 * also has some internal functions of the vdso.
 */
static void test_vdso(void)
{
	struct way w = {
		"in the vdso", descend, ask_time, VDSO_BYTES, NULL, 4, DEPTH, false, false,
	};

#ifdef __x86_64__
	w.more = 8;
#endif
	w.inside = (const void *)getauxval(AT_SYSINFO_EHDR);
	least = 4;
	test_way(&w);
	least = 2;
}

/* Tests a chain through the vdso, where it has no table: on arm64 signal handlers return there. */
static void test_without_vdso(void)
{
	static const struct way w = {
		.name = "a signal handler, if the vdso has no table",
		.descend = descend_by_signals,
		.stay = forever,
		.bytes = FOREVER_BYTES,
		.more = 2,
		.depth = DEPTH,
		.cut = true,
	};
	struct shstk_rules_drop vdso = { .fd = -1 };

	if (ioctl(device, SHSTK_RULES_DROP, &vdso))
		ksft_exit_fail_msg("the vdso: %s\n", strerror(errno));
	test_way(&w);
	if (!load("/proc/$PPID/exe"))
		ksft_exit_fail_msg("%s rules load: failed\n", shstk);
}

static void test_deferred(bool defers)
{
	static const struct way w = {
		"deferred chains, longer than others may be",
		descend,
		forever,
		FOREVER_BYTES,
		NULL,
		2,
		DEEP,
		true,
		false,
	};
	static const struct way lost = {
		"deferred chains bring in pages of the stack",
		descend_on_shared,
		lose_pages,
		LOSE_BYTES,
		NULL,
		2,
		DEEP,
		true,
		false,
	};

	static const struct way probed = {
		"deferred chains through functions with return probes",
		descend,
		forever,
		FOREVER_BYTES,
		NULL,
		2,
		DEPTH,
		true,
		true,
	};

	if (defers) {
		test_way(&w);
		test_way(&lost);
		test_way(&probed);
	}
}

int main(int argc, char **argv)
{
	bool defers;

	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (argc == 2 && !strcmp(argv[1], "again"))
		return be_run_again();
	ksft_print_header();
	if (argc < 2)
		ksft_exit_fail_msg("rules_frames_test SHSTK\n");
	shstk = argv[1];
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	defers = sampler_defers();
	ksft_set_plan(NR_WAYS + 4 * defers + 16);
	mkdir("/tmp", 0755);
	if (mkdir(FOLDER, 0755) && errno != EEXIST)
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	drop_all();
	if (!load("/proc/$PPID/exe"))
		ksft_exit_fail_msg("%s rules load: failed\n", shstk);
	make_code();
	for (unsigned int i = 0; i < NR_WAYS; i++)
		test_way(&ways[i]);
	test_replaced();
	test_vdso();
	test_without_vdso();
	test_deferred(defers);
	test_signal_return();
	test_return_probes();
	test_overlay();
	drop_all();
	ksft_finished();
}
