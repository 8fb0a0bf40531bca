// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_change_test.c - tests that a file that was changed keeps no table, whoever changed it and
 * however; and what many files cost
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "rules_table.h"
#include "stall.h"

#define FOLDER "/tmp/rules_change"
#define LIMIT "/sys/module/shstk_perf/parameters/rules_limit"
#define MANY 4000
#define SOME_USER 1234
#define FURTHER 300000 /* another id of that user */
#define PATIENCE 300000 /* ms */
#define FILE_BYTES 2048 /* least bytes that are counted for a file */
#define FEW 40
#define ROUNDS 50 /* how often few are listed */
#define DELAYS 200 /* moments of a load at which a file is written to */
#define LEAD 2000000 /* ns until both begin */
#define TIMES 8 /* what an entry among many may take, of what one among few takes */

static int device;

static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 4096) || close(fd))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Waits until a change gets another time than the last one of @fd has. Some file systems keep times only
 * to the last tick, and a CPU that a busy host does not let run counts no ticks for the others.
 */
static void await_tick(int fd)
{
	struct timespec now;
	struct stat st;

	if (fstat(fd, &st))
		ksft_exit_fail_msg("fstat: %s\n", strerror(errno));
	do {
		usleep(1000);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec < st.st_ctim.tv_sec ||
		 (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec <= st.st_ctim.tv_nsec));
}

static bool write_to(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, "changed", 7) == 7;

	if (fd >= 0)
		close(fd);
	return good;
}

/* ---- Ways to change a file ---- */

/* Maps a file for writing. The mapping alone keeps it open. */
static char *map_shared(const char *path)
{
	int out = open(path, O_RDWR | O_CLOEXEC);
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(out);
	return p;
}

static void map_and_write(const char *path)
{
	char *p = map_shared(path);

	memset(p, 0xcc, 4096);
	munmap(p, 4096);
}

static void test_mapping(void)
{
	const char *path = FOLDER "/mapped";
	int fd = make_file(path), err = rules_load(device, fd);
	char *p = map_shared(path);

	memset(p, 0xcc, 4096);
	ksft_test_result(!err && rules_load(device, fd) == ETXTBSY,
			 "while a mapping may write to a file it gets no table: ETXTBSY\n");
	munmap(p, 4096);
	ksft_test_result(rules_drop(device, fd) == ENOENT,
			 "and the one that it had is gone with that\n");
	ksft_test_result(!rules_load(device, fd) && !rules_drop(device, fd),
			 "then it may have one again\n");
	close(fd);
}

