// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replay.c - tests what a recording of days does to the memory of the recorder: samples with copies
 * of stacks, of processes that come and go and reuse numbers, without waiting for them.
 *
 *   replay SAMPLES
 *
 * The rings of perf events (tools/perf/rings.h) are replaced when this is linked: the records are
 * made here. The rest is the recorder's. Prints KTAP.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <malloc.h>
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
#include "tools/record/perf/perf_recording.h"
#include "tools/shstk.h"

#include "fake_rings.h"
#define EXECUTED "replay"
#include "made_records.h"

#define FIRST_PID 100000000 /* no process has this number */
#define PIDS 64
#define OF_ONE 100 /* samples of each process */
#define OF_PROFILE 10000 /* samples of each profile */
#define PASSES (100ull * STEP) /* ns from one sample to the next: the ended are soon forgotten */
#define MAX_GROWTH 128 /* KiB that are allocated */
#define MAX_HOLES 4096 /* KiB of memory that may lie between them more than before */

static uint64_t wanted; /* number of samples */

static int sample(int pid, record_fn fn, void *arg)
{
	put(STEP);
	put(0);
	put_copy(sizeof(stack), stack_size, 0);
	the_time += PASSES;
	samples++;
	return hand_out(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, pid, pid, fn, arg);
}

/* Lets a process live: every third one executes a program. */
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

/* ---- The test ---- */

/* Returns the KiB of private memory of this process. */
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

/* Memory at one time, in KiB: what is allocated, and what the allocator has for that. */
struct used {
	long allocated;
	long resident;
};

static struct used used(void)
{
	const struct mallinfo2 m = mallinfo2();

	return (struct used){ (m.uordblks + m.hblkhd) / 1024, memory() };
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

/* Returns true if the profile has just one stack, from the first frame to the innermost one. */
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

/*
 * Writes one profile after another. Returns how much memory they take in the end, writes to
 * @first how much after a fifth of all samples, and counts in @wrong the profiles that are wrong.
 */
static struct used record(struct perf_recording *d, struct names *n, struct used *first,
			  unsigned int *wrong)
{
	while (samples < wanted) {
		struct names old = *n;

		if (perf_recording_take(d))
			return (struct used){ -1, -1 };
		*wrong += !is_right(n->profile);
		if (make_profile(n) < 0)
			return (struct used){ -1, -1 };
		perf_recording_renew(d, n->symbols, n->profile);
		drop_profile(&old);
		if (!first->resident && samples >= wanted / 5)
			*first = used();
	}
	return used();
}

int main(int argc, char **argv)
{
	pid_t pid = getpid();
	struct perf_record_opts opts = {
		.rings = { .copy = sizeof(stack), .pids = &pid, .nr_pids = 1, .max_stack = 127 },
		.depth = 128,
		.tree = true,
	};
	struct perf_recording *d;
	unsigned int wrong = 0;
	struct used first = { 0 }, last;
	bool grows;
	struct names n;
	struct reason why;

	wanted = argc > 1 ? strtoull(argv[1], NULL, 0) : 300000;
	puts("KTAP version 1\n1..2");
	call(3);
	the_time = now_ns(CLOCK_MONOTONIC);
	if (make_profile(&n) < 0 || perf_recording_create(&opts, n.symbols, n.profile, &d, &why)) {
		printf("Bail out! %s\n", why.text);
		return 1;
	}
	last = record(d, &n, &first, &wrong);
	grows = last.resident <= 0 || last.allocated > first.allocated + MAX_GROWTH ||
		last.resident > first.resident + MAX_HOLES;
	printf("# %llu samples; %ld of %ld KiB are allocated after a fifth of them, %ld of %ld at the end\n",
	       (unsigned long long)samples, first.allocated, first.resident, last.allocated,
	       last.resident);
	printf("%s 1 each profile has one stack\n", wrong ? "not ok" : "ok");
	printf("%s 2 memory does not grow\n", grows ? "not ok" : "ok");
	perf_recording_destroy(d);
	drop_profile(&n);
	return wrong || grows;
}
