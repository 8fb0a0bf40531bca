// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_test.c - tests unwind rules in the kernel: who may load them, that only valid tables are
 * accepted, how long a table lives, and that walks by rules are exact
 *
 *	rules_test SHSTK
 *
 * SHSTK is the command, which compiles this program's own table. This program has no frame
 * pointers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/shstk_rules.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "sampler.h"

#define noinline_ __attribute__((noinline, noclone))
#define FOLDER "/tmp/rules_test"
#define DEPTH 30
#define SAMPLES 50
#define AGAIN 20 /* tries */
#define LOOKS 6000 /* looks for samples, every 50 ms: an emulated CPU may be waited for */
#define FOREVER_BYTES 8 /* size of forever() alone */
#define NOBODY 65534
#define COUNTERS "/sys/module/shstk_perf/rules/"
#define LIMIT "/sys/module/shstk_perf/parameters/rules_limit"

static int device;
static const char *shstk;

/* ---- A small table ---- */

enum { RULES = 3, PAGES = 2, ROWS = 5 };

struct small {
	struct shstk_rules_header header;
	uint64_t rule[RULES];
	uint32_t page[PAGES + 1];
	uint32_t row[ROWS];
};

static struct small small(void)
{
	struct shstk_rules_info info = { 0 };
	struct small t = {
		.header = {
			.magic = SHSTK_RULES_MAGIC, .version = SHSTK_RULES_VERSION,
			.nr_rules = RULES, .nr_pages = PAGES, .nr_rows = ROWS,
		},
		.rule = {
			SHSTK_RULE_NONE,
			SHSTK_RULE_SP | 1ull << SHSTK_RULE_CFA_SHIFT,
			SHSTK_RULE_FP | 2ull << SHSTK_RULE_CFA_SHIFT |
				2ull << SHSTK_RULE_FP_SHIFT,
		},
		.page = { 0, 3, ROWS },
		.row = { 0, 0x100 << 16 | 1, 0x200 << 16 | 2, 1, 0x800 << 16 },
	};

	ioctl(device, SHSTK_RULES_INFO, &info);
	t.header.machine = info.machine;
	return t;
}

/* Loads a table. Returns 0 or an errno. */
static int load(int fd, const void *table, size_t size)
{
	struct shstk_rules_load arg = {
		.table = (uintptr_t)table,
		.size = size,
		.fd = fd,
		.name = "test",
	};

	return ioctl(device, SHSTK_RULES_LOAD, &arg) ? errno : 0;
}

static int load_small(int fd)
{
	struct small t = small();

	return load(fd, &t, sizeof(t));
}

static int drop(int fd, unsigned int flags)
{
	struct shstk_rules_drop arg = { .fd = fd, .flags = flags };

	return ioctl(device, SHSTK_RULES_DROP, &arg) ? errno : 0;
}

static unsigned int tables(void)
{
	struct shstk_rules_info info = { 0 };

	return ioctl(device, SHSTK_RULES_INFO, &info) ? ~0u : (unsigned int)info.tables;
}

static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "some bytes", 10) != 10 || close(fd))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* ---- Who may load, and what ---- */

static bool all_refused(void)
{
	struct shstk_rules_list list = { 0 };
	struct shstk_rules_users users = { 0 };
	struct shstk_rules_miss miss;
	struct shstk_rules_info info;
	int fd = open("/proc/self/exe", O_RDONLY);

	return load_small(fd) == EPERM && drop(fd, 0) == EPERM &&
	       drop(-1, SHSTK_RULES_DROP_ALL) == EPERM && ioctl(device, SHSTK_RULES_LIST, &list) &&
	       errno == EPERM && ioctl(device, SHSTK_RULES_MISS, &miss) && errno == EPERM &&
	       ioctl(device, SHSTK_RULES_USERS, &users) && errno == EPERM &&
	       !ioctl(device, SHSTK_RULES_INFO, &info) && open(SHSTK_RULES_DEVICE, O_RDWR) < 0 &&
	       errno == EACCES;
}

