/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler.h - samples a process with perf_event_open() as a profiler would: by the CPU clock, with
 * user callchains, with all its children and threads, and one ring per CPU.
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define SAMPLER_CPUS 8
#define SAMPLER_PAGES 64
#define SAMPLER_DEPTH 512

/* linux/perf_event.h has these since 7.0. */
#define SAMPLER_RECORD_DEFERRED 22
#define SAMPLER_USER_DEFERRED ((uint64_t)-640)
#define SAMPLER_ATTR_DEFER (3ULL << 38) /* for the callchain, and for its output */

struct sampler {
	int nr_cpus;
	int fd[SAMPLER_CPUS];
	struct perf_event_mmap_page *ring[SAMPLER_CPUS];
};

struct sample {
	pid_t tid;
	bool in_kernel; /* the sample hit the kernel */
	bool deferred; /* taken on the way back to user mode */
	unsigned int nr; /* number of user entries, innermost first */
	uint64_t ip[SAMPLER_DEPTH];
	unsigned int nr_all; /* number of all entries, with the kernel's; valid until @fn returns */
	const uint64_t *all;
};

typedef void (*sample_fn)(void *arg, const struct sample *sample);

static inline void sampler_close(struct sampler *s)
{
	for (int i = 0; i < s->nr_cpus; i++) {
		munmap(s->ring[i], (SAMPLER_PAGES + 1) * getpagesize());
		close(s->fd[i]);
	}
	s->nr_cpus = 0;
}

/* Opens one event on each CPU. Returns 0 or a negative errno. */
static inline int sampler_open_attr(struct sampler *s, pid_t pid, struct perf_event_attr *attr)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(s, 0, sizeof(*s));
	for (int cpu = 0; cpu < cpus && cpu < SAMPLER_CPUS; cpu++) {
		int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		void *ring;

		if (fd < 0)
			goto fail;
		ring = mmap(NULL, (SAMPLER_PAGES + 1) * getpagesize(), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
		if (ring == MAP_FAILED) {
			close(fd);
			goto fail;
		}
		s->fd[s->nr_cpus] = fd;
		s->ring[s->nr_cpus++] = ring;
	}
	return 0;

fail:
	sampler_close(s);
	return -errno;
}

/*
 * Opens events of the CPU clock. Counting starts when @pid calls exec, or at once. Returns 0 or a
 * negative errno.
 */
static inline int sampler_open_type(struct sampler *s, pid_t pid, uint64_t period_ns, bool defer,
				    bool chain)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.sample_type = chain ? PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN :
				       PERF_SAMPLE_TID | PERF_SAMPLE_IP,
		.inherit = 1,
		.exclude_idle = 1,
		.exclude_callchain_kernel = 1,
	};

	if (defer) {
		/* The word of flag bits follows read_format. */
		uint64_t *flags = (uint64_t *)&attr.read_format + 1;

		*flags |= SAMPLER_ATTR_DEFER;
	}
	return sampler_open_attr(s, pid, &attr);
}

/* Opens events of the CPU clock with callchains. Returns 0 or a negative errno. */
static inline int sampler_open(struct sampler *s, pid_t pid, uint64_t period_ns, bool defer)
{
	return sampler_open_type(s, pid, period_ns, defer, true);
}

/*
 * Returns whether this kernel takes deferred callchains: on x86-64 from 7.2 on, and on nothing else
 * yet.
 */
static inline bool sampler_defers(void)
{
#ifdef __x86_64__
	struct sampler s;

	if (sampler_open(&s, getpid(), 1000000, true))
		return false;
	sampler_close(&s);
	return true;
#else
	return false;
#endif
}

/*
 * Opens an event for a BPF program: without a ring, for one process or thread. Returns a
 * descriptor, or -1 and errno.
 */
static inline int sampler_open_clock(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 500000, /* ns */
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline void sampler_copy(void *dst, const char *data, uint64_t size, uint64_t at,
				unsigned int len)
{
	for (unsigned int i = 0; i < len; i++)
		((char *)dst)[i] = data[(at + i) % size];
}

/* Copies the user part of a callchain, which is what follows the mark of user entries. */
static inline void sampler_user_part(struct sample *sample, const uint64_t *ip, uint64_t nr,
				     bool user)
{
	sample->nr = 0;
	for (uint64_t i = 0; i < nr; i++) {
		if (ip[i] >= PERF_CONTEXT_MAX)
			user = ip[i] == PERF_CONTEXT_USER;
		else if (user && sample->nr < SAMPLER_DEPTH)
			sample->ip[sample->nr++] = ip[i];
	}
}

/* Passes all samples that are there to @fn. Returns their number. */
static inline int sampler_drain(struct sampler *s, sample_fn fn, void *arg)
{
	static union {
		struct perf_event_header head;
		uint64_t word[1 << 13];
	} rec;
	static struct sample sample;
	int found = 0;

	for (int i = 0; i < s->nr_cpus; i++) {
		struct perf_event_mmap_page *ring = s->ring[i];
		const char *data = (char *)ring + getpagesize();
		uint64_t size = (uint64_t)SAMPLER_PAGES * getpagesize();
		/* Pairs with the kernel's barrier before it moves data_head. */
		uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
		uint64_t tail = ring->data_tail, nr;

		while (tail < head) {
			sampler_copy(&rec, data, size, tail, sizeof(rec.head));
			sampler_copy(&rec, data, size, tail, rec.head.size);
			tail += rec.head.size;
			/* Use no more entries than the record has room for. */
			nr = rec.head.size / 8 > 3 ? rec.head.size / 8 - 3 : 0;
			nr = nr && rec.word[2] < nr ? rec.word[2] : nr;
			sample.in_kernel = (rec.head.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
					   PERF_RECORD_MISC_KERNEL;
			sample.all = rec.word + 3;
			sample.nr_all = nr;
			if (rec.head.type == PERF_RECORD_SAMPLE) {
				/* The words are: pid and tid, nr, entries. */
				sample.tid = rec.word[1] >> 32;
				sample.deferred = false;
				sampler_user_part(&sample, rec.word + 3, nr, false);
			} else if (rec.head.type == SAMPLER_RECORD_DEFERRED) {
				/* The words are: cookie, nr, entries, pid and tid. */
				sample.deferred = true;
				sampler_user_part(&sample, rec.word + 3, nr, true);
				sample.tid = 0;
			} else {
				continue;
			}
			found++;
			fn(arg, &sample);
		}
		__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
	}
	return found;
}

#endif
