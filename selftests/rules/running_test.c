// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * running_test.c - tests the search for files whose code processes execute: how long it waits, and for whom,
 * and what is open meanwhile
 *
 * Time passes by the test's own clock.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "tools/rules/running_files.h"
#include "tools/rules/subordinate.h"
#include "tools/shstk.h"

#define TRIES 10 /* a machine that stands still for a second lets the search end, too */
#define SLOW 2 /* files for which the caller takes long */
#define SLOW_S 3 /* seconds for each of them: together more than the search waits for a process */
#define HIGH_FD 200
#define TOO_SLOW_S 70 /* each is more than a process is spared */

static uint64_t later; /* ns by which the clock was set on */
static int slow; /* seconds for each of these files */

uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec + later;
}

static int files;

static void use(void *arg, int fd, const char *path)
{
	(void)arg;
	(void)path;
	close(fd);
	if (files++ < SLOW)
		later += slow * 1000000000ull;
}

/* Searches this process, which executes its own file, the C library and the dynamic linker. */
static int search(int seconds)
{
	const struct running r = { .pid = getpid(), .stop = -1, .use = use };

	files = 0;
	slow = seconds;
	return running_files(&r);
}

/* ---- What the searching process has open ---- */

/**
 * struct descriptor - what the searching process tells of a descriptor of its parent
 * @parent: the parent.
 * @fd: the descriptor.
 * @looked: the process has looked.
 * @is_open: it has the descriptor.
 */
struct descriptor {
	pid_t parent;
	int fd;
	bool looked, is_open;
};

static struct descriptor *descriptor;

/* The searching process sends its messages by this function. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (descriptor && getpid() != descriptor->parent) {
		descriptor->looked = true;
		descriptor->is_open |= fcntl(descriptor->fd, F_GETFD) >= 0;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

static void test_descriptors(void)
{
	descriptor = mmap(NULL, sizeof(*descriptor), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (descriptor == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");
	descriptor->parent = getpid();
	/* A number that the process does not give to a file of its own. */
	descriptor->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, HIGH_FD);
	search(0);
	ksft_test_result(descriptor->fd > 0 && descriptor->looked && !descriptor->is_open,
			 "the searching process has nothing open of its parent's\n");
	close(descriptor->fd);
	munmap(descriptor, sizeof(*descriptor));
	descriptor = NULL;
}

/* ---- Users with processes that have a file each ---- */

/*
 * The first three processes of the user GREEDY have the caller take 59 s each, of which the first two minutes do not
 * count. Each of the others takes 4 s, less than one process may, and the eighth of them is one too many. The last
 * three of the user are not looked at any more; one of them has a subordinate id in a namespace, and one is another
 * of the user's ids outside of it. Then comes another user's.
 */
#define GREEDY 64001
#define SUBORDINATE 64002
#define MODEST 64003
#define FURTHER 64004
#define SPARED 3
#define SPARED_S 59
#define COUNTED 8
#define COUNTED_S 4
enum { LAST = SPARED + COUNTED, IN_NAMESPACE, BY_FURTHER, OTHER, PROCESSES };

static struct {
	pid_t pid;
	int control;
	struct stat file;
	bool is_found;
} processes[PROCESSES];

static void use_of(void *arg, int fd, const char *path)
{
	struct stat st;

	(void)arg;
	(void)path;
	for (int i = 0; !fstat(fd, &st) && i < PROCESSES; i++) {
		if (st.st_dev != processes[i].file.st_dev || st.st_ino != processes[i].file.st_ino)
			continue;
		processes[i].is_found = true;
		later += (i < SPARED ? SPARED_S : i < LAST ? COUNTED_S : 0) * 1000000000ull;
	}
	close(fd);
}

/* Makes a file in this program's folder, where files may be executed. Returns it or -1. */
static int make_file(const char *program, struct stat *ret)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s.XXXXXX", program);
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	unlink(path);
	if (!ftruncate(fd, 4096) && !fstat(fd, ret))
		return fd;
	close(fd);
	return -1;
}

