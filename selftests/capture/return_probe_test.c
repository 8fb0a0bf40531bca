// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * return_probe_test.c - captures of a thread's own stack while the kernel probes the return of a
 * function on it, as other tools ask for: on the stack the kernel's trampoline has the place of
 * the function's return address.
 */
#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "shstk.h"

#define DEPTH 256
#define FRAME __attribute__((noinline, noclone))
/* No call of these functions is their last instruction. */
#define KEEP() __asm__ volatile("" ::: "memory")

/**
 * struct trace - a captured stack
 * @n: number of entries.
 * @pcs: the entries.
 * @marks: their marks.
 * @info: what the library says of it.
 */
struct trace {
	int n;
	uint64_t pcs[DEPTH];
	uint8_t marks[DEPTH];
	struct shstk_info info;
};

static struct trace *to;
static uint32_t sources;
static unsigned int skip;

static void on_signal(int signo, siginfo_t *si, void *context)
{
	struct shstk_opts opts = { .size = sizeof(opts), .sources = sources, .marks = to->marks };

	(void)signo;
	(void)si;
	to->info = (struct shstk_info){ .size = sizeof(to->info) };
	to->n = shstk_capture_context(context, to->pcs, DEPTH, &opts, &to->info);
}

static FRAME void innermost(bool by_signal)
{
	struct shstk_opts opts = {
		.size = sizeof(opts), .sources = sources, .marks = to->marks, .skip = skip
	};

	if (by_signal) {
		raise(SIGUSR1);
	} else {
		to->info = (struct shstk_info){ .size = sizeof(to->info) };
		to->n = shstk_capture(to->pcs, DEPTH, &opts, &to->info);
	}
	KEEP();
}

static FRAME void probed(bool by_signal)
{
	innermost(by_signal);
	KEEP();
}

static FRAME void caller(bool by_signal)
{
	int room[10];

	__asm__ volatile("" ::"r"(room) : "memory");
	probed(by_signal);
	KEEP();
}

/* A second caller, in whose frame the return address of probed() is at the same place. */
static FRAME void other_caller(bool by_signal)
{
	int room[10];

	KEEP();
	__asm__ volatile("" ::"r"(room) : "memory");
	probed(by_signal);
	KEEP();
}

static FRAME void outer(struct trace *trace, bool by_signal)
{
	to = trace;
	caller(by_signal);
	KEEP();
}

static FRAME void other_outer(struct trace *trace, bool by_signal)
{
	to = trace;
	other_caller(by_signal);
	KEEP();
}

/* Nothing tells that it calls caller(), so that the caller of probed() is not known. */
static FRAME void pointer_outer(struct trace *trace, int n, bool by_signal)
{
	void (*volatile call)(bool) = caller;

	for (volatile int i = 0; i < n; i++) {
		to = &trace[i];
		call(by_signal);
	}
}

static FRAME void between(int n);

static void *volatile trampoline;

/* Makes the stack look as if its return were probed: the kernel probes 64 on a stack at most. */
static FRAME void again(int n)
{
	void *volatile *slot = (void *volatile *)__builtin_frame_address(0) + 1;
	void *ret = *slot;

	*slot = trampoline;
	if (n)
		between(n - 1);
	else
		innermost(false);
	*slot = ret;
	KEEP();
}

static FRAME void between(int n)
{
	int room[10];

	__asm__ volatile("" ::"r"(room) : "memory");
	again(n);
	KEEP();
}

static FRAME void outermost(struct trace *first, struct trace *second, bool by_signal)
{
	outer(first, by_signal);
	other_outer(second, by_signal);
	KEEP();
}

