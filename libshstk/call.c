// SPDX-License-Identifier: LGPL-2.1-or-later
/* call.c - tells the caller of a capture how it went; see call.h. */
#include "call.h"

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
