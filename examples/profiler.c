// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sampling profiler: a timer's signal captures the stack, and names are looked up at the end.
 *
 *   cc -O2 -o profiler profiler.c $(pkg-config --cflags --libs libshstk-symbolize libshstk)
 *   ./profiler
 *
 * It prints folded stacks, from which flame graphs are drawn: one stack in each line, the outermost
 * function first, and at the end the number of samples.
 */
#define _GNU_SOURCE
#include <shstk_symbolize.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define SAMPLES 1000
#define DEPTH 64

static uint64_t pcs[SAMPLES][DEPTH];
static uint8_t marks[SAMPLES][DEPTH];
static int depth[SAMPLES];
static volatile sig_atomic_t samples;
static volatile double result;

/*
 * Takes a sample, every 2 ms of CPU time. A signal handler may capture, but must not look up names.
 */
static void sample(int sig, siginfo_t *info, void *context)
{
	int i = samples;
	struct shstk_opts opts = { .size = sizeof(opts) };

	(void)sig, (void)info;
	if (i == SAMPLES)
		return;
	opts.marks = marks[i];
	depth[i] = shstk_capture_context(context, pcs[i], DEPTH, &opts, NULL);
	samples = i + 1;
}

__attribute__((noinline)) double divide(double x)
{
	for (int i = 0; i < 1000000; i++)
		x = 1 / (x + i);
	return x;
}

__attribute__((noinline)) double work(double x)
{
	return divide(x) + divide(x + 1);
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	struct shstk_symbolizer *names;
	struct shstk_name name;

	shstk_thread_init();
	sigaction(SIGPROF, &act, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	while (samples < 20)
		result = work(result);
	setitimer(ITIMER_PROF, &never, NULL);
	if (shstk_symbolizer_create(0, &names))
		return 1;
	for (int i = 0; i < samples; i++)
		for (int d = depth[i] - 1; d >= 0; d--) {
			shstk_symbolize(names, pcs[i][d], marks[i][d], &name, 1, sizeof(name));
			printf("%s%s", name.function, d ? ";" : " 1\n");
		}
	shstk_symbolizer_destroy(names);
	return 0;
}
