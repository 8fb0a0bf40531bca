// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fault_test.c - tests the calls of the modules when one of their allocations fails
 *
 *	fault_test [calls] MODULE.ko...
 *
 * fault/shstk_fault.ko makes the n-th allocation fail that the modules make for the next thing the
 * task does. Each call is made with n from 1 on, until it makes fewer than n allocations. It must
 * fail with ENOMEM, or do what it usually does. The runner checks that the kernel stays well.
 * Loading the modules is one of these calls, which takes long; with "calls" the modules are loaded
 * without failures. Modules that this machine cannot use are skipped.
 *
 * If that module is not loaded, the n-th allocation fails by the kernel's own fault injection,
 * where the kernel is built for it (CONFIG_FAILSLAB), whoever makes the allocation for the task.
 * Then the modules are loaded without failures, because the kernel's loader of modules does not
 * bear all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/shstk.h>
#include <linux/shstk_rules.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "rules_table.h"
#include "sampler.h"
#include "unload.h"

#define FOLDER "/tmp/fault"
#define MODULE_NTH "/dev/shstk_fault"
#define KERNEL_NTH "/proc/self/fail-nth"
#define FAILSLAB "/sys/kernel/debug/failslab/"
#define NTH_MOST 20000
#define PATIENCE 300000 /* number of tries of a millisecond each, after which the test gives up */
#define PERIOD 200000 /* ns */
#define AGAIN 20 /* times that a call is repeated whose preparation was in vain */
#define SHOWN 5 /* wrong answers that are printed for each call */

static int nth_fd; /* takes and gives numbers as MODULE_NTH and KERNEL_NTH both do */
static bool is_kernels; /* @nth_fd is KERNEL_NTH */
static bool only_calls;
static unsigned int nth; /* number of the allocation that fails in the call under test */
static int rules_fd = -1, device_fd = -1, self_fd;

/* ---- The n-th allocation ---- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ret = write(fd, text, strlen(text)) > 0;

	close(fd);
	return ret;
}

/* Opens the file that takes the number. Returns whether there is one. */
static bool open_nth(void)
{
	nth_fd = open(MODULE_NTH, O_RDWR | O_CLOEXEC);
	if (nth_fd >= 0)
		return true;
	/* Allocations that may wait fail, too, and the kernel does not print each one's callers. */
	if (!write_file(FAILSLAB "ignore-gfp-wait", "N") || !write_file(FAILSLAB "verbose", "0"))
		return false;
	nth_fd = open(KERNEL_NTH, O_RDWR | O_CLOEXEC);
	is_kernels = true;
	only_calls = true;
	return nth_fd >= 0;
}

static void fail_nth(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_fd, text, (size_t)len, 0) != len)
		ksft_exit_fail_msg("number of an allocation: %s\n", strerror(errno));
	nth = n;
}

/* Returns whether the allocation that was to fail was made. */
static bool has_failed(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) < 1)
		ksft_exit_fail_msg("number of allocations: %s\n", strerror(errno));
	fail_nth(0);
	return !atoi(text);
}

/* ---- Calls ---- */

/**
 * struct call - a call that is tested
 * @name: what the call does.
 * @prepare: is called before it, without failures; may be NULL.
 * @make: makes the call. Returns 0 or an errno.
 * @undo: is called after it, without failures; may be NULL.
 * @answer: the answer if no allocation fails.
 * @other: another answer, besides ENOMEM, that is allowed if an allocation fails; 0: none.
 * @by_child: a process of its own makes the call, and tells the number of the allocation (@told).
 */
struct call {
	const char *name;
	void (*prepare)(void);
	int (*make)(void);
	void (*undo)(void);
	int answer;
	int other;
	bool by_child;
};

/**
 * struct told - what a process of its own tells of the call that it made
 * @ret: what the call returned.
 * @left: text of how many allocations were left then until one fails.
 */
struct told {
	long ret;
	char left[16];
};

static volatile struct told *told; /* memory of both processes */

/* Returns whether the allocation that was to fail was made in the process of its own. */
static bool has_child_failed(void)
{
	if (!told->left[0])
		ksft_exit_fail_msg("a process of its own did not end its call\n");
	return !atoi((const char *)told->left);
}

static bool is_answer(const struct call *c, int err, bool failed)
{
	return err == c->answer || (failed && (err == ENOMEM || (c->other && err == c->other)));
}

