/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf_ring.h - read a ring buffer that BPF programs write (BPF_MAP_TYPE_RINGBUF). */
#ifndef TOOLS_PROBES_BPF_RING_H
#define TOOLS_PROBES_BPF_RING_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct ring - a mapped ring buffer
 * @consumed: position up to which records were read; written here, read by the kernel.
 * @produced: position up to which records were written. The data begin in the next page and are
 *	mapped twice in a row, so that each record is in one piece.
 * @size: bytes of the ring buffer, a power of two.
 */
struct ring {
	uint64_t *consumed;
	const uint64_t *produced;
	size_t size;
};

/* Maps the ring buffer of the map @fd. Returns 0 or a negative errno. */
int ring_map(int fd, size_t size, struct ring *ret);
void ring_unmap(struct ring *ring);

/**
 * ring_read() - call a function for each record in the ring buffer
 * @ring: the ring.
 * @fn: the function. It gets the record in place; the record is freed when @fn returns. A value
 *	other than 0 ends the reading.
 * @arg: first argument of @fn.
 *
 * Records that are written meanwhile are left for the next call.
 *
 * Return: 0, or the value of @fn that ended the reading.
 */
int ring_read(const struct ring *ring, int (*fn)(void *arg, const void *record, size_t size),
	      void *arg);

#endif
