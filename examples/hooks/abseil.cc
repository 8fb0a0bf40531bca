// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * abseil.cc - stacks for absl::GetStackTrace() and absl::GetStackFrames(), by libshstk.
 *
 *   c++ -O2 -o PROGRAM PROGRAM.cc abseil.cc \
 *           $(pkg-config --cflags --libs absl_stacktrace libshstk)
 *
 * PROGRAM.cc calls the function at the end once, early in main(). All that takes its stacks from
 * Abseil is then served: tcmalloc, absl::Mutex, Abseil's handler of failures.
 */
#include <absl/debugging/stacktrace.h>
#include <shstk.h>

#include <algorithm>
#include <cstring>

/* Traces are cut after this many entries, those that are skipped among them. */
static constexpr int room = 256;

void shstk_hook_abseil();

/*
 * What Abseil calls; @sizes is null where the sizes of frames are not wanted. Only a walk, which is
 * slower, knows where each frame lies. Abseil counts this function among the @skip_count entries to
 * leave out; entry 0 of a capture, which lies in this function, is one more. The context of a
 * signal handler is not used: a capture goes through the frame of the signal by itself.
 */
static int unwind(void **pcs, int *sizes, int max_depth, int skip_count, const void *,
		  int *min_dropped_frames)
{
	int max = std::min(max_depth, room), skip = std::min(skip_count, room - 1) + 1, n;
	uint64_t all[room], sps[room];
	struct shstk_info info = {};
	struct shstk_opts opts = {};

	info.size = sizeof(info);
	opts.size = sizeof(opts);
	opts.sources = SHSTK_USE_WALK;
	opts.sps = sps;
	n = shstk_capture(all, std::min(max + skip, room), sizes ? &opts : nullptr, &info) - skip;
	n = std::max(n, 0);
	memcpy(pcs, all + skip, n * sizeof(*pcs));
	/* The size of the last frame is not known. Abseil's word for that is 0. */
	for (int i = 0; sizes && i < n; i++)
		sizes[i] = i + 1 < n ? int(sps[skip + i + 1] - sps[skip + i]) : 0;
	/* There is one more frame, at least. */
	if (min_dropped_frames)
		*min_dropped_frames = info.end == SHSTK_END_CAPACITY;
	return n;
}

/* From now on Abseil takes its stacks by libshstk. */
void shstk_hook_abseil()
{
	absl::SetStackUnwinder(unwind);
}
