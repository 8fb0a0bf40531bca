// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * frames.cc - shstk.hpp beside the C functions, at every depth of a recursion and in a signal
 * handler. Prints what differs, and ends with 1 if anything does; "format" or "no format" says
 * whether this C++ library has std::format.
 */
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <shstk.hpp>

#ifdef __cpp_lib_ranges
#include <ranges>
static_assert(std::ranges::contiguous_range<shstk::trace<8> >);
static_assert(std::ranges::sized_range<shstk::trace<8> >);
#endif

static int failed;

#define EXPECT(...)                                                           \
	do {                                                                  \
		if (!(__VA_ARGS__)) {                                         \
			std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__); \
			failed = 1;                                           \
		}                                                             \
	} while (0)

static constexpr unsigned int MOST = 256;

struct by_c {
	std::uint64_t pcs[MOST];
	std::uint8_t marks[MOST];
	shstk_info info;
	int n;
};

static shstk_opts options(by_c &c)
{
	shstk_opts opts = shstk_opts();

	c.info = shstk_info();
	c.info.size = sizeof(c.info);
	opts.size = sizeof(opts);
	opts.marks = c.marks;
	return opts;
}

/* From entry @first on both have the same entries. */
template <std::size_t N> static void same(const shstk::trace<N> &trace, const by_c &c, int first)
{
	EXPECT(trace.error() == 0);
	EXPECT(c.n > first && trace.size() == static_cast<std::size_t>(c.n));
	EXPECT(trace.info().end == c.info.end);
	EXPECT(trace.complete() == (c.info.end == SHSTK_END_COMPLETE));
	if (failed)
		return;
	EXPECT(!std::memcmp(trace.data() + first, c.pcs + first, (c.n - first) * sizeof(c.pcs[0])));
	for (int i = 0; i < c.n; i++)
		EXPECT(trace.mark(i) == c.marks[i]);
}

/* Two calls in one function return to two places in it. */
static void same_function(std::uint64_t a, std::uint64_t b, const shstk::symbolizer &names)
{
	EXPECT(names.frames(a).back().function == names.frames(b).back().function);
	EXPECT(a != b);
}

[[gnu::noinline]] static int descend(int depth, const shstk::symbolizer &names)
{
	by_c c;
	shstk_opts opts = options(c);

	c.n = shstk_capture(c.pcs, MOST, &opts, &c.info);
	auto trace = shstk::trace<MOST>::capture();

	same(trace, c, 1);
	EXPECT(c.n > depth);
	same_function(trace[0], c.pcs[0], names);
	auto few = shstk::trace<2>::capture();

	EXPECT(few.size() == 2 && few[1] == trace[1]);
	EXPECT(!few.complete() && few.info().end == SHSTK_END_CAPACITY);
	auto without = shstk::trace<MOST>::capture(1);

	EXPECT(without.size() + 1 == trace.size() && without[0] == trace[1]);
	if (depth == 40 || failed)
		return depth;
	int deeper = descend(depth + 1, names);

	__asm__ volatile("" ::: "memory"); /* the call above returns to here, it is no loop */
	return deeper + 1;
}

static by_c in_handler_c;
static shstk::trace<MOST> in_handler;

static void handler(int, siginfo_t *, void *ucontext)
{
	shstk_opts opts = options(in_handler_c);

	in_handler_c.n =
		shstk_capture_context(ucontext, in_handler_c.pcs, MOST, &opts, &in_handler_c.info);
	in_handler = shstk::trace<MOST>::capture_context(ucontext);
}

[[gnu::noinline]] static void interrupted()
{
	struct sigaction act = {};

	act.sa_sigaction = handler;
	act.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR1, &act, nullptr);
	std::raise(SIGUSR1);
	same(in_handler, in_handler_c, 0);
	EXPECT(in_handler.mark(0) & SHSTK_MARK_PC);
}

[[gnu::noinline]] static void object()
{
	auto trace = shstk::trace<>::capture();
	auto copy = trace;
	std::size_t n = 0;

	EXPECT(copy == trace && !(copy != trace) && copy.id() == trace.id());
	EXPECT(trace.id() == shstk_trace_id(trace.data(), trace.size()));
	for (std::uint64_t address : trace)
		EXPECT(address == trace[n++]);
	EXPECT(n == trace.size() && n > 0 && !trace.empty());
	EXPECT(shstk::trace<>().empty() && shstk::trace<>() != trace);
	auto refused = shstk::trace<>::capture(0, 1u << 31);

	EXPECT(refused.error() == -EINVAL && refused.empty() && !refused.complete());
}

[[gnu::noinline]] static void names()
{
	shstk::symbolizer one, none(0x7fffffff);
	auto trace = shstk::trace<>::capture();
	bool main_seen = false;

	EXPECT(!one.error() && none.error() < 0);
	auto two = std::move(one);

	for (const shstk::frame &frame : two.frames(trace))
		main_seen |= frame.function == "main";
	EXPECT(main_seen);
	EXPECT(two.frames(trace).size() >= trace.size());
	EXPECT(none.frames(trace).size() == trace.size());
	EXPECT(none.frames(trace)[0].function == shstk::to_hex(trace[0]));
	/* Behind what was inlined, the capture itself, comes the function that was called. */
	EXPECT(shstk::to_string(two.frames(trace[0]).back()).find("names") == 0);
	none = std::move(two);
	EXPECT(!none.error() && none.frames(trace[0]).back().function.find("names") == 0);
	shstk::trace<2> first = shstk::trace<2>::capture();

	EXPECT(shstk::to_string(first) == shstk::to_hex(first[0]) + " " + shstk::to_hex(first[1]));
#ifdef __cpp_lib_format
	shstk::frame frame = none.frames(trace)[0];

	EXPECT(std::format("{}", first) == shstk::to_string(first));
	EXPECT(std::format("{:>80}|", first).size() == 81);
	EXPECT(std::format("{}", frame) == shstk::to_string(frame));
	std::puts("format");
#else
	std::puts("no format");
#endif
}

int main()
{
	shstk::symbolizer symbolizer;

	EXPECT(descend(1, symbolizer) == 40 + 39);
	interrupted();
	object();
	names();
	return failed;
}