/* Makes the call once, while its @n-th allocation fails. *@failed receives whether one did. */
static int make_call(const struct call *c, unsigned int n, bool *failed)
{
	int err;

	if (c->prepare)
		c->prepare();
	if (c->by_child)
		nth = n;
	else
		fail_nth(n);
	err = c->make();
	*failed = c->by_child ? has_child_failed() : has_failed();
	if (c->undo)
		c->undo();
	return err;
}

static void test_call(const struct call *c)
{
	unsigned int n, wrong = 0, again = 0;
	bool failed = true;

	for (n = 1; failed && n < NTH_MOST; n++) {
		int err = make_call(c, n, &failed);

		/* What was prepared may be gone by then: a miss is kept for two seconds. */
		while (!failed && c->other && err == c->other && again++ < AGAIN)
			err = make_call(c, n, &failed);
		if (!is_answer(c, err, failed) && wrong++ < SHOWN)
			ksft_print_msg("allocation %u%s: %s\n", n, failed ? "" : " does not come",
				       strerror(err));
	}
	ksft_test_result(!failed && !wrong, "%s: %u allocations\n", c->name, n - 2);
}

static int of(int ret)
{
	return ret < 0 ? errno : 0;
}

/* ---- /dev/shstk_rules ---- */

static int opened = -1;

static int open_rules(void)
{
	opened = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	return of(opened);
}

static int open_device(void)
{
	opened = open("/dev/shstk", O_RDWR | O_CLOEXEC);
	return of(opened);
}

static void close_opened(void)
{
	close(opened);
}

static int load_table(void)
{
	return rules_load(rules_fd, self_fd);
}

static void have_table(void)
{
	rules_load(rules_fd, self_fd);
}

static int drop_table(void)
{
	return rules_drop(rules_fd, self_fd);
}

static void have_none(void)
{
	rules_drop_all(rules_fd);
}

static int drop_tables(void)
{
	rules_drop_all(rules_fd);
	return 0;
}

static int list_tables(void)
{
	struct shstk_rules_list arg = { .id = 0 };

	return of(ioctl(rules_fd, SHSTK_RULES_LIST, &arg));
}

static int ask_info(void)
{
	struct shstk_rules_info arg;

	return of(ioctl(rules_fd, SHSTK_RULES_INFO, &arg));
}

static int ask_cuts(void)
{
	struct shstk_rules_cuts arg = { .index = 1000 };

	return of(ioctl(rules_fd, SHSTK_RULES_CUTS, &arg));
}

static int tell_users(void)
{
	return rules_count_as(rules_fd, 1000, 10, 1);
}

static void take_users_back(void)
{
	rules_count_as(rules_fd, 0, 0, 0);
}

static int ask_miss(void)
{
	struct shstk_rules_miss arg;
	int err = of(ioctl(rules_fd, SHSTK_RULES_MISS, &arg));

	if (!err)
		close(arg.fd);
	return err;
}

/*
 * Starts a process with another file each time, because each file is reported only once in half a
 * minute.
 */
static pid_t start_missed(void)
{
	static unsigned int nr;
	char path[64], command[160];
	pid_t pid;

	snprintf(path, sizeof(path), FOLDER "/%u", nr++);
	snprintf(command, sizeof(command), "rm -f " FOLDER "/*; cp /proc/$PPID/exe %s", path);
	if (system(command))
		ksft_exit_fail_msg("%s: no copy\n", path);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		execl(path, path, "spin", NULL);
		_exit(1);
	}
	return pid;
}

static pid_t missed;