/* Finds the offset in the program's file of the address in @arg, and stores it there. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t *address = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = *address - info->dlpi_addr - p->p_vaddr;

		if (p->p_type != PT_LOAD || at >= p->p_filesz)
			continue;
		*address = p->p_offset + at;
		return 1;
	}
	return 0;
}

/* Probes the return of the function at @address. Returns a descriptor, or -1. */
static int probe_return(uintptr_t address)
{
	static char path[4096];
	struct perf_event_attr attr = { .size = sizeof(attr), .config = 1, .sample_period = 1 };
	FILE *in = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	bool known;

	if (!in)
		return -1;
	known = fscanf(in, "%u", &attr.type) == 1;
	fclose(in);
	if (!known || !dl_iterate_phdr(find_offset, &address) ||
	    readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return -1;
	attr.config1 = (uintptr_t)path;
	attr.config2 = address;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Tells whether @is has the frames of @want, from entry @first on. */
static bool same(const struct trace *is, const struct trace *want, int first)
{
	bool equal = is->n == want->n && is->info.end == want->info.end;

	for (int i = first; equal && i < is->n; i++)
		equal = is->pcs[i] == want->pcs[i];
	for (int i = 0; !equal && (i < is->n || i < want->n); i++)
		printf("# %2d: %#llx, wanted %#llx\n", i,
		       i < is->n ? (unsigned long long)is->pcs[i] : 0,
		       i < want->n ? (unsigned long long)want->pcs[i] : 0);
	return equal;
}

static int guesses(const struct trace *t)
{
	int n = 0;

	for (int i = 0; i < t->n; i++)
		n += !!(t->marks[i] & SHSTK_MARK_GUESS);
	return n;
}

#define TIMES 6

/* The stacks of the same calls, of which the first are without a probe. */
static struct trace traces[TIMES][2];

/* Stacks of pointer_outer() without a probe and with it, several of each in a row. */
static struct trace by_pointer[2][TIMES];

/* Returns whether the kernel probes. */
static FRAME bool capture_all(bool by_signal, uint32_t with, unsigned int without)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int fd = -1;

	sources = with;
	skip = without;
	sigaction(SIGUSR1, &act, NULL);
	/* There is one call only, so that the return address stays the same. */
	for (volatile int i = 0; i < TIMES; i++) {
		if (i == 1)
			fd = probe_return((uintptr_t)probed);
		outermost(&traces[i][0], &traces[i][1], by_signal);
	}
	close(fd);
	fd = -1;
	for (volatile int i = 0; i < 2; i++) {
		if (i == 1)
			fd = probe_return((uintptr_t)probed);
		pointer_outer(by_pointer[i], TIMES, by_signal);
	}
	close(fd);
	return fd >= 0;
}

FIXTURE(probe){};

FIXTURE_VARIANT(probe)
{
	bool by_signal;
	uint32_t sources;
	unsigned int skip;
};

FIXTURE_VARIANT_ADD(probe, memo){
	.sources = SHSTK_USE_WALK | SHSTK_USE_MEMO,
};

FIXTURE_VARIANT_ADD(probe, walk){
	.sources = SHSTK_USE_WALK,
};

FIXTURE_VARIANT_ADD(probe, context){
	.by_signal = true,
	.sources = SHSTK_USE_WALK | SHSTK_USE_MEMO,
};

FIXTURE_VARIANT_ADD(probe, one_left_out){
	.sources = SHSTK_USE_WALK,
	.skip = 1,
};

FIXTURE_SETUP(probe)
{
	if (!capture_all(variant->by_signal, variant->sources, variant->skip))
		SKIP(return, "no probes of returns: %s", strerror(errno));
}

FIXTURE_TEARDOWN(probe)
{
}

/* Several times, and through two callers: the memo has the stack of the last time. */
TEST_F(probe, stack_is_as_without)
{
	for (int i = 1; i < TIMES; i++) {
		EXPECT_TRUE(same(&traces[i][0], &traces[0][0], 0));
		EXPECT_TRUE(same(&traces[i][1], &traces[0][1], 0));
	}
}

/* The memo meets the frame that stands for the caller again. */
TEST_F(probe, one_frame_is_missing_each_time_if_nothing_tells_the_caller)
{
	const struct trace *without = &by_pointer[0][TIMES - 1];

	for (int i = 0; i < TIMES; i++) {
		const struct trace *t = &by_pointer[1][i];
		int differ = 0;

		ASSERT_EQ(t->n, without->n);
		EXPECT_EQ(t->info.end, without->info.end);
		for (int k = 0; k < t->n; k++)
			differ += t->pcs[k] != without->pcs[k];
		EXPECT_EQ(differ, 1);
	}
}

TEST_F(probe, only_the_caller_is_a_guess)
{
	for (int i = 1; i < TIMES; i++) {
		EXPECT_EQ(guesses(&traces[i][0]), guesses(&traces[0][0]) + 1);
		EXPECT_EQ(traces[i][0].info.guessed, traces[0][0].info.guessed + 1);
	}
}

/* Where the function is left out, nothing tells its caller: one frame is the trampoline. */
TEST(one_frame_is_missing_if_the_function_is_left_out)
{
	if (!capture_all(false, SHSTK_USE_WALK, 2))
		SKIP(return, "no probes of returns: %s", strerror(errno));
	for (int i = 1; i < TIMES; i++) {
		EXPECT_NE(traces[i][0].pcs[0], traces[0][0].pcs[0]);
		EXPECT_TRUE(same(&traces[i][0], &traces[0][0], 1));
	}
}

#define SEARCHES 64
#define PROBED 100

/* Returns the address of the kernel's trampoline, which is there once it has probed, or NULL. */
static void *find_trampoline(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[256];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "[uprobes]") && sscanf(line, "%lx", &start) == 1;
	if (maps)
		fclose(maps);
	return found ? (void *)start : NULL;
}

/*
 * A search for a caller takes long, and a made-up stack may hold any number of trampolines. Callers that
 * are found are guesses.
 */
TEST(no_more_than_64_callers_are_looked_for)
{
	static struct trace t;
	int found = 0;

#if !defined(__x86_64__) && !defined(__aarch64__)
	SKIP(return, "where return addresses are is not known");
#endif
	if (!capture_all(false, SHSTK_USE_WALK, 0))
		SKIP(return, "no probes of returns: %s", strerror(errno));
	trampoline = find_trampoline();
	ASSERT_NE(trampoline, NULL);
	to = &t;
	between(PROBED - 1);
	for (int i = 0; i < t.n; i++)
		found += t.pcs[i] - (uintptr_t)between < 256 && t.marks[i] & SHSTK_MARK_GUESS;
	EXPECT_GE(found, SEARCHES);
	/* A few of the others may be met by looking through the stack. */
	EXPECT_LE(found, SEARCHES + 8);
}

TEST_HARNESS_MAIN
