// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cgroup_test.c - tests shstk_perf.ko with the parameter cgroup=
 *
 *	cgroup_test shstk_perf.ko
 *
 * Loads the module with cgroup=, samples a process on a shadow stack outside of that cgroup and in
 * it, and checks the counters of the module.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "crowd.h"
#include "kselftest.h"
#include "need.h"
#include "number.h"
#include "sampler.h"

#define MOUNT "/tmp/cgroup"

static unsigned long counter(const char *name)
{
	char path[128];
	long n;

	snprintf(path, sizeof(path), "/sys/module/shstk_perf/chains/%s", name);
	n = read_number(path);
	return n > 0 ? n : 0;
}

static void take(void *arg, const struct sample *s)
{
	*(unsigned int *)arg += s->nr > 0;
}

/* Samples the process until there are some samples. Returns their number. */
static unsigned int sample(pid_t pid)
{
	double end = crowd_now() + 20;
	unsigned int n = 0;
	struct sampler s;

	while (!crowd->victim[0] && crowd_now() < end)
		usleep(1000);
	if (sampler_open(&s, pid, 200000, false))
		return 0;
	while (n < 50 && crowd_now() < end) {
		usleep(2000);
		sampler_drain(&s, take, &n);
	}
	sampler_close(&s);
	return n;
}

static int load(const char *path, const char *options)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, options, 0) ? -errno : 0;
	close(fd);
	return ret;
}

static bool enter(pid_t pid)
{
	FILE *f = fopen(MOUNT "/some/cgroup.procs", "we");

	if (!f)
		return false;
	fprintf(f, "%d\n", pid);
	return !fclose(f);
}

int main(int argc, char **argv)
{
	unsigned long served, other;
	unsigned int n;
	pid_t pid;

	if (argc != 2) {
		fprintf(stderr, "usage: %s shstk_perf.ko\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	crowd_init();
	mkdir(MOUNT, 0755);
	if (mount("cgroup2", MOUNT, "cgroup2", 0, NULL) ||
	    (mkdir(MOUNT "/some", 0755) && errno != EEXIST))
		ksft_exit_skip("no cgroups: %s\n", strerror(errno));

	ksft_print_header();
	ksft_set_plan(3);
	ksft_test_result(load(argv[1], "cgroup=/none") == -ENOENT,
			 "a cgroup that is not there: ENOENT\n");
	if (load(argv[1], "cgroup=/some"))
		ksft_exit_fail_msg("%s: %s\n", argv[1], strerror(errno));

	pid = crowd_start(CROWD_SPIN, 0);
	n = sample(pid);
	served = counter("served");
	other = counter("other_cgroup");
	ksft_test_result(
		n && other >= n / 2 && !served,
		"outside, the kernel's own function runs: %u chains, served %lu, other_cgroup %lu\n",
		n, served, other);
	n = enter(pid) ? sample(pid) : 0;
	ksft_test_result(n && counter("served") > served,
			 "inside, chains are served: %u chains, served %lu\n", n,
			 counter("served"));
	crowd_stop(pid);
	if (syscall(SYS_delete_module, "shstk_perf", O_NONBLOCK))
		ksft_exit_fail_msg("cannot unload: %s\n", strerror(errno));
	rmdir(MOUNT "/some");
	umount(MOUNT);
	ksft_finished();
}
