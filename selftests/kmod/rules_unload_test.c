// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_unload_test.c - tests that shstk_perf.ko can be unloaded whatever other programs hold
 *
 *	rules_unload_test shstk_perf.ko SHSTK [...] [shstk_hold.ko]
 *
 * SHSTK is the command, which compiles this program's own table; what follows it is only there so that
 * it is copied into the guest, but for the last. First a file that has a table is
 * opened, and fanotify is asked and does not answer. Then a child's stack pointer points to a page
 * that somebody else holds back, and deferred callchains of it are taken. At last it is tested that
 * the module takes memory only where it needs it, leaves nothing behind, also if somebody in the
 * kernel holds its folders in /sys (hold/shstk_hold.c), and waits no more often for the kernel the
 * more tables there are.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "number.h"
#include "rules_table.h"
#include "sampler.h"
#include "stall.h"
#include "unload.h"

#define PERIOD 200000 /* ns */
#define FOLDER "/tmp/rules_unload"
#define FILE_NAME FOLDER "/file"
#define WAIT_MS 300000 /* used up only by a hang */
#define SAMPLES 20

static const char *module;

static void load_module(void)
{
	int ret = module_load(module);

	if (ret)
		ksft_exit_fail_msg("%s: %s\n", module, strerror(-ret));
}

/* ---- A file that is being opened ---- */

struct question {
	int fan;
	struct fanotify_event_metadata event;
	pid_t opener;
};

static pid_t start_opener(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(open(FILE_NAME, O_RDONLY | O_CLOEXEC) < 0 ? errno : 0);
	}
	return pid;
}

/* Makes a question that is not answered yet. */
static bool ask(struct question *q)
{
	q->fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
	if (q->fan < 0 ||
	    fanotify_mark(q->fan, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_PERM, -1, FOLDER))
		return false;
	q->opener = start_opener();
	return read(q->fan, &q->event, sizeof(q->event)) == sizeof(q->event);
}

/* Answers the question. Returns what the opener got. */
static int answer(struct question *q, uint32_t how)
{
	struct fanotify_response r = { .fd = q->event.fd, .response = how };
	int status = -1;

	if (write(q->fan, &r, sizeof(r)) != sizeof(r))
		return -1;
	close(q->event.fd);
	waitpid(q->opener, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns whether fanotify is asked about another opener while the first one waits. */
static bool is_asked_again(struct question *q)
{
	struct question other = { .fan = q->fan };
	struct pollfd p = { .fd = q->fan, .events = POLLIN };

	other.opener = start_opener();
	if (poll(&p, 1, WAIT_MS) != 1 ||
	    read(q->fan, &other.event, sizeof(other.event)) != sizeof(other.event)) {
		waitpid(other.opener, NULL, 0);
		return false;
	}
	return answer(&other, FAN_DENY) == EPERM;
}

/* Loads a table for the file, and one for a file that nobody opens. Returns 0 or an errno. */
static int load_tables(void)
{
	int device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC), err = 0;
	static const char *const name[] = { FILE_NAME, FOLDER "/other" };

	for (int i = 0; i < 2 && !err; i++) {
		int fd = open(name[i], O_RDONLY | O_CLOEXEC);

		err = rules_load(device, fd);
		close(fd);
	}
	close(device);
	return err;
}

static void make_files(void)
{
	int err;

	mkdir("/tmp", 0755);
	mkdir(FOLDER, 0700);
	if (mount("none", FOLDER, "tmpfs", 0, NULL))
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	close(open(FILE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0700));
	close(open(FOLDER "/other", O_WRONLY | O_CREAT | O_CLOEXEC, 0700));
	err = load_tables();
	if (err)
		ksft_exit_fail_msg("no table: %s\n", strerror(err));
}

static void test_fanotify(void)
{
	struct question q;
	bool asked;
	int ret;

	load_module();
	make_files();
	if (!ask(&q)) {
		module_unload("shstk_perf");
		umount2(FOLDER, MNT_DETACH);
		ksft_test_result_skip("no fanotify with permissions: %s\n", strerror(errno));
		for (int i = 0; i < 5; i++)
			ksft_test_result_skip("likewise\n");
		return;
	}
	ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "it is unloaded while the opener of a file waits for fanotify: %s\n",
			 ret > 0 ? "it hangs" : strerror(-ret));
	asked = is_asked_again(&q);
	ksft_test_result(asked, "fanotify is asked about the next opener as ever\n");
	ret = answer(&q, FAN_ALLOW);
	ksft_test_result(!ret, "the first one goes on when it is answered: %d\n", ret);
	close(q.fan);
	load_module();
	ret = load_tables();
	ksft_test_result(!ret, "loaded again, the file may have a table: %s\n", strerror(ret));
	ksft_test_result(!umount(FOLDER), "and its file system be unmounted\n");
	ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "and it is unloaded again\n");
}

