// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * library_test.c - what a loader of BPF programs may meet with libshstk-bpf, and do itself. Prints KTAP.
 *
 *	library_test SHSTK [FILE...]
 *
 * Each case is a loader of its own, a child of this process. The processes that make tables for it are
 * no children of the loader: they become this process's, which so sees them end. The FILEs are arguments
 * so that they are copied into guests.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <shstk_bpf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/sys/fs/bpf"
#define LIMIT 1400 /* seconds until the test counts as hung */
#define PATIENCE 300 /* seconds that the beginning may take on a slow machine */
#define THREADS 4
#define ROUNDS 5

static unsigned int number, failed;
static const char *command;
static char why[512];

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

/* Returns whether two numbers are the same, and says what is not. */
static bool same(const char *what, long got, long wanted)
{
	if (got != wanted)
		printf("# %s: %ld, not %ld (%s)\n", what, got, wanted, why);
	return got == wanted;
}

static struct shstk_bpf_opts options(void)
{
	return (struct shstk_bpf_opts){
		.size = sizeof(struct shstk_bpf_opts),
		.timeout = PATIENCE,
		.command = command,
	};
}

static struct shstk_bpf *open_or_end(void)
{
	const struct shstk_bpf_opts opts = options();
	struct shstk_bpf *b;

	if (!same("open", shstk_bpf_open(&opts, &b, why, sizeof(why)), 0))
		_exit(1);
	return b;
}

/* ---- The cases: loaders ---- */

static int count_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int ret = 0;

	while (folder && readdir(folder))
		ret++;
	if (folder)
		closedir(folder);
	return ret;
}

static bool opens_and_closes(void)
{
	const int before = count_files();
	bool good = true;

	for (int i = 0; i < ROUNDS && good; i++) {
		struct shstk_bpf *b = open_or_end();

		good = same("check", shstk_bpf_check(b, why, sizeof(why)), 0) && !*why &&
		       same("flags", fcntl(shstk_bpf_fd(b), F_GETFD), FD_CLOEXEC);
		shstk_bpf_close(&b);
		good = good && !b;
		shstk_bpf_close(&b);
	}
	return good && same("open files", count_files(), before);
}

static volatile sig_atomic_t children;

static void count_child(int sig)
{
	(void)sig;
	children++;
}

static bool has_no_child(void)
{
	struct shstk_bpf *b;
	bool good;

	signal(SIGCHLD, count_child);
	b = open_or_end();
	good = same("wait", wait(NULL), -1) && errno == ECHILD;
	shstk_bpf_close(&b);
	return good && same("wait", wait(NULL), -1) && same("SIGCHLD", children, 0);
}

/* The signals and descriptors that a loader may have by its own start. */
static bool works_as_it_was_started(void)
{
	struct shstk_bpf *b;
	sigset_t all, after;
	bool good;

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	dup2(STDOUT_FILENO, 9);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	b = open_or_end();
	good = !shstk_bpf_check(b, why, sizeof(why));
	shstk_bpf_close(&b);
	sigprocmask(SIG_SETMASK, NULL, &after);
	dup2(9, STDOUT_FILENO);
	return good && same("SIGTERM is blocked", sigismember(&after, SIGTERM), 1);
}

static bool lives_on_after_fork(void)
{
	struct shstk_bpf *b = open_or_end();
	int status = 1;
	pid_t child = fork();

	if (!child) {
		bool good = shstk_bpf_check(b, why, sizeof(why)) == -ECHILD && *why;

		shstk_bpf_close(&b);
		_exit(!good);
	}
	waitpid(child, &status, 0);
	child = same("the child", status, 0) &&
		same("check", shstk_bpf_check(b, why, sizeof(why)), 0);
	shstk_bpf_close(&b);
	return child;
}

static void *open_in_thread(void *arg)
{
	const struct shstk_bpf_opts opts = options();
	char text[128];

	return (void *)(long)shstk_bpf_open(&opts, arg, text, sizeof(text));
}

