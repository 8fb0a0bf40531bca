// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ring_fuzz.c - the memory that shstk record shares with its agents, with anything in it: the
 * recorder takes from it what makes sense, and ends; it counts no more than was there.
 *
 * Input: a byte that says how many slots there are and whether stacks are compared, then for each
 * slot its fields and the bytes of its ring.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "selftests/language/no_program.h"
#include "tools/inject/agent/ring.h"
#include "tools/record/agent/agent_recording.h"
#include "tools/record/agent/ledger.h"
#include "tools/shstk.h"

#define CLOCK_STEP 1000000 /* ns */
#include "clock.h"

#define MAX_SLOTS 4
#define DEPTH 16

/* There is no process with this ID, so its mappings are only those in the input. */
#define PID 0x3fffff00

/* The fields of a slot that the input sets. */
struct fields {
	uint8_t state;
	uint8_t start_slot;
	uint8_t parent_slot;
	uint8_t instance;
	uint8_t parent;
	uint8_t pad;
	uint16_t bytes;
	uint64_t head;
	uint64_t lost;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Drops the output of the recorder, which prints stacks that differ. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stderr = fopen("/dev/null", "we");
	return stderr ? 0 : -1;
}

/* Replaces the check of a program's file, because the files of the machine must not matter. */
const char *target_reason(const char *name)
{
	return strlen(name) % 2 ? "is odd" : NULL;
}

static void gap(void *arg, const struct ledger_gap *gap)
{
	(void)arg;
	if (!gap->reason || !*gap->program || strlen(gap->program) >= REC_PATH)
		abort();
}

/* Maps the descriptor @fd as the agent does. */
static struct rec_header *map(int fd, size_t *size)
{
	struct rec_header *h;
	struct stat st;

	if (fstat(fd, &st))
		abort();
	*size = (size_t)st.st_size;
	h = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (h == MAP_FAILED)
		abort();
	return h;
}

static void lost(void *arg, const struct lossy_thread *thread)
{
	(void)arg;
	if (strlen(thread->comm) >= REC_COMM)
		abort();
}

/* Fills a slot and its ring. Returns how many bytes of @data were used. */
static size_t fill_slot(struct rec_header *h, unsigned int i, const uint8_t *data, size_t size)
{
	struct rec_slot *slots = (void *)((uint8_t *)h + h->slots_offset);
	uint8_t *ring = (uint8_t *)h + h->rings_offset + i * h->ring_size;
	struct rec_slot *slot = &slots[i];
	struct fields f;
	size_t bytes;

	if (size < sizeof(f))
		return size;
	memcpy(&f, data, sizeof(f));
	bytes = size - sizeof(f);
	if (bytes > f.bytes)
		bytes = f.bytes;
	if (bytes > h->ring_size)
		bytes = h->ring_size;
	memcpy(ring, data + sizeof(f), bytes);
	slot->owner = REC_OWNER(PID + i, f.state & 3);
	slot->epoch = f.pad;
	slot->tid = PID + i;
	slot->instance = f.instance;
	slot->parent = f.parent;
	slot->start_slot = f.start_slot;
	slot->parent_slot = f.parent_slot;
	memcpy(slot->comm, &f.head, sizeof(f.head));
	/* Mostly this is the end of the written bytes. */
	slot->head = f.state & 4 ? f.head : bytes;
	slot->lost = f.lost;
	slot->lost_weight = f.lost;
	slot->taken = f.head;
	return sizeof(f) + bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_symbols_opts sopts = { .no_lines = true };
	struct agent_recording_opts opts = {
		.period = 1000000,
		.ring_size = rec_min_ring(DEPTH),
		.max_depth = DEPTH,
	};
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct sample_counts counts;
	unsigned int nr, fd;
	struct rec_header *h;
	struct agent_recording *d;
	size_t mapped;

	if (!size)
		return 0;
	nr = data[0] % MAX_SLOTS + 1;
	if (shstk_symbols_create(&sopts, &symbols) || shstk_profile_create(symbols, &profile) ||
	    agent_recording_create(&opts, symbols, profile, &d))
		abort();
	if (sscanf(agent_recording_env(d), "/proc/%*d/fd/%u", &fd) != 1)
		abort();
	h = map((int)fd, &mapped);
	h->slot_high = nr;
	data++;
	size--;
	for (unsigned int i = 0; i < nr; i++) {
		size_t used = fill_slot(h, i, data, size);

		data += used;
		size -= used;
	}
	/* The rest of the input is also the path of a program that some process executes. */
	memcpy(h->execs[0].path, data, size < REC_PATH ? size : REC_PATH);
	h->execs[0].pid = PID;
	h->execs[0].instance = nr;
	h->execs[0].state = REC_EXEC_READY;
	for (int i = 0; i < 2; i++)
		if (agent_recording_take(d))
			abort();
	agent_recording_gaps(d, gap, NULL);
	agent_recording_count(d, &counts);
	/* A ring has room for no more samples than this, of the smallest kind. */
	if (counts.samples > 2 * nr * opts.ring_size / sizeof(struct rec_sample))
		abort();
	agent_recording_lost(d, lost, NULL);
	munmap(h, mapped);
	agent_recording_destroy(d);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return 0;
}