static int open_memfd(unsigned int seals)
{
	int fd = memfd_create("rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, 4096) || (seals && fcntl(fd, F_ADD_SEALS, seals)))
		ksft_exit_fail_msg("memfd: %s\n", strerror(errno));
	return fd;
}

static void test_memfd(void)
{
	int plain = open_memfd(0), future = open_memfd(F_SEAL_FUTURE_WRITE),
	    sealed = open_memfd(F_SEAL_WRITE);

	ksft_test_result(rules_load(device, plain) == ETXTBSY,
			 "a memfd, of whose writes nothing is told, gets no table\n");
	ksft_test_result(rules_load(device, future) == ETXTBSY,
			 "nor one that a mapping may still write to\n");
	ksft_test_result(!rules_load(device, sealed) && !rules_drop(device, sealed),
			 "one that is sealed against writing does\n");
	close(plain);
	close(future);
	close(sealed);
}

static void test_time(void)
{
	const char *path = FOLDER "/time";
	int fd = make_file(path);
	struct stat before, now;

	fstat(fd, &before);
	ksft_test_result(!rules_load_of(device, fd, &before) && !rules_drop(device, fd),
			 "a file as it was when its table was made gets it\n");
	await_tick(fd);
	if (!write_to(path))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	ksft_test_result(rules_load_of(device, fd, &before) == ESTALE,
			 "one that was written to since is ESTALE\n");
	ksft_test_result(rules_drop(device, fd) == ENOENT, "and has none\n");
	fstat(fd, &now);
	now.st_ctim.tv_nsec ^= 1;
	ksft_test_result(rules_load_of(device, fd, &now) == ESTALE,
			 "so is one by another nanosecond\n");
	close(fd);
}

/* ---- Changes before the table is there ---- */

/**
 * struct upload - a table that is on its way to the kernel
 * @stall: the page with the table, for which the kernel waits.
 * @fd: the file.
 * @st: status of the file when the table was made.
 * @err: what the call returned: 0 or an errno.
 */
struct upload {
	struct stall stall;
	int fd;
	struct stat st;
	int err;
};

static void *upload(void *arg)
{
	struct upload *u = arg;

	u->err = rules_load_at(device, u->fd, &u->st, u->stall.page);
	return NULL;
}

/* Loads a table, and calls @change while the kernel waits for it. Returns what the load returns. */
static int load_around(const char *path, void (*change)(const char *path))
{
	struct rules_small t = rules_small(device);
	struct upload u = { .fd = make_file(path) };
	pthread_t thread;

	fstat(u.fd, &u.st);
	await_tick(u.fd);
	if (!stall_open(&u.stall) || pthread_create(&thread, NULL, upload, &u) ||
	    !stall_await(&u.stall, PATIENCE))
		ksft_exit_fail_msg("no page to wait for: %s\n", strerror(errno));
	change(path);
	if (!stall_fill(&u.stall, &t, sizeof(t)))
		ksft_exit_fail_msg("UFFDIO_COPY: %s\n", strerror(errno));
	pthread_join(thread, NULL);
	munmap((void *)u.stall.page, (size_t)getpagesize());
	close(u.stall.fd);
	close(u.fd);
	return u.err;
}

static void change_nothing(const char *path)
{
	(void)path;
}

static void rewrite(const char *path)
{
	if (!write_to(path))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
}

/* Leaves the file open for writing, and does not write yet. */
static int kept_open;

static void keep_open(const char *path)
{
	kept_open = open(path, O_WRONLY | O_CLOEXEC);
}

static void test_during(void)
{
	const char *path = FOLDER "/during";

	ksft_test_result(!load_around(path, change_nothing),
			 "a file that stays as it is while the kernel takes its table gets it\n");
	ksft_test_result(load_around(path, rewrite) == ESTALE,
			 "one that is written to meanwhile is ESTALE\n");
	ksft_test_result(load_around(path, keep_open) == ETXTBSY && kept_open >= 0,
			 "one that is opened for writing meanwhile is ETXTBSY\n");
	close(kept_open);
}

/* ---- Other ways to change a file ---- */

/* Tests changes that nobody has to close the file for. */
static void test_at_once(void)
{
	const char *path = FOLDER "/at_once";
	int fd = make_file(path), err = rules_load(device, fd), out;

	out = open(path, O_WRONLY | O_CLOEXEC);
	ksft_test_result(!err && write(out, "changed", 7) == 7 && rules_drop(device, fd) == ENOENT,
			 "a write drops the table before the file is closed\n");
	close(out);
	err = rules_load(device, fd);
	ksft_test_result(!err && !truncate(path, 100) && rules_drop(device, fd) == ENOENT,
			 "so does truncate()\n");
	close(fd);
}

#define LAYERS FOLDER "/lower", FOLDER "/upper", FOLDER "/work", FOLDER "/merged"

static bool mount_overlay(void)
{
	static const char *const folder[] = { LAYERS };

	for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++)
		mkdir(folder[i], 0700);
	close(make_file(FOLDER "/upper/file"));
	return !mount("overlay", FOLDER "/merged", "overlay", 0,
		      "lowerdir=" FOLDER "/lower,upperdir=" FOLDER "/upper,workdir=" FOLDER
		      "/work");
}

/*
 * Tests overlayfs. The kernel reports writes through the overlay for the overlay's file, but the
 * file of the layer is mapped.
 */
static void test_overlay(void)
{
	const char *path = FOLDER "/merged/file";
	int fd, err;

	if (!mount_overlay()) {
		ksft_test_result_skip("no overlayfs: %s\n", strerror(errno));
		ksft_test_result_skip("no overlayfs\n");
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = rules_load(device, fd);
	ksft_test_result(!err && write_to(path) && rules_drop(device, fd) == ENOENT,
			 "a write by overlayfs drops the table, too\n");
	err = rules_load(device, fd);
	map_and_write(path);
	ksft_test_result(!err && rules_drop(device, fd) == ENOENT,
			 "and so does one by a shared mapping there\n");
	close(fd);
	umount2(FOLDER "/merged", MNT_DETACH);
}

/* ---- Many files ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Makes files up to this number, each with a table. */
static void make_many(int from, int to)
{
	char path[64];

	for (int i = from; i < to; i++) {
		int fd, err;

		snprintf(path, sizeof(path), FOLDER "/many%d", i);
		fd = make_file(path);
		err = rules_load(device, fd);
		if (err)
			ksft_exit_fail_msg("%s: %s\n", path, strerror(err));
		close(fd);
	}
}

static void remove_many(void)
{
	char path[64];

	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), FOLDER "/many%d", i);
		unlink(path);
	}
}