static bool opens_in_threads(void)
{
	struct shstk_bpf *b[THREADS];
	pthread_t threads[THREADS];
	bool good = true;
	void *err;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, open_in_thread, &b[i]))
			_exit(1);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &err);
		good &= same("open", (long)err, 0);
	}
	for (int i = 0; i < THREADS; i++)
		shstk_bpf_close(&b[i]);
	return good;
}

/* Returns the only child of this process. */
static pid_t find_child(void)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	pid_t ret = 0;

	while (folder && (entry = readdir(folder))) {
		char path[280];
		int parent = 0;
		FILE *stat;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		stat = atoi(entry->d_name) > 0 ? fopen(path, "re") : NULL;
		if (!stat)
			continue;
		if (fscanf(stat, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == getpid())
			ret = atoi(entry->d_name);
		fclose(stat);
	}
	if (folder)
		closedir(folder);
	return ret;
}

static bool learns_of_the_end(void)
{
	struct pollfd p = { .events = POLLIN };
	struct shstk_bpf *b;
	bool good;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	b = open_or_end();
	p.fd = shstk_bpf_fd(b);
	good = same("poll at first", poll(&p, 1, 0) > 0 && shstk_bpf_check(b, why, sizeof(why)), 0);
	kill(find_child(), SIGKILL);
	poll(&p, 1, -1);
	good = good && same("check", shstk_bpf_check(b, why, sizeof(why)), -ECHILD) && *why &&
	       same("check again", shstk_bpf_check(b, why, sizeof(why)), -ECHILD);
	shstk_bpf_close(&b);
	b = open_or_end();
	shstk_bpf_close(&b);
	return good;
}

/* ---- Failures ---- */

/* Returns whether opening fails with this error, and a reason that has the text. */
static bool fails(struct shstk_bpf_opts opts, int err, const char *text)
{
	const int before = count_files();
	struct shstk_bpf *b = (void *)&b;
	bool good = same(text, shstk_bpf_open(&opts, &b, why, sizeof(why)), -err) && !b;

	if (good && !strstr(why, text))
		good = printf("# '%s' is not in '%s'\n", text, why) < 0;
	return good && same("open files", count_files(), before);
}

static bool wrong_options_are_refused(void)
{
	struct shstk_bpf_opts o[5];

	for (int i = 0; i < 5; i++)
		o[i] = options();
	o[0].size--;
	o[1].timeout = 3601;
	o[2].messages = -1;
	o[3].reserved = 1;
	o[4].cache = "tables";
	for (int i = 0; i < 5; i++)
		if (!fails(o[i], EINVAL, i ? (i < 4 ? "value" : "absolute") : "size"))
			return false;
	o[0] = options();
	o[0].messages = 1000;
	return fails(o[0], EBADF, command);
}

static bool command_is_not_there(void)
{
	struct shstk_bpf_opts opts = options();

	opts.command = "/nonexistent/shstk";
	return fails(opts, ENOENT, "/nonexistent/shstk");
}

static bool folder_is_none(void)
{
	struct shstk_bpf_opts opts = options();

	opts.cache = "/dev/null/tables";
	return fails(opts, ENOTDIR, opts.cache);
}

static bool command_says_nothing(void)
{
	struct shstk_bpf_opts opts = options();

	opts.command = "/proc/self/exe";
	return fails(opts, ECHILD, "ended before");
}

static bool command_takes_too_long(void)
{
	struct shstk_bpf_opts opts = options();

	opts.command = "/proc/self/exe";
	opts.timeout = 1;
	opts.cache = "/late";
	return fails(opts, ETIMEDOUT, "after 1 second");
}

static bool rights_are_missing(void)
{
	prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN);
	prctl(PR_CAPBSET_DROP, CAP_BPF);
	return fails(options(), EPERM, "CAP_BPF");
}