static void test_permission(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(setresuid(NOBODY, NOBODY, NOBODY) || !all_refused());
	waitpid(pid, &status, 0);
	ksft_test_result(!status, "other users get EPERM, and EACCES for the device\n");
}

static void test_arguments(void)
{
	struct small t = small();
	struct shstk_rules_load arg = { .table = (uintptr_t)&t, .size = sizeof(t), .fd = -1 };
	struct {
		struct shstk_rules_load arg;
		uint64_t more;
	} longer = { .arg = arg };
	const unsigned long cmd = _IOC(_IOC_WRITE, SHSTK_RULES_IOC, 0x41, sizeof(longer));
	struct shstk_rules_list list = { .reserved = 1 };

	arg.flags = 1;
	ksft_test_result(ioctl(device, SHSTK_RULES_LOAD, &arg) && errno == EINVAL,
			 "unknown flags are EINVAL\n");
	ksft_test_result(drop(-1, 2) == EINVAL, "so they are of drop\n");
	ksft_test_result(ioctl(device, SHSTK_RULES_LIST, &list) && errno == EINVAL,
			 "a reserved field that is not 0 is EINVAL\n");
	longer.more = 1;
	ksft_test_result(ioctl(device, cmd, &longer) && errno == E2BIG,
			 "a field that is not known is E2BIG\n");
	ksft_test_result(ioctl(device, _IO(SHSTK_RULES_IOC, 0x7f), 0) && errno == ENOTTY,
			 "an unknown call is ENOTTY\n");
	ksft_test_result(load(-1, NULL, sizeof(t)) == EFAULT,
			 "a table that is not there is EFAULT\n");
}

static void test_files(void)
{
	int fd = make_file(FOLDER "/file"), writer;

	ksft_test_result(load_small(-2) == EBADF && load_small(999) == EBADF, "no file is EBADF\n");
	ksft_test_result(load_small(open("/tmp", O_RDONLY)) == EISDIR, "a directory is EISDIR\n");
	ksft_test_result(load_small(open("/dev/null", O_RDONLY)) == ENODEV, "a device is ENODEV\n");
	writer = open(FOLDER "/file", O_WRONLY);
	ksft_test_result(load_small(writer) == EBADF, "a file not open for reading is EBADF\n");
	ksft_test_result(load_small(fd) == ETXTBSY, "one that is being written is ETXTBSY\n");
	close(writer);
	ksft_test_result(!load_small(fd) && tables() == 1, "any other file is taken\n");
	close(fd);
}

/* Returns whether the error may be an answer about the table: 0, EINVAL or EXDEV. */
static bool is_answer(int err)
{
	return !err || err == EINVAL || err == EXDEV;
}

static void test_mutated(void)
{
	static const uint8_t mask[] = { 0x01, 0x80, 0xff, 0x10 };
	struct small good = small(), t;
	unsigned int taken = 0, refused = 0, other = 0;
	int fd = make_file(FOLDER "/mutated"), err;

	for (size_t i = 0; i < sizeof(good); i++) {
		for (size_t k = 0; k < sizeof(mask); k++) {
			t = good;
			((uint8_t *)&t)[i] ^= mask[k];
			err = load(fd, &t, sizeof(t));
			taken += !err;
			refused += err && is_answer(err);
			other += !is_answer(err);
		}
	}
	ksft_print_msg("%u taken, %u refused\n", taken, refused);
	ksft_test_result(!other && refused > taken, "a table with any byte changed is taken or "
						    "refused with the errors said\n");
	for (size_t n = 0, err2 = 0; n < sizeof(good); n++, other += err2 != EINVAL)
		err2 = load(fd, &good, n);
	ksft_test_result(!other, "one of any other size is EINVAL\n");
	t = good;
	t.page[1] = 0xffffffff;
	ksft_test_result(load(fd, &t, sizeof(t)) == EINVAL, "so is a page outside of the rows\n");
	t = good;
	t.row[1] |= RULES;
	ksft_test_result(load(fd, &t, sizeof(t)) == EINVAL, "so is a rule that is not there\n");
	t = good;
	t.rule[1] |= 15;
	ksft_test_result(load(fd, &t, sizeof(t)) == EINVAL, "so is an unknown kind of rule\n");
	t = good;
	t.header.machine ^= 1;
	ksft_test_result(load(fd, &t, sizeof(t)) == EXDEV, "another machine's is EXDEV\n");
	close(fd);
}

