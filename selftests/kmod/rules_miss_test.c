// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_miss_test.c - tests the files for which walks have no table: who is told of them, what does
 * not stop that, and what they do not hold
 *
 *	rules_miss_test
 *
 * Copies of this program run and are sampled, and nothing loads their tables.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/shstk_rules.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "copied.h"
#include "kselftest.h"
#include "number.h"
#include "rules_table.h"
#include "sampler.h"

#define FOLDER "/tmp/rules_miss"
#define MOUNT FOLDER "/mount"
#define FILES "/sys/module/shstk_perf/rules/files"
#define LIMIT "/sys/module/shstk_perf/parameters/rules_limit"
#define PERIOD 200000 /* ns */
#define PATIENCE 6000 /* tries of 50 ms each */
#define FLOOD 100 /* files of one process: more than there is room for */
#define FLOOD_SAMPLES 2000
#define OF_PROCESS 8 /* misses that are kept for one process */
#define OF_USER 32
#define PLACES 64
#define FUSE_NODE 2
#define STRANGER 1000
#define OTHER_STRANGER 2000
#define SUBORDINATE 100000
#define FURTHER 200000
#define LEASED "/tmp/rules_miss_leased"
#define AGAIN 20 /* tries; misses are kept for two seconds, perhaps too short */
#define CALL_MS 40000 /* for a call that must not wait; a lease is broken after 45 s */

static int device; /* it listens, without waiting */

/* ---- Programs without a table ---- */

static volatile int stay = 1;

static void be_child(int fd)
{
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(fd, &byte, 1) != 1)
		_exit(1);
	while (stay)
		;
}

static void be_copied(int fd)
{
	if (!copied_in_place(4096))
		_exit(1);
	be_child(fd);
}

static void await(int fd, const char *what)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		ksft_exit_fail_msg("%s died\n", what);
}

/* Starts another program, which runs until it is ended. @more is another argument, or NULL. */
static pid_t start(const char *path, const char *more)
{
	char fd[16];
	int ready[2];
	pid_t pid;

	if (pipe(ready))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		snprintf(fd, sizeof(fd), "%d", ready[1]);
		execl(path, path, fd, more, NULL);
		_exit(1);
	}
	close(ready[1]);
	await(ready[0], path);
	close(ready[0]);
	return pid;
}

/* Starts a process that runs a function of this program. */
static pid_t start_function(void (*fn)(int fd))
{
	int ready[2];
	pid_t pid;

	if (pipe(ready))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(ready[1]);
		_exit(1);
	}
	close(ready[1]);
	await(ready[0], "a child");
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void count(void *arg, const struct sample *s)
{
	if (s->nr)
		++*(unsigned int *)arg;
}

/* Samples until there are so many samples. The sampler stays open. */
static void begin_to_sample(struct sampler *s, pid_t pid, unsigned int samples)
{
	unsigned int nr = 0;
	int err = sampler_open(s, pid, PERIOD, false);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	for (int i = 0; i < PATIENCE && nr < samples; i++) {
		usleep(50000);
		sampler_drain(s, count, &nr);
	}
	if (nr < samples)
		ksft_print_msg("only %u samples\n", nr);
}

static void sample(pid_t pid, unsigned int samples)
{
	struct sampler s;

	begin_to_sample(&s, pid, samples);
	sampler_close(&s);
}

static void copy_self(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "cp /proc/$PPID/exe %s && chmod 755 %s", path, path);
	if (system(command))
		ksft_exit_fail_msg("%s: no copy\n", path);
}

/* ---- What is reported ---- */

static int ask(struct shstk_rules_miss *miss)
{
	return ioctl(device, SHSTK_RULES_MISS, miss) ? errno : 0;
}

static void forget_all(void)
{
	struct shstk_rules_miss miss;

	while (!ask(&miss))
		close(miss.fd);
}

