// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hostile_test.c - the BPF walk on stacks that are none: it ends, and makes nothing up.
 *
 * A child spins with a stack pointer that it has no right to, or on a stack that it has forged;
 * each sample that is taken meanwhile is walked. So is one on its own stack, below a frame that is found by
 * rbx, which a function below that frame has changed.
 */
#include <errno.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "selftests/bpf/refusal.h"
#include "tools/bpf/walker.h"
#include "tools/perf/rings.h"
#include "tools/perf/sample.h"
#include "tools/proc/maps.h"

#define FREQ 999
#define RING (4u << 20)
#define MAX_CHAIN 256
#define WORDS 65536
#define PAGE 4096
#define FRAME 256 /* the frame of spin() has fewer bytes */
#define ENOUGH 5 /* samples in the loop */
#define PATIENCE 20 /* seconds of the child's CPU time in which they come */
#define SKIP 4

/* What the child and its parent share: where code may be. */
static struct shared {
	uint64_t stack[WORDS];
	volatile int stop;
} * shared;

/**
 * struct seen - what was seen of the samples in the loop
 * @nr: so many there were.
 * @most: entries of the longest chain.
 * @ends: how chains ended.
 * @odd: entries that are in no code.
 */
struct seen {
	unsigned int nr;
	uint64_t most;
	unsigned int ends[WALK_ENDS];
	unsigned int odd;
};

static struct code {
	uint64_t start, end;
} code[256];
static unsigned int nr_code;

static unsigned int points;
static bool failed;

static void point(bool good, const char *name, const char *what)
{
	printf("%s %u %s: %s\n", good ? "ok" : "not ok", ++points, name, what);
	failed |= !good;
}

/* ---- what the child does ---- */

#define OWN_STACK 1 /* for spin(): the stack pointer stays as it is */

extern const char spin_begin[], spin_end[];

/*
 * Spins with another stack pointer until it is told to stop: it is in a register, and nothing is
 * pushed meanwhile. The compiler says that the CFA is so many bytes above the stack pointer.
 */
void spin(uint64_t sp);
__attribute__((noinline)) void spin(uint64_t sp)
{
	if (sp == OWN_STACK)
		__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
	__asm__ volatile("mov %%rsp, %%r12\n\t"
			 "mov %0, %%rsp\n"
			 ".globl spin_begin\nspin_begin:\n"
			 "1:	pause\n\t"
			 "cmpl $0, (%1)\n\t"
			 "je 1b\n"
			 ".globl spin_end\nspin_end:\n\t"
			 "mov %%r12, %%rsp"
			 :
			 : "r"(sp), "r"(&shared->stop)
			 : "r12", "memory", "cc");
}

static void on_signal(int signo)
{
	(void)signo;
}

/* What signal handlers return to. */
static uint64_t restorer(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} now = { 0 };

	signal(SIGUSR2, on_signal);
	syscall(SYS_rt_sigaction, SIGUSR2, NULL, &now, sizeof(now.mask));
	return (uintptr_t)now.restorer;
}

static uint64_t bottom(void)
{
	return (uintptr_t)shared->stack;
}

static void fill(uint64_t word)
{
	for (unsigned int i = 0; i < WORDS; i++)
		shared->stack[i] = word;
}

/* Some CPUs cannot return from an interrupt to such a stack pointer: the child ends by SIGSEGV. */
static void not_canonical(void)
{
	spin(1ull << 63);
}

static void of_the_kernel(void)
{
	spin(0xffff888000000000);
}

static void at_the_end(void)
{
	spin(-16ull);
}

static void at_zero(void)
{
	spin(0);
}

static void odd_address(void)
{
	spin(bottom() + 3);
}

/* Each word is an address in this very loop. */
static void endless(void)
{
	fill((uintptr_t)spin_begin + 1);
	spin(bottom());
}

/* The same on a page between two that cannot be read. */
static void between_none(void)
{
	uint8_t *page = (uint8_t *)shared->stack + PAGE;

	fill((uintptr_t)spin_begin + 1);
	if (mprotect(page - PAGE, PAGE, PROT_NONE) || mprotect(page + PAGE, PAGE, PROT_NONE))
		return;
	spin((uintptr_t)page);
}

/* Each word is one in the program or its libraries, or is any. */
static void at_random(void)
{
	uint64_t seed = 88172645463325252;

	for (unsigned int i = 0; i < WORDS; i++) {
		const struct code *c = &code[seed % (nr_code ? nr_code : 1)];

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		shared->stack[i] = seed % 4 ? c->start + (seed >> 8) % (c->end - c->start) : seed;
	}
	spin(bottom());
}

/* Signal frames that lead to themselves: all their words are that address, also sp is. */
static void signal_frames(void)
{
	uint64_t address = restorer();

	fill(address);
	/* In the context, of each frame that may be found: sp back to the beginning. */
	for (unsigned int i = 0; i < WORDS; i++)
		if (i % 8 == 4)
			shared->stack[i] = bottom();
	spin(bottom());
}

