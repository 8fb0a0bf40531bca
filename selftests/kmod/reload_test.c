// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * reload_test.c - loads and unloads the modules under load
 *
 *	reload_test COUNT MICROSECONDS SHARE [SHSTK] MODULE.ko...
 *
 * Meanwhile processes on shadow stacks run, are stormed by signals, execute themselves, cause
 * violations, and make random control calls. Another process opens /dev/shstk whenever it is there
 * and traces them. All CPUs are sampled with a period of MICROSECONDS. Each time, the modules stay
 * until callchains were served and the device was opened; then they are unloaded at once. The
 * guest's runner fails the step on any kernel warning. This test checks that each load and unload
 * works.
 *
 * Unloading waits for the kernel's grace periods, which takes hundreds of milliseconds. Meanwhile
 * nothing of a module runs except what began before. In guests where that is a long time, the
 * processes work in bursts, SHARE percent of the time (crowd.h), and each load and unload begins in
 * a burst; 0 means all the time.
 *
 * With SHSTK, the command, no shadow stacks are needed. The processes run without them, and each
 * time the command loads unwind rules for them, by which callchains are then served.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "crowd.h"
#include "kselftest.h"
#include "need.h"
#include "number.h"
#include "sampler.h"
#include "linux/shstk_rules.h"

/*
 * The number of callchains that shstk_perf has served since it was loaded, and how many are needed
 * each time.
 */
#define SERVED "/sys/module/shstk_perf/chains/served"
#define SERVED_RULES "/sys/module/shstk_perf/chains/served_rules"
#define ENOUGH 20
#define PATIENCE 300000 /* tries; used up only by a failure */

static const enum crowd_kind kinds[] = {
	CROWD_SPIN, CROWD_SIGNALS, CROWD_CONTROL, CROWD_EXEC, CROWD_VIOLATE,
};

static struct {
	volatile unsigned long opened, answered;
} * asked;

static const char *shstk;

static bool trace(int dev, pid_t pid)
{
	struct shstk_ioc_thread thread[4];
	uint64_t entry[4 * 64];
	int fd = syscall(SYS_pidfd_open, pid, 0);
	struct shstk_ioc_trace arg = {
		.pidfd = fd,
		.max_entries = 64,
		.max_threads = 4,
		.threads = (uintptr_t)thread,
		.entries = (uintptr_t)entry,
	};
	bool ok = !ioctl(dev, SHSTK_IOC_TRACE, &arg);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool list_rules(int dev)
{
	struct shstk_rules_list arg = { 0 };

	return !ioctl(dev, SHSTK_RULES_LIST, &arg);
}

/* Opens the device and traces, whether the module is loaded or not. Any answer is right. */
static void __attribute__((noreturn)) ask_device(void)
{
	for (unsigned int i = 0;; i++) {
		int slot = i % (sizeof(kinds) / sizeof(*kinds));
		int dev = open(shstk ? SHSTK_RULES_DEVICE : "/dev/shstk", O_RDWR | O_CLOEXEC);

		if (dev >= 0) {
			asked->opened++;
			asked->answered += shstk ? list_rules(dev) :
						   trace(dev, crowd->victim[slot]);
			close(dev);
		}
		crowd_rest();
		usleep(500);
	}
}

/* Waits until all processes are in the middle of a burst. */
static void await_burst(void)
{
	long burst = CROWD_TURN / 100 * (long)crowd->share;
	struct timespec ts;

	if (!burst)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	usleep((CROWD_TURN - ts.tv_nsec % CROWD_TURN + burst / 3) / 1000);
}

/* Waits until all modules were in use since they were loaded. */
static int await_use(unsigned long opened, long *ret)
{
	for (int tries = 0; tries < PATIENCE; tries++) {
		*ret = read_number(shstk ? SERVED_RULES : SERVED);
		if (*ret >= ENOUGH && asked->opened != opened)
			return 0;
		usleep(1000);
	}
	return -ETIME;
}

static void count_sample(void *arg, const struct sample *sample)
{
	unsigned int *n = arg;

	*n += sample->nr > 0;
}

/* Returns "shstk_perf" for "/t/shstk_perf.ko". */
static const char *module_name(const char *path)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	name[strcspn(name, ".")] = 0;
	return name;
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	await_burst();
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

static bool is_module(const char *path)
{
	const char *end = strrchr(path, '.');

	return end && !strcmp(end, ".ko");
}

/* Loads the table of this program, which is also that of the processes. */
static int load_rules(void)
{
	char command[512];

	if (!shstk)
		return 0;
	snprintf(command, sizeof(command), "%s rules load -q /proc/%d/exe", shstk, getpid());
	return system(command) ? -EIO : 0;
}

/*
 * Unloads a module. "Busy" is a possible answer, because a program may be inside; then it is tried
 * again.
 */
static int unload(const char *path)
{
	await_burst();
	for (int tries = 0; tries < PATIENCE; tries++) {
		if (!syscall(SYS_delete_module, module_name(path), O_NONBLOCK))
			return 0;
		if (errno != EAGAIN && errno != EBUSY)
			break;
		usleep(10000);
	}
	return -errno;
}

/* Makes grace periods as short as possible, which leaves the least time to what began before. */
static void hurry(bool on)
{
	int fd = open("/sys/kernel/rcu_expedited", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, on ? "1" : "0", 1) != 1)
		ksft_print_msg("grace periods are not hurried: %s\n", strerror(errno));
	close(fd);
}

