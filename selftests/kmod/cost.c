// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cost.c - measures how many instructions a user callchain costs per sample
 *
 *	cost
 *
 * This is not a test. It prints a table, in a guest whose clock counts instructions. Work of a
 * fixed length runs with a shadow stack and with frame pointers: first alone, then sampled with the
 * program counter only, then with callchains. Run it without shstk_perf.ko for the kernel's
 * frame-pointer walk, and with it for the shadow stack; compare the costs above those of the
 * program counter only.
 *
 * The unit depends on the guest: the time stamp counter on x86 (in Bochs it counts instructions),
 * nanoseconds on arm64 (QEMU -icount shift=1: two per instruction).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "arch.h"
#include "sampler.h"

#define noinline_ __attribute__((noinline, noclone))
#define PERIOD_NS 200000
#define ROUNDS 15

static unsigned int samples;
static unsigned long chain_entries;

static uint64_t ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec) / 2;
#endif
}

static struct result {
	uint64_t ticks;
} * result;

static noinline_ long work(int depth, long loops)
{
	long r;

	if (depth) {
		r = work(depth - 1, loops);
	} else {
		uint64_t begin = ticks();

		for (r = 0; r < loops; r++)
			asm volatile("" : "+r"(r));
		result->ticks = ticks() - begin;
	}
	asm volatile("" : "+r"(r));
	return r;
}

static void __attribute__((noreturn, noinline)) child(int go, int depth, long loops)
{
	char byte;

	if (read(go, &byte, 1) != 1 || ss_enable(SS_ENABLE))
		_exit(1);
	work(depth, loops);
	for (;;)
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

static void take(void *arg, const struct sample *s)
{
	(void)arg;
	samples++;
	chain_entries += s->nr;
}

enum mode { ALONE, PC_ONLY, CHAIN };

/* Measures the ticks that the work takes, and the samples taken in it. */
static uint64_t run(enum mode mode, int depth, long loops)
{
	struct sampler s = {};
	int go[2], status;
	pid_t pid;

	samples = 0;
	if (pipe(go))
		exit(1);
	pid = fork();
	if (!pid)
		child(go[0], depth, loops);
	if (mode != ALONE && sampler_open_type(&s, pid, PERIOD_NS, false, mode == CHAIN)) {
		fprintf(stderr, "perf_event_open: %s\n", strerror(errno));
		exit(1);
	}
	if (write(go[1], "", 1) != 1)
		exit(1);
	waitpid(pid, &status, 0);
	close(go[0]);
	close(go[1]);
	sampler_drain(&s, take, NULL);
	sampler_close(&s);
	if (status) {
		fprintf(stderr, "child: %#x\n", status);
		exit(1);
	}
	return result->ticks;
}

/*
 * Returns what a sample costs, by the least of all rounds. Instructions are counted, so anything
 * above the least is other work that fell into a round.
 */
static double cost(enum mode mode, int depth, long loops)
{
	double alone = 0, least = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double ticks = run(ALONE, depth, loops);

		if (!i || ticks < alone)
			alone = ticks;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double ticks = run(mode, depth, loops);

		ticks = samples ? (ticks - alone) / samples : 0;
		if (!i || ticks < least)
			least = ticks;
	}
	return least;
}

int main(int argc, char **argv)
{
	static const int depths[] = { 8, 32, 112 };
	long loops = argc > 1 ? atol(argv[1]) : 2000000;

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (result == MAP_FAILED)
		return 1;
	printf("# shstk_perf %sloaded, %ld loops, every %d ns\n",
	       access("/sys/module/shstk_perf", F_OK) ? "not " : "", loops, PERIOD_NS);
	printf("depth,pc_only,chain,above_pc_only,entries\n");
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		double pc = cost(PC_ONLY, depths[i], loops), chain;

		chain_entries = 0;
		chain = cost(CHAIN, depths[i], loops);
		printf("%d,%.0f,%.0f,%.0f,%lu\n", depths[i], pc, chain, chain - pc,
		       samples ? chain_entries / samples / ROUNDS : 0);
	}
	return 0;
}