static void kernel_words(void)
{
	fill(0xffffffff81000000);
	spin(bottom());
}

/* Calls a function from a frame whose CFA is in rbx. */
void through_rbx(void (*fn)(void));
__asm__(".text\n"
	"through_rbx:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	mov %rsp, %rbx\n"
	"	.cfi_def_cfa_register %rbx\n"
	"	sub $200, %rsp\n"
	"	and $-64, %rsp\n"
	"	call *%rdi\n"
	"	mov %rbx, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	pop %rbx\n"
	"	.cfi_restore %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n");

static void changes_rbx(void)
{
	__asm__ volatile("xor %%ebx, %%ebx" : : : "rbx");
	spin(OWN_STACK);
	/* So that it is no tail call. */
	__asm__ volatile("");
}

static void below_rbx(void)
{
	through_rbx(changes_rbx);
	__asm__ volatile("");
}

/*
 * Calls spin(OWN_STACK) on the stack at @sp. The word at @sp + 8 says where the caller's stack is, and on that one the
 * return address is first.
 */
void spin_on(uint64_t own, uint64_t sp);
extern const char spin_on_returns[];
__asm__(".text\n"
	".globl spin_on, spin_on_returns\n"
	"spin_on:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	mov %rsp, %rbx\n"
	"	mov %rsi, %rsp\n"
	"	.cfi_remember_state\n"
	/* CFA = load(rsp + 8) + 8 */
	"	.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8\n"
	"	call spin\n"
	"spin_on_returns:\n"
	"	mov %rbx, %rsp\n"
	"	.cfi_restore_state\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n");

/* Spins on a stack whose caller's is a lower one, with this return address, and whose caller's is the first one. */
static void with_lower_stack(const void *return_address)
{
	uint64_t *lower = &shared->stack[16], *upper = &shared->stack[WORDS / 2];

	upper[1] = (uintptr_t)lower;
	lower[0] = (uintptr_t)return_address;
	lower[2] = (uintptr_t)(upper - 1);
	spin_on(OWN_STACK, (uintptr_t)upper);
}

static void stacks_in_a_circle(void)
{
	with_lower_stack(spin_on_returns);
}

static void lower_without_call(void)
{
	with_lower_stack(spin_begin);
}

/* ---- the samples ---- */

static bool is_code(uint64_t addr)
{
	for (unsigned int i = 0; i < nr_code; i++)
		if (addr >= code[i].start && addr < code[i].end)
			return true;
	return false;
}

static void read_code(void)
{
	struct mapping m;
	struct maps maps;

	if (maps_open(getpid(), "maps", &maps))
		return;
	while (maps_next(&maps, &m))
		if (m.exec && nr_code < 256 && m.start < 1ull << 56)
			code[nr_code++] = (struct code){ m.start, m.end };
	maps_close(&maps);
}

static int take(void *arg, const struct perf_record *r)
{
	struct seen *seen = arg;
	struct perf_sample s;
	uint64_t first = 0;

	if (r->type != PERF_RECORD_SAMPLE || !r->walked || !perf_sample_parse(r, true, 0, &s))
		return 0;
	while (first < s.nr && s.chain[first] != PERF_CONTEXT_USER)
		first++;
	if (first + 1 >= s.nr || s.chain[first + 1] < (uintptr_t)spin_begin ||
	    s.chain[first + 1] >= (uintptr_t)spin_end)
		return 0;
	seen->nr++;
	if (s.nr - first - 1 > seen->most)
		seen->most = s.nr - first - 1;
	if (s.end < WALK_ENDS)
		seen->ends[s.end]++;
	for (uint64_t i = first + 2; i < s.nr; i++)
		seen->odd += !is_code((s.chain[i] & ~WALK_MARKS) - 1);
	return 0;
}

/**
 * struct forged - a stack
 * @name: what is forged.
 * @run: spins on it.
 * @ends: how walks of it may end, a bit for each.
 * @least: entries that the longest chain has at least.
 */
struct forged {
	const char *name;
	void (*run)(void);
	unsigned int ends;
	uint64_t least;
};

#define END(how) (1u << WALK_##how)
#define NOT_READ (END(NO_MEMORY) | END(BAD_CFA))

static const struct forged forged[] = {
	{ "a stack pointer that is not canonical", not_canonical, NOT_READ, 0 },
	{ "a stack pointer into the kernel", of_the_kernel, NOT_READ, 0 },
	{ "a stack pointer at the end of all addresses", at_the_end, NOT_READ, 0 },
	{ "a stack pointer of 0", at_zero, NOT_READ, 0 },
	{ "an odd stack pointer", odd_address, ~0u, 0 },
	{ "a stack of return addresses that all are the same", endless, END(ROOM), MAX_CHAIN },
	{ "the same on a page between two that cannot be read", between_none,
	  END(ROOM) | END(NO_MEMORY), PAGE / FRAME },
	{ "a stack of random words", at_random, ~0u, 0 },
	{ "signal frames that lead to themselves", signal_frames, ~END(WHOLE), 0 },
	{ "return addresses in the kernel", kernel_words, END(NO_CODE), 0 },
	{ "stacks that lead round in a circle", stacks_in_a_circle, END(ROOM), MAX_CHAIN },
	{ "a lower stack without a call in front of its return address", lower_without_call,
	  END(BAD_CFA), 0 },
	{ "a frame that is found by rbx", below_rbx, END(WHOLE), 7 },
};