/* ---- The life of a table ---- */

static void test_life(void)
{
	unsigned int before = tables();
	struct shstk_rules_list list = { 0 };
	int fd = make_file(FOLDER "/life"), out, id;

	ksft_test_result(!load_small(fd) && tables() == before + 1, "a file has a table\n");
	for (id = 0; !ioctl(device, SHSTK_RULES_LIST, &list); id = (int)list.id)
		;
	ksft_test_result(errno == ENOENT && id && !strcmp(list.name, "test"), "it is listed\n");
	ksft_test_result(!load_small(fd) && tables() == before + 1, "another replaces it\n");
	list = (struct shstk_rules_list){ .id = (uint32_t)id };
	ksft_test_result(!ioctl(device, SHSTK_RULES_LIST, &list), "and has a new number\n");
	ksft_test_result(!drop(fd, 0) && tables() == before, "it is dropped\n");
	ksft_test_result(drop(fd, 0) == ENOENT, "only once\n");

	load_small(fd);
	out = open(FOLDER "/life", O_WRONLY);
	ksft_test_result(tables() == before + 1 && write(out, "x", 1) == 1 && tables() == before,
			 "a write to the file drops it\n");
	close(out);
	load_small(fd);
	ksft_test_result(tables() == before + 1 && !truncate(FOLDER "/life", 3) &&
				 tables() == before,
			 "cutting the file drops it\n");
	load_small(fd);
	ksft_test_result(!unlink(FOLDER "/life") && tables() == before + 1,
			 "it outlives the name of an open file\n");
	close(fd);
	ksft_test_result(tables() == before, "and goes with the file\n");
	ksft_test_result(!drop(-1, SHSTK_RULES_DROP_ALL) && !tables(), "all are dropped\n");
}

static void test_umount(void)
{
	int fd, err;

	mkdir(FOLDER "/mount", 0700);
	if (mount("none", FOLDER "/mount", "tmpfs", 0, NULL)) {
		ksft_test_result_skip("cannot mount: %s\n", strerror(errno));
		return;
	}
	fd = make_file(FOLDER "/mount/file");
	err = load_small(fd);
	close(fd);
	ksft_test_result(!err && tables() == 1 && !umount(FOLDER "/mount") && !tables(),
			 "a file system is unmounted, and the table gone\n");
}

static void write_limit(unsigned long limit)
{
	FILE *f = fopen(LIMIT, "w");

	if (!f || fprintf(f, "%lu", limit) < 0 || fclose(f))
		ksft_exit_fail_msg(LIMIT ": %s\n", strerror(errno));
}

static void test_limit(void)
{
	int a = make_file(FOLDER "/a"), b = make_file(FOLDER "/b"), first, second, again;
	struct shstk_rules_info info;

	first = load_small(a);
	ioctl(device, SHSTK_RULES_INFO, &info);
	write_limit(info.bytes + 10);
	second = load_small(b);
	again = load_small(a);
	write_limit(info.limit);
	ksft_test_result(!first && second == ENOSPC && !again && tables() == 1,
			 "the limit is kept, and what replaces counts once\n");
	ksft_test_result(!load_small(b), "and may be raised\n");
	close(a);
	close(b);
	drop(-1, SHSTK_RULES_DROP_ALL);
}

/* ---- Who is charged for a table ---- */

#define CGROUP "/sys/fs/cgroup"
#define UPLOADER CGROUP "/rules_test"
#define LARGE_BYTES (4l << 20)
/* Each CPU charges some pages in advance, so a bit less may be charged. */
#define LARGE_LEAST (LARGE_BYTES - (1l << 19))

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

