// SPDX-License-Identifier: GPL-2.0-or-later
/* abseil_traces.cc - stacks of Abseil, its own and those of examples/hooks/abseil.cc. */
#include <absl/debugging/stacktrace.h>
#include <csignal>

#include "traces.h"

void shstk_hook_abseil();

/* What the calls below found besides entries. */
static int sizes[MAX], dropped;
static const char *dropped_of;

/* Makes of a call what is not the last thing that a function does, so that its frame is there. */
__attribute__((always_inline)) static inline int kept(int n)
{
	__asm__ volatile("" : "+r"(n) : : "memory");
	return n;
}

__attribute__((noinline)) static int take_trace(void **pcs, int max)
{
	return kept(absl::GetStackTrace(pcs, max, 1));
}

__attribute__((noinline)) static int take_frames(void **pcs, int max)
{
	return kept(absl::GetStackFrames(pcs, sizes, max, 1));
}

__attribute__((noinline)) static int take_five(void **pcs, int)
{
	dropped_of = "five";
	return kept(absl::GetStackTraceWithContext(pcs, 5, 1, nullptr, &dropped));
}

__attribute__((noinline)) static int take_whole(void **pcs, int max)
{
	dropped_of = "whole";
	return kept(absl::GetStackTraceWithContext(pcs, max, 1, nullptr, &dropped));
}

static bool libgcc_handles;
static struct taken handled;

/* The first entry is left out: it lies at different places of this function. */
__attribute__((noinline)) static void handle(int, siginfo_t *, void *context)
{
	void *pcs[MAX];
	int n;

	if (libgcc_handles)
		n = take_libgcc(pcs, MAX);
	else
		n = absl::GetStackTraceWithContext(pcs, MAX, 0, context, nullptr);
	handled.n = n > 0 ? n - 1 : 0;
	memcpy(handled.pcs, pcs + 1, handled.n * sizeof(*pcs));
}

/* Takes the trace in a signal handler. */
__attribute__((noinline)) static int take_handled(void **pcs, int)
{
	raise(SIGUSR1);
	memcpy(pcs, handled.pcs, handled.n * sizeof(*pcs));
	return handled.n;
}

static void handle_by_libgcc()
{
	libgcc_handles = true;
}

static void handle_by_abseil()
{
	libgcc_handles = false;
}

static void print_sizes()
{
	printf("sizes:");
	for (int i = 0; i < 30; i++)
		printf(" %d", sizes[i]);
	printf("\n");
}

static void print_dropped()
{
	printf("dropped-of-%s: %d\n", dropped_of, dropped);
}

static const struct way ways[] = {
	{ "libgcc", take_libgcc, nullptr, nullptr },
	{ "plain", take_trace, nullptr, nullptr },
	{ "plain-frames", take_frames, nullptr, nullptr },
	{ "hook", take_trace, shstk_hook_abseil, nullptr },
	{ "hook-frames", take_frames, nullptr, print_sizes },
	{ "five", take_five, nullptr, print_dropped },
	{ "whole", take_whole, nullptr, print_dropped },
	{ "handled-libgcc", take_handled, handle_by_libgcc, nullptr },
	{ "handled-hook", take_handled, handle_by_abseil, nullptr },
	{},
};

int main(int argc, char **argv)
{
	struct sigaction action = {};

	action.sa_sigaction = handle;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR1, &action, nullptr);
	print_ways(argc, argv, ways);
	return 0;
}