int main(int argc, char **argv)
{
	enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
	unsigned long opened;
	long chains = 0, n = 0;
	unsigned int samples = 0;
	struct sampler sampler;
	pid_t pid[KINDS + 1];
	int count, done, first = 4, ret = 0;
	double begin;

	crowd_main(argc, argv);
	if (argc < 5) {
		fprintf(stderr, "usage: %s COUNT MICROSECONDS SHARE [SHSTK] MODULE.ko...\n",
			argv[0]);
		return KSFT_FAIL;
	}
	if (!is_module(argv[4]))
		shstk = argv[4];
	else
		need_shadow_stacks();
	/* Libraries may follow the command. */
	while (first < argc && !is_module(argv[first]))
		first++;
	count = atoi(argv[1]);
	crowd_init();
	crowd->without = shstk;
	crowd->share = atoi(argv[3]);
	asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (asked == MAP_FAILED || sampler_open(&sampler, -1, atol(argv[2]) * 1000, false))
		ksft_exit_fail_msg("cannot sample: %s\n", strerror(errno));

	for (int i = 0; i < KINDS; i++)
		pid[i] = crowd_start(kinds[i], i);
	pid[KINDS] = fork();
	if (!pid[KINDS])
		ask_device();
	begin = crowd_now();

	ksft_print_header();
	ksft_set_plan(4);
	hurry(true);
	for (done = 0; done < count && !ret; done++) {
		opened = asked->opened;
		for (int i = first; i < argc && !ret; i++)
			ret = load(argv[i]);
		if (!ret)
			ret = load_rules();
		if (!ret)
			ret = await_use(opened, &n);
		chains += n;
		sampler_drain(&sampler, count_sample, &samples);
		for (int i = argc - 1; i >= first && !ret; i--)
			ret = unload(argv[i]);
		if (done % 10 == 9)
			ksft_print_msg("%d times in %.1f s\n", done + 1, crowd_now() - begin);
	}
	hurry(false);
	ksft_test_result(!ret, "loaded and unloaded %d times: %s\n", done, strerror(-ret));
	ksft_test_result(samples > 0, "samples were taken meanwhile: %u in %.1f s\n", samples,
			 crowd_now() - begin);
	ksft_test_result(chains >= (long)done * ENOUGH, "callchains were served each time: %ld\n",
			 chains);
	for (int i = 0; i <= KINDS; i++)
		crowd_stop(pid[i]);
	for (int i = 0; i < KINDS; i++)
		ksft_print_msg("%s: %lu times\n", crowd_names[kinds[i]], crowd->done[kinds[i]]);
	ksft_test_result(asked->opened > 0,
			 "the device was asked meanwhile: opened %lu times, %lu answers\n",
			 asked->opened, asked->answered);
	ksft_finished();
}
