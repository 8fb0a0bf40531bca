// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replay.c - what a recording of days does to the memory of the recorder: samples with copies
 * of stacks, of processes that come and go with numbers used again, without waiting for them.
 *
 *   replay SAMPLES
 *
 * The rings of perf events (tools/perf/rings.h) are replaced when this is linked: what
 * they hand out is made here. The rest is the recorder's. Prints KTAP.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "tools/perf/regs.h"
#include "tools/proc/maps.h"
#include "tools/record/perf.h"
#include "tools/shstk.h"

#include "fake_rings.h"

#define FIRST_PID 100000000 /* no process has such a number */
#define PIDS 64
#define OF_ONE 100 /* samples of each process */
#define OF_PROFILE 10000 /* samples of each profile */
#define MAX_GROWTH 256 /* KiB */
#define STEP 1000000 /* ns from one sample to the next */

static uint64_t the_time, samples, wanted;

/* Room for a record, which begins as the kernel's do. */
static struct {
	struct perf_event_header head;
	uint64_t body[2048];
	size_t words;
} r;

static void put(uint64_t word)
{
	r.body[r.words++] = word;
}

static void put_pair(uint32_t first, uint32_t second)
{
	put(first | (uint64_t)second << 32);
}

static void put_text(const char *text)
{
	size_t size = strlen(text) + 1;

	r.body[r.words + size / 8] = 0;
	memcpy(r.body + r.words, text, size);
	r.words += (size + 7) / 8;
}

static int hand_out(int type, int misc, int pid, int (*fn)(void *, const struct perf_record *),
		    void *arg)
{
	struct perf_record record = {
		.type = type,
		.misc = misc,
		.which = PERF_MAIN,
		.pid = pid,
		.tid = pid,
		.time = the_time,
		.body = r.body,
		.size = r.words * 8,
		.raw = &r.head,
	};

	r.head = (struct perf_event_header){ type, misc, sizeof(r.head) + r.words * 8 };
	r.words = 0;
	return fn(arg, &record);
}

/* ---- a stack of this process ---- */

static ucontext_t context;
static uint8_t stack[4096] __attribute__((aligned(8)));
static size_t stack_size;

static uint64_t stack_pointer(void)
{
#ifdef __aarch64__
	return context.uc_mcontext.sp;
#else
	return context.uc_mcontext.gregs[REG_RSP];
#endif
}

__attribute__((noinline)) void innermost(void)
{
	struct iovec here = { stack, sizeof(stack) }, there = { NULL, sizeof(stack) };
	ssize_t n;

	getcontext(&context);
	there.iov_base = (void *)(uintptr_t)stack_pointer();
	n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	stack_size = n > 0 ? n & ~7 : 0;
}

__attribute__((noinline)) int call(int depth)
{
	int ret = 0;

	if (depth)
		ret = call(depth - 1);
	else
		innermost();
	__asm__ volatile("" : "+r"(ret));
	return ret + 1;
}

static void put_regs(void)
{
	put(PERF_SAMPLE_REGS_ABI_64);
#ifdef __aarch64__
	for (int i = 0; i < 31; i++)
		put(context.uc_mcontext.regs[i]);
	put(context.uc_mcontext.sp);
	put(context.uc_mcontext.pc);
#else
	static const int order[] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_RIP, REG_R8,	 REG_R9,  REG_R10,
				     REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		put(context.uc_mcontext.gregs[order[i]]);
#endif
}

/* ---- what happens ---- */

typedef int (*record_fn)(void *arg, const struct perf_record *record);

static int sample(int pid, record_fn fn, void *arg)
{
	put(STEP);
	put(0);
	put_regs();
	put(sizeof(stack));
	memcpy(r.body + r.words, stack, sizeof(stack));
	r.words += sizeof(stack) / 8;
	put(stack_size);
	the_time += STEP;
	samples++;
	return hand_out(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, pid, fn, arg);
}

static int map(int pid, const struct mapping *m, record_fn fn, void *arg)
{
	struct stat st = { 0 };

	if (stat(m->path, &st))
		memset(&st, 0, sizeof(st));
	put_pair(pid, pid);
	put(m->start);
	put(m->end - m->start);
	put(m->offset);
	put_pair(major(st.st_dev), minor(st.st_dev));
	put(st.st_ino);
	put(0);
	put_pair(5, 2);
	put_text(m->path);
	return hand_out(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, pid, fn, arg);
}

/* The process executes this program. */
static int execute(int pid, record_fn fn, void *arg)
{
	struct mapping m;
	struct maps maps;
	int ret;

	put_pair(pid, pid);
	put_text("replay");
	ret = hand_out(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, pid, fn, arg);
	if (maps_open(getpid(), "maps", &maps))
		return -1;
	while (!ret && maps_next(&maps, &m))
		if (m.exec && *m.path == '/')
			ret = map(pid, &m, fn, arg);
	maps_close(&maps);
	return ret;
}

