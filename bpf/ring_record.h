/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ring_record.h - writes a record into a ring that is as perf's own ones (struct walk_ring).
 *
 * Its reader may be anybody who has the memory: whatever @tail and @head say, nothing is written elsewhere. The
 * including file defines MASKED(). A ring has one writer.
 */
#ifndef BPF_RING_RECORD_H
#define BPF_RING_RECORD_H

#define RING_BYTES (8ull * WALK_RING_WORDS)
#define RING_AT_ONCE 8 /* words that are copied in a round */
/* Words in front of the contents: as in a sample with identifier, thread and time. */
#define RING_HEAD 4
#define RING_CONTENTS (sizeof(struct walk_chain) / 8 + WALK_ENTRIES)
/* Bytes that a record may touch. */
#define RING_MOST (8ull * (RING_HEAD + RING_CONTENTS + RING_AT_ONCE))

static __always_inline u64 ring_header(u64 type, u64 misc, u64 size)
{
	return type | misc << 32 | size << 48;
}

/* Tells the reader how far the ring is written. */
static __always_inline void publish(struct walk_ring *r, u64 head)
{
#if defined(WALK_ARM64)
	__sync_lock_test_and_set(&r->head, head);
#else
	/* The CPU makes stores in their order. */
	asm volatile("" : : : "memory");
	*(volatile u64 *)&r->head = head;
#endif
}

/* Copies @nr words. A few more may be written. */
static __always_inline void copy_words(u64 *to, const u64 *from, u32 nr)
{
	u32 i, j;

	for (i = 0; i < RING_CONTENTS && i < nr; i += RING_AT_ONCE)
		for (j = 0; j < RING_AT_ONCE; j++)
			to[i + j] = from[i + j];
}

/*
 * Writes a record with @nr words of contents, RING_CONTENTS at most. @header is ring_header() with no size, @ids
 * the process and the thread. RING_AT_ONCE words behind the contents can be read. Returns false if there is no
 * room.
 */
static __always_inline bool put_record(struct walk_ring *r, u64 header, u64 ids, u64 time,
				       const u64 *contents, u32 nr)
{
	const u64 size = 8 * (RING_HEAD + (u64)nr);
	u64 head = r->head, place, *to;

	if (head - r->tail > RING_BYTES - 2 * RING_MOST)
		return false;
	place = MASKED(head, RING_BYTES);
	if (place > RING_BYTES - RING_MOST) {
		r->word[place / 8] = ring_header(0, 0, RING_BYTES - place);
		head += RING_BYTES - place;
		place = 0;
	}
	to = &r->word[place / 8];
	to[0] = header | ring_header(0, 0, size);
	to[1] = 0; /* the identifier of no event */
	to[2] = ids;
	to[3] = time;
	copy_words(to + RING_HEAD, contents, nr);
	publish(r, head + size);
	return true;
}

#endif /* BPF_RING_RECORD_H */