static bool is_file(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Returns whether the file is among those that are reported, and closes all of them. */
static bool is_told_of(const char *path)
{
	struct pollfd p = { .fd = device, .events = POLLIN };
	struct shstk_rules_miss miss;
	bool found = false;

	poll(&p, 1, 2000);
	while (!ask(&miss)) {
		found |= is_file(miss.fd, path);
		close(miss.fd);
	}
	return found;
}

/* Samples until the file is among those that are reported, if it is. Returns whether it was. */
static bool comes_to_be_told_of(pid_t pid, const char *path)
{
	for (int i = 0; i < AGAIN; i++) {
		sample(pid, 5);
		if (is_told_of(path))
			return true;
	}
	return false;
}

static void test_ended(void)
{
	const char *path = FOLDER "/ended";
	struct shstk_rules_miss miss;
	pid_t pid;
	int err;

	copy_self(path);
	pid = start(path, NULL);
	sample(pid, 1);
	end(pid);
	err = ask(&miss);
	pid = start(path, NULL);
	ksft_test_result(err == EAGAIN && comes_to_be_told_of(pid, path),
			 "if a process has ended, the next one with the file is told of\n");
	end(pid);
}

/* Tests a program whose code, except its ends, lies in memory without a file. */
static void test_copied(void)
{
	const char *path = FOLDER "/copied";
	pid_t pid;

	copy_self(path);
	pid = start(path, "copied");
	ksft_test_result(comes_to_be_told_of(pid, path),
			 "a file whose code was copied in its place is told of\n");
	end(pid);
	forget_all();
}

static void test_umount(void)
{
	pid_t pid;

	mkdir(MOUNT, 0700);
	if (mount("none", MOUNT, "tmpfs", 0, NULL)) {
		ksft_test_result_skip("cannot mount: %s\n", strerror(errno));
		return;
	}
	copy_self(MOUNT "/program");
	pid = start(MOUNT "/program", NULL);
	sample(pid, 5);
	end(pid);
	ksft_test_result(!umount(MOUNT), "a file system can be unmounted when its program ends\n");
	umount2(MOUNT, MNT_DETACH);
	forget_all();
}

/* ---- Files that must not be opened ---- */

/* Runs code forever, in the file at @fd. */
static void run_in(int fd, int how, int ready)
{
#ifdef __x86_64__
	static const uint16_t code = 0xfeeb; /* jmp to itself */
#else
	static const uint32_t code = 0x14000000; /* b to itself */
#endif
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC | how, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED)
		_exit(1);
	if (how & PROT_WRITE)
		memcpy(at, &code, sizeof(code));
	else if (pwrite(fd, &code, sizeof(code), 0) != sizeof(code))
		_exit(1);
	__builtin___clear_cache((char *)at, (char *)at + sizeof(code));
	if (write(ready, "", 1) != 1)
		_exit(1);
	((void (*)(void))at)();
}

static void become(uid_t uid)
{
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(1);
}