/*
 * Lists all tables. Returns their number, or 0 if they are not in order. *@quickest becomes the
 * shortest time of a call from the entry @from on, in ns, if that is shorter.
 */
static unsigned int list_all(unsigned int from, uint64_t *quickest)
{
	struct shstk_rules_list list = { 0 };
	unsigned int nr = 0;
	uint32_t last = 0;

	for (;;) {
		uint64_t begin = now_ns(), ns;

		if (ioctl(device, SHSTK_RULES_LIST, &list))
			return nr;
		ns = now_ns() - begin;
		if (nr >= from && ns < *quickest)
			*quickest = ns;
		if (list.id <= last)
			return 0;
		last = list.id;
		nr++;
	}
}

static void test_many(void)
{
	struct shstk_rules_info info = { 0 };
	uint64_t few = UINT64_MAX, many = UINT64_MAX;
	unsigned int nr;

	rules_drop_all(device);
	make_many(0, FEW);
	for (int i = 0; i < ROUNDS; i++)
		list_all(FEW / 2, &few);
	make_many(FEW, MANY);
	nr = list_all(MANY / 2, &many);
	ksft_test_result(nr == MANY, "tables are listed by their numbers: %u of %u\n", nr, MANY);
	ksft_test_result(many < TIMES * few,
			 "each in the time of one, however many: %llu ns, among few %llu ns\n",
			 (unsigned long long)many, (unsigned long long)few);
	ioctl(device, SHSTK_RULES_INFO, &info);
	ksft_test_result(info.tables == MANY && info.bytes >= MANY * FILE_BYTES,
			 "what the kernel keeps of their files is counted: %llu bytes\n",
			 (unsigned long long)info.bytes);
	ksft_test_result(info.abi == SHSTK_RULES_ABI && info.max_tables == SHSTK_RULES_MAX_TABLES,
			 "and how many there may be is said\n");
	remove_many();
	ioctl(device, SHSTK_RULES_INFO, &info);
	ksft_test_result(!info.tables && !info.bytes, "they go with their files\n");
}

static void write_limit(unsigned long limit)
{
	FILE *f = fopen(LIMIT, "we");

	if (!f || fprintf(f, "%lu", limit) < 0 || fclose(f))
		ksft_exit_fail_msg(LIMIT ": %s\n", strerror(errno));
}

/* Returns how many of ten files of @owner get a table. */
static int loaded_of(uid_t owner)
{
	int nr = 0;

	for (int i = 0; i < 10; i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), FOLDER "/of%u.%d", owner, i);
		fd = make_file(path);
		if (fchown(fd, owner, owner))
			ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
		nr += !rules_load(device, fd);
		close(fd);
	}
	return nr;
}

/* Makes room for a bit more than sixteen tables. Returns how much there was. */
static unsigned long limit_room(void)
{
	struct shstk_rules_info info = { 0 };
	int fd = make_file(FOLDER "/one");

	rules_load(device, fd);
	ioctl(device, SHSTK_RULES_INFO, &info);
	rules_drop(device, fd);
	close(fd);
	write_limit((unsigned long)info.bytes * 16 + 16);
	return (unsigned long)info.limit;
}