static long cgroup_bytes(void)
{
	FILE *f = fopen(UPLOADER "/memory.current", "r");
	long bytes = -1;

	if (f && fscanf(f, "%ld", &bytes) != 1)
		bytes = -1;
	if (f)
		fclose(f);
	return bytes;
}

/* Makes a table of LARGE_BYTES, each page of which has as many rows as a page has bytes. */
static void *large(size_t *size)
{
	enum { PER_PAGE = 4096, LARGE_PAGES = LARGE_BYTES / 4 / PER_PAGE };
	struct shstk_rules_header *h;
	uint32_t *word;
	struct small t = small();

	*size = sizeof(*h) + sizeof(t.rule) + 4 * (LARGE_PAGES + 1) + LARGE_BYTES;
	h = malloc(*size);
	if (!h)
		ksft_exit_fail_msg("no memory\n");
	*h = t.header;
	h->nr_pages = LARGE_PAGES;
	h->nr_rows = LARGE_PAGES * PER_PAGE;
	memcpy(h + 1, t.rule, sizeof(t.rule));
	word = (uint32_t *)((char *)(h + 1) + sizeof(t.rule));
	for (uint32_t page = 0; page <= LARGE_PAGES; page++)
		*word++ = page * PER_PAGE;
	for (uint32_t row = 0; row < h->nr_rows; row++)
		*word++ = row % PER_PAGE << 16 | row % RULES;
	return h;
}

/*
 * Waits until the memory is down to @bytes, because the kernel frees a dropped table after a grace
 * period. Returns whether it is.
 */
static bool comes_down_to(long bytes)
{
	for (int i = 0; i < 600; i++) {
		if (cgroup_bytes() <= bytes)
			return true;
		usleep(100000);
	}
	return false;
}

static void test_accounted(void)
{
	int fd = make_file(FOLDER "/large"), err;
	long before, loaded;
	size_t size;
	void *table = large(&size);

	if (!write_text(CGROUP "/cgroup.subtree_control", "+memory") || mkdir(UPLOADER, 0700) ||
	    !write_text(UPLOADER "/cgroup.procs", "0")) {
		ksft_test_result_skip("no memory cgroup: %s\n", strerror(errno));
		ksft_test_result_skip("no memory cgroup\n");
		goto out;
	}
	before = cgroup_bytes();
	err = load(fd, table, size);
	loaded = cgroup_bytes();
	ksft_print_msg("%zu bytes of table; of its uploader %ld before, %ld after\n", size, before,
		       loaded);
	ksft_test_result(!err && before >= 0 && loaded - before >= LARGE_LEAST &&
				 loaded - before < 2 * LARGE_BYTES,
			 "a table is charged to the memory cgroup of its uploader\n");
	drop(-1, SHSTK_RULES_DROP_ALL);
	ksft_test_result(comes_down_to(loaded - LARGE_LEAST), "and no longer when it is dropped\n");
	write_text(CGROUP "/cgroup.procs", "0");
	rmdir(UPLOADER);
out:
	free(table);
	close(fd);
}

/* ---- Walks ---- */

static int ready[2];
static bool by_signal;

static noinline_ void forever(void)
{
	for (;;)
		asm volatile("" ::: "memory");
}

static noinline_ void spin(void)
{
	char byte = 0;

	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	forever();
	asm volatile(""); /* the asm prevents a tail call */
}

static void on_signal(int sig)
{
	(void)sig;
	spin();
}

static noinline_ long recurse(int depth)
{
	long r;

	if (depth)
		r = recurse(depth - 1);
	else if (by_signal)
		r = raise(SIGUSR1);
	else
		spin(), r = 0;
	asm volatile("" : "+r"(r));
	return r + 1;
}

/*
 * Starts the program under test: in a child of this process, or in another program that is a copy
 * of it.
 */
