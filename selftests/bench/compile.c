/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile.c - measures the time and memory that compiling a whole module's unwind information
 * takes.
 *
 *	compile FILE...
 *
 * In use, the library compiles only the parts that a program runs. Here it compiles everything.
 * This program uses internal interfaces of the library, so it is linked with the static library.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "table.h"

#define RUNS 15
#define BAR_NS_PER_MB (200e6 / 10)
#define BAR_MEMORY 0.25
#define BAR_SIZE 1e6 /* smaller sections are shown, but not judged */

struct result {
	size_t section, functions, bytes;
	double open_ns, compile_ns;
};

/* Returns the CPU time in ns, so that the work of other programs does not count. */
static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int run_once(const void *data, size_t size, struct result *r)
{
	struct elf_image img;
	struct table t;
	double start = now(), opened;

	if (elf_image_parse(&img, data, size, false) || table_init_eh_frame(&t, &img))
		return -1;
	opened = now();
	table_compile(&t);
	r->open_ns = min(r->open_ns, opened - start);
	r->compile_ns = min(r->compile_ns, now() - opened);
	r->section = t.sec.s.size;
	r->functions = t.nfde;
	r->bytes = table_bytes(&t);
	table_deinit(&t);
	return 0;
}

static void print(const char *path, const struct result *r)
{
	double mb = (double)r->section / 1e6;
	double share = (double)r->bytes / (double)r->section;
	double per_mb = r->compile_ns / mb;

	printf("%-28.28s %8.2f %9zu %9.3f %9.2f %9.2f %10zu %8.3f", path, mb, r->functions,
	       r->open_ns / 1e6, r->compile_ns / 1e6, per_mb / 1e6, r->bytes, share);
	if (r->section < BAR_SIZE)
		printf("  (small: not judged)\n");
	else
		printf("  %s, %s\n", per_mb <= BAR_NS_PER_MB ? "time met" : "time NOT MET",
		       share <= BAR_MEMORY ? "memory met" : "memory NOT MET");
}

static int measure(const char *path)
{
	struct result r = { .open_ns = 1e18, .compile_ns = 1e18 };
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	const char *name = strrchr(path, '/');
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		return 1;
	}
	/* MAP_POPULATE reads the file now, because the disk is not to be measured. */
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED) {
		perror(path);
		return 1;
	}
	for (int i = 0; i < RUNS && !err; i++)
		err = run_once(data, (size_t)st.st_size, &r);
	munmap(data, (size_t)st.st_size);
	if (err) {
		fprintf(stderr, "compile: %s: no usable .eh_frame\n", path);
		return 1;
	}
	print(name ? name + 1 : path, &r);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	printf("\ncompiling all of .eh_frame, smallest of %d runs; bars: at most %.0f ms per MB, memory at most %.2f of the section\n",
	       RUNS, BAR_NS_PER_MB / 1e6, BAR_MEMORY);
	printf("%-28s %8s %9s %9s %9s %9s %10s %8s\n", "file", "MB", "functions", "open ms", "ms",
	       "ms/MB", "bytes", "share");
	for (int i = 1; i < argc; i++)
		failed |= measure(argv[i]);
	return failed;
}