/* Runs a stranger's own file, which the stranger may keep to himself for 45 seconds by a lease. */
static void run_leased(int ready)
{
	int fd;

	become(STRANGER);
	fd = open(LEASED, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	signal(SIGIO, SIG_IGN);
	if (fd < 0 || ftruncate(fd, 4096) || fcntl(fd, F_SETLEASE, F_WRLCK))
		_exit(1);
	run_in(fd, 0, ready);
}

static void run_device(int ready)
{
	run_in(open("/dev/zero", O_RDWR | O_CLOEXEC), PROT_WRITE, ready);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Returns how many of the reported files are @path's, and how long that took. */
static unsigned int told_of(const char *path, uint64_t *ms)
{
	struct shstk_rules_miss miss;
	unsigned int nr = 0;

	*ms = now_ms();
	while (!ask(&miss)) {
		nr += is_file(miss.fd, path);
		close(miss.fd);
	}
	*ms = now_ms() - *ms;
	return nr;
}

static void test_leased(void)
{
	unsigned int nr;
	uint64_t ms;
	pid_t pid;

	chmod("/tmp", 01777);
	forget_all();
	pid = start_function(run_leased);
	sample(pid, 20);
	nr = told_of(LEASED, &ms);
	ksft_test_result(!nr && ms < CALL_MS,
			 "a file on which somebody has a lease is not waited for: %llu ms\n",
			 (unsigned long long)ms);
	end(pid);
	unlink(LEASED);
}

static void test_device(void)
{
	uint64_t ms;
	pid_t pid;

	forget_all();
	pid = start_function(run_device);
	sample(pid, 20);
	ksft_test_result(!told_of("/dev/zero", &ms), "a device is not opened\n");
	end(pid);
}

static void deny(int fd)
{
	int fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
	struct fanotify_event_metadata event;

	if (fan < 0 || fanotify_mark(fan, FAN_MARK_ADD, FAN_OPEN_PERM, -1, FOLDER "/denied"))
		_exit(1);
	if (write(fd, "", 1) != 1)
		_exit(1);
	while (read(fan, &event, sizeof(event)) == sizeof(event)) {
		struct fanotify_response answer = { .fd = event.fd, .response = FAN_DENY };

		if (write(fan, &answer, sizeof(answer)) != sizeof(answer))
			_exit(1);
		close(event.fd);
	}
}

static bool can_deny(void)
{
	int fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);

	if (fan >= 0)
		close(fan);
	return fan >= 0;
}

static void test_denied(void)
{
	const char *path = FOLDER "/denied";
	struct shstk_rules_miss miss;
	pid_t pid, other, scanner;
	bool denied, told;
	int err;

	if (!can_deny()) {
		ksft_test_result_skip("no fanotify with permissions: %s\n", strerror(errno));
		return;
	}
	copy_self(path);
	copy_self(FOLDER "/allowed");
	pid = start(path, NULL);
	scanner = start_function(deny);
	denied = open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EPERM;
	sample(pid, 1);
	other = start(FOLDER "/allowed", NULL);
	told = comes_to_be_told_of(other, FOLDER "/allowed");
	err = ask(&miss);
	if (!denied || !told || err != EAGAIN)
		ksft_print_msg("denied: %d, told of the other: %d, then: %s\n", denied, told,
			       strerror(err));
	ksft_test_result(denied && told && err == EAGAIN,
			 "a file that fanotify denies is passed over, and others are told of\n");
	end(pid);
	end(other);
	end(scanner);
}

/*
 * The server of a file of one page that runs forever. It opens the file once, and then never again.
 * If it is @mute, it opens the file always, but reads are never answered.
 */
static bool mute;

static const struct fuse_attr fuse_attr = {
	.ino = FUSE_NODE,
	.size = 4096,
	.blocks = 8,
	.mode = S_IFREG | 0755,
	.nlink = 1,
	.blksize = 4096,
};

struct fuse_request {
	struct fuse_in_header in;
	char data[1 << 17];
};

static void answer(int fuse, const struct fuse_request *r, int error, const void *data, size_t size)
{
	struct {
		struct fuse_out_header out;
		char data[4096];
	} reply = { .out = { .unique = r->in.unique, .error = error } };

	reply.out.len = (uint32_t)(sizeof(reply.out) + size);
	memcpy(reply.data, data, size);
	/* The request may have been taken back. */
	if (write(fuse, &reply, reply.out.len) < 0)
		return;
}

static void serve_request(int fuse, const struct fuse_request *r)
{
	static bool opened;
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31 };
	struct fuse_entry_out entry = { .nodeid = FUSE_NODE, .attr = fuse_attr };
	struct fuse_attr_out attr = { .attr = fuse_attr };
	struct fuse_open_out opening = { 0 };
	static uint32_t page[1024];

#ifdef __x86_64__
	page[0] = 0xfeeb; /* jmp to itself */
#else
	page[0] = 0x14000000; /* b to itself */
#endif
	init.max_write = 4096;
	switch (r->in.opcode) {
	case FUSE_INIT:
		answer(fuse, r, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(fuse, r, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		if (r->in.nodeid == FUSE_ROOT_ID)
			attr.attr.mode = S_IFDIR | 0755;
		answer(fuse, r, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		if (!opened || mute)
			answer(fuse, r, 0, &opening, sizeof(opening));
		opened = true;
		break;
	case FUSE_READ:
		if (!mute)
			answer(fuse, r, 0, page, sizeof(page));
		break;
	case FUSE_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(fuse, r, -ENOSYS, NULL, 0);
	}
}

static void serve_file(int fd)
{
	static struct fuse_request r;
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("none", MOUNT, "fuse", MS_NOSUID | MS_NODEV, options)) {
		ksft_print_msg("FUSE: %s\n", strerror(errno));
		_exit(1);
	}
	if (write(fd, "", 1) != 1)
		_exit(1);
	while (read(fuse, &r, sizeof(r)) > 0 || errno == EINTR)
		serve_request(fuse, &r);
}

static void run_file(int ready)
{
	int fd = open(MOUNT "/file", O_RDONLY | O_CLOEXEC);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (code == MAP_FAILED) {
		ksft_print_msg(MOUNT "/file: %s\n", strerror(errno));
		_exit(1);
	}
	/* Touches the page, so that it is present. */
	(void)*(volatile char *)code;
	if (write(ready, "", 1) != 1)
		_exit(1);
	((void (*)(void))code)();
}

/* Returns whether a call comes back, with what it reports at once. */
static bool comes_back(void)
{
	struct shstk_rules_miss miss;
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		int err;

		while (!(err = ask(&miss)))
			close(miss.fd);
		_exit(err != EAGAIN);
	}
	for (int i = 0; i < 400; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return !status;
		usleep(50000);
	}
	return false;
}

static void test_fuse(void)
{
	pid_t server, pid;
	bool back;

	mkdir(MOUNT, 0700);
	if (access("/dev/fuse", R_OK)) {
		ksft_test_result_skip("no FUSE\n");
		return;
	}
	server = start_function(serve_file);
	pid = start_function(run_file);
	forget_all();
	sample(pid, 5);
	back = comes_back();
	/* The end of the server ends the processes that wait for it. */
	end(server);
	end(pid);
	umount2(MOUNT, MNT_DETACH);
	ksft_test_result(back, "a file system whose server does not answer is not waited for\n");
}

static void *page_of_file;

/*
 * Reads a page in the way in which the kernel waits for the file with the lock of the mappings
 * held.
 */
static void *read_page(void *arg)
{
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char byte;

	return pread(mem, &byte, 1, (off_t)(uintptr_t)page_of_file) == 1 ? arg : NULL;
}

/* Changes the mappings, so it waits for that lock; everybody who comes later waits behind it. */
static void *map_more(void *arg)
{
	usleep(500000);
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arg;
}

/* Nobody else can look at this program's mappings until the server ends. */
static void be_locked(int ready)
{
	int fd = open(MOUNT "/file", O_RDONLY | O_CLOEXEC);
	pthread_t thread[2];

	page_of_file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	/*
	 * Creating a thread maps its stack. So the thread that waits for the lock is created first.
	 */
	if (page_of_file == MAP_FAILED || pthread_create(&thread[1], NULL, map_more, NULL) ||
	    pthread_create(&thread[0], NULL, read_page, NULL))
		_exit(1);
	sleep(1);
	be_child(ready);
}

static void test_locked(void)
{
	const char *path = FOLDER "/locked";
	pid_t server, pid;
	bool back, told = false;

	if (access("/dev/fuse", R_OK)) {
		ksft_test_result_skip("no FUSE\n");
		return;
	}
	copy_self(path);
	mute = true;
	server = start_function(serve_file);
	pid = start(path, "locked");
	forget_all();
	sample(pid, 5);
	back = comes_back();
	end(server);
	/* When the process can be looked at again, its file is missed again. */
	for (int i = 0; i < 50 && !told; i++) {
		sample(pid, 5);
		told = is_told_of(path);
	}
	ksft_test_result(
		back && told,
		"a process whose mappings are locked is not waited for, but told of later\n");
	end(pid);
	umount2(MOUNT, MNT_DETACH);
}

/* ---- Many files ---- */

static int open_memfd(void)
{
	return memfd_create("flood", MFD_CLOEXEC);
}

/* Spends some time in each of @nr files, which only this process has. */
static void flood_files(int nr, int ready)
{
#ifdef __x86_64__
	/* mov $200000, %ecx; 1: dec %ecx; jnz 1b; ret */
	static const unsigned char code[] = { 0xb9, 0x40, 0x0d, 0x03, 0,
					      0xff, 0xc9, 0x75, 0xfc, 0xc3 };
#else
	/* mov w9, #0x30000; 1: subs w9, w9, #1; b.ne 1b; ret */
	static const uint32_t code[] = { 0x52a00069, 0x71000529, 0x54ffffe1, 0xd65f03c0 };
#endif
	void *at[FLOOD];

	for (int i = 0; i < nr; i++) {
		int fd = open_memfd();

		if (write(fd, code, sizeof(code)) != sizeof(code))
			_exit(1);
		at[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		close(fd);
		if (at[i] == MAP_FAILED)
			_exit(1);
	}
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (int i = 0;; i++)
		((void (*)(void))at[i % nr])();
}

static void flood(int ready)
{
	flood_files(FLOOD, ready);
}

/* Returns how often chains ended in a file's code because nothing is known of the file. */
static unsigned long cut_in(const char *path)
{
	struct shstk_rules_cuts cut = { 0 };
	unsigned long sum = 0;
	struct stat st;

	if (stat(path, &st))
		return 0;
	while (!ioctl(device, SHSTK_RULES_CUTS, &cut))
		if (cut.ino == st.st_ino &&
		    cut.dev == ((uint64_t)major(st.st_dev) << 20 | minor(st.st_dev)))
			sum += cut.no_table;
	return sum;
}

static void test_flood(void)
{
	struct shstk_rules_miss miss;
	unsigned int of_flood = 0, of_other = 0, more = 0;
	struct sampler s;
	pid_t pid, other;

	copy_self(FOLDER "/other");
	forget_all();
	pid = start_function(flood);
	/* Misses are kept for two seconds only, so the flood continues. */
	begin_to_sample(&s, pid, FLOOD_SAMPLES);
	other = start(FOLDER "/other", NULL);
	sample(other, 5);
	sampler_close(&s);
	for (int i = 0; i < AGAIN && !of_other; i++) {
		while (!ask(&miss)) {
			of_flood += miss.pid == (uint32_t)pid;
			of_other += is_file(miss.fd, FOLDER "/other");
			close(miss.fd);
		}
		if (!of_other)
			sample(other, 5);
	}
	end(pid);
	/*
	 * After two seconds a place may be taken, because nothing was counted in it for a second.
	 */
	sleep(2);
	sample(other, 50);
	more = (unsigned int)cut_in(FOLDER "/other");
	end(other);
	ksft_print_msg("%u files of one process, %u of another; %u of its chains cut\n", of_flood,
		       of_other, more);
	/* Two CPUs may ask for one file at the same time. */
	ksft_test_result(of_flood <= OF_PROCESS && of_other,
			 "a process with many files leaves room for others'\n");
	ksft_test_result(more, "and where chains ended is told of others' files, too\n");
}

/* ---- Many users ---- */

#define CROWD 10 /* processes of a user: more than there is room for */
#define ITS_FILES 16
#define MORE_FILES 40
#define WORKERS 10
#define ROUNDS 5
#define TURNS 1000 /* tries; a few do unless the machine stalls for seconds */
#define CROWD_SAMPLES 4000

/* Spends some time in each of a few files; see flood_files(). */
static void flood_as(uid_t uid, int ready)
{
	become(uid);
	flood_files(ITS_FILES, ready);
}

static void flood_as_other(int ready)
{
	flood_as(OTHER_STRANGER, ready);
}

/*
 * For the user namespace of @next_owner, the stranger or root, with two subordinate ids, 1 and 2. The
 * next process becomes next_id.
 */
static int namespace_ready[2];
static uid_t next_id, next_owner = STRANGER;

static void become_subordinate(int ready)
{
	char byte;

	become(next_owner);
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER) || write(ready, "", 1) != 1 ||
	    read(namespace_ready[0], &byte, 1) != 1)
		_exit(1);
	become(next_id);
}

