// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * walk_cost.c - measures what one user stack costs, by its depth and by the way in which it is taken
 *
 *	walk_cost [GUEST | clock [NAME]]
 *
 * This is not a test. The program touches a new page in a frame at a known depth, and each such page
 * fault is a sample: without a stack, with a copy of 8 KiB of the stack, and with a chain by the walk
 * in BPF. The least of CALLS counts, as a mean of PLACES of the stack in its page: how many pieces a walk
 * reads depends on that. Then the walk is made where it remembers no mappings, as one was changed before.
 *
 * With "clock" each sample is one of cpu-clock instead, while the program does nothing but look at the time: a
 * sample takes as long as the time stands still, and the median counts of so many, as other interrupts come, too.
 *
 * Ways that end with "-file" are the CPU time of writing the records of a sample to a file, as perf record does. A
 * guest's clock does not count that.
 *
 * Lines "walk: GUEST,DEPTH,WAY,COST,FRAMES" have the cost above that of a sample without a stack, and
 * how many user entries it had. The unit is an instruction in a guest whose clock counts them
 * (--icount, with GUEST), else a nanosecond. The way "program" is what the kernel says that the BPF
 * program itself took (BPF_ENABLE_STATS), as a mean. Each way needs the right to it.
 *
 * The program is compiled with frame pointers, for perf's own callchain, and without. With NAME only
 * perf's callchain is measured, and called so: where a module walks the stacks of programs without
 * frame pointers, it is the module's.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "selftests/bpf/held_command.h"
#include "tools/bpf/load_object.h"
#include "tools/bpf/walker.h"
#include "tools/perf/rings.h"
#include "tools/perf/sample.h"

#define noinline_ __attribute__((noinline, noclone))
#define CALLS 50 /* at each of the places; so many chains fit into the walker's ring */
#define PLACES 16
#define GAPS 100 /* samples of cpu-clock at each of the places */
#define CLOCK_PERIOD 100000 /* ns */
#define GAP_LEAST 1000 /* ns: no interrupt takes less */
#define TIMES 5 /* that records are written; the least counts */
#define PAGES 4096 /* of a ring, which holds all samples of a measurement */
#define COPY 8192
#define MAX_STACK 127 /* entries of a callchain, perf's own default */
#define PATIENCE 30000 /* times 10 ms, until the tables are there */
#define TICKS_PER_INSTRUCTION 2 /* ns, with QEMU's -icount shift=1 */

/**
 * struct cost - one measurement
 * @best: least ticks of a fault.
 * @page: the page that is touched.
 * @other: a page whose protection is changed before each fault; NULL: none is.
 */
struct cost {
	uint64_t best;
	volatile char *page;
	char *other;
};

static const int depths[] = { 0, 8, 32, 112 };

#define NR_DEPTHS (sizeof(depths) / sizeof(*depths))

static const char *guest;
static bool clocked; /* samples are those of cpu-clock */
static uint64_t without[NR_DEPTHS]; /* cost of a sample without a stack */

