// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording_memory.c - makes the memory that is shared with the agents, and reads it safely.
 * See agent_recording_private.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/record/agent/agent_recording_private.h"

/*
 * Returns the ns between two ticks of the kernel, which checks CPU-time timers in its tick; 0 if
 * that is not known.
 */
static uint64_t tick_length(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick))
		return 0;
	return (uint64_t)tick.tv_sec * 1000000000 + tick.tv_nsec;
}

/*
 * Returns how many periods can run out between two ticks, at most, for a thread that runs all the
 * time.
 */
static uint32_t periods_in_time(uint64_t tick, uint64_t period)
{
	return tick ? 1 + tick / period : UINT32_MAX;
}

/*
 * Returns whether threads may have perf events of their own here. Where there is a seccomp filter
 * it does not try, and returns false.
 */
static bool events_permitted(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd;

	if (prctl(PR_GET_SECCOMP))
		return false;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int agent_recording_map_memory(struct agent_recording *d, const struct agent_recording_opts *opts)
{
	uint64_t slots = rec_round(sizeof(struct rec_header));
	uint64_t rings = rec_round(slots + AGENT_RECORDING_SLOTS * sizeof(struct rec_slot));
	uint64_t tick = tick_length();
	struct rec_header *h;
	int err;

	d->size = rings + (uint64_t)AGENT_RECORDING_SLOTS * opts->ring_size;
	err = shared_memory_create(AGENT_RECORDING_MEMORY, d->size, &d->memory);
	if (err)
		return err;
	h = mmap(NULL, d->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, d->memory.fd,
		 0);
	if (h == MAP_FAILED)
		return -errno;
	d->header = h;
	d->slots = (void *)((uint8_t *)h + slots);
	d->rings = (uint8_t *)h + rings;
	d->nr_slots = AGENT_RECORDING_SLOTS;
	d->ring_size = opts->ring_size;
	d->max_depth = opts->max_depth;
	h->magic = REC_MAGIC;
	h->version = REC_VERSION;
	h->nr_slots = AGENT_RECORDING_SLOTS;
	h->ring_size = opts->ring_size;
	h->max_depth = opts->max_depth;
	h->deepest = opts->fold ? rec_deepest(opts->ring_size) : 0;
	h->clock = opts->clock;
	h->recorder = getpid();
	h->labels = opts->labels;
	h->period = opts->period;
	h->in_time = periods_in_time(tick, opts->period);
	h->events = opts->clock == REC_CLOCK_CPU && events_permitted();
	if (opts->clock == REC_CLOCK_CPU && !h->events && opts->period < tick)
		d->most = 1000000000 / tick;
	h->slots_offset = slots;
	h->rings_offset = rings;
	h->cookie = d->memory.cookie;
	return 0;
}

uint32_t agent_recording_slots_used(const struct agent_recording *d)
{
	uint32_t high = atomic_load(&d->header->slot_high);

	return high < d->nr_slots ? high : d->nr_slots;
}

int agent_recording_copy_record(const struct agent_recording *d, uint32_t i, uint64_t tail,
				uint64_t head, uint8_t *to)
{
	uint32_t offset = tail & (d->ring_size - 1);
	const uint8_t *from = d->rings + (uint64_t)i * d->ring_size + offset;
	struct rec_record *record = (void *)to;
	struct rec_record first;

	if (head - tail < sizeof(first))
		return -EINVAL;
	memcpy(&first, from, sizeof(first));
	if (first.size < sizeof(first) || first.size % 8 || first.size > d->ring_size - offset ||
	    (first.size > head - tail))
		return -EINVAL;
	if (first.type == REC_PAD) {
		*record = first;
		return first.size;
	}
	if (first.size > AGENT_RECORDING_MAX_RECORD)
		return -EINVAL;
	memcpy(to, from, first.size);
	*record = first;
	return first.size;
}

struct slot_progress *agent_recording_slot(struct agent_recording *d, uint32_t i)
{
	struct slot_progress *progress = &d->progress[i];
	uint32_t epoch = atomic_load_explicit(&d->slots[i].epoch, memory_order_acquire);

	if (!progress->known || progress->epoch != epoch) {
		agent_recording_forget_text(d, progress->text);
		*progress = (struct slot_progress){ .epoch = epoch, .known = true };
	}
	return progress;
}