/* ---- A page that does not come ---- */

static struct stall stall;
static int ready[2];

/* Spins with the stack pointer @sp, where its return address would have to be read. */
static __attribute__((noinline, noreturn)) void spin_at(unsigned long sp)
{
#ifdef __x86_64__
	asm volatile("mov %0, %%rsp\n"
		     "1:	pause\n"
		     "	jmp 1b"
		     :
		     : "r"(sp));
#endif
	(void)sp;
	__builtin_unreachable();
}

/* Reports when somebody waits for the page. The page is never given. */
static void *tell(void *arg)
{
	char byte = stall_await(&stall, -1);

	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	pause();
	return arg;
}

static pid_t start(void)
{
	pthread_t thread;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!stall_open(&stall) || pthread_create(&thread, NULL, tell, NULL))
		_exit(1);
	spin_at(stall.page + 256);
}

static void load_rules(const char *shstk)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules load -q /proc/$PPID/exe", shstk);
	if (system(command))
		ksft_exit_fail_msg("%s: failed\n", command);
}

static void count(void *arg, const struct sample *s)
{
	*(unsigned int *)arg += s->deferred;
}

/*
 * Samples until there are enough samples, or somebody waits for the page. Returns whether nobody
 * waits.
 */
static bool sample(struct sampler *s, unsigned int *nr)
{
	struct pollfd p = { .fd = ready[0], .events = POLLIN };

	for (int i = 0; i < WAIT_MS && *nr < SAMPLES; i++) {
		sampler_drain(s, count, nr);
		if (poll(&p, 1, 1) == 1)
			return false;
	}
	return true;
}

static void test_page(const char *shstk)
{
	unsigned int nr = 0;
	struct sampler s;
	bool nobody;
	pid_t pid;
	int ret;

	if (!sampler_defers()) {
		for (int i = 0; i < 3; i++)
			ksft_test_result_skip("this kernel has no deferred callchains\n");
		return;
	}
	load_module();
	load_rules(shstk);
	if (pipe2(ready, O_CLOEXEC))
		ksft_exit_fail_msg("no pipe\n");
	fflush(NULL);
	pid = start();
	close(ready[1]);
	ret = sampler_open(&s, pid, PERIOD, true);
	if (ret)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-ret));
	nobody = sample(&s, &nr);
	ksft_test_result(nobody && nr >= SAMPLES,
			 "no deferred callchain waits for a page that a program gives: %u\n", nr);
	ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "it is unloaded while these are taken: %s\n",
			 ret > 0 ? "it hangs" : strerror(-ret));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sampler_close(&s);
	if (ret)
		ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "and at the end it is not loaded\n");
}

/* ---- What the module takes ---- */

#define RULES "/sys/module/shstk_perf/rules/"

/*
 * Waits until walks are made, because somebody listens for files. Returns whether there are walks.
 */