static pid_t start_program(const char *path)
{
	char byte, fd[16];
	pid_t pid;

	if (pipe(ready))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	pid = fork();
	if (!pid) {
		snprintf(fd, sizeof(fd), "%d", ready[1]);
		execl(path, path, "child", fd, NULL);
		_exit(1);
	}
	if (read(ready[0], &byte, 1) != 1)
		ksft_exit_fail_msg("%s died\n", path);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/*
 * Touches the stack. A process that was just forked has its stack in memory, but not marked as
 * accessed. An arm64 CPU that does not set that mark itself leaves it to a page fault, which no
 * walk may take.
 */
static void touch_stack(void)
{
	extern char **environ;
	volatile char *p = __builtin_frame_address(0);

	for (; (char *)p < (char *)environ; p += 1024)
		(void)*p;
}

static pid_t start(void)
{
	static char stack[65536];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char byte;
	pid_t pid;

	if (pipe(ready))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	pid = fork();
	if (!pid) {
		touch_stack();
		sigaltstack(&alt, NULL);
		sigaction(SIGUSR1, &sa, NULL);
		_exit((int)recurse(DEPTH));
	}
	if (read(ready[0], &byte, 1) != 1)
		ksft_exit_fail_msg("the child died\n");
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct verdict {
	unsigned int nr, exact;
	unsigned int length; /* length of the first chain */
	unsigned int last; /* length of the last one */
};

/*
 * Checks that one address is repeated as often as the process recursed, and that all chains have
 * the same length.
 */
static void judge(void *arg, const struct sample *s)
{
	unsigned int most = 0, run = 1;
	struct verdict *v = arg;

	/* The process may still be in write(). */
	if (!s->nr || s->ip[0] - (uintptr_t)forever > FOREVER_BYTES)
		return;
	for (unsigned int i = 2; i < s->nr; i++) {
		run = s->ip[i] == s->ip[i - 1] ? run + 1 : 1;
		most = run > most ? run : most;
	}
	v->nr++;
	if (!v->length)
		v->length = s->nr;
	v->last = s->nr;
	v->exact += most == DEPTH && s->nr == v->length;
}

static unsigned long counter(const char *name)
{
	unsigned long value = 0;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), COUNTERS "%s", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lu", &value) != 1)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	fclose(f);
	return value;
}

static struct verdict sample_some(pid_t pid, unsigned int samples)
{
	struct verdict v = { 0 };
	struct sampler s;
	int err = sampler_open(&s, pid, 200000, false);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	for (int i = 0; i < LOOKS && v.nr < samples; i++) {
		usleep(50000);
		sampler_drain(&s, judge, &v);
	}
	sampler_close(&s);
	return v;
}

/* Samples a process, and ends it. */
static struct verdict sample_process(pid_t pid, unsigned int samples)
{
	struct verdict v = sample_some(pid, samples);

	end(pid);
	return v;
}

static struct verdict sample_child(unsigned int samples)
{
	return sample_process(start(), samples);
}

static bool load_self(void)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules load -qv /proc/%d/exe", shstk, getpid());
	return !system(command);
}

/* The ends of walks: enum walk_end of the module. */
static const char *const walk_ends[] = {
	"whole",       "zero",	      "room",	       "cut_no_code", "cut_no_table",
	"cut_no_rule", "cut_no_kind", "cut_no_memory", "cut_bad_cfa", "refused",
};

#define ENDS (sizeof(walk_ends) / sizeof(walk_ends[0]))

static void read_ends(unsigned long end[ENDS])
{
	for (size_t i = 0; i < ENDS; i++)
		end[i] = counter(walk_ends[i]);
}

/* Prints what samples had, and how walks ended meanwhile. */
static void print_walks(const struct verdict *v, const unsigned long before[ENDS],
			const unsigned long after[ENDS])
{
	ksft_print_msg("%u samples, %u exact, %u entries, the last one %u\n", v->nr, v->exact,
		       v->length, v->last);
	for (size_t i = 0; i < ENDS; i++)
		if (after[i] != before[i])
			ksft_print_msg("%s: %lu walks\n", walk_ends[i], after[i] - before[i]);
}

static void test_walk(const char *what)
{
	unsigned long before[ENDS], after[ENDS];
	struct verdict v;

	read_ends(before);
	v = sample_child(SAMPLES);
	read_ends(after);
	print_walks(&v, before, after);
	ksft_test_result(v.nr >= SAMPLES && v.exact == v.nr, "%s: all chains are exact\n", what);
	ksft_test_result(after[0] - before[0] >= SAMPLES, "%s: and whole\n", what);
}

