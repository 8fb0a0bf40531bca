// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * device_fuzz.c - fuzzes /dev/shstk, the generic prctls and map_shadow_stack()
 *
 *	device_fuzz SECONDS [SEED]	SECONDS by the guest's clock
 *
 * Meanwhile processes of all kinds of crowd.h live and die, among them one that makes random
 * control calls, and everything is sampled. Most arguments are almost right, so that calls get far.
 * Structures and buffers end at pages that are not mapped: writing beyond their end gives EFAULT at
 * worst. The test also notices what is written beyond the length of a trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crowd.h"
#include "kselftest.h"
#include "need.h"
#include "sampler.h"

#define ROOM (256 * 1024) /* bytes of a buffer */
#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL
#define PERIOD_NS 500000
#define PATIENCE 300 /* seconds; used up only by a failure */

static int dev, other_fd, opened = -1;
static uint64_t rng;
static char *arg_end, *threads_end, *entries_end;
static char *read_only;

static unsigned long calls, answered, odd_answer;
static unsigned long count_by_errno[134];
static char complaint[128];

static unsigned long rnd(unsigned long below)
{
	return crowd_random(&rng) % below;
}

/* Returns memory behind which nothing is mapped. */
static char *room(void)
{
	char *p = mmap(NULL, ROOM + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	if (p == MAP_FAILED || mprotect(p + ROOM, 65536, PROT_NONE))
		exit(1);
	return p + ROOM;
}

static uint64_t wild(void)
{
	static const uint64_t values[] = {
		0,
		1,
		8,
		4096,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		1ULL << 47,
		(1ULL << 47) - 8,
		1ULL << 48,
		1ULL << 63,
		-1ULL,
		-8ULL,
		0xffff800000000000ULL,
		0xffffffff81000000ULL,
	};

	return rnd(2) ? values[rnd(sizeof(values) / sizeof(*values))] :
			crowd_random(&rng) >> rnd(64);
}

static int some_pidfd(void)
{
	int slot = rnd(CROWD_SLOTS);

	switch (rnd(10)) {
	case 0:
		return -1;
	case 1:
		return other_fd;
	case 2:
		return wild();
	case 3:
		return opened = syscall(SYS_pidfd_open, 1 + rnd(200), 0);
	default:
		return opened = syscall(SYS_pidfd_open, crowd->victim[slot], 0);
	}
}

static uint32_t some_tid(void)
{
	switch (rnd(6)) {
	case 0:
		return getpid();
	case 1:
		return crowd->victim[rnd(CROWD_SLOTS)] + rnd(3);
	case 2:
		return wild();
	default:
		return 0;
	}
}

static uint64_t some_pointer(char *end, uint64_t bytes)
{
	if (bytes > ROOM)
		bytes = ROOM;
	switch (rnd(16)) {
	case 0:
		return wild();
	case 1:
		return (uintptr_t)read_only;
	case 2:
		return (uintptr_t)end - bytes + rnd(64);
	default:
		return (uintptr_t)end - bytes;
	}
}

static unsigned int some_number(unsigned int max)
{
	return rnd(8) ? 1 + rnd(rnd(2) ? 8 : max) : wild();
}

/* Fills the argument of the ioctl number @nr. Returns the size that it should have. */
static unsigned int fill(unsigned int nr, void *at)
{
	struct shstk_ioc_status *status = at;
	struct shstk_ioc_trace *trace = at;
	struct shstk_ioc_map *map = at;

	memset(at, 0, 64);
	switch (nr) {
	case 0:
		return sizeof(struct shstk_ioc_info);
	case 1:
		status->pidfd = some_pidfd();
		status->tid = some_tid();
		return sizeof(*status);
	case 2:
		map->pidfd = some_pidfd();
		map->pad = rnd(30) ? 0 : wild();
		map->addr = rnd(3) ? crowd->ssp[rnd(CROWD_SLOTS)] : wild();
		return sizeof(*map);
	case 3:
		trace->pidfd = some_pidfd();
		trace->tid = some_tid();
		trace->flags = rnd(30) ? 0 : wild();
		trace->max_entries = some_number(SHSTK_MAX_ENTRIES);
		trace->max_threads = some_number(8);
		trace->threads = some_pointer(threads_end,
					      trace->max_threads * sizeof(struct shstk_ioc_thread));
		trace->entries = some_pointer(entries_end, (uint64_t)trace->max_threads *
								   trace->max_entries * 8);
		return sizeof(*trace);
	}
	for (int i = 0; i < 8; i++)
		((uint64_t *)at)[i] = wild();
	return rnd(64);
}

/* Checks that a trace fills exactly what it reports, with user addresses. */
static void check_trace(const struct shstk_ioc_trace *t)
{
	const struct shstk_ioc_thread *thread = (void *)t->threads;
	unsigned int nr = t->nr_threads < t->max_threads ? t->nr_threads : t->max_threads;

	if ((char *)thread + t->max_threads * sizeof(*thread) != threads_end ||
	    t->entries + (uint64_t)t->max_threads * t->max_entries * 8 != (uintptr_t)entries_end)
		return;
	for (unsigned int i = 0; i < nr; i++) {
		const uint64_t *entry = (uint64_t *)t->entries + (uint64_t)i * t->max_entries;
		unsigned int n = thread[i].error ? 0 : thread[i].nr, j;

		if (n > t->max_entries || thread[i].error > 0 || (thread[i].error && thread[i].nr))
			snprintf(complaint, sizeof(complaint),
				 "thread %u: error %d, %u entries of %u", i, thread[i].error, n,
				 t->max_entries);
		for (j = 0; j < n && j < t->max_entries; j++)
			if (entry[j] < 4096 || entry[j] >> 48)
				snprintf(complaint, sizeof(complaint), "entry %u is %#lx", j,
					 (long)entry[j]);
		for (; j < t->max_entries && j < n + 16; j++)
			if (entry[j] != UNTOUCHED)
				snprintf(complaint, sizeof(complaint), "written beyond %u entries",
					 n);
	}
}

static bool documented(long ret)
{
	switch (ret) {
	case 0:
	case -EINVAL:
	case -ENOTTY:
	case -EFAULT:
	case -E2BIG:
	case -EBADF:
	case -ESRCH:
	case -EPERM:
	case -ENODATA:
	case -ENOENT:
	case -EAGAIN:
	case -EBUSY:
	case -ENOMEM:
		return true;
	}
	return false;
}

static void one_call(void)
{
	static const unsigned int dirs[] = {
		_IOC_READ,
		_IOC_READ | _IOC_WRITE,
		_IOC_READ | _IOC_WRITE,
		_IOC_READ | _IOC_WRITE,
	};
	unsigned int nr = rnd(20) ? rnd(4) : rnd(256), size, dir;
	union {
		struct shstk_ioc_trace trace;
		struct shstk_ioc_status status;
		char bytes[512];
	} arg = { .bytes = { 0 } };
	uint64_t magic = rnd(100) ? SHSTK_IOC_MAGIC : rnd(256);
	bool plain = true;
	char *at;
	long ret;

	size = fill(nr, &arg);
	dir = nr < 4 ? dirs[nr] : rnd(4);
	if (!rnd(16)) {
		size = rnd(2) ? size + 8 * rnd(4) : rnd(256);
		plain = false;
	}
	if (!rnd(50)) {
		dir = rnd(4);
		plain = false;
	}
	at = arg_end - size;
	memcpy(at, &arg, size);
	if (!rnd(30)) {
		at = rnd(2) ? at + rnd(32) : (char *)wild();
		plain = false;
	}
	if (nr == 3) {
		uint64_t bytes = arg.trace.max_threads * 8ULL * arg.trace.max_entries;

		bytes = bytes < ROOM ? bytes : ROOM;
		memset(entries_end - bytes, UNTOUCHED & 0xff, bytes);
	}
	ret = ioctl(dev, _IOC(dir, magic, nr, size), at) ? -errno : 0;
	calls++;
	answered += !ret;
	if (-ret < (long)(sizeof(count_by_errno) / sizeof(*count_by_errno)))
		count_by_errno[-ret]++;
	if (!documented(ret))
		odd_answer = ret;
	if (!ret && plain && nr == 3 && magic == SHSTK_IOC_MAGIC)
		check_trace((void *)at);
	if (opened >= 0)
		close(opened);
	opened = -1;
}

static void take(void *arg, const struct sample *s)
{
	(void)s;
	++*(unsigned long *)arg;
}

/* Returns whether there is something of all that has to happen meanwhile. */
static bool is_fuzzed(unsigned long samples)
{
	return answered && samples && crowd->done[CROWD_CONTROL];
}

/* Makes calls for so many seconds, and longer until all has happened that has to. */
static void fuzz(double seconds)
{
	pid_t pid[CROWD_SLOTS];
	struct sampler sampler;
	unsigned long samples = 0, done = 0;
	double end;

	if (sampler_open(&sampler, -1, PERIOD_NS, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	for (int i = 0; i < CROWD_SLOTS; i++)
		pid[i] = crowd_start(i < 2 ? CROWD_CONTROL : rnd(CROWD_KINDS), i);
	end = crowd_now() + seconds;
	while (crowd_now() < end || (crowd_now() < end + PATIENCE && !is_fuzzed(samples))) {
		for (int i = 0; i < 200; i++) {
			one_call();
			if (!rnd(8))
				ss_syscall(__NR_sched_yield, 0, 0, 0, 0, 0);
		}
		sampler_drain(&sampler, take, &samples);
		if (!rnd(4)) {
			int slot = 1 + rnd(CROWD_SLOTS - 1);

			crowd_stop(pid[slot]);
			pid[slot] = crowd_start(rnd(CROWD_KINDS), slot);
		}
	}
	for (int i = 0; i < CROWD_SLOTS; i++)
		crowd_stop(pid[i]);
	sampler_close(&sampler);
	for (int i = 0; i < CROWD_KINDS; i++)
		done += crowd->done[i];

	ksft_print_msg(
		"%lu calls, %lu answered, %lu samples, %lu acts of other processes, %lu of them random control calls\n",
		calls, answered, samples, done, 60 * crowd->done[CROWD_CONTROL]);
	for (size_t i = 1; i < sizeof(count_by_errno) / sizeof(*count_by_errno); i++)
		if (count_by_errno[i])
			ksft_print_msg("  %s: %lu\n", strerror(i), count_by_errno[i]);
	ksft_test_result(answered && !odd_answer, "every answer is a documented one%s\n",
			 odd_answer ? ": no" : "");
	if (odd_answer)
		ksft_print_msg("one was %ld\n", odd_answer);
	ksft_test_result(!*complaint, "traces hold what they say and no more\n");
	if (*complaint)
		ksft_print_msg("%s\n", complaint);
	ksft_test_result(samples && crowd->done[CROWD_CONTROL],
			 "samples and control calls went on meanwhile\n");
}

int main(int argc, char **argv)
{
	struct shstk_ioc_info info;
	struct shstk_ioc_status status = { .pidfd = -1 };

	crowd_main(argc, argv);
	if (argc < 2) {
		fprintf(stderr, "usage: %s SECONDS [SEED]\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	dev = need_device();
	other_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	crowd_init();
	arg_end = room();
	threads_end = room();
	entries_end = room();
	read_only = mmap(NULL, ROOM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rng = argc > 2 ? strtoul(argv[2], NULL, 0) : (uint64_t)(crowd_now() * 1e9);
	rng |= 1;

	ksft_print_header();
	ksft_set_plan(4);
	ksft_print_msg("seed %#lx\n", (long)rng);
	fuzz(atof(argv[1]));
	ksft_test_result(!ioctl(dev, SHSTK_IOC_INFO, &info) && info.abi == SHSTK_ABI_VERSION &&
				 !ioctl(dev, SHSTK_IOC_STATUS, &status) && !status.enabled,
			 "the device works as before\n");
	ksft_finished();
}
