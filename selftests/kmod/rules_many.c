// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_many.c - tests that tables for many files can be loaded, and prints what they take
 *
 *	rules_many FILES
 *
 * Each file is a page in a folder in memory, with a table of its own that has as many rows as a file of
 * Debian has in the mean.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/shstk_rules.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "rules_table.h"

#define FOLDER "/tmp/rules_many"
#define PAGES 250
#define ROWS 64 /* of each page: 64 KiB in all */
#define PARTS 4 /* of the files, whose times are printed */

/* A table that knows nothing, in many rows. */
struct large {
	struct shstk_rules_header header;
	uint64_t rule;
	uint32_t page[PAGES + 1];
	uint32_t row[PAGES * ROWS];
} __attribute__((packed));

static int device;
static struct large table;

static void make_table(void)
{
	const struct rules_small small = rules_small(device);

	table.header = small.header;
	table.header.nr_pages = PAGES;
	table.header.nr_rows = PAGES * ROWS;
	table.rule = small.rule;
	for (uint32_t i = 0; i <= PAGES; i++)
		table.page[i] = i * ROWS;
	for (uint32_t i = 0; i < PAGES * ROWS; i++)
		table.row[i] = (i % ROWS * (4096 / ROWS)) << 16;
}

/* Makes a file, and loads the table for it. Returns whether that could be done. */
static bool load(unsigned int number)
{
	struct shstk_rules_load arg = {
		.table = (uintptr_t)&table,
		.size = sizeof(table),
		.name = "many",
	};
	char path[64];
	bool done;

	snprintf(path, sizeof(path), FOLDER "/%u", number);
	arg.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (arg.fd < 0)
		return false;
	done = write(arg.fd, "", 1) == 1;
	close(arg.fd);
	arg.fd = open(path, O_RDONLY | O_CLOEXEC);
	done = done && arg.fd >= 0 && !ioctl(device, SHSTK_RULES_LOAD, &arg);
	close(arg.fd);
	return done;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Loads tables for all files. Returns for how many that could be done. */
static unsigned int load_all(unsigned int files)
{
	unsigned int loaded = 0;
	double begin = now();

	while (loaded < files && load(loaded)) {
		loaded++;
		if (loaded % (files / PARTS))
			continue;
		ksft_print_msg("up to table %u, one took %.3f ms\n", loaded,
			       1e3 * (now() - begin) / (files / PARTS));
		begin = now();
	}
	return loaded;
}

/* Returns how many tables the list has. */
static unsigned int list_all(void)
{
	struct shstk_rules_list list = { 0 };
	unsigned int nr = 0;

	while (!ioctl(device, SHSTK_RULES_LIST, &list))
		nr++;
	return nr;
}

static struct shstk_rules_info ask(void)
{
	struct shstk_rules_info info = { 0 };

	ioctl(device, SHSTK_RULES_INFO, &info);
	return info;
}

int main(int argc, char **argv)
{
	const int files = argc > 1 ? atoi(argv[1]) : 0;
	struct shstk_rules_info info;
	double begin;

	ksft_print_header();
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip(SHSTK_RULES_DEVICE ": %s\n", strerror(errno));
	if (files < PARTS || mkdir(FOLDER, 0700) || mount("many", FOLDER, "tmpfs", 0, NULL))
		ksft_exit_fail_msg("cannot begin: %s\n", strerror(errno));
	ksft_set_plan(3);
	rules_drop_all(device);
	make_table();
	ksft_test_result(load_all((unsigned int)files) == (unsigned int)files,
			 "%d tables are loaded\n", files);
	info = ask();
	ksft_print_msg("%zu bytes a table: %llu KiB in all, %llu a table\n", sizeof(table),
		       (unsigned long long)info.bytes / 1024,
		       (unsigned long long)info.bytes / (info.tables ? info.tables : 1));
	ksft_test_result(info.tables == (unsigned int)files && list_all() == info.tables,
			 "all are listed\n");
	begin = now();
	ksft_test_result(!umount(FOLDER) && !ask().tables, "all go with their file system\n");
	ksft_print_msg("that took %.1f ms\n", 1e3 * (now() - begin));
	rmdir(FOLDER);
	ksft_finished();
}