static void test_walks(void)
{
	struct verdict v;

	v = sample_child(SAMPLES);
	ksft_test_result(v.nr >= SAMPLES && !v.exact,
			 "without a table no chain is: this program has no frame pointers\n");
	if (!load_self())
		ksft_exit_fail_msg("%s rules load: failed\n", shstk);
	test_walk("recursion");
	by_signal = true;
	test_walk("signal handler");
	by_signal = false;
	drop(-1, SHSTK_RULES_DROP_ALL);
}

/* ---- A file without a table ---- */

/*
 * Samples a process until a file is told of. The kernel forgets it two seconds after the sample, perhaps
 * before this is asked. Returns whether one was.
 */
static bool comes_to_be_missed(pid_t pid, struct pollfd *p, struct shstk_rules_miss *ret)
{
	for (int i = 0; i < AGAIN; i++) {
		sample_some(pid, 1);
		if (poll(p, 1, 2000) == 1 && !ioctl(p->fd, SHSTK_RULES_MISS, ret))
			return true;
	}
	return false;
}

static void test_miss(void)
{
	struct shstk_rules_miss miss = { 0 };
	struct pollfd p = { .events = POLLIN };
	struct stat self, got;
	pid_t pid;

	p.fd = open(SHSTK_RULES_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	ksft_test_result(ioctl(p.fd, SHSTK_RULES_MISS, &miss) && errno == EAGAIN,
			 "nothing was missed yet\n");
	pid = start();
	ksft_test_result(comes_to_be_missed(pid, &p, &miss), "a file without a table is told of\n");
	end(pid);
	ksft_test_result(!fstat(miss.fd, &got) && !stat("/proc/self/exe", &self) &&
				 got.st_ino == self.st_ino && got.st_dev == self.st_dev &&
				 fcntl(miss.fd, F_GETFD) == FD_CLOEXEC && miss.pid == (uint32_t)pid,
			 "it is this one\n");
	close(miss.fd);
	close(p.fd);
}

/* Returns how often chains ended in this program's code because nothing is known of it. */
static unsigned long cut_here(void)
{
	struct shstk_rules_cuts cut = { 0 };
	unsigned long sum = 0;
	struct stat self;

	if (stat("/proc/self/exe", &self))
		return 0;
	while (!ioctl(device, SHSTK_RULES_CUTS, &cut))
		if (cut.ino == self.st_ino &&
		    cut.dev == ((uint64_t)major(self.st_dev) << 20 | minor(self.st_dev)))
			sum += cut.no_table;
	return errno == ENOENT ? sum : 0;
}

static void test_cuts(void)
{
	struct shstk_rules_cuts bad = { .reserved = 1 }, far = { .index = ~0u };
	unsigned long before, after, with;
	char command[512];

	ksft_test_result(ioctl(device, SHSTK_RULES_CUTS, &bad) && errno == EINVAL &&
				 ioctl(device, SHSTK_RULES_CUTS, &far) && errno == ENOENT,
			 "cuts: wrong arguments are refused\n");
	/* Without any table nothing is walked, so a small one is loaded. */
	load_small(make_file(FOLDER "/a"));
	before = cut_here();
	sample_child(SAMPLES);
	after = cut_here();
	load_self();
	sample_child(SAMPLES);
	with = cut_here();
	ksft_print_msg("%lu before, %lu after, %lu with a table\n", before, after, with);
	ksft_test_result(after - before >= SAMPLES, "a file in which chains end is told of\n");
	ksft_test_result(with == after, "and no more when it has a table\n");
	snprintf(command, sizeof(command),
		 "%s rules status | grep -q '^  [0-9]* in .*/rules_test: no table$'", shstk);
	ksft_test_result(!system(command), "rules status names it\n");
	drop(-1, SHSTK_RULES_DROP_ALL);
}

/* ---- The daemon ---- */

#define OTHER FOLDER "/other"
#define CACHE FOLDER "/cache"

static int notified = -1;

static pid_t start_daemon(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	setenv("NOTIFY_SOCKET", FOLDER "/notify", 1);
	execl(shstk, shstk, "rules", "serve", "--cache=" CACHE, NULL);
	_exit(127);
}

/* Waits until the daemon says @what. Returns whether it did. */
static bool says(const char *what)
{
	struct pollfd p = { .fd = notified, .events = POLLIN };
	char text[512];

	while (poll(&p, 1, 120000) == 1) {
		ssize_t n = recv(notified, text, sizeof(text) - 1, 0);

		text[n < 0 ? 0 : n] = '\0';
		if (strstr(text, what)) {
			ksft_print_msg("it says %s\n",
				       strtok(strstr(text, "STATUS") ?: text, "\n"));
			return true;
		}
	}
	return false;
}

static bool is_listed(const char *name)
{
	struct shstk_rules_list list = { 0 };

	while (!ioctl(device, SHSTK_RULES_LIST, &list))
		if (!strcmp(list.name, name))
			return true;
	return false;
}

/*
 * Samples a process until its file has a table. The kernel forgets that the file was missed two seconds
 * after the sample, perhaps before the daemon runs. Returns whether there is a table.
 */
static bool comes_to_be_listed(pid_t pid, const char *name)
{
	for (int i = 0; i < AGAIN; i++) {
		sample_some(pid, 1);
		for (int tries = 0; tries < 30; tries++) {
			if (is_listed(name))
				return true;
			usleep(100000);
		}
	}
	return false;
}

static bool has_text(const char *path, const char *text)
{
	char buf[4096] = "";
	FILE *f = fopen(path, "r");

	if (f && !fread(buf, 1, sizeof(buf) - 1, f))
		buf[0] = '\0';
	if (f)
		fclose(f);
	return strstr(buf, text);
}

static bool comes_to_have_text(const char *path, const char *text)
{
	for (int i = 0; i < 600; i++) {
		if (has_text(path, text))
			return true;
		usleep(100000);
	}
	return false;
}

static bool ends(pid_t pid)
{
	int status = -1;

	kill(pid, SIGTERM);
	return says("STOPPING=1") && waitpid(pid, &status, 0) == pid && !status;
}

static void listen_for_daemon(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = FOLDER "/notify" };

	unlink(at.sun_path);
	notified = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(notified, (struct sockaddr *)&at, sizeof(at)))
		ksft_exit_fail_msg("bind: %s\n", strerror(errno));
}