static void flood_subordinate(int ready)
{
	next_id = 1 + (uid_t)getpid() % 2;
	become_subordinate(ready);
	flood_files(ITS_FILES, ready);
}

static bool map_ids(pid_t pid)
{
	char path[64], map[128];
	int root = next_owner ? (int)next_owner : SUBORDINATE + 2;
	int n = snprintf(map, sizeof(map), "0 %d 1\n1 %d 2\n", root, SUBORDINATE);

	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s_map", pid, i ? "gid" : "uid");
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, map, (size_t)n) != n)
			return false;
		close(fd);
	}
	return true;
}

/* Starts a process with subordinate ids. Returns whether it has them. */
static bool start_mapped(pid_t *pid, void (*fn)(int ready))
{
	bool good;

	if (pipe(namespace_ready))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	*pid = start_function(fn);
	good = map_ids(*pid) && write(namespace_ready[1], "", 1) == 1;
	close(namespace_ready[0]);
	close(namespace_ready[1]);
	return good;
}

/**
 * struct crowd - processes that are sampled as long as the crowd exists
 * @pid: the processes.
 * @sampler: the sampler of each process.
 * @nr: number of processes.
 */
struct crowd {
	pid_t pid[2 * CROWD];
	struct sampler sampler[2 * CROWD];
	int nr;
};

