// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ring.c - writes the records of a thread into its ring; see ring.h.
 */
#include "agent.h"

/* Gives up the sample that waits for its weight: another record takes its place. */
static void give_up_wait(struct agent_thread *t)
{
	atomic_store_explicit(&t->open, false, memory_order_relaxed);
	atomic_store_explicit(&t->slot->wait_since, 0, memory_order_release);
}

/*
 * Reserves room for a record of @size bytes. Returns the room, or NULL if the ring is full. A
 * record does not wrap. Once the ring is empty and a quarter of it was used, writing begins at its
 * start again, so that a ring that is drained in time uses little memory.
 */
void *ring_reserve(struct agent_thread *t, uint32_t size)
{
	uint32_t ring_size = agent.ring_size;
	uint64_t tail = atomic_load_explicit(&t->slot->tail, memory_order_acquire);
	uint64_t used = t->head - tail;
	uint32_t offset = t->head & (ring_size - 1);
	uint32_t rest = ring_size - offset;
	struct rec_record *pad;

	t->room = 0;
	if (atomic_load_explicit(&t->open, memory_order_relaxed))
		give_up_wait(t);
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
	t->room = size;
	return t->ring + offset;
}

/*
 * Commits @size bytes of the reserved room as a record. The size may have been read back from the
 * ring, where others can write: a size that does not fit is refused.
 */
void ring_commit(struct agent_thread *t, uint32_t size)
{
	if (size > t->room || size % 8)
		return;
	t->room -= size;
	t->head += size;
	atomic_store_explicit(&t->slot->head, t->head, memory_order_release);
}