static void test_serve(void)
{
	unsigned long before[ENDS], after[ENDS];
	struct verdict v;
	pid_t daemon, other;

	listen_for_daemon();
	if (system("rm -rf " CACHE) || system("cp rules_test " OTHER "; chmod 755 " OTHER))
		ksft_exit_fail_msg("no copy of the test\n");
	daemon = start_daemon();
	ksft_test_result(says("READY=1"), "the daemon is ready\n");
	ksft_test_result(is_listed("rules_test") && is_listed("[vdso]"),
			 "what runs has tables by then\n");
	ksft_test_result(!is_listed("other"), "what does not has none\n");
	other = start_program(OTHER);
	ksft_test_result(comes_to_be_listed(other, "other"), "a file that was missed gets one\n");
	end(other);
	read_ends(before);
	v = sample_process(start_program(OTHER), SAMPLES);
	read_ends(after);
	print_walks(&v, before, after);
	ksft_test_result(v.nr >= SAMPLES && v.exact == v.nr, "by which all chains are exact\n");
	ksft_test_result(comes_to_have_text(CACHE "/missed", OTHER "\n"), "it is remembered\n");
	ksft_test_result(ends(daemon), "SIGTERM ends the daemon\n");
	ksft_test_result(is_listed("other"), "tables stay\n");
	drop(-1, SHSTK_RULES_DROP_ALL);
	daemon = start_daemon();
	ksft_test_result(says("READY=1") && is_listed("other"),
			 "at its next start what was missed before has a table at once\n");
	ksft_test_result(ends(daemon), "and ends\n");
	close(notified);
	drop(-1, SHSTK_RULES_DROP_ALL);
}

