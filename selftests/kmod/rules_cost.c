// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_cost.c - measures how many instructions one user callchain costs, by its depth
 *
 *	rules_cost NAME [COMMAND]
 *
 * This is not a test. It prints lines "NAME,DEPTH,INSTRUCTIONS,ENTRIES", in a guest whose clock
 * counts instructions (--icount). An event on getpid() takes the chain each time. The least of 50
 * calls counts. What the event costs without a chain is printed with depth 0. The program is
 * compiled with frame pointers and without. With COMMAND, there are fewer calls, and COMMAND is run
 * before each of them to make the kernel forget what it remembers.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define noinline_ __attribute__((noinline, noclone))
#define CALLS 50
#define COLD_CALLS 5
#define PAGES 64
#define ID "/sys/kernel/tracing/events/syscalls/sys_enter_getpid/id"

/* With QEMU's -icount shift=1 an instruction takes two nanoseconds. */
#define TICKS_PER_INSTRUCTION 2

static struct perf_event_mmap_page *ring;
static uint64_t best, entries;
static const char *command;

static inline uint64_t ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	uint64_t v, hz;

	asm volatile("isb; mrs %0, cntvct_el0; mrs %1, cntfrq_el0" : "=r"(v), "=r"(hz));
	return v * (1000000000 / hz);
#endif
}

/* Reads the samples from the ring, and the number of entries of the last one. */
static void drain(void)
{
	uint64_t size = (uint64_t)PAGES * getpagesize(), tail = ring->data_tail;
	char *data = (char *)ring + getpagesize();
	struct perf_event_header h;

	while (tail < ring->data_head) {
		memcpy(&h, data + tail % size, sizeof(h));
		if (h.type == PERF_RECORD_SAMPLE && h.size > sizeof(h))
			memcpy(&entries, data + (tail + sizeof(h)) % size, sizeof(entries));
		tail += h.size;
	}
	ring->data_tail = tail;
}

static noinline_ void leaf(void)
{
	for (int i = 0; i < (command ? COLD_CALLS : CALLS); i++) {
		uint64_t t;

		if (command && system(command))
			exit(1);
		t = ticks();
		syscall(SYS_getpid);
		t = ticks() - t;
		best = t < best ? t : best;
		drain();
	}
}

static noinline_ long recurse(int depth)
{
	volatile char room[24];
	long r;

	room[0] = (char)depth;
	if (depth)
		r = recurse(depth - 1);
	else
		leaf(), r = 0;
	return r + room[0];
}

static int open_event(uint64_t type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = type,
		.exclude_callchain_kernel = 1,
	};
	unsigned long long id;
	FILE *f = fopen(ID, "r");
	int fd;

	if (!f || fscanf(f, "%llu", &id) != 1) {
		perror(ID);
		return -1;
	}
	fclose(f);
	attr.config = id;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		return -1;
	}
	ring = mmap(NULL, (PAGES + 1) * getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		perror("mmap");
		return -1;
	}
	return fd;
}

static int measure(const char *name, uint64_t type, const int *depth)
{
	int fd = open_event(type);

	if (fd < 0)
		return 1;
	for (; *depth >= 0; depth++) {
		best = UINT64_MAX;
		entries = 0;
		recurse(*depth);
		printf("%s,%d,%llu,%llu\n", name, type & PERF_SAMPLE_CALLCHAIN ? *depth : 0,
		       (unsigned long long)best / TICKS_PER_INSTRUCTION,
		       type & PERF_SAMPLE_CALLCHAIN ? (unsigned long long)entries : 0);
	}
	munmap(ring, (PAGES + 1) * getpagesize());
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	static const int none[] = { 8, -1 }, depths[] = { 8, 32, 112, -1 };
	const char *name = argc > 1 ? argv[1] : "";

	command = argc > 2 ? argv[2] : NULL;
	return measure(name, PERF_SAMPLE_IP, none) || measure(name, PERF_SAMPLE_CALLCHAIN, depths);
}