static int begin_or_end(int type, int pid, int parent, record_fn fn, void *arg)
{
	put_pair(pid, parent);
	put_pair(pid, parent);
	put(the_time);
	return hand_out(type, 0, pid == parent ? pid : parent, fn, arg);
}

/* One of three processes executes a program. */
static int live(unsigned int number, record_fn fn, void *arg)
{
	int pid = FIRST_PID + number % PIDS;
	int ret = begin_or_end(PERF_RECORD_FORK, pid, getpid(), fn, arg);

	if (!ret && number % 3 == 0)
		ret = execute(pid, fn, arg);
	for (int i = 0; i < OF_ONE && !ret; i++)
		ret = sample(pid, fn, arg);
	return ret ? ret : begin_or_end(PERF_RECORD_EXIT, pid, pid, fn, arg);
}

int __wrap_perf_rings_read(struct perf_rings *rings, bool all, record_fn fn, void *arg)
{
	static unsigned int number;
	int ret = 0;

	(void)rings;
	if (all)
		return 0;
	if (!number)
		ret = execute(getpid(), fn, arg);
	for (int i = 0; i < OF_PROFILE / OF_ONE && !ret; i++)
		ret = live(number++, fn, arg);
	return ret;
}

int __wrap_perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret,
			   struct reason *why)
{
	(void)opts, (void)why;
	*ret = &fake_rings;
	return 0;
}

/* ---- the test ---- */

/* KiB of memory of its own. */
static long memory(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "RssAnon: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

struct names {
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
};

static int make_profile(struct names *n)
{
	int ret = shstk_symbols_create(NULL, &n->symbols);

	if (!ret)
		ret = shstk_profile_create(n->symbols, &n->profile);
	if (!ret)
		ret = shstk_profile_add_type(n->profile, "samples", "count");
	return ret < 0 ? ret : shstk_profile_add_type(n->profile, "cpu", "nanoseconds");
}

static void drop_profile(struct names *n)
{
	shstk_profile_destroy(n->profile);
	shstk_symbols_destroy(n->symbols);
}

/* Is it one stack, from the first frame to the innermost? */
static bool is_right(struct shstk_profile *profile)
{
	const char *want = "call;call;call;call;innermost 10000000000\n";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool right;

	shstk_profile_print(profile, out, "folded", NULL);
	fclose(out);
	right = strstr(text, want) && strchr(text, '\n') == text + size - 1 &&
		!strncmp(text, "replay;_start;", 14);
	if (!right)
		printf("# %s", text);
	free(text);
	return right;
}

/* One profile after another; returns how much memory they take in the end, and were wrong. */
static long record(struct perf_drain *d, struct names *n, long *first, unsigned int *wrong)
{
	while (samples < wanted) {
		struct names old = *n;

		if (perf_drain_take(d))
			return -1;
		*wrong += !is_right(n->profile);
		if (make_profile(n) < 0)
			return -1;
		perf_drain_renew(d, n->symbols, n->profile);
		drop_profile(&old);
		if (!*first && samples >= wanted / 5)
			*first = memory();
	}
	return memory();
}

int main(int argc, char **argv)
{
	pid_t pid = getpid();
	struct perf_record_opts opts = {
		.rings = { .copy = sizeof(stack), .pids = &pid, .nr_pids = 1, .max_stack = 127 },
		.depth = 128,
		.tree = true,
	};
	struct perf_drain *d;
	unsigned int wrong = 0;
	long first = 0, last;
	struct names n;
	struct reason why;

	wanted = argc > 1 ? strtoull(argv[1], NULL, 0) : 300000;
	puts("KTAP version 1\n1..2");
	call(3);
	the_time = now_ns(CLOCK_MONOTONIC);
	if (make_profile(&n) < 0 || perf_drain_create(&opts, n.symbols, n.profile, &d, &why)) {
		printf("Bail out! %s\n", why.text);
		return 1;
	}
	last = record(d, &n, &first, &wrong);
	printf("# %llu samples; %ld KiB after a fifth of them, %ld KiB at the end\n",
	       (unsigned long long)samples, first, last);
	printf("%s 1 each profile has one stack\n", wrong ? "not ok" : "ok");
	printf("%s 2 memory does not grow\n",
	       last > 0 && last <= first + MAX_GROWTH ? "ok" : "not ok");
	perf_drain_destroy(d);
	drop_profile(&n);
	return wrong || last <= 0 || last > first + MAX_GROWTH;
}