/* Adds processes to a crowd, with subordinate ids if @maps. Returns whether they have these. */
static bool start_crowd(struct crowd *c, void (*fn)(int ready), bool maps)
{
	bool good = true;

	for (int i = 0; i < CROWD && good; i++) {
		if (maps)
			good = start_mapped(&c->pid[c->nr], fn);
		else
			c->pid[c->nr] = start_function(fn);
		c->nr++;
	}
	return good;
}

static void open_crowd(struct crowd *c)
{
	unsigned int samples = 0;

	for (int i = 0; i < c->nr; i++)
		if (sampler_open(&c->sampler[i], c->pid[i], PERIOD, false))
			ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	for (int i = 0; i < PATIENCE && samples < CROWD_SAMPLES; i++) {
		usleep(50000);
		for (int k = 0; k < c->nr; k++)
			sampler_drain(&c->sampler[k], count, &samples);
	}
}

static void close_crowd(struct crowd *c)
{
	for (int i = 0; i < c->nr; i++)
		sampler_close(&c->sampler[i]);
}

static void end_crowd(struct crowd *c)
{
	close_crowd(c);
	for (int i = 0; i < c->nr; i++)
		end(c->pid[i]);
	free(c);
}

/*
 * Reads misses and returns their number: all there are, or as many as there are places for, since
 * new ones may come as fast as they are read. *@of_other receives how many of them are @other's,
 * and *@first receives the position of the first of these, counted from 1, or 0 if there is none.
 */
static unsigned int drain_misses(pid_t other, unsigned int *of_other, unsigned int *first)
{
	struct shstk_rules_miss miss;
	unsigned int nr = 0;

	*of_other = 0;
	*first = 0;
	while (nr < PLACES && !ask(&miss)) {
		nr++;
		if (miss.pid == (uint32_t)other && !*first)
			*first = nr;
		*of_other += miss.pid == (uint32_t)other;
		close(miss.fd);
	}
	return nr;
}

/*
 * Samples @other until its file is reported, or until it is not reported although all places are
 * taken. The results are those of drain_misses(). The crowd is sampled meanwhile, too.
 */