static uint64_t ticks(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of the times for which the clock seems to stand still. */
static uint64_t median_gap(void)
{
	uint64_t gaps[GAPS], last = ticks();

	for (size_t n = 0; n < GAPS;) {
		const uint64_t now = ticks();

		if (now - last > GAP_LEAST)
			gaps[n++] = now - last;
		last = now;
	}
	qsort(gaps, GAPS, sizeof(*gaps), compare);
	return gaps[GAPS / 2];
}

static noinline_ void leaf(struct cost *c)
{
	size_t size = (size_t)getpagesize();

	if (clocked) {
		c->best = median_gap();
		return;
	}
	for (int i = 0; i < CALLS; i++) {
		uint64_t t;

		madvise((void *)c->page, size, MADV_DONTNEED);
		if (c->other)
			mprotect(c->other, size, i % 2 ? PROT_READ : PROT_NONE);
		t = ticks();
		*c->page = 1;
		t = ticks() - t;
		if (t < c->best)
			c->best = t;
	}
}

static noinline_ long recurse(struct cost *c, int depth)
{
	volatile char room[24];
	long r = 0;

	room[0] = (char)depth;
	if (depth)
		r = recurse(c, depth - 1);
	else
		leaf(c);
	return r + room[0];
}

/* The same with as many bytes of the stack in use before. */
static noinline_ long recurse_below(struct cost *c, int depth, size_t bytes)
{
	volatile char *below = __builtin_alloca(bytes + 1);

	below[bytes] = 1;
	return recurse(c, depth) + below[bytes];
}

/**
 * struct chains - the chains that were read
 * @entries: entries of the longest one.
 * @nr: number of chains.
 * @size: bytes of @data that are in use.
 * @data: their records.
 */
struct chains {
	uint64_t entries, nr;
	size_t size;
	uint8_t data[2 << 20];
};

static int keep_chain(void *arg, const struct perf_record *r)
{
	struct chains *c = arg;
	const struct perf_event_header *h = r->raw;
	struct perf_sample s;

	if (!r->walked || !perf_sample_parse(r, true, 0, &s) || c->size + h->size > sizeof(c->data))
		return 0;
	c->entries = s.nr > c->entries ? s.nr : c->entries;
	c->nr++;
	memcpy(c->data + c->size, h, h->size);
	c->size += h->size;
	return 0;
}

/*
 * Returns the cost of a sample in a frame at the depth, in ticks. If there are rings they are emptied, and @chains
 * receives what was in them.
 */
static uint64_t measure(int depth, bool changed, struct perf_rings *rings, struct chains *chains)
{
	size_t size = (size_t)getpagesize();
	char *map =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;

	if (map == MAP_FAILED)
		die("mmap", strerror(errno));
	for (size_t i = 0; i < PLACES; i++) {
		struct cost c = { UINT64_MAX, map, changed ? map + size : NULL };

		recurse_below(&c, depth, i * size / PLACES);
		sum += c.best;
		if (rings)
			perf_rings_read(rings, true, keep_chain, chains);
	}
	munmap(map, 2 * size);
	return sum / PLACES;
}

static void print_cost(size_t i, const char *way, uint64_t cost, uint64_t frames)
{
	printf("walk: %s,%d,%s,%lld,%llu\n", guest ? guest : "native", depths[i], way,
	       (long long)(cost - without[i]) / (guest ? TICKS_PER_INSTRUCTION : 1),
	       (unsigned long long)frames);
}

/* Measures how long it takes to write the records of @nr samples to a file. */
static void measure_file(size_t i, const char *way, const void *data, size_t size, uint64_t nr)
{
	FILE *file = guest || !nr ? NULL : tmpfile();
	struct timespec begin, end;
	uint64_t best = UINT64_MAX;
	char name[64];

	for (int t = 0; file && t < TIMES; t++) {
		uint64_t took;

		if (ftruncate(fileno(file), 0) || lseek(fileno(file), 0, SEEK_SET))
			die("file", strerror(errno));
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		if (write(fileno(file), data, size) != (ssize_t)size)
			die("file", strerror(errno));
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		took = (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000 + (uint64_t)end.tv_nsec -
		       (uint64_t)begin.tv_nsec;
		best = took < best ? took : best;
	}
	if (!file)
		return;
	fclose(file);
	snprintf(name, sizeof(name), "%s-file", way);
	print_cost(i, name, without[i] + best / nr, 0);
}

/* ---- Samples by perf alone ---- */

/* Returns the number of samples in the ring. @entries receives the most entries that one has. */
static uint64_t count_samples(const struct perf_event_mmap_page *ring, uint64_t *entries)
{
	const char *data = (const char *)ring + getpagesize();
	struct perf_event_header h;
	uint64_t nr = 0, own;

	for (uint64_t at = 0; at < ring->data_head; at += h.size) {
		memcpy(&h, data + at, sizeof(h));
		if (h.type != PERF_RECORD_SAMPLE || h.size <= sizeof(h))
			continue;
		memcpy(&own, data + at + sizeof(h), sizeof(own));
		*entries = own > *entries ? own : *entries;
		nr++;
	}
	return nr;
}

static int open_event(uint64_t type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = clocked ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = clocked ? CLOCK_PERIOD : 1,
		.sample_type = type,
		.exclude_kernel = 1,
		.exclude_callchain_kernel = 1,
		.sample_stack_user = type & PERF_SAMPLE_STACK_USER ? COPY : 0,
		.sample_regs_user = type & PERF_SAMPLE_REGS_USER ? 0xff : 0,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("perf_event_open", strerror(errno));
	return fd;
}

/* Measures samples of one type. Without a way it is what the others are compared with. */
static void measure_perf(const char *way, uint64_t type)
{
	size_t size = (size_t)(PAGES + 1) * (size_t)getpagesize();

	for (size_t i = 0; i < NR_DEPTHS; i++) {
		int fd = open_event(type);
		struct perf_event_mmap_page *ring =
			mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		uint64_t cost, nr, entries = 0;

		if (ring == MAP_FAILED)
			die("ring", strerror(errno));
		cost = measure(depths[i], false, NULL, NULL);
		nr = count_samples(ring, &entries);
		if (way) {
			print_cost(i, way, cost, type & PERF_SAMPLE_CALLCHAIN ? entries - 1 : 0);
			measure_file(i, way, (char *)ring + getpagesize(), ring->data_head, nr);
		} else {
			without[i] = cost;
		}
		munmap(ring, size);
		close(fd);
	}
}

/* ---- The walk in BPF ---- */

struct program_time {
	uint64_t ns, runs;
};

static struct program_time program_time(int program)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)program;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
		die("program", strerror(errno));
	return (struct program_time){ info.run_time_ns, info.run_cnt };
}