static bool walk_a_while(void)
{
	unsigned int samples = 0;
	struct sampler s;
	long nr = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			asm volatile("" ::: "memory");
	}
	if (sampler_open(&s, pid, PERIOD, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	for (int i = 0; i < WAIT_MS && nr <= 0; i++) {
		usleep(1000);
		sampler_drain(&s, count, &samples);
		nr = read_number(RULES "mappings_read");
	}
	sampler_close(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return nr > 0;
}

static void test_memory(void)
{
	struct shstk_rules_miss miss;
	long without, with;
	bool walked;
	int device, fd;

	load_module();
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (!ioctl(device, SHSTK_RULES_MISS, &miss))
		close(miss.fd);
	walked = walk_a_while();
	without = read_number(RULES "memory");
	ksft_test_result(walked && !without,
			 "no CPU remembers anything before there is a table: %ld bytes\n", without);
	rules_load(device, fd);
	with = read_number(RULES "memory");
	ksft_test_result(with >= 65536 * sysconf(_SC_NPROCESSORS_ONLN),
			 "with the first table all may: %ld bytes\n", with);
	close(fd);
	close(device);
	module_unload("shstk_perf");
}

/*
 * Tests that somebody who has a file of the module open, or is in its directory, holds neither of
 * them.
 */
static void test_files(void)
{
	static const char *const folder[] = { "chains/served", "rules/whole" };
	char path[64], byte;
	int fd[2], ret;

	load_module();
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/module/shstk_perf/%s", folder[i]);
		fd[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
	ret = chdir(RULES);
	if (ret || fd[0] < 0 || fd[1] < 0)
		ksft_exit_fail_msg("no counters: %s\n", strerror(errno));
	ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "it is unloaded while its files are open\n");
	for (int i = 0; i < 2; i++)
		ret |= read(fd[i], &byte, 1) != -1 || errno != ENODEV;
	ksft_test_result(!ret, "they answer ENODEV then\n");
	ksft_test_result(access("whole", F_OK) && access("/sys/module/shstk_perf", F_OK),
			 "and its folders are gone\n");
	load_module();
	ret = chdir("/");
	ksft_test_result(!ret && !read_number("/sys/module/shstk_perf/chains/served"),
			 "loaded again it has new ones\n");
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	module_unload("shstk_perf");
}

/*
 * Tests that the kobjects of the module's folders may live longer than it. Without kobject_del() the
 * folders would stay, and so would the unloading, which waits for what holds the module's own one.
 */
static void test_held(const char *hold)
{
	int ret;

	if (!hold) {
		ksft_test_result_skip("no module that holds its folders\n");
		ksft_test_result_skip("no module that holds its folders\n");
		return;
	}
	load_module();
	ret = module_load(hold);
	if (ret)
		ksft_exit_fail_msg("%s: %s\n", hold, strerror(-ret));
	ret = module_unload("shstk_perf");
	ksft_test_result(!ret, "it is unloaded while somebody holds its folders\n");
	ksft_test_result(access("/sys/module/shstk_perf", F_OK), "which are gone\n");
	module_unload("shstk_hold");
}

/* ---- What unloading waits for ---- */

#define MANY 200 /* files with a table */

/* The functions of the kernel that wait until all of its tasks have done something. */
static const char *const waits[] = {
	"synchronize_rcu",  "synchronize_rcu_tasks", "synchronize_rcu_tasks_rude",
	"synchronize_srcu", "rcu_barrier",
};

#define NR_WAITS (sizeof(waits) / sizeof(*waits))

/* Opens a counter of the calls of a function of the kernel that @pid makes. Returns -1 on failure. */
static int count_calls(const char *function, pid_t pid)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (uint32_t)read_number("/sys/bus/event_source/devices/kprobe/type"),
		.kprobe_func = (uintptr_t)function,
	};

	return attr.type ?
		       (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC) :
		       -1;
}

/* Loads a table for each of @nr files. Returns how many have one. */
static int load_many(int nr)
{
	int device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC), loaded = 0;
	char path[64];

	for (int i = 0; i < nr; i++) {
		int fd;

		snprintf(path, sizeof(path), FOLDER "/%d", i);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
		close(fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		loaded += !rules_load(device, fd);
		close(fd);
	}
	close(device);
	return loaded;
}

/*
 * Unloads the module in a process whose calls are counted. Returns how often it waited, or -1 if no
 * call can be counted here.
 */
static int count_waits(void)
{
	int go[2], fd[NR_WAITS], sum = 0, open = 0, status;
	pid_t pid;
	char byte;

	if (pipe(go))
		return -1;
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) < 0 ||
		      syscall(SYS_delete_module, "shstk_perf", O_NONBLOCK));
	}
	for (size_t i = 0; i < NR_WAITS; i++) {
		fd[i] = count_calls(waits[i], pid);
		open += fd[i] >= 0;
	}
	close(go[0]);
	close(go[1]);
	waitpid(pid, &status, 0);
	for (size_t i = 0; i < NR_WAITS; i++) {
		uint64_t calls = 0;

		if (fd[i] < 0 || read(fd[i], &calls, sizeof(calls)) != sizeof(calls))
			continue;
		ksft_print_msg("%s: %u\n", waits[i], (unsigned int)calls);
		sum += (int)calls;
		close(fd[i]);
	}
	return status || !open ? -1 : sum;
}

/* Tests that the number of tables has no influence on how often unloading waits. */
static void test_waits(void)
{
	int loaded, few, many;

	mkdir(FOLDER, 0700);
	load_module();
	loaded = load_many(1);
	few = count_waits();
	load_module();
	loaded += load_many(MANY);
	many = count_waits();
	if (few < 0 || many < 0) {
		module_unload("shstk_perf");
		ksft_test_result_skip("this kernel's functions cannot be counted\n");
		return;
	}
	ksft_test_result(loaded == 1 + MANY && few == many,
			 "unloading waits as often with one table as with %d: %d and %d times\n",
			 loaded - 1, few, many);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s shstk_perf.ko SHSTK [...] [shstk_hold.ko]\n", argv[0]);
		return KSFT_FAIL;
	}
	module = argv[1];
	ksft_print_header();
	ksft_set_plan(18);
	test_fanotify();
	test_page(argv[2]);
	test_memory();
	test_files();
	test_held(strstr(argv[argc - 1], "shstk_hold.ko") ? argv[argc - 1] : NULL);
	test_waits();
	ksft_finished();
}
