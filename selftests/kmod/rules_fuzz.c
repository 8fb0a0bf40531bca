// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_fuzz.c - fuzzes /dev/shstk_rules with random calls, files and tables
 *
 *	rules_fuzz SECONDS SEED SHSTK	SECONDS by the guest's clock
 *
 * The tables are this program's own, as the command SHSTK compiles it, with random bytes changed.
 * Mostly they are loaded for this program. A process of it descends and returns all the time, and
 * everything is sampled. Meanwhile, other files that have tables are written to, deleted and made
 * again. Structures and tables end at pages that are not mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/shstk_rules.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "sampler.h"

#define noinline_ __attribute__((noinline, noclone))
#define FOLDER "/tmp/rules_fuzz"
#define ROOM (1 << 22)
#define PERIOD 1000000 /* ns */
#define PATIENCE 300 /* seconds; used up only by a failure */
#define NR_FILES 4
#define DEPTH 20
#define MOST_RANGES 20
#define MOST_ERRNO 134

static int device;
static uint64_t rng;
static char *good; /* the correct table */
static size_t good_size;
static char *table_end, *arg_end; /* ends of memory behind which nothing is mapped */
static int fds[16], nr_fds;
static unsigned long calls, taken, answered, count_by_errno[MOST_ERRNO];
static long odd_answer;

