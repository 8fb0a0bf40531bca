/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * busy.h - busy programs of which callchains are taken by unwind rules
 */
#ifndef KMOD_BUSY_H
#define KMOD_BUSY_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "number.h"
#include "sampler.h"

#define BUSY_PERIOD 100000 /* ns */
#define BUSY_SERVED "/sys/module/shstk_perf/chains/served_rules"
#define BUSY_PATIENCE 300000 /* tries of a millisecond each, then the test gives up */

/**
 * struct busy - two programs, one of which makes system calls
 * @pid: the two processes.
 * @sampler: the sampler of each.
 */
struct busy {
	pid_t pid[2];
	struct sampler sampler[2];
};

static inline void busy_work(bool calls)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (calls)
			getppid();
}

/* Loads this program's table, which the command @shstk compiles. Returns whether it is loaded. */
static inline bool busy_load_table(const char *shstk)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules load -q /proc/$PPID/exe", shstk);
	return !system(command);
}

/* Starts the two programs and samples them. Returns whether that worked. */
static inline bool busy_begin(struct busy *b)
{
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		b->pid[i] = fork();
		if (!b->pid[i])
			busy_work(i);
		if (sampler_open(&b->sampler[i], b->pid[i], BUSY_PERIOD, false))
			return false;
	}
	return true;
}

static inline void busy_ignore(void *arg, const struct sample *s)
{
	(void)arg;
	(void)s;
}

/* Waits until more chains were served. Returns whether there were any. */
static inline bool busy_await(struct busy *b)
{
	long before = read_number(BUSY_SERVED);

	for (int i = 0; i < BUSY_PATIENCE; i++) {
		for (int j = 0; j < 2; j++)
			sampler_drain(&b->sampler[j], busy_ignore, NULL);
		if (read_number(BUSY_SERVED) > before)
			return true;
		usleep(1000);
	}
	return false;
}

static inline void busy_end(struct busy *b)
{
	for (int i = 0; i < 2; i++) {
		sampler_close(&b->sampler[i]);
		kill(b->pid[i], SIGKILL);
		waitpid(b->pid[i], NULL, 0);
	}
}

#endif /* KMOD_BUSY_H */
