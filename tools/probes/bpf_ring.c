// SPDX-License-Identifier: GPL-2.0-or-later
/* bpf_ring.c - read a BPF ring buffer. See bpf_ring.h. */
#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/probes/bpf_ring.h"

#define HEADER 8 /* bytes before a record: its size and its state bits */

int ring_map(int fd, size_t size, struct ring *ret)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *produced = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, fd, page);

	*ret = (struct ring){
		.consumed = consumed == MAP_FAILED ? NULL : consumed,
		.produced = produced == MAP_FAILED ? NULL : produced,
		.size = size,
	};
	if (ret->consumed && ret->produced)
		return 0;
	ring_unmap(ret);
	return -ENOMEM;
}

void ring_unmap(struct ring *ring)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (ring->consumed)
		munmap(ring->consumed, page);
	if (ring->produced)
		munmap((void *)ring->produced, page + 2 * ring->size);
	*ring = (struct ring){ .size = 0 };
}

int ring_read(const struct ring *ring, int (*fn)(void *arg, const void *record, size_t size),
	      void *arg)
{
	const uint8_t *data = (const uint8_t *)ring->produced + sysconf(_SC_PAGESIZE);
	uint64_t at = *ring->consumed;
	uint64_t end = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);
	int ret = 0;

	while (at < end && !ret) {
		const uint8_t *record = data + (at & (ring->size - 1));
		uint32_t state = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
		uint32_t size = state & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		/* This record is still being written, and the records after it have to wait. */
		if (state & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(state & BPF_RINGBUF_DISCARD_BIT))
			ret = fn(arg, record + HEADER, size);
		at += (size + HEADER + 7) & ~7ull;
		__atomic_store_n(ring->consumed, at, __ATOMIC_RELEASE);
	}
	return ret;
}