static bool kernel_is_old(void)
{
	personality(UNAME26);
	return fails(options(), EOPNOTSUPP, "needs Linux 6.1");
}

static bool no_file_system(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", FOLDER, "tmpfs", 0, NULL))
		return false;
	return fails(options(), ENODEV, "mount -t bpf");
}

/* Pins a map under the name of one of ours, with other values. */
static bool pin_other_map(void)
{
	union bpf_attr make = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1
	};
	union bpf_attr pin = { .pathname = (uintptr_t)FOLDER "/shstk_config" };
	int fd = syscall(SYS_bpf, BPF_MAP_CREATE, &make, sizeof(make));

	pin.bpf_fd = fd;
	return fd >= 0 && !syscall(SYS_bpf, BPF_OBJ_PIN, &pin, sizeof(pin));
}

/* Adds 1 to the version that the maps tell, which is the first member of what they tell. */
static bool change_version(void)
{
	union bpf_attr get = { .pathname = (uintptr_t)FOLDER "/shstk_config" };
	uint32_t config[64] = { 0 }, key = 0;
	union bpf_attr element = { .key = (uintptr_t)&key, .value = (uintptr_t)config };
	int fd = syscall(SYS_bpf, BPF_OBJ_GET, &get, sizeof(get));

	element.map_fd = fd;
	if (fd < 0 || syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &element, sizeof(element)))
		return false;
	config[0]++;
	return !syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &element, sizeof(element));
}

/* Gives this process a file system for maps of its own, as the others need maps that fit. */
static bool has_own_maps(void)
{
	return !unshare(CLONE_NEWNS) && !mount("bpf", FOLDER, "bpf", 0, NULL);
}

static bool maps_have_another_size(void)
{
	return has_own_maps() && pin_other_map() && fails(options(), EPROTO, "another version");
}

static bool maps_tell_another_version(void)
{
	struct shstk_bpf *b;

	if (!has_own_maps())
		return false;
	b = open_or_end();
	shstk_bpf_close(&b);
	return change_version() && fails(options(), EPROTO, "another version");
}

/* The process that serves is there, and a second one, which would wait, looks at the maps. */
static bool served_maps_tell_another_version(void)
{
	struct shstk_bpf *b;
	bool good;

	if (!has_own_maps())
		return false;
	b = open_or_end();
	good = change_version() && fails(options(), EPROTO, "another version");
	shstk_bpf_close(&b);
	return good;
}

/* ---- Running the cases ---- */

/* Starts a loader. It writes to @ready what it likes, or never. */
static pid_t begin(bool (*loader)(void))
{
	pid_t child = fork();

	if (!child)
		_exit(!loader());
	return child;
}

/* Waits for all processes that are left: those that made tables end by themselves. */
static void await_all(void)
{
	while (wait(NULL) > 0)
		;
}

static void run(bool (*loader)(void), const char *name)
{
	int status = 1;

	waitpid(begin(loader), &status, 0);
	await_all();
	verdict(!status, name);
}

static int told[2];

/* A loader whose child has the handle, too. It tells the child, and waits. */
static bool waits_with_child(void)
{
	struct shstk_bpf *b = open_or_end();
	pid_t child = fork();

	if (child && write(told[1], &child, sizeof(child)) != sizeof(child))
		return false;
	for (;;)
		pause();
	return !b;
}

static void test_killed_loader(void)
{
	pid_t loader = begin(waits_with_child), child, ended;

	if (read(told[0], &child, sizeof(child)) != sizeof(child))
		_exit(1);
	kill(loader, SIGKILL);
	waitpid(loader, NULL, 0);
	ended = wait(NULL);
	verdict(ended > 0 && ended != child,
		"a loader is killed: the process that makes tables ends, "
		"also if a child of the loader lives on");
	kill(child, SIGKILL);
	await_all();
}

/* A loader that tells when tables are made, and closes when the pipe of others does. */
static int go_on[2];