static unsigned int sample_and_drain(pid_t other, unsigned int *of_other, unsigned int *first)
{
	unsigned int nr = 0;

	*of_other = 0;
	for (int i = 0; i < AGAIN && !*of_other && nr < PLACES; i++) {
		sample(other, 5);
		nr = drain_misses(other, of_other, first);
	}
	return nr;
}

static void test_subordinate(void)
{
	struct crowd *c = calloc(1, sizeof(*c));
	unsigned int of_other, first, nr = 0;
	bool good;
	pid_t other;

	forget_all();
	good = start_crowd(c, flood_subordinate, true);
	for (int i = 0; i < AGAIN && !nr; i++) {
		open_crowd(c);
		close_crowd(c);
		nr = drain_misses(0, &of_other, &first);
	}
	ksft_test_result(good && nr && nr <= OF_USER,
			 "subordinate ids of a user are one user: %u files\n", nr);
	open_crowd(c);
	copy_self(FOLDER "/turn");
	other = start(FOLDER "/turn", NULL);
	nr = sample_and_drain(other, &of_other, &first);
	ksft_test_result(of_other && first <= 2, "users are told of in turn: number %u of %u\n",
			 first, nr);
	end(other);
	end_crowd(c);
}

/*
 * Samples @other until the ends of its chains are counted, and returns whether they are. The crowd
 * is sampled meanwhile, too. A file in which no chain ended for a second may lose its place to
 * another one, so the counts are read at once.
 */
static bool sample_and_count(pid_t other, const char *path)
{
	unsigned long cut = 0;

	for (int i = 0; i < AGAIN && !cut; i++) {
		sample(other, 5);
		cut = cut_in(path);
	}
	return cut;
}

/* Tests a user with two ids, another user, and a third one who comes late. */
static void test_users(void)
{
	struct crowd *c = calloc(1, sizeof(*c));
	unsigned int of_other, first, nr;
	bool good;
	pid_t other;

	copy_self(FOLDER "/late");
	good = start_crowd(c, flood_subordinate, true) && start_crowd(c, flood_as_other, false);
	other = start(FOLDER "/late", NULL);
	forget_all();
	open_crowd(c);
	sample(other, 50);
	nr = sample_and_drain(other, &of_other, &first);
	ksft_test_result(good && of_other,
			 "who comes when all places are taken gets one: %u of %u\n", of_other, nr);
	ksft_test_result(sample_and_count(other, FOLDER "/late"),
			 "and one where ends of chains are counted\n");
	end(other);
	end_crowd(c);
}

/* ---- One user with two ids ---- */

enum order { TOUCH_NEW_FILES = 1, TOUCH_FILES };

/**
 * struct worker - a process that runs code in its files when it is told to
 * @pid: the process.
 * @order: pipe for orders.
 * @done: pipe in which it says that an order is done.
 * @sampler: samples its page faults. The code in each file writes to a new page, so the files are
 *	counted at once, however slow the machine is.
 */
struct worker {
	pid_t pid;
	int order[2];
	int done[2];
	struct sampler sampler;
};

/* The worker that is being started. */
static struct worker *next_worker;

typedef void (*writer)(volatile char *to);

/*
 * Maps code that writes to a page. Meanwhile the frame pointer leads nowhere, so that the chain ends
 * in the file.
 */
static writer map_writer(int fd)
{
#ifdef __x86_64__
	/* push %rbp; mov $8, %ebp; movb $0, (%rdi); pop %rbp; ret */
	static const unsigned char code[] = { 0x55, 0xbd, 8, 0, 0, 0, 0xc6, 0x07, 0, 0x5d, 0xc3 };
#else
	/* mov x9, x29; mov x29, #8; strb wzr, [x0]; mov x29, x9; ret */
	static const uint32_t code[] = { 0xaa1d03e9, 0xd280011d, 0x3900001f, 0xaa0903fd,
					 0xd65f03c0 };
#endif
	void *at;

	if (write(fd, code, sizeof(code)) != sizeof(code))
		_exit(1);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		_exit(1);
	return (writer)at;
}

/* Opens a file without a name, on the file system of /tmp. */
static int open_in_tmp(void)
{
	return open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0700);
}