/* ---- Hostile tables in use ---- */

static unsigned char *read_table(size_t *size)
{
	char command[512];
	unsigned char *t = malloc(1 << 22);
	FILE *f;

	snprintf(command, sizeof(command), "%s rules compile -qo " FOLDER "/table /proc/%d/exe",
		 shstk, getpid());
	f = system(command) ? NULL : fopen(FOLDER "/table", "r");
	*size = f && t ? fread(t, 1, 1 << 22, f) : 0;
	if (!*size)
		ksft_exit_fail_msg("%s: no table\n", command);
	fclose(f);
	return t;
}

static void ignore(void *arg, const struct sample *s)
{
	(void)s;
	++*(unsigned int *)arg;
}

/* Tests wrong rules in place of those of a program that is sampled. */
static void test_lies(void)
{
	unsigned int taken = 0, nr = 0, state = 1;
	int fd = open("/proc/self/exe", O_RDONLY);
	unsigned char *t;
	struct sampler s;
	size_t size;
	pid_t pid;

	t = read_table(&size);
	pid = start();
	if (sampler_open(&s, pid, 200000, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	for (int round = 0; round < 600; round++) {
		const struct shstk_rules_header *h = (const void *)t;
		/* Mostly the rules themselves are changed, because such a table may be accepted. */
		size_t range = round % 4 ? 8 * h->nr_rules : size - sizeof(*h), at;
		unsigned char saved;

		state = state * 1103515245 + 12345;
		at = sizeof(*h) + (state >> 8) % range;
		saved = t[at];
		t[at] ^= 1 << (state >> 4 & 7);
		taken += !load(fd, t, size);
		if (round % 4 == 3)
			t[at] = saved;
		if (round % 20 == 0)
			usleep(2000), sampler_drain(&s, ignore, &nr);
		/*
		 * Begins again with a correct table now and then, because otherwise soon no table
		 * is accepted any more.
		 */
		if (round % 50 == 49) {
			free(t);
			t = read_table(&size);
		}
	}
	for (int i = 0; i < LOOKS && !nr; i++)
		usleep(50000), sampler_drain(&s, ignore, &nr);
	sampler_close(&s);
	end(pid);
	free(t);
	close(fd);
	drop(-1, SHSTK_RULES_DROP_ALL);
	ksft_print_msg("%u of 600 tables with lies taken, %u samples meanwhile\n", taken, nr);
	ksft_test_result(taken && nr, "tables that lie hurt nothing but chains\n");
}

/* Returns whether the command says that ftrace is off. */
static bool is_said_off(void)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules status | grep -q ftrace_enabled=1", shstk);
	return !system(command);
}

static void test_switched_off(void)
{
	const char *path = "/proc/sys/kernel/ftrace_enabled";
	bool before = is_said_off(), off;

	if (!write_text(path, "0")) {
		ksft_test_result_skip("%s: %s\n", path, strerror(errno));
		return;
	}
	off = is_said_off();
	ksft_test_result(write_text(path, "1") && off && !before && !is_said_off(),
			 "where ftrace is switched off that is said\n");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "child")) {
		ready[1] = atoi(argv[2]);
		return (int)recurse(DEPTH);
	}
	ksft_print_header();
	if (argc < 2)
		ksft_exit_fail_msg("rules_test SHSTK\n");
	shstk = argv[1];
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	ksft_set_plan(59);
	mkdir("/tmp", 0755);
	if (mkdir(FOLDER, 0700) && errno != EEXIST)
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	drop(-1, SHSTK_RULES_DROP_ALL);
	test_permission();
	test_arguments();
	test_files();
	test_mutated();
	drop(-1, SHSTK_RULES_DROP_ALL);
	test_life();
	test_umount();
	test_limit();
	test_accounted();
	test_walks();
	test_miss();
	test_cuts();
	test_serve();
	test_lies();
	test_switched_off();
	ksft_finished();
}