static pid_t start(const struct forged *f)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid)
		return pid;
	f->run();
	_exit(0);
}

static bool ends_as_said(const struct seen *seen, const struct forged *f)
{
	for (int i = 0; i < WALK_ENDS; i++)
		if (seen->ends[i] && !(f->ends & 1u << i))
			return false;
	return true;
}

static void judge(const struct forged *f, const struct seen *seen)
{
	point(seen->nr >= ENOUGH, f->name, "is walked");
	point(seen->most >= f->least && seen->most <= MAX_CHAIN, f->name,
	      "the chain has as many entries as it may");
	point(ends_as_said(seen, f), f->name, "the walk ends, and says why");
	point(!seen->odd, f->name, "no entry is in no code");
	printf("# %u samples, at most %llu entries\n", seen->nr, (unsigned long long)seen->most);
	for (int i = 0; i < WALK_ENDS; i++)
		if (seen->ends[i])
			printf("# end %d: %u\n", i, seen->ends[i]);
}

/* Returns the seconds of CPU time that a process has taken. */
static double cpu_seconds(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == pid;
}

/*
 * Reads the rings until there are enough samples of the child @pid, or it has ended. On a busy machine
 * the tables, or the CPU time in which samples are taken, may be long in coming: what counts is the
 * time that the child spins while no table is waited for. Tables that never come end with selftests/run's patience.
 */
static void collect(struct perf_rings *rings, const struct walker *w, pid_t pid, struct seen *seen)
{
	double before = cpu_seconds(pid), now, spun = 0;

	while (seen->nr < ENOUGH && spun < PATIENCE && !has_ended(pid)) {
		usleep(10000);
		now = cpu_seconds(pid);
		/* What is walked before the program has its table ends there. */
		if (walker_idle(w)) {
			spun += now - before;
			perf_rings_read(rings, false, take, seen);
			if (seen->ends[WALK_NO_TABLE] && !seen->ends[WALK_ROOM])
				memset(seen, 0, sizeof(*seen));
		}
		before = now;
	}
}

static void attempt(const struct forged *f, struct perf_opts *opts, const struct walker *w)
{
	struct perf_rings *rings = NULL;
	struct seen seen = { 0 };
	struct reason why;
	pid_t pid = start(f);
	int status;

	opts->pids = &pid;
	opts->nr_pids = 1;
	if (perf_rings_open(opts, &rings, &why)) {
		printf("# %s\n", why.text);
	} else if (walker_begin(w, rings)) {
		printf("# no chains come from the events\n");
		perf_rings_close(rings);
	} else {
		collect(rings, w, pid, &seen);
		perf_rings_close(rings);
	}
	shared->stop = 1;
	if (waitpid(pid, &status, 0) == pid && f->run == not_canonical && WIFSIGNALED(status) &&
	    WTERMSIG(status) == SIGSEGV)
		printf("ok %u %s # SKIP this CPU ends programs that have it\n", ++points, f->name);
	else
		judge(f, &seen);
}

/* Overlays may have other inode numbers than the kernel tells: their files get no tables. */
static bool is_overlay(void)
{
	struct statfs fs;

	return !statfs("/proc/self/exe", &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* Says why there is no walk, and returns the status of the test. */
static int tell_none(const char *why)
{
	int status = status_without_program(why);

	if (status == SKIP)
		printf("1..0 # SKIP %s\n", why);
	else
		printf("not ok 1 - the program is loaded\n# %s\n1..1\n", why);
	return status;
}

int main(void)
{
	const struct walker_opts how = { .max = MAX_CHAIN, .both = true };
	struct perf_opts opts = {
		.main = perf_event_find("cpu-clock"),
		.freq = FREQ,
		.max_stack = 127,
		.ring_size = RING,
		.cgroup = -1,
	};
	struct walker *w;
	struct reason why;
	bool user_only;

	printf("TAP version 13\n");
	if (is_overlay()) {
		printf("1..0 # SKIP this file system tells other inode numbers than the kernel\n");
		return SKIP;
	}
	if (walker_create(&how, &w, &why))
		return tell_none(why.text);
	if (perf_probe(&opts, &user_only, &why)) {
		printf("1..0 # SKIP %s\n", why.text);
		walker_destroy(w);
		return SKIP;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	read_code();
	for (unsigned int i = 0; i < sizeof(forged) / sizeof(*forged); i++)
		attempt(&forged[i], &opts, w);
	walker_destroy(w);
	printf("1..%u\n", points);
	return failed;
}
