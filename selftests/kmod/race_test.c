// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * race_test.c - tests every call of the modules against every way for a task to go away or change
 * meanwhile
 *
 *	race_test MILLISECONDS	for each kind of crowd, by the guest's clock
 *
 * Two processes of a kind do what crowd.h says. Meanwhile all tasks are sampled at the highest
 * rate, with immediate and deferred callchains, and each ioctl is aimed at the processes. An answer
 * is right if it is documented, and a trace may have only user addresses. The runner checks that
 * the kernel stays well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answer.h"
#include "crowd.h"
#include "kselftest.h"
#include "need.h"
#include "sampler.h"

#define CALLS 3 /* status, map and trace */
#define THREADS 8
#define ENTRIES 64
#define PERIOD_NS 100000
#define PATIENCE 300 /* seconds; used up only by a hang */

static int dev;

struct tally {
	unsigned long calls[CALLS], answered[CALLS], samples, traces;
	long odd; /* an answer that is not documented */
	uint64_t odd_entry; /* an entry that is no user address */
};

static void check_answer(struct tally *t, int call, long ret)
{
	t->calls[call]++;
	if (!ret)
		t->answered[call]++;
	else if (!may_be_refused(ret))
		t->odd = ret;
}

static long call(unsigned long cmd, void *arg)
{
	return ioctl(dev, cmd, arg) ? -errno : 0;
}

static void check_traces(struct tally *t, const struct shstk_ioc_trace *arg,
			 const struct shstk_ioc_thread *thread, const uint64_t *entry)
{
	for (unsigned int i = 0; i < arg->nr_threads && i < THREADS; i++) {
		if (thread[i].error) {
			check_answer(t, 2, thread[i].error);
			t->calls[2]--;
			continue;
		}
		t->traces++;
		for (unsigned int j = 0; j < thread[i].nr && j < ENTRIES; j++)
			if (entry[i * ENTRIES + j] < 4096 || entry[i * ENTRIES + j] >> 48)
				t->odd_entry = entry[i * ENTRIES + j];
	}
}

static void ask(struct tally *t, int slot)
{
	static struct shstk_ioc_thread thread[THREADS];
	static uint64_t entry[THREADS * ENTRIES];
	pid_t pid = crowd->victim[slot];
	int fd = pid > 0 ? syscall(SYS_pidfd_open, pid, 0) : -1;
	struct shstk_ioc_status status = { .pidfd = fd };
	struct shstk_ioc_map map = { .pidfd = fd, .addr = crowd->ssp[slot] };
	struct shstk_ioc_trace trace = {
		.pidfd = fd,
		.max_entries = ENTRIES,
		.max_threads = THREADS,
		.threads = (uintptr_t)thread,
		.entries = (uintptr_t)entry,
	};
	long ret;

	if (fd < 0)
		return;
	check_answer(t, 0, call(SHSTK_IOC_STATUS, &status));
	check_answer(t, 1, call(SHSTK_IOC_MAP, &map));
	ret = call(SHSTK_IOC_TRACE, &trace);
	check_answer(t, 2, ret);
	if (!ret)
		check_traces(t, &trace, thread, entry);
	close(fd);
}

static void take(void *arg, const struct sample *s)
{
	(void)s;
	++*(unsigned long *)arg;
}

/* Returns whether a kind of crowd did something, and was sampled and asked meanwhile. */
static bool is_raced(enum crowd_kind kind, const struct tally *t)
{
	return crowd->done[kind] && t->samples && t->calls[0] && t->calls[1] && t->calls[2];
}

static void race(enum crowd_kind kind, double seconds)
{
	struct sampler now = {}, later = {};
	struct tally t = {};
	pid_t pid[2];
	double end;
	bool ok;

	crowd->done[kind] = 0;
	if (sampler_open(&now, -1, PERIOD_NS, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	/* Not every kernel has deferred callchains. */
	sampler_open(&later, -1, PERIOD_NS, true);
	for (int i = 0; i < 2; i++)
		pid[i] = crowd_start(kind, i);
	end = crowd_now() + seconds;
	do {
		for (int i = 0; i < 20; i++) {
			ask(&t, i % 2);
			ss_syscall(__NR_sched_yield, 0, 0, 0, 0, 0);
		}
		sampler_drain(&now, take, &t.samples);
		sampler_drain(&later, take, &t.samples);
	} while (crowd_now() < end || (crowd_now() < end + PATIENCE && !is_raced(kind, &t)));
	for (int i = 0; i < 2; i++)
		crowd_stop(pid[i]);
	sampler_close(&now);
	sampler_close(&later);

	ok = is_raced(kind, &t) && !t.odd && !t.odd_entry;
	ksft_test_result(
		ok,
		"%s: %lu times, %lu samples, status %lu of %lu, map %lu of %lu, trace %lu of %lu, %lu stacks\n",
		crowd_names[kind], crowd->done[kind], t.samples, t.answered[0], t.calls[0],
		t.answered[1], t.calls[1], t.answered[2], t.calls[2], t.traces);
	if (t.odd)
		ksft_print_msg("an answer was %ld\n", t.odd);
	if (t.odd_entry)
		ksft_print_msg("an entry was %#lx\n", (long)t.odd_entry);
}

int main(int argc, char **argv)
{
	crowd_main(argc, argv);
	if (argc != 2) {
		fprintf(stderr, "usage: %s MILLISECONDS\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	dev = need_device();
	crowd_init();

	ksft_print_header();
	ksft_set_plan(CROWD_KINDS);
	for (int kind = 0; kind < CROWD_KINDS; kind++)
		race(kind, atol(argv[1]) / 1e3);
	ksft_finished();
}
