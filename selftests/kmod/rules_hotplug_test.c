// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_hotplug_test.c - tests that a CPU can go and come back while walks by unwind rules are made
 * on all CPUs
 *
 *	rules_hotplug_test ROUNDS SHSTK
 *
 * SHSTK is the command, which compiles this program's own table. The runner checks that the kernel
 * does not complain.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "number.h"
#include "sampler.h"

#define CPU "/sys/devices/system/cpu/cpu1/online"
#define WALKS "/sys/module/shstk_perf/rules/whole"
#define PERIOD 200000 /* ns */
#define CHILDREN 3
#define ENOUGH 20 /* walks in each state of the CPU */
#define PATIENCE 300000 /* milliseconds; used up only by a hang */

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned long i = 0;; i++)
			;
	}
	return pid;
}

static bool switch_cpu(const char *to)
{
	int fd = open(CPU, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, to, 1) == 1;

	if (fd >= 0)
		close(fd);
	return good;
}

static void ignore(void *arg, const struct sample *sample)
{
	(void)arg;
	(void)sample;
}

/* Waits until there are more walks. Returns whether there were. */
static bool await_walks(struct sampler *s)
{
	long before = read_number(WALKS);

	for (int i = 0; i < PATIENCE; i++) {
		for (int k = 0; k < CHILDREN; k++)
			sampler_drain(&s[k], ignore, NULL);
		if (read_number(WALKS) >= before + ENOUGH)
			return true;
		usleep(1000);
	}
	return false;
}

int main(int argc, char **argv)
{
	struct sampler s[CHILDREN];
	pid_t pid[CHILDREN];
	char command[512];
	bool good = true;

	if (argc < 3) {
		fprintf(stderr, "usage: %s ROUNDS SHSTK\n", argv[0]);
		return KSFT_FAIL;
	}
	ksft_print_header();
	if (access(WALKS, R_OK))
		ksft_exit_skip("shstk_perf.ko is not loaded\n");
	if (access(CPU, W_OK))
		ksft_exit_skip("no CPU can be taken away: %s\n", strerror(errno));
	ksft_set_plan(1);
	snprintf(command, sizeof(command), "%s rules load -q --vdso /proc/$PPID/exe", argv[2]);
	if (system(command))
		ksft_exit_fail_msg("%s: failed\n", command);
	fflush(NULL);
	for (int i = 0; i < CHILDREN; i++) {
		pid[i] = start();
		if (sampler_open(&s[i], pid[i], PERIOD, false))
			ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	}
	for (int i = 0; i < atoi(argv[1]) && good; i++)
		good = switch_cpu("0") && await_walks(s) && switch_cpu("1") && await_walks(s);
	ksft_test_result(good, "walks go on while a CPU goes and when it has come back\n");
	for (int i = 0; i < CHILDREN; i++) {
		sampler_close(&s[i]);
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	ksft_finished();
}