/* Tests the share of a user who has two ids, and what both have if nobody says whose they are. */
static void test_further_ids(void)
{
	const unsigned long limit = limit_room();
	int told = rules_count_as(device, FURTHER, 2, SOME_USER);
	int user = loaded_of(SOME_USER), further = loaded_of(FURTHER),
	    next = loaded_of(FURTHER + 1);
	int other = loaded_of(FURTHER + 2), again;

	ksft_test_result(!told && user == 4 && !further && !next,
			 "a user's further ids have no share of their own: %d, %d and %d\n", user,
			 further, next);
	ksft_test_result(other == 4, "and the id behind them has one: %d\n", other);
	rules_drop_all(device);
	further = loaded_of(FURTHER + 1);
	user = loaded_of(SOME_USER);
	ksft_test_result(further == 4 && !user, "nor the user one beside them: %d and %d\n",
			 further, user);
	told = rules_count_as(device, 0, 0, 0);
	user = loaded_of(SOME_USER);
	again = loaded_of(FURTHER);
	ksft_test_result(!told && user == 4 && again == 4,
			 "what was told can be taken back: %d and %d\n", user, again);
	write_limit(limit);
	rules_drop_all(device);
}

/* Says which ids count as others, with all that may be wrong. Returns 0 or an errno. */
static int count_ranges(const struct shstk_rules_range *range, uint32_t nr, uint32_t reserved)
{
	struct shstk_rules_users arg = {
		.ranges = (uintptr_t)range,
		.nr = nr,
		.reserved = reserved,
	};

	return ioctl(device, SHSTK_RULES_USERS, &arg) ? errno : 0;
}

/* Returns how two ranges are taken: 0 or an errno. */
static int count_two(uint32_t first, uint32_t nr, uint32_t second)
{
	const struct shstk_rules_range two[] = { { first, nr, 1 }, { second, 1, 1 } };

	return count_ranges(two, 2, 0);
}

/* Tests bad ranges of ids, one field at a time, of which none is taken. */
static void test_bad_ranges(void)
{
	const struct shstk_rules_range good = { FURTHER, 2, SOME_USER };
	const uint32_t none = UINT32_MAX;
	const unsigned long limit = limit_room();
	int user, further, err = count_ranges(&good, 1, 0);

	ksft_test_result(!err && count_ranges(&good, 1, 1) == EINVAL,
			 "a reserved field that is not 0 is EINVAL\n");
	ksft_test_result(count_ranges(NULL, 1, 0) == EFAULT &&
				 count_ranges(&good, SHSTK_RULES_MAX_RANGES + 1, 0) == EINVAL &&
				 count_ranges(&good, none, 0) == EINVAL,
			 "ranges that are not there are EFAULT, too many EINVAL\n");
	ksft_test_result(rules_count_as(device, 0, 2, SOME_USER) == EINVAL &&
				 rules_count_as(device, FURTHER, 2, 0) == EINVAL &&
				 rules_count_as(device, FURTHER, 2, none) == EINVAL,
			 "root counts as nobody, and nobody as root\n");
	ksft_test_result(rules_count_as(device, none, 1, SOME_USER) == EINVAL &&
				 rules_count_as(device, 2, none - 1, SOME_USER) == EINVAL &&
				 rules_count_as(device, 2, none, SOME_USER) == EINVAL,
			 "ids that there are not are EINVAL\n");
	ksft_test_result(count_two(10, 5, 14) == EINVAL && count_two(10, 5, 9) == EINVAL &&
				 count_two(10, 0, 20) == EINVAL,
			 "so are ranges in another order, and with ids of each other or none\n");
	user = loaded_of(SOME_USER);
	further = loaded_of(FURTHER);
	ksft_test_result(user == 4 && !further, "and what was told before holds: %d and %d\n", user,
			 further);
	ksft_test_result(!rules_count_as(device, 1, none - 1, SOME_USER) && !count_two(10, 5, 15) &&
				 !rules_count_as(device, 0, 0, 0),
			 "up to the greatest id, and side by side, they are taken\n");
	write_limit(limit);
	rules_drop_all(device);
}

/* Tests the share of a user. */
static void test_share(void)
{
	const unsigned long limit = limit_room();
	int user, other, root;

	user = loaded_of(SOME_USER);
	other = loaded_of(SOME_USER + 1);
	root = loaded_of(0);
	write_limit(limit);
	ksft_test_result(user == 4 && other == 4,
			 "a user's files have a fourth of the room: %d and %d\n", user, other);
	ksft_test_result(root == 8, "and root's what is left: %d\n", root);
	rules_drop_all(device);
}

/* ---- Changes while the kernel decides whether there is room for a table ---- */

/**
 * struct late_write - a write to a file at a given time
 * @path: the file.
 * @when: the time, as of now_ns().
 */