/* Is a process: has the file mapped as code, says whether it is ready, and waits for its end. */
static void run_process(int i, int fd, int control)
{
	const uid_t uid = i == OTHER ? MODEST : i == BY_FURTHER ? FURTHER : GREEDY;
	char ok = 1;

	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
	    setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		ok = 0;
	/* The parent maps this process's id. Who may not make a namespace stays the user. */
	if (ok && i == IN_NAMESPACE)
		ok = unshare(CLONE_NEWUSER) ? 1 : 2;
	if (write(control, &ok, 1) != 1 || read(control, &ok, 1) != 1 ||
	    (ok == 2 && setresuid(1, 1, 1)) || write(control, &ok, 1) != 1)
		_exit(1);
	/* Each holds the other ends of those before it, so all end when the parent does. */
	_exit(read(control, &ok, 1) > 0);
}

static bool map_ids(pid_t pid)
{
	char path[64], text[64];
	int fd, size = snprintf(text, sizeof(text), "0 %d 1\n1 %d 1\n", GREEDY, SUBORDINATE);
	bool ret;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ret = fd >= 0 && write(fd, text, (size_t)size) == size;
	if (fd >= 0)
		close(fd);
	return ret;
}

static bool start_process(const char *program, int i)
{
	int both[2], fd = make_file(program, &processes[i].file);
	char answer = 0;

	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both))
		return false;
	processes[i].pid = fork();
	if (!processes[i].pid)
		run_process(i, fd, both[1]);
	close(fd);
	close(both[1]);
	processes[i].control = both[0];
	return processes[i].pid > 0 && read(both[0], &answer, 1) == 1 && answer &&
	       (answer != 2 || map_ids(processes[i].pid)) && write(both[0], &answer, 1) == 1 &&
	       read(both[0], &answer, 1) == 1;
}

/* Whether the kernel lets this process follow a link to what the other one has mapped: these files have no names. */
static bool can_follow(pid_t pid)
{
	struct dirent *entry;
	struct stat st;
	bool ret = false;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/map_files", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!ret && (entry = readdir(dir)))
		ret = *entry->d_name != '.' && !fstatat(dirfd(dir), entry->d_name, &st, 0);
	closedir(dir);
	return ret;
}

/* Whether this process can find the files of all, and the kernel lists the processes in the order they began. */
static bool can_see(void)
{
	for (int i = 0; i < PROCESSES; i++)
		if (!can_follow(processes[i].pid) || (i && processes[i].pid < processes[i - 1].pid))
			return false;
	return true;
}

static void end_processes(void)
{
	for (int i = 0; i < PROCESSES; i++) {
		if (processes[i].pid <= 0)
			continue;
		kill(processes[i].pid, SIGKILL);
		waitpid(processes[i].pid, NULL, 0);
		close(processes[i].control);
	}
}

/* Returns whether the files of the first processes were found, and those of the user's last ones were not. */
static bool is_greed_bounded(void)
{
	for (int i = 0; i < OTHER; i++)
		if (processes[i].is_found != (i < LAST))
			return false;
	return true;
}

static void test_users(const char *program)
{
	struct shstk_rules_range range = { FURTHER, 1, GREEDY };
	const struct subordinate known = { .ranges = &range, .nr = 1 };
	const struct running r = { .stop = -1, .use = use_of, .subordinate = &known };
	bool ready = true, bounded = false, found = false;

	for (int i = 0; ready && i < PROCESSES; i++)
		ready = start_process(program, i);
	if (!ready || !can_see()) {
		end_processes();
		ksft_test_result_skip(
			"a user's processes: needs root's rights, and processes whose numbers grow\n");
		ksft_test_result_skip("another user's processes: needs the same\n");
		return;
	}
	for (int i = 0; i < TRIES && !(bounded && found); i++) {
		for (int k = 0; k < PROCESSES; k++)
			processes[k].is_found = false;
		running_files(&r);
		bounded = is_greed_bounded();
		found = processes[OTHER].is_found;
	}
	end_processes();
	ksft_test_result(bounded,
			 "all processes of a user together are looked at for half a minute\n");
	ksft_test_result(found, "those of another user are looked at then\n");
}

int main(int argc, char **argv)
{
	int err = -ETIMEDOUT;

	(void)argc;
	ksft_print_header();
	ksft_set_plan(5);
	for (int i = 0; i < TRIES && err == -ETIMEDOUT; i++)
		err = search(SLOW_S);
	ksft_test_result(
		!err && files > SLOW,
		"what the caller does with a file is no time of the process: %s, %d files\n",
		strerror(-err), files);
	err = search(TOO_SLOW_S);
	ksft_test_result(err == -ETIMEDOUT,
			 "unless it takes too long for the files of one process: %s\n",
			 strerror(-err));
	test_descriptors();
	test_users(argv[0]);
	ksft_finished();
}
