/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * identity.h - the identity of a trace (shstk_trace_id()): a hash that runs from the outermost
 * frame inwards, so that the frames which two traces have in common are hashed once.
 */
#ifndef SHSTK_IDENTITY_H
#define SHSTK_IDENTITY_H

#include <stdint.h>

#define IDENTITY_START 0x6a09e667f3bcc909ull

/* Returns the identity of a trace that has the entry @pc in front of a trace of identity @id. */
static inline uint64_t identity_add(uint64_t id, uint64_t pc)
{
	id = (id ^ pc) * 0x9e3779b97f4a7c15ull;
	return id ^ id >> 32;
}

/* Returns the identity of the entries @from to @end - 1 in front of a trace of identity @id. */
static inline uint64_t identity_of(const uint64_t *pcs, int from, int end, uint64_t id)
{
	while (end-- > from)
		id = identity_add(id, pcs[end]);
	return id;
}

#endif