struct late_write {
	const char *path;
	uint64_t when;
};

static void wait_until(uint64_t when)
{
	while (now_ns() < when)
		;
}

static void *write_late(void *arg)
{
	const struct late_write *w = arg;

	wait_until(w->when);
	rewrite(w->path);
	return NULL;
}

/*
 * Loads a table, and writes to the file that many ns after the load began. *@took becomes the time
 * of the load in ns. Returns whether the file has a table afterwards.
 */
static bool has_table_after(const char *path, uint64_t delay, uint64_t *took)
{
	uint64_t begin;
	struct late_write w = { path, 0 };
	int fd = make_file(path), err;
	pthread_t thread;
	struct stat st;
	bool has;

	if (fchown(fd, SOME_USER, SOME_USER) || fstat(fd, &st))
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	await_tick(fd);
	begin = now_ns() + LEAD;
	w.when = begin + delay;
	if (pthread_create(&thread, NULL, write_late, &w))
		ksft_exit_fail_msg("pthread_create\n");
	wait_until(begin);
	err = rules_load_of(device, fd, &st);
	*took = now_ns() - begin;
	pthread_join(thread, NULL);
	if (err && err != ESTALE && err != ETXTBSY)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(err));
	has = !rules_drop(device, fd);
	close(fd);
	return has;
}

/*
 * Tests writes at many moments of a load. What takes the longest is to add up the tables of the
 * file's owner, for which the kernel looks at all files if they take more than a fourth of the
 * room: after it looked at the file, and before the table is there.
 */
static void test_race(void)
{
	const char *path = FOLDER "/race";
	struct shstk_rules_info info = { 0 };
	unsigned int bad = 0;
	uint64_t usual, took;
	unsigned long limit;

	ioctl(device, SHSTK_RULES_INFO, &info);
	limit = (unsigned long)info.limit;
	make_many(0, MANY);
	ioctl(device, SHSTK_RULES_INFO, &info);
	write_limit(2 * (unsigned long)info.bytes);
	bad += has_table_after(path, 0, &usual);
	for (int i = 0; i < DELAYS; i++)
		bad += has_table_after(path, usual * (unsigned int)i / DELAYS, &took);
	write_limit(limit);
	remove_many();
	ksft_test_result(
		!bad, "a file that is written to at any moment of a load has no table: %u\n", bad);
}

/* ---- Callers of older versions ---- */

static void test_old_callers(void)
{
	struct rules_small t = rules_small(device);
	int fd = make_file(FOLDER "/old");
	struct shstk_rules_load arg = { .table = (uintptr_t)&t, .size = sizeof(t), .fd = fd };
	const unsigned long load = _IOC(_IOC_WRITE, SHSTK_RULES_IOC, 0x41, 56),
			    info = _IOC(_IOC_READ, SHSTK_RULES_IOC, 0x40, 32);
	struct shstk_rules_info got = { .abi = 77 };

	/* The fields that old callers do not know lie behind the end of what they pass. */
	arg.change_sec = 1;
	ksft_test_result(!ioctl(device, load, &arg) && !rules_drop(device, fd),
			 "a caller that knows no times loads as ever\n");
	ksft_test_result(!ioctl(device, info, &got) && got.limit && got.abi == 77,
			 "and gets no more than it asks for\n");
	arg.reserved = 1;
	ksft_test_result(ioctl(device, SHSTK_RULES_LOAD, &arg) && errno == EINVAL,
			 "what is reserved has to be 0\n");
	close(fd);
}

int main(void)
{
	ksft_print_header();
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	ksft_set_plan(39);
	mkdir("/tmp", 0755);
	if (mkdir(FOLDER, 0700) && errno != EEXIST)
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	/*
	 * Overlayfs wants layers that support extended attributes, which the first file system does
	 * not.
	 */
	if (mount("none", FOLDER, "tmpfs", 0, NULL))
		ksft_exit_fail_msg(FOLDER ": %s\n", strerror(errno));
	test_mapping();
	test_memfd();
	test_time();
	test_during();
	test_at_once();
	test_overlay();
	test_many();
	test_share();
	test_further_ids();
	test_bad_ranges();
	test_race();
	test_old_callers();
	rules_drop_all(device);
	umount2(FOLDER, MNT_DETACH);
	ksft_finished();
}