static void touch_files(const writer *fn)
{
	const size_t size = (size_t)getpagesize();
	char *pages = mmap(NULL, MORE_FILES * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		_exit(1);
	for (size_t i = 0; i < MORE_FILES; i++)
		fn[i](pages + i * size);
	munmap(pages, MORE_FILES * size);
}

/* Maps new files instead of those of before. */
static void map_writers(writer *fn, int (*open_file)(void))
{
	for (int i = 0; i < MORE_FILES; i++) {
		if (fn[i])
			munmap((void *)fn[i], 4096);
		fn[i] = map_writer(open_file());
	}
}

static void be_worker(const struct worker *w, int (*open_file)(void))
{
	writer fn[MORE_FILES] = { NULL };
	char order;

	while (read(w->order[0], &order, 1) == 1) {
		if (order == TOUCH_NEW_FILES)
			map_writers(fn, open_file);
		touch_files(fn);
		if (write(w->done[1], "", 1) != 1)
			_exit(1);
	}
}

static void work_subordinate(int ready)
{
	become_subordinate(ready);
	be_worker(next_worker, open_memfd);
}

/* Works by one of the ids that count as the stranger, outside of any namespace of the stranger's. */
static void work_further(int ready)
{
	become(FURTHER + next_id);
	if (write(ready, "", 1) != 1)
		_exit(1);
	be_worker(next_worker, open_memfd);
}

static void work_other(int ready)
{
	become(OTHER_STRANGER);
	if (write(ready, "", 1) != 1)
		_exit(1);
	be_worker(next_worker, open_in_tmp);
}

static void start_worker(struct worker *w, void (*fn)(int ready), bool maps)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_kernel = 1,
	};

	next_worker = w;
	if (pipe(w->order) || pipe(w->done))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	if (!maps)
		w->pid = start_function(fn);
	else if (!start_mapped(&w->pid, fn))
		ksft_exit_fail_msg("no subordinate ids: %s\n", strerror(errno));
	if (sampler_open_attr(&w->sampler, w->pid, &attr))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
}

static void tell_worker(struct worker *w, enum order order)
{
	char byte = (char)order;
	unsigned int nr = 0;

	if (write(w->order[1], &byte, 1) != 1)
		ksft_exit_fail_msg("no worker: %s\n", strerror(errno));
	await(w->done[0], "a worker");
	sampler_drain(&w->sampler, count, &nr);
}

static void end_worker(struct worker *w)
{
	sampler_close(&w->sampler);
	end(w->pid);
	for (int i = 0; i < 2; i++) {
		close(w->order[i]);
		close(w->done[i]);
	}
}

/*
 * Returns the most places that processes of two ids had at a time, which could fill all. Misses are kept
 * for two seconds, so the places are read until they were full in time.
 */
static unsigned int places_of(void (*work)(int ready), bool maps)
{
	struct worker w[WORKERS];
	unsigned int nr = 0, most = 0, of_other, first;

	for (int i = 0; i < WORKERS; i++) {
		next_id = 1 + (uid_t)i % 2;
		start_worker(&w[i], work, maps);
	}
	for (int i = 0; i < TURNS && nr < OF_USER; i++) {
		forget_all();
		for (int k = 0; k < WORKERS; k++)
			tell_worker(&w[k], TOUCH_NEW_FILES);
		nr = drain_misses(0, &of_other, &first);
		if (nr > most)
			most = nr;
	}
	for (int i = 0; i < WORKERS; i++)
		end_worker(&w[i]);
	return most;
}

/* Tests that two subordinate ids have the places of one user, whoever made their user namespace. */
static void test_places(uid_t owner)
{
	unsigned int most;

	next_owner = owner;
	most = places_of(work_subordinate, true);
	next_owner = STRANGER;
	ksft_test_result(most == OF_USER,
			 "ids of a namespace of user %u have the places of one user: %u\n", owner,
			 most);
}

/* Tests that ids which were told to be a user's have the places of one user outside of a namespace, too. */
static void test_further_places(void)
{
	int told = rules_count_as(device, FURTHER, 3, STRANGER);
	unsigned int most = places_of(work_further, false);

	ksft_test_result(!told && most == OF_USER,
			 "a user's further ids have the places of one user: %u\n", most);
}

/* Returns in how many files of the file system of /tmp chains ended, and in how many of others. */
static unsigned int count_cuts(unsigned int *others)
{
	struct shstk_rules_cuts cut = { 0 };
	unsigned int nr = 0;
	struct stat st;

	*others = 0;
	if (stat("/tmp", &st))
		return 0;
	while (!ioctl(device, SHSTK_RULES_CUTS, &cut))
		if (cut.dev == ((uint64_t)major(st.st_dev) << 20 | minor(st.st_dev)))
			nr++;
		else
			(*others)++;
	return nr;
}

/*
 * Returns whether the other user has half of the places. A file loses its place to anybody if no
 * chain ended in it for a second, so on a slow machine that may not be so at each time.
 */
static bool has_half(struct worker *w, unsigned int *nr, unsigned int *others)
{
	for (int i = 0; i < 3 * ROUNDS; i++)
		tell_worker(&w[i % 3], TOUCH_FILES);
	*nr = count_cuts(others);
	return *nr >= PLACES / 2 - 1 && *nr <= PLACES / 2 + 1 && *nr + *others == PLACES;
}

