/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring.h - reading a ring that BPF programs write (BPF_MAP_TYPE_RINGBUF).
 */
#ifndef TOOLS_PROBES_RING_H
#define TOOLS_PROBES_RING_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct ring - a ring, mapped
 * @consumed: how far it was read: written here, and read by the kernel.
 * @produced: how far it was written; the data follow in the next page, twice, so that each
 *	record is in one piece.
 * @size: bytes of the ring, a power of two.
 */
struct ring {
	uint64_t *consumed;
	const uint64_t *produced;
	size_t size;
};

/* Maps the ring of map @fd. Returns 0 or a negative errno. */
int ring_map(int fd, size_t size, struct ring *ret);
void ring_unmap(struct ring *ring);

/**
 * ring_read() - hand out the records that are there
 * @ring: the ring.
 * @fn: gets each where it lies; its room is free once @fn returns. Returns 0, or what ends it.
 * @arg: for @fn.
 *
 * Those that come meanwhile are left for the next time.
 *
 * Return: 0, or what @fn returned.
 */
int ring_read(const struct ring *ring, int (*fn)(void *arg, const void *record, size_t size),
	      void *arg);

#endif