static bool waits(void)
{
	struct shstk_bpf *b = open_or_end();
	const pid_t own = getpid();
	char byte;
	bool good;

	close(go_on[1]);
	if (write(told[1], &own, sizeof(own)) != sizeof(own) || read(go_on[0], &byte, 1))
		return false;
	good = same("check", shstk_bpf_check(b, why, sizeof(why)), 0);
	shstk_bpf_close(&b);
	return good;
}

/* Returns whether a process makes tables. */
static bool is_served(void)
{
	int fd = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ret = flock(fd, LOCK_EX | LOCK_NB);

	close(fd);
	return ret;
}

static void test_two_loaders(void)
{
	pid_t first, second, said;
	int status = 1;

	if (pipe(go_on))
		_exit(1);
	first = begin(waits);
	if (read(told[0], &said, sizeof(said)) != sizeof(said))
		_exit(1);
	second = begin(waits);
	if (read(told[0], &said, sizeof(said)) != sizeof(said))
		_exit(1);
	verdict(said == second && is_served(), "two loaders at once have tables made");
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	/* The first one's process. The second one's may not end before its loader does. */
	wait(NULL);
	while (!is_served())
		usleep(10000);
	close(go_on[1]);
	close(go_on[0]);
	waitpid(second, &status, 0);
	await_all();
	verdict(!status && !is_served(), "the first is killed: the second one's process goes on");
}

/* Makes a file system for maps of this process and its children. Returns whether it can. */
static bool mount_own(void)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("bpf", FOLDER, "bpf", 0, NULL);
}

/* Ends the test where this machine permits no BPF. */
static void skip_unless_possible(void)
{
	const struct shstk_bpf_opts opts = options();
	struct shstk_bpf *b;
	int err;

	if (!mount_own()) {
		printf("1..0 # SKIP no file system for BPF maps of its own\n");
		exit(4);
	}
	err = shstk_bpf_open(&opts, &b, why, sizeof(why));
	/* The last one is what a kernel says that has no such programs, or is locked down. */
	if (err == -EPERM || err == -EOPNOTSUPP ||
	    (err == -EINVAL && strstr(why, "the kernel refuses it"))) {
		printf("1..0 # SKIP %s\n", why);
		exit(4);
	}
	shstk_bpf_close(&b);
	await_all();
}

/* This program as the command: it says nothing, and ends at once, or with the loader's socket. */
static int be_command(int argc, char **argv)
{
	char byte;

	return argc > 6 && strstr(argv[6], "/late") ? (int)read(3, &byte, 1) : 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "rules"))
		return be_command(argc, argv);
	if (argc < 2 || pipe(told))
		return 1;
	setlinebuf(stdout);
	alarm(LIMIT);
	command = argv[1];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	printf("TAP version 13\n");
	skip_unless_possible();
	run(opens_and_closes, "opened and closed again and again, twice, too: no file stays open");
	run(has_no_child, "wait() finds no child, and no SIGCHLD comes");
	run(works_as_it_was_started, "with signals blocked and ignored, and no standard streams");
	run(lives_on_after_fork, "a child of the loader has no part in it, and closes its handle");
	run(opens_in_threads, "several threads open at once");
	run(learns_of_the_end, "the process that makes tables is killed: the loader learns of it");
	test_killed_loader();
	test_two_loaders();
	run(wrong_options_are_refused, "wrong options");
	run(command_is_not_there, "the command is not there");
	run(folder_is_none, "the folder of tables is none");
	run(command_says_nothing, "the command ends without a word");
	run(command_takes_too_long, "the command takes too long");
	run(rights_are_missing, "missing rights");
	run(kernel_is_old, "a kernel that is too old");
	run(no_file_system, "no file system for maps");
	run(maps_have_another_size, "maps of another version, of another size");
	run(maps_tell_another_version, "maps of another version, of the same size");
	run(served_maps_tell_another_version, "and while a process of that version serves them");
	printf("1..%u\n", number);
	return !!failed;
}