static void have_missed(void)
{
	struct pollfd p = { .fd = rules_fd, .events = POLLIN };
	struct sampler s;
	pid_t pid;

	while (!ask_miss())
		;
	pid = start_missed();
	if (sampler_open(&s, pid, PERIOD, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	if (poll(&p, 1, PATIENCE) != 1)
		ksft_exit_fail_msg("nothing is missed\n");
	sampler_close(&s);
	missed = pid;
}

/* The process is needed until its file was asked for. */
static void end_missed(void)
{
	kill(missed, SIGKILL);
	waitpid(missed, NULL, 0);
}

static const struct call rules_calls[] = {
	{ "open " SHSTK_RULES_DEVICE, NULL, open_rules, close_opened, 0, 0 },
	{ "load a table", have_none, load_table, NULL, 0, 0 },
	{ "replace a table", have_table, load_table, NULL, 0, 0 },
	{ "drop a table", have_table, drop_table, NULL, 0, 0 },
	{ "drop all tables", have_table, drop_tables, NULL, 0, 0 },
	{ "list tables", have_table, list_tables, NULL, 0, 0 },
	{ "ask what there is", NULL, ask_info, NULL, 0, 0 },
	{ "say whose ids are whose", NULL, tell_users, take_users_back, 0, 0 },
	{ "ask where chains ended", NULL, ask_cuts, NULL, ENOENT, 0 },
	{ "ask for a file without a table", have_missed, ask_miss, end_missed, 0, EAGAIN },
	{ "ask where none is", NULL, ask_miss, NULL, EAGAIN, 0 },
};

/* ---- /dev/shstk ---- */

static pid_t shadowed; /* a process that has a shadow stack */
static int shadowed_fd; /* pidfd of that process */

static int ask_device(void)
{
	struct shstk_ioc_info arg;

	return of(ioctl(device_fd, SHSTK_IOC_INFO, &arg));
}

static int ask_status(void)
{
	struct shstk_ioc_status arg = { .pidfd = shadowed_fd };

	return of(ioctl(device_fd, SHSTK_IOC_STATUS, &arg));
}

static int trace_other(void)
{
	struct shstk_ioc_thread thread;
	uint64_t entry[64];
	struct shstk_ioc_trace arg = {
		.threads = (uintptr_t)&thread,
		.entries = (uintptr_t)entry,
		.pidfd = shadowed_fd,
		.max_threads = 1,
		.max_entries = 64,
	};

	return of(ioctl(device_fd, SHSTK_IOC_TRACE, &arg));
}

static int ask_map(void)
{
	struct shstk_ioc_map arg = { .pidfd = shadowed_fd };

	/* There is no shadow stack at this address. */
	return of(ioctl(device_fd, SHSTK_IOC_MAP, &arg));
}

static const struct call device_calls[] = {
	{ "open /dev/shstk", NULL, open_device, close_opened, 0, 0 },
	{ "ask what it can do", NULL, ask_device, NULL, 0, 0 },
	{ "ask for a status", NULL, ask_status, NULL, 0, 0 },
	{ "trace another process", NULL, trace_other, NULL, 0, 0 },
	{ "ask for a mapping", NULL, ask_map, NULL, ENOENT, 0 },
};

static void start_shadowed(void)
{
	shadowed = fork();
	if (shadowed) {
		shadowed_fd = (int)syscall(SYS_pidfd_open, shadowed, 0);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ss_enable(SS_ENABLE))
		_exit(1);
	for (;;)
		ss_syscall(__NR_sched_yield, 0, 0, 0, 0, 0);
}

/* ---- The generic calls for shadow stacks ---- */

#ifdef __NR_arch_prctl

#define MARKED_SIZE 8192

static long mapped;

/*
 * Sets the status, and ends in this function, because a function cannot return whose caller's
 * address is not on the shadow stack. The kernel's own number is that of one task.
 */
static void set_own_status(unsigned long status)
{
	if (is_kernels)
		nth_fd = open(KERNEL_NTH, O_RDWR | O_CLOEXEC);
	fail_nth(nth);
	told->ret = ss_syscall(__NR_prctl, SS_PR_SET, status, 0, 0, 0);
	ss_syscall(__NR_pread64, (unsigned long)nth_fd, (unsigned long)told->left,
		   sizeof(told->left) - 1, 0, 0);
	ss_syscall(__NR_pwrite64, (unsigned long)nth_fd, (unsigned long)"0", 1, 0, 0);
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

static int set_status(unsigned long status)
{
	pid_t pid;

	told->ret = -EIO;
	told->left[0] = 0;
	pid = fork();
	if (!pid)
		set_own_status(status);
	waitpid(pid, NULL, 0);
	return (int)-told->ret;
}

static int enable(void)
{
	return set_status(SS_ENABLE);
}

static int enable_writing(void)
{
	return set_status(SS_ENABLE | SS_WRITE);
}

static int map_marked(unsigned long flags)
{
	mapped = ss_syscall(__NR_map_shadow_stack, 0, MARKED_SIZE, flags, 0, 0);
	return mapped < 0 && mapped > -4096 ? (int)-mapped : 0;
}

static int map_marker(void)
{
	return map_marked(SS_SET_MARKER);
}

static int map_marker_and_token(void)
{
	return map_marked(SS_SET_MARKER | SS_SET_TOKEN);
}

static void unmap_marked(void)
{
	munmap((void *)mapped, MARKED_SIZE);
}

/* A token is written to a page, which may not be had. */
static const struct call prctl_calls[] = {
	{ "enable the shadow stack", NULL, enable, NULL, 0, 0, true },
	{ "enable it and writing to it", NULL, enable_writing, NULL, 0, 0, true },
	{ "map one with a marker", NULL, map_marker, unmap_marked, 0, 0 },
	{ "map one with a marker and a token", NULL, map_marker_and_token, unmap_marked, 0,
	  EFAULT },
};

static void prepare_prctl(void)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		ksft_exit_fail_msg("no memory to share\n");
}

#else

static const struct call prctl_calls[] = {};

static void prepare_prctl(void)
{
}

#endif

/* ---- The modules ---- */

static const char *module;

static int load_module(void)
{
	return -module_load(module);
}

static char *module_name(const char *path)
{
	static char text[256];
	char *name, *dot;

	snprintf(text, sizeof(text), "%s", path);
	name = basename(text);
	dot = strrchr(name, '.');
	if (dot)
		*dot = 0;
	return name;
}

static void unload_module(void)
{
	module_unload(module_name(module));
}

/* Tests one module. Returns whether it can be used here. */
static bool test_module(const char *path)
{
	char name[300];
	struct call c = { name, NULL, load_module, unload_module, 0, 0 };
	int err;

	module = path;
	snprintf(name, sizeof(name), "load %s", module_name(path));
	err = load_module();
	if (err) {
		ksft_test_result_skip("%s: %s\n", name, strerror(err));
		return false;
	}
	if (only_calls) {
		ksft_test_result_pass("%s\n", name);
		return true;
	}
	unload_module();
	test_call(&c);
	return !load_module();
}

static void test_calls(const struct call *call, size_t n, bool there)
{
	for (size_t i = 0; i < n; i++) {
		if (there)
			test_call(&call[i]);
		else
			ksft_test_result_skip("%s: no module for it\n", call[i].name);
	}
}

#define NR(calls) (sizeof(calls) / sizeof((calls)[0]))

static bool contains(const char *path, const char *name)
{
	return !strcmp(module_name(path), name);
}

static void test_perf(const char *path)
{
	bool there = test_module(path);
	struct shstk_rules_miss arg;

	rules_fd = open(SHSTK_RULES_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	/* From now on the device has a listener. */
	if (!ioctl(rules_fd, SHSTK_RULES_MISS, &arg))
		close(arg.fd);
	test_calls(rules_calls, NR(rules_calls), there && rules_fd >= 0);
	close(rules_fd);
	if (there)
		ksft_test_result(!module_unload("shstk_perf"), "shstk_perf is unloaded\n");
	else
		ksft_test_result_skip("no module\n");
}

static void test_core(const char *path)
{
	bool there = test_module(path);

	device_fd = open("/dev/shstk", O_RDWR | O_CLOEXEC);
	start_shadowed();
	test_calls(device_calls, NR(device_calls), there && device_fd >= 0);
	kill(shadowed, SIGKILL);
	waitpid(shadowed, NULL, 0);
	close(device_fd);
	if (there)
		ksft_test_result(!module_unload("shstk"), "shstk is unloaded\n");
	else
		ksft_test_result_skip("no module\n");
}

static void test_prctl(const char *path)
{
	bool there = test_module(path);

	prepare_prctl();
	test_calls(prctl_calls, NR(prctl_calls), there);
	if (there)
		ksft_test_result(!module_unload("shstk_prctl"), "shstk_prctl is unloaded\n");
	else
		ksft_test_result_skip("no module\n");
}

static unsigned int points_of(const char *path)
{
	return contains(path, "shstk_perf") ? NR(rules_calls) + 2 :
	       contains(path, "shstk")	    ? NR(device_calls) + 2 :
					      NR(prctl_calls) + 2;
}

int main(int argc, char **argv)
{
	unsigned int plan = 0;

	if (argc == 2 && !strcmp(argv[1], "spin"))
		for (;;)
			asm volatile("" ::: "memory");
	if (argc > 1 && !strcmp(argv[1], "calls")) {
		only_calls = true;
		argv++;
		argc--;
	}
	for (int i = 1; i < argc; i++)
		plan += points_of(argv[i]);
	ksft_print_header();
	if (!open_nth())
		ksft_exit_skip("shstk_fault.ko is not loaded, and this kernel has no failslab\n");
	ksft_set_plan(plan);
	mkdir("/tmp", 0755);
	mkdir(FOLDER, 0755);
	self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (int i = 1; i < argc; i++) {
		if (contains(argv[i], "shstk_perf")) {
			test_perf(argv[i]);
		} else if (contains(argv[i], "shstk")) {
			test_core(argv[i]);
		} else {
			test_prctl(argv[i]);
		}
	}
	ksft_finished();
}
