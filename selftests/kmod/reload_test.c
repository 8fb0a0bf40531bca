// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reload_test.c - load and unload modules under load
 *
 *   reload_test COUNT MICROSECONDS MODULE.ko...
 *
 * Meanwhile processes on shadow stacks run, are stormed by signals, execute
 * themselves, violate, and make random control calls; another opens /dev/shstk
 * whenever it is there and traces them; and all CPUs are sampled with that
 * period. The guest's runner fails the step on any kernel warning; here it is
 * tested that each load and unload works and that samples go on coming.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "crowd.h"
#include "kselftest.h"
#include "need.h"
#include "sampler.h"

static const enum crowd_kind kinds[] = {
	CROWD_SPIN, CROWD_SIGNALS, CROWD_CONTROL, CROWD_EXEC, CROWD_VIOLATE,
};

static struct {
	volatile unsigned long opened, traced;
} *asked;

/* With the module or without: any answer will do, a crash will not. */
static void __attribute__((noreturn)) ask_device(void)
{
	struct shstk_ioc_thread thread[4];
	uint64_t entry[4 * 64];

	for (unsigned int i = 0;; i++) {
		int slot = i % (sizeof(kinds) / sizeof(*kinds));
		int fd = syscall(SYS_pidfd_open, crowd->victim[slot], 0);
		int dev = open("/dev/shstk", O_RDWR | O_CLOEXEC);
		struct shstk_ioc_trace trace = {
			.pidfd = fd,
			.max_entries = 64,
			.max_threads = 4,
			.threads = (uintptr_t)thread,
			.entries = (uintptr_t)entry,
		};

		if (dev >= 0) {
			asked->opened++;
			asked->traced += !ioctl(dev, SHSTK_IOC_TRACE, &trace);
			close(dev);
		}
		if (fd >= 0)
			close(fd);
		usleep(500);
	}
}

static void count_sample(void *arg, const struct sample *sample)
{
	unsigned int *n = arg;

	*n += sample->nr > 0;
}

/* "shstk_perf" of "/t/shstk_perf.ko" */
static const char *module_name(const char *path)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s", strrchr(path, '/') ?
		 strrchr(path, '/') + 1 : path);
	name[strcspn(name, ".")] = 0;
	return name;
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* Busy is an answer: a program may be inside. */
static int unload(const char *path)
{
	int tries;

	for (tries = 0; tries < 100; tries++) {
		if (!syscall(SYS_delete_module, module_name(path), O_NONBLOCK))
			return 0;
		if (errno != EAGAIN && errno != EBUSY)
			break;
		usleep(10000);
	}
	return -errno;
}

int main(int argc, char **argv)
{
	enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
	unsigned int samples = 0;
	struct sampler sampler;
	pid_t pid[KINDS + 1];
	int count, done, ret = 0;
	double begin;

	crowd_main(argc, argv);
	if (argc < 4) {
		fprintf(stderr, "usage: %s COUNT MICROSECONDS MODULE.ko...\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	count = atoi(argv[1]);
	crowd_init();
	asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (asked == MAP_FAILED ||
	    sampler_open(&sampler, -1, atol(argv[2]) * 1000, false))
		ksft_exit_fail_msg("cannot sample: %s\n", strerror(errno));

	for (int i = 0; i < KINDS; i++)
		pid[i] = crowd_start(kinds[i], i);
	pid[KINDS] = fork();
	if (!pid[KINDS])
		ask_device();
	begin = crowd_now();

	ksft_print_header();
	ksft_set_plan(3);
	for (done = 0; done < count && !ret; done++) {
		for (int i = 3; i < argc && !ret; i++)
			ret = load(argv[i]);
		usleep(2000);
		sampler_drain(&sampler, count_sample, &samples);
		for (int i = argc - 1; i >= 3 && !ret; i--)
			ret = unload(argv[i]);
	}
	ksft_test_result(!ret, "loaded and unloaded %d times: %s\n", done,
			 strerror(-ret));
	ksft_test_result(samples > 0, "samples were taken meanwhile: %u in %.1f s\n",
			 samples, crowd_now() - begin);
	for (int i = 0; i <= KINDS; i++)
		crowd_stop(pid[i]);
	for (int i = 0; i < KINDS; i++)
		ksft_print_msg("%s: %lu times\n", crowd_names[kinds[i]],
			       crowd->done[kinds[i]]);
	ksft_test_result(asked->opened > 0, "the device was asked meanwhile: opened %lu times, %lu traces\n",
			 asked->opened, asked->traced);
	ksft_finished();
}
