// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ring.c - writes the records of a thread into its ring; see ring.h.
 */
#include "agent.h"

/*
 * Room for a record of @size bytes, or NULL. A record does not wrap. Once the
 * ring is empty and a quarter of it was used, writing starts at its begin
 * again, so that a ring that is drained in time stays small in memory.
 */
void *ring_reserve(struct thread *t, uint32_t size)
{
	uint32_t ring_size = agent.header->ring_size;
	uint64_t tail = atomic_load_explicit(&t->slot->tail, memory_order_acquire);
	uint64_t used = t->head - tail;
	uint32_t offset = t->head & (ring_size - 1);
	uint32_t rest = ring_size - offset;
	struct rec_record *pad;

	if (used > ring_size)
		return NULL;
	if (rest < size || (!used && offset >= ring_size / 4 && size <= offset)) {
		if (ring_size - used < (uint64_t)rest + size)
			return NULL;
		pad = (struct rec_record *)(t->ring + offset);
		*pad = (struct rec_record){ .size = rest, .type = REC_PAD };
		t->head += rest;
		offset = 0;
	} else if (ring_size - used < size) {
		return NULL;
	}
	return t->ring + offset;
}

void ring_commit(struct thread *t, uint32_t size)
{
	t->head += size;
	atomic_store_explicit(&t->slot->head, t->head, memory_order_release);
}
