// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * heap_fuzz.c - the memory that shstk record shares with its heap agents, with anything in it: the
 * recorder takes from it what makes sense, and ends; it counts no more than was there.
 *
 * Input: a byte of enum flags, then for each region its fields and two pieces of its records, one
 * behind the head and one anywhere.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/symbol/profile.h"
#include "selftests/fuzz/print_profile.h"
#include "selftests/language/no_program.h"
#include "tools/inject/heap/region.h"
#include "tools/record/heap/heap.h"
#include "tools/record/heap/heap_values.h"
#include "tools/shstk.h"

#define CLOCK_STEP 1000000000 /* ns */
#include "clock.h"

#define DEPTH 16
#define ROUNDS 2 /* snapshots */

/* There is no process with this ID, so its mappings are only those in the input. */
#define PID 0x3fffff00

enum flags {
	REGIONS = 3, /* how many there are, less 1 */
	SAMPLED = 4,
	SNAPSHOTS = 8,
	ALIVE = 16, /* the processes go on until recording ends */
	ONE_PROCESS = 32, /* all regions are of one process, which executed other programs */
	PER_THREAD = 64,
};

/* The fields of a region that the input sets. */
struct fields {
	uint8_t foreign;
	uint8_t peak_state;
	uint16_t bytes;
	uint32_t far;
	uint16_t far_bytes;
	uint8_t cut; /* the region says how much of it is used; otherwise it is all that is there */
	uint8_t pad;
	char comm[REC_COMM];
	uint64_t used;
	uint64_t lost;
	int64_t live;
	int64_t peak;
	uint64_t peak_time;
	int64_t mapped;
} __attribute__((packed));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By its name the recorder takes it for operator new; heap_seed.py looks for it in this program. */
__attribute__((used)) static void _Znwm_of_this_program(void)
{
}

static bool alive;

/* Replaces the look at processes, because those of the machine must not matter. */
bool process_gone(pid_t pid)
{
	(void)pid;
	return !alive;
}

/* Replaces the look at a program's file for the same reason. */
const char *allocator_inside(const char *path)
{
	return strlen(path) % 2 ? "odd_malloc" : NULL;
}

static void put(int fd, uint64_t at, const void *bytes, size_t size)
{
	if (pwrite(fd, bytes, size, (off_t)at) != (ssize_t)size)
		abort();
}

/*
 * Fills the @i-th region. Returns how many bytes of @data were used, and adds to @units for how
 * many records there is room.
 */
static size_t fill_region(int fd, unsigned int i, unsigned int flags, const uint8_t *data,
			  size_t size, uint64_t *units)
{
	uint64_t start = HEAP_FIRST + i * HEAP_REGION, far;
	struct heap_image head = { .pid = PID + (flags & ONE_PROCESS ? 0 : i) };
	struct fields f;
	size_t bytes, rest;

	if (size < sizeof(f))
		return size;
	memcpy(&f, data, sizeof(f));
	rest = size - sizeof(f);
	bytes = f.bytes < rest ? f.bytes : rest;
	rest = f.far_bytes < rest - bytes ? f.far_bytes : rest - bytes;
	far = (uint64_t)f.far % (HEAP_REGION / HEAP_UNIT - 65536 / HEAP_UNIT) * HEAP_UNIT;
	if (far < sizeof(head) + bytes)
		far = sizeof(head) + bytes;
	head.foreign = f.foreign & 1;
	head.deepbind = f.foreign & 2;
	head.used = f.cut & 1 ? f.used : far + rest;
	head.lost = f.lost;
	head.live = f.live;
	head.peak = f.peak;
	head.peak_time = f.peak_time;
	head.peak_state = f.peak_state;
	head.mapped_peak = f.mapped;
	memcpy(head.comm, f.comm, sizeof(f.comm));
	put(fd, start, &head, sizeof(head));
	put(fd, start + sizeof(head), data + sizeof(f), bytes);
	put(fd, start + far, data + sizeof(f) + bytes, rest);
	*units += (bytes + rest) / HEAP_UNIT + 2;
	return sizeof(f) + bytes + rest;
}

static void fill(const struct heap_recording *d, unsigned int flags, const uint8_t *data,
		 size_t size, uint64_t *units)
{
	uint32_t nr = (flags & REGIONS) + 1;
	unsigned int fd;

	if (sscanf(heap_recording_env(d), "/proc/%*d/fd/%u", &fd) != 1)
		abort();
	for (unsigned int i = 0; i < nr; i++) {
		size_t used = fill_region((int)fd, i, flags, data, size, units);

		data += used;
		size -= used;
	}
	put((int)fd, offsetof(struct heap_header, images), &nr, sizeof(nr));
}

static void check(const struct heap_recording *d, uint64_t units)
{
	struct heap_counts counts;

	heap_recording_count(d, &counts);
	/* A record is at least a unit. */
	if (counts.stacks > units || strlen(counts.mapped_by) >= sizeof(counts.mapped_by) ||
	    strlen(counts.inside) >= sizeof(counts.inside))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = { "pb", "folded" };
	struct shstk_symbols_opts sopts = { .no_lines = true, .no_servers = true };
	struct heap_opts opts = { .max_depth = DEPTH };
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct heap_recording *d;
	uint64_t units = 0;

	if (!size)
		return 0;
	opts.sample = data[0] & SAMPLED ? 4096 : 0;
	opts.snapshots = data[0] & SNAPSHOTS;
	opts.per_thread = data[0] & PER_THREAD;
	alive = data[0] & ALIVE;
	if (shstk_symbols_create(&sopts, &symbols) || shstk_profile_create(symbols, &profile) ||
	    heap_add_types(profile, &opts) || heap_recording_create(&opts, symbols, profile, &d))
		abort();
	fill(d, data[0], data + 1, size - 1, &units);
	for (int i = 0; i < ROUNDS && opts.snapshots; i++)
		if (heap_recording_part(d))
			abort();
	if (heap_recording_watch(d) || heap_recording_stop(d))
		abort();
	check(d, units);
	print_profile(profile, formats, sizeof(formats) / sizeof(*formats));
	heap_recording_destroy(d);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return 0;
}
