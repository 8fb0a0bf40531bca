// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * names.c - the names of sources and of ends of traces, and the identity of a trace.
 */
#include "identity.h"
#include "internal.h"

SHSTK_API const char *shstk_source_name(int source)
{
	static const char *const name[] = {
		[SHSTK_SOURCE_NONE] = "none",
		[SHSTK_SOURCE_HARDWARE] = "hardware",
		[SHSTK_SOURCE_MEMO] = "memo",
		[SHSTK_SOURCE_WALK] = "walk",
	};

	return source >= 0 && source < (int)ARRAY_SIZE(name) && name[source] ? name[source] :
									       "unknown";
}

SHSTK_API const char *shstk_end_name(int end)
{
	static const char *const name[] = {
		[SHSTK_END_COMPLETE] = "complete",
		[SHSTK_END_CAPACITY] = "array full",
		[SHSTK_END_NO_RULE] = "no unwind information",
		[SHSTK_END_BAD_RULE] = "bad unwind information",
		[SHSTK_END_BAD_STACK] = "outside the stack",
		[SHSTK_END_BAD_PC] = "no code address",
		[SHSTK_END_NO_REGISTER] = "register not known",
		[SHSTK_END_READ] = "memory not readable",
		[SHSTK_END_BOUNDS] = "end of the shadow stack not known",
	};

	return end >= 0 && end < (int)ARRAY_SIZE(name) ? name[end] : "unknown";
}

SHSTK_API uint64_t shstk_trace_id(const uint64_t *pcs, unsigned int n)
{
	return identity_of(pcs, 0, n, IDENTITY_START);
}