/*
 * Tests two ids of one user against another user, all with files for more than half of the places. @late:
 * whose they are is told when all have places.
 */
static void test_cuts(void (*work)(int ready), bool maps, bool late)
{
	unsigned int nr = 0, others = 0;
	struct worker w[3];
	int half = 0;

	for (int i = 0; i < 3; i++) {
		next_id = 1 + (uid_t)i;
		start_worker(&w[i], i < 2 ? work : work_other, i < 2 && maps);
		tell_worker(&w[i], TOUCH_NEW_FILES);
	}
	if (late) {
		has_half(w, &nr, &others);
		rules_count_as(device, FURTHER, 3, STRANGER);
	}
	/* By luck it may have half of the places once, on its way to more or less. */
	for (int i = 0; i < TURNS && half < ROUNDS; i++)
		half = has_half(w, &nr, &others) ? half + 1 : 0;
	for (int i = 0; i < 3; i++)
		end_worker(&w[i]);
	ksft_test_result(
		half == ROUNDS,
		"and those of one where ends of chains are counted%s: %u, another user %u\n",
		late ? ", also if that is told later" : "", others, nr);
}

/* ---- Marks of files ---- */

static bool no_file_is_held(void)
{
	for (int i = 0; i < 200; i++) {
		if (!read_number(FILES))
			return true;
		usleep(50000);
	}
	return false;
}

static void write_limit(unsigned long limit)
{
	FILE *f = fopen(LIMIT, "we");

	if (!f || fprintf(f, "%lu", limit) < 0 || fclose(f))
		ksft_exit_fail_msg(LIMIT ": %s\n", strerror(errno));
}

/* Loads a table. Returns 0 or an errno. */
static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = rules_load(device, fd);

	close(fd);
	return err;
}

static void test_marks(void)
{
	struct shstk_rules_info info = { 0 };
	const char *path = FOLDER "/marked";
	long held;
	int err, fd;

	copy_self(path);
	err = load(path);
	held = read_number(FILES);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (write(fd, "x", 1) != 1)
		ksft_print_msg("%s: %s\n", path, strerror(errno));
	close(fd);
	ksft_test_result(!err && held == 1 && no_file_is_held(),
			 "a file that was written to is not held\n");
	ioctl(device, SHSTK_RULES_INFO, &info);
	write_limit(sizeof(struct shstk_rules_header) + 32);
	err = load(path);
	write_limit(info.limit);
	ksft_test_result(err == ENOSPC && no_file_is_held(), "nor one whose table had no room\n");
	err = load(path);
	ksft_test_result(!err && read_number(FILES) == 1, "and then it may have one\n");
}

/* Tests that each call has one direction. */
static void test_direction(void)
{
	struct shstk_rules_drop arg = { .fd = -1, .flags = SHSTK_RULES_DROP_ALL };
	const unsigned int nr = _IOC_NR(SHSTK_RULES_DROP);

	ksft_test_result(ioctl(device, _IOC(_IOC_NONE, SHSTK_RULES_IOC, nr, sizeof(arg)), &arg) &&
				 errno == ENOTTY &&
				 ioctl(device, _IOWR(SHSTK_RULES_IOC, nr, arg), &arg) &&
				 errno == ENOTTY && read_number(FILES) == 1,
			 "a call in another direction is ENOTTY\n");
	ioctl(device, SHSTK_RULES_DROP, &arg);
}

int main(int argc, char **argv)
{
	struct shstk_rules_miss miss;

	if (argc == 2)
		be_child(atoi(argv[1]));
	if (argc == 3 && !strcmp(argv[2], "copied"))
		be_copied(atoi(argv[1]));
	if (argc == 3)
		be_locked(atoi(argv[1]));
	ksft_print_header();
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	ksft_set_plan(24);
	mkdir("/tmp", 0755);
	if (mkdir(FOLDER, 0700) && errno != EEXIST)
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	ioctl(device, SHSTK_RULES_DROP,
	      &(struct shstk_rules_drop){ .flags = SHSTK_RULES_DROP_ALL });
	/* From now on the device has a listener. */
	if (ask(&miss) != EAGAIN)
		ksft_print_msg("something was missed already\n");
	test_ended();
	test_copied();
	test_umount();
	test_denied();
	test_leased();
	test_device();
	test_fuse();
	test_locked();
	test_flood();
	test_subordinate();
	test_users();
	test_places(STRANGER);
	test_places(0);
	test_cuts(work_subordinate, true, false);
	test_further_places();
	test_cuts(work_further, false, false);
	rules_count_as(device, 0, 0, 0);
	test_cuts(work_further, false, true);
	rules_count_as(device, 0, 0, 0);
	test_marks();
	test_direction();
	ksft_finished();
}