/* xorshift64 */
static uint64_t random64(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static uint64_t rnd(uint64_t below)
{
	return random64() % below;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static char *room(void)
{
	char *p = mmap(NULL, ROOM + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	if (p == MAP_FAILED || mprotect(p + ROOM, 65536, PROT_NONE))
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return p + ROOM;
}

/* ---- Arguments ---- */

static void file_name(char name[64], uint64_t n)
{
	snprintf(name, 64, FOLDER "/file%u", (unsigned int)n);
}

static int open_file(int flags)
{
	char name[64];

	file_name(name, rnd(NR_FILES));
	return open(name, flags | O_CLOEXEC, 0600);
}

/* Opens a file of every kind that there is. */
static void open_kinds(void)
{
	int pair[2];

	fds[nr_fds++] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	fds[nr_fds++] = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	fds[nr_fds++] = open("/tmp", O_RDONLY | O_CLOEXEC);
	fds[nr_fds++] = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[nr_fds++] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	fds[nr_fds++] = memfd_create("fuzz", MFD_CLOEXEC);
	fds[nr_fds++] = device;
	if (!pipe(pair))
		fds[nr_fds++] = pair[0];
	if (!socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fds[nr_fds++] = pair[0];
}

/* Returns some descriptor. *@opened receives one that must be closed. */
static int some_fd(int *opened)
{
	switch (rnd(12)) {
	case 0:
		return (int)random64();
	case 1:
		return -1;
	case 2:
		return fds[rnd((unsigned int)nr_fds)];
	case 3:
		return *opened = open_file(O_RDWR);
	case 4:
	case 5:
	case 6:
		return *opened = open_file(O_RDONLY);
	default:
		return fds[0];
	}
}

static void mutate(char *table, size_t size)
{
	const struct shstk_rules_header *h = (const void *)good;
	uint64_t times = rnd(3) ? rnd(4) : rnd(64);

	while (times--) {
		/* Mostly the rules are changed, because such a table may be accepted. */
		uint64_t range = rnd(3) ? sizeof(*h) + 8ull * h->nr_rules : size;
		uint64_t at = (rnd(8) ? sizeof(*h) : 0) + rnd(range);

		if (at < size)
			table[at] ^= (char)(1 << rnd(8));
	}
}

static void fill_load(struct shstk_rules_load *arg, int *opened)
{
	size_t size = rnd(16) ? good_size : rnd(good_size + 64);
	char *table = table_end - size;

	memcpy(table, good, size < good_size ? size : good_size);
	mutate(table, size);
	*arg = (struct shstk_rules_load){
		.table = rnd(32) ? (uintptr_t)table : (uintptr_t)table + rnd(64),
		.size = rnd(32) ? size : random64() >> rnd(64),
		.fd = some_fd(opened),
		.flags = rnd(32) ? 0 : (uint32_t)random64(),
		.name = "fuzz",
	};
	if (!rnd(32))
		memset(arg->name, 'x', sizeof(arg->name));
}

union argument {
	struct shstk_rules_load load;
	struct shstk_rules_drop drop;
	struct shstk_rules_list list;
	struct shstk_rules_miss miss;
	struct shstk_rules_cuts cuts;
	struct shstk_rules_users users;
	uint64_t word[32];
};

static struct shstk_rules_range ranges[MOST_RANGES];

/* Makes ranges of ids, which are in order if nothing happens to them. */
static void fill_ranges(void)
{
	uint32_t at = 1;

	for (unsigned int i = 0; i < MOST_RANGES; i++) {
		ranges[i] = (struct shstk_rules_range){ at, 1 + (uint32_t)rnd(9), 1 };
		at += ranges[i].nr + (uint32_t)rnd(3);
	}
	if (!rnd(4))
		ranges[rnd(MOST_RANGES)].first = (uint32_t)(random64() >> rnd(64));
	if (!rnd(4))
		ranges[rnd(MOST_RANGES)].nr = (uint32_t)(random64() >> rnd(64));
	if (!rnd(4))
		ranges[rnd(MOST_RANGES)].user = (uint32_t)(random64() >> rnd(64));
}

static unsigned int fill(union argument *arg, int *opened)
{
	memset(arg, 0, sizeof(*arg));
	switch (rnd(16)) {
	case 0:
		return SHSTK_RULES_INFO;
	case 1:
		arg->drop.fd = some_fd(opened);
		arg->drop.flags = rnd(8) ? 0 : (uint32_t)rnd(4);
		return SHSTK_RULES_DROP;
	case 2:
		arg->list.id = (uint32_t)(random64() >> rnd(64));
		return SHSTK_RULES_LIST;
	case 3:
		return SHSTK_RULES_MISS;
	case 4:
		arg->cuts.index = (uint32_t)(rnd(4) ? rnd(70) : random64());
		return SHSTK_RULES_CUTS;
	case 5:
		fill_ranges();
		arg->users.ranges = (uintptr_t)ranges;
		arg->users.nr = (uint32_t)(rnd(16) ? rnd(MOST_RANGES + 1) : random64());
		return SHSTK_RULES_USERS;
	case 6:
		for (unsigned int i = 0; i < 32; i++)
			arg->word[i] = random64() >> rnd(64);
		return (unsigned int)_IOC(rnd(4), rnd(8) ? SHSTK_RULES_IOC : rnd(256),
					  0x40 + rnd(8), rnd(sizeof(*arg)));
	default:
		fill_load(&arg->load, opened);
		return SHSTK_RULES_LOAD;
	}
}

static bool is_documented(long err)
{
	static const int known[] = { 0,	     EINVAL,  EXDEV,  EBADF,  EISDIR,
				     ENODEV, ETXTBSY, ENOSPC, ENOMEM, ENOENT,
				     EAGAIN, EFAULT,  E2BIG,  ENOTTY, ESTALE };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (err == known[i])
			return true;
	return false;
}

static void one_call(void)
{
	union argument arg;
	int opened = -1, err;
	unsigned int cmd = fill(&arg, &opened), size;
	char *at;

	if (!rnd(32))
		cmd = (cmd & ~(unsigned int)(_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
		      (unsigned int)rnd(sizeof(arg)) << _IOC_SIZESHIFT;
	size = _IOC_SIZE(cmd);
	at = arg_end - size;
	memcpy(at, &arg, size);
	if (!rnd(64))
		at += rnd(64);
	err = ioctl(device, cmd, at) ? errno : 0;
	calls++;
	answered += !err;
	taken += !err && cmd == SHSTK_RULES_LOAD;
	if (err < MOST_ERRNO)
		count_by_errno[err]++;
	if (!is_documented(err))
		odd_answer = err;
	if (!err && cmd == SHSTK_RULES_MISS)
		close(((struct shstk_rules_miss *)at)->fd);
	if (opened >= 0)
		close(opened);
}

/* ---- Activity meanwhile ---- */

static noinline_ long descend(int n)
{
	volatile long r = n;

	if (n)
		r += descend(n - 1);
	for (int i = 0; i < 1000; i++)
		r += i;
	return r;
}

static void work(void)
{
	for (;;)
		descend(DEPTH);
}

static void change_files(void)
{
	for (;;) {
		char name[64], other[64];
		int fd;

		file_name(name, rnd(NR_FILES));
		file_name(other, rnd(NR_FILES));
		switch (rnd(4)) {
		case 0:
			unlink(name);
			break;
		case 1:
			rename(name, other);
			break;
		default:
			fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
			if (fd >= 0 && write(fd, "some bytes", 10) != 10)
				_exit(1);
			close(fd);
		}
		usleep(100);
	}
}

static pid_t start(void (*fn)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn();
	}
	return pid;
}

static void take(void *arg, const struct sample *s)
{
	(void)s;
	++*(unsigned long *)arg;
}

/* Makes calls for so many seconds, and longer until all has happened that has to. */
static void fuzz(double seconds)
{
	pid_t pid[2] = { start(work), start(change_files) };
	unsigned long samples = 0;
	struct sampler s;
	double until = now() + seconds;
	int err = sampler_open(&s, -1, PERIOD, false);

	if (err)
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(-err));
	while (now() < until || (now() < until + PATIENCE && !(answered && taken && samples))) {
		for (int i = 0; i < 100; i++)
			one_call();
		sampler_drain(&s, take, &samples);
	}
	sampler_close(&s);
	for (int i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	ksft_print_msg("%lu calls, %lu answered, %lu tables taken, %lu samples\n", calls, answered,
		       taken, samples);
	for (int i = 1; i < MOST_ERRNO; i++)
		if (count_by_errno[i])
			ksft_print_msg("  %s: %lu\n", strerror(i), count_by_errno[i]);
	if (odd_answer)
		ksft_print_msg("one was %s\n", strerror((int)odd_answer));
	ksft_test_result(answered && !odd_answer, "every answer is a documented one\n");
	ksft_test_result(taken && samples, "tables were taken, and samples too meanwhile\n");
}

static void read_good(const char *shstk)
{
	char command[512];
	FILE *f;

	snprintf(command, sizeof(command), "%s rules compile -qo " FOLDER "/table /proc/%d/exe",
		 shstk, getpid());
	f = system(command) ? NULL : fopen(FOLDER "/table", "re");
	good = malloc(ROOM);
	good_size = f && good ? fread(good, 1, ROOM / 2, f) : 0;
	if (!good_size)
		ksft_exit_fail_msg("%s: no table\n", command);
	fclose(f);
}

/* Takes back which ids count as others: tests that come later in the same guest load tables of users. */
static bool count_as_before(void)
{
	struct shstk_rules_users none = { 0 };

	return !ioctl(device, SHSTK_RULES_USERS, &none);
}

/* Returns whether a correct table is still accepted, and is the only one after all were dropped. */
static bool works(void)
{
	struct shstk_rules_drop all = { .flags = SHSTK_RULES_DROP_ALL };
	struct shstk_rules_load load = {
		.table = (uintptr_t)good,
		.size = good_size,
		.fd = fds[0],
		.name = "good",
	};
	struct shstk_rules_info none, one, end;

	return !ioctl(device, SHSTK_RULES_DROP, &all) && !ioctl(device, SHSTK_RULES_INFO, &none) &&
	       !none.tables && !none.bytes && !ioctl(device, SHSTK_RULES_LOAD, &load) &&
	       !ioctl(device, SHSTK_RULES_INFO, &one) && one.tables == 1 &&
	       !ioctl(device, SHSTK_RULES_DROP, &all) && !ioctl(device, SHSTK_RULES_INFO, &end) &&
	       !end.bytes;
}

int main(int argc, char **argv)
{
	ksft_print_header();
	if (argc < 4)
		ksft_exit_fail_msg("rules_fuzz SECONDS SEED SHSTK\n");
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	ksft_set_plan(3);
	rng = 0x9e3779b97f4a7c15 ^ strtoul(argv[2], NULL, 0);
	mkdir("/tmp", 0755);
	if (mkdir(FOLDER, 0700) && errno != EEXIST)
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	read_good(argv[3]);
	table_end = room();
	arg_end = room();
	open_kinds();
	fuzz(strtod(argv[1], NULL));
	ksft_test_result(count_as_before() && works(), "the device works as before\n");
	ksft_finished();
}
