/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overhead.c - measures what sampling costs the sampled program.
 *
 *	overhead [-q] SHSTK	runs the work with and without "SHSTK record"
 *	overhead --work FILE	does the work and writes its CPU time in ns to FILE
 *
 * The work is always the same: arithmetic, 32 calls deep in 1024 functions. The program measures
 * its own CPU time, so that start-up, the recorder's work and other programs do not count. Runs
 * with and without recording alternate; the smallest time of each counts. Other programs still
 * push the work out of caches. So there are more runs until a second one of each kind takes as little
 * as the smallest, and if that does not come, a bar that is not reached is not said to be missed.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chain.h"

#define DEPTH 32
#define LEAVES 4000
#define LEAF_STEPS 40000
#define FREQUENCY "999"
#define MAX_RUNS 48
#define BAR 1.0 /* percent */
#define NOISE (BAR / 5) /* how far the second smallest time may lie above the smallest */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void leaf(struct chain *c)
{
	uint64_t *state = c->arg, x = *state;

	for (unsigned int i = 0; i < LEAF_STEPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	*state = x;
}

static int work(const char *path)
{
	uint64_t state = 1, start;
	struct chain c = {
		.fns = chain_fns_nofp1024,
		.mask = 1023,
		.leaf = leaf,
		.arg = &state,
	};
	FILE *f;

	start = cpu_ns();
	for (unsigned int i = 0; i < LEAVES; i++) {
		c.seed = i;
		chain_descend(&c, DEPTH);
	}
	start = cpu_ns() - start;
	f = fopen(path, "we");
	if (!f) {
		perror(path);
		return 1;
	}
	/* The state is written, so that the compiler can't leave the work out. */
	fprintf(f, "%llu %llx\n", (unsigned long long)start, (unsigned long long)state);
	return fclose(f) ? 1 : 0;
}

static uint64_t read_result(const char *path)
{
	unsigned long long ns = 0;
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	unlink(path);
	return ns;
}

/*
 * Runs the work once, recorded if @shstk is not NULL. Returns its CPU time in ns, or 0 on failure.
 */
static uint64_t run(const char *shstk, const char *self, const char *result, const char *profile)
{
	const char *recorded[] = { shstk, "record", "-F",     FREQUENCY, "-o", profile,
				   "--",  self,	    "--work", result,	 NULL };
	const char **argv = shstk ? recorded : recorded + 7;
	int status, quiet;
	pid_t pid;

	pid = fork();
	if (pid < 0) {
		perror("fork");
		return 0;
	}
	if (!pid) {
		quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (quiet >= 0)
			dup2(quiet, STDERR_FILENO);
		execv(argv[0], (char **)argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 0;
	return read_result(result);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percent(uint64_t more, uint64_t than)
{
	return 100 * ((double)more / (double)than - 1);
}

/* The CPU times of the work, the smallest first. */
struct times {
	uint64_t plain[MAX_RUNS], recorded[MAX_RUNS];
	unsigned int n;
};

static void add_times(struct times *t, uint64_t plain, uint64_t recorded)
{
	t->plain[t->n] = plain;
	t->recorded[t->n++] = recorded;
	qsort(t->plain, t->n, sizeof(plain), by_value);
	qsort(t->recorded, t->n, sizeof(recorded), by_value);
}

/* Tells whether the smallest times are no matter of luck. */
static bool is_clear(const struct times *t)
{
	return percent(t->plain[1], t->plain[0]) <= NOISE &&
	       percent(t->recorded[1], t->recorded[0]) <= NOISE;
}

static void print_times(const struct times *t)
{
	double overhead = percent(t->recorded[0], t->plain[0]);
	const char *missed = is_clear(t) ? "NOT MET" : "not known for noise";

	printf("\nrecord -F " FREQUENCY
	       ": CPU time of the sampled program, smallest of %u runs each\n",
	       t->n);
	printf("  without %.1f ms, with %.1f ms; bar: at most %g %%, measured %.2f %%, %s\n",
	       (double)t->plain[0] / 1e6, (double)t->recorded[0] / 1e6, BAR, overhead,
	       overhead <= BAR ? "met" : missed);
	printf("  noise: second smallest %.2f %% (without), %.2f %% (with) above that\n",
	       percent(t->plain[1], t->plain[0]), percent(t->recorded[1], t->recorded[0]));
}

/* Runs the work with and without recording, @least times or more often. */
static int compare(const char *shstk, const char *self, unsigned int least)
{
	struct times t = { .n = 0 };
	char result[256], profile[256];

	snprintf(result, sizeof(result), "%s.cpu", self);
	snprintf(profile, sizeof(profile), "%s.pb.gz", self);
	while (t.n < least || (t.n < MAX_RUNS && !is_clear(&t))) {
		uint64_t plain = run(NULL, self, result, profile);
		uint64_t recorded = run(shstk, self, result, profile);

		if (!plain || !recorded) {
			fprintf(stderr, "overhead: %s failed\n", plain ? shstk : self);
			return 1;
		}
		add_times(&t, plain, recorded);
	}
	if (access(profile, R_OK)) {
		perror(profile);
		return 1;
	}
	unlink(profile);
	print_times(&t);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--work"))
		return work(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "-q"))
		return compare(argv[2], argv[0], 4);
	if (argc == 2)
		return compare(argv[1], argv[0], 12);
	fprintf(stderr, "usage: overhead [-q] SHSTK | --work FILE\n");
	return 2;
}
