// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * info.c - what captures tell beside their entries: how one went, how many there were,
 * and the names of it.
 */
#include <errno.h>

#include "call.h"
#include "enter.h"
#include "identity.h"
#include "modmap.h"

void call_tell(struct shstk_info *to, int source, int n, int end, uint64_t end_pc,
	       unsigned int reused, unsigned int guessed)
{
	put_info(to, (struct shstk_info){
			     .source = !n     ? SHSTK_SOURCE_NONE :
				       source ? source :
				       reused ? SHSTK_SOURCE_MEMO :
						SHSTK_SOURCE_WALK,
			     .end = end,
			     .reused = reused,
			     .guessed = guessed,
			     .end_pc = end_pc,
		     });
}

SHSTK_API int shstk_get_stats(struct shstk_stats *stats)
{
	struct shstk_stats s = { .size = 0 };
	struct thread *t = thread_get();
	bool outermost = false;

	if (!stats || stats->size < 8)
		return -EINVAL;
	/* As a capture: modules that are looked at stay. */
	if (t)
		outermost = enter(t, (uintptr_t)__builtin_frame_address(0));
	s.size = stats->size;
	modmap_stats(&s);
	thread_stats(&s);
	if (t)
		leave(t, outermost);
	memcpy(stats, &s, min(sizeof(s), (size_t)stats->size));
	return 0;
}

SHSTK_API const char *shstk_source_name(int source)
{
	static const char *const name[] = {
		"none", "hardware", "marker", "memo", "walk",
	};

	return source >= 0 && source < (int)ARRAY_SIZE(name) ? name[source] : "unknown";
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