/* Has the kernel measure how long programs take, until the descriptor is closed. */
static int enable_stats(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.enable_stats.type = BPF_STATS_RUN_TIME;
	return (int)syscall(SYS_bpf, BPF_ENABLE_STATS, &attr, sizeof(attr));
}

/* Touches pages until the tables of this program and of the C library are there. */
static void await_tables(const struct walker *w)
{
	for (int i = 0; i < 3; i++) {
		measure(depths[0], false, NULL, NULL);
		for (int j = 0; j < PATIENCE && !walker_idle(w); j++)
			usleep(10000);
	}
}

static void measure_walk(struct perf_rings *rings, const char *way, bool changed)
{
	static struct chains chains;

	for (size_t i = 0; i < NR_DEPTHS; i++) {
		uint64_t cost;

		chains.entries = chains.nr = chains.size = 0;
		cost = measure(depths[i], changed, rings, &chains);
		print_cost(i, way, cost, chains.entries ? chains.entries - 1 : 0);
		if (!changed)
			measure_file(i, way, chains.data, chains.size, chains.nr);
	}
}

/* The kernel's own clock makes each run of the program dearer, so this is measured by itself. */
static void measure_program(const struct walker *w, struct perf_rings *rings)
{
	int program = walker_loaded(w)->program, stats = enable_stats();

	if (stats < 0)
		die("BPF_ENABLE_STATS", strerror(errno));
	for (size_t i = 0; i < NR_DEPTHS; i++) {
		struct program_time before = program_time(program), after;
		static struct chains chains;
		uint64_t runs;

		chains.entries = chains.size = 0;
		measure(depths[i], false, rings, &chains);
		after = program_time(program);
		runs = after.runs - before.runs;
		print_cost(i, "program", without[i] + (runs ? (after.ns - before.ns) / runs : 0),
			   chains.entries ? chains.entries - 1 : 0);
	}
	close(stats);
}

static void measure_bpf(const struct walker *w)
{
	pid_t self = getpid();
	struct perf_opts opts = {
		.main = perf_event_find(clocked ? "cpu-clock" : "page-faults"),
		.count = !clocked,
		.freq = 1000000000 / CLOCK_PERIOD,
		.max_stack = MAX_STACK,
		.copy = COPY,
		.ring_size = 8u << 20,
		.kernel = true,
		.no_user = !walker_write_callchains(w, MAX_STACK),
		.cgroup = -1,
		.pids = &self,
		.nr_pids = 1,
	};
	struct perf_rings *rings;
	struct reason why;

	if (perf_rings_open(&opts, &rings, &why))
		die("events", why.text);
	if (walker_begin(w, rings))
		die("events", "no chains come from them");
	await_tables(w);
	measure_walk(rings, "bpf", false);
	if (!clocked)
		measure_walk(rings, "bpf-changed", true);
	measure_program(w, rings);
	perf_rings_close(rings);
}

int main(int argc, char **argv)
{
	const struct walker_opts how = { .max = 512 };
	volatile char room[2 * COPY]; /* so that there is as much stack as is copied */
	struct walker *w;
	struct reason why;

	memset((void *)room, 1, sizeof(room));
	clocked = argc > 1 && !strcmp(argv[1], "clock");
	guest = argc > 1 && !clocked && strcmp(argv[1], "native") ? argv[1] : NULL;
	measure_perf(NULL, PERF_SAMPLE_IP);
	if (argc > 2) {
		measure_perf(argv[2], PERF_SAMPLE_CALLCHAIN);
		return 0;
	}
	if (walker_create(&how, &w, &why))
		die("walk", why.text);
	measure_perf("copy", PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	measure_bpf(w);
	walker_destroy(w);
	return 0;
}
