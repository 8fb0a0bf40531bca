/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shstk.hpp - stack traces from shadow stacks, for C++11 and later.
 *
 *	auto trace = shstk::trace<>::capture();
 *	shstk::symbolizer names;
 *	for (const shstk::frame &frame : names.frames(trace))
 *		std::puts(to_string(frame).c_str());
 *
 * Everything here is inline and calls the C functions of shstk.h and shstk_symbolize.h, which say
 * what the values mean. A program that uses shstk::symbolizer is linked with libshstk-symbolize;
 * all others need only libshstk. Nothing here throws, but for std::bad_alloc where std::string
 * and std::vector are used.
 */
#ifndef SHSTK_HPP
#define SHSTK_HPP

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#if __cplusplus >= 202002L
#include <version>
#ifdef __cpp_lib_format
#include <format>
#include <string_view>
#endif
#endif

#include "shstk.h"
#include "shstk_symbolize.h"

namespace shstk
{

/**
 * class trace - the stack of the calling thread: a range of up to Capacity code addresses
 *
 * The addresses lie in the object, innermost first, so a capture allocates nothing and may be
 * taken in a signal handler; that needs the size of the object on the stack, and SHSTK_STACK_NEED.
 */
template <std::size_t Capacity = 128> class trace {
	static_assert(Capacity > 0 && Capacity <= 0x7fffffff, "captures count entries in an int");

    public:
	using value_type = std::uint64_t;
	using size_type = std::size_t;
	using difference_type = std::ptrdiff_t;
	using const_reference = const std::uint64_t &;
	using reference = const_reference;
	using const_iterator = const std::uint64_t *;
	using iterator = const_iterator;

	/** An empty trace. Entries behind size() are not initialised. */
	trace() noexcept
	{
		info_.size = sizeof(info_);
	}

	/**
	 * capture() - capture the stack of the calling thread
	 * @skip: number of innermost entries to leave out.
	 * @sources: mask of SHSTK_USE_*; 0 means all.
	 * @flags: SHSTK_CHECK_STACK or 0.
	 *
	 * Entry 0 is the address behind this call, in the function that contains it.
	 *
	 * Context: async-signal-safe.
	 */
	[[gnu::always_inline]] static inline trace
	capture(std::uint32_t skip = 0, std::uint32_t sources = 0, std::uint32_t flags = 0) noexcept
	{
		trace taken;
		const shstk_opts opts = taken.options(skip, sources, flags);

		taken.finish(shstk_capture(taken.pcs_, Capacity, &opts, &taken.info_));
		return taken;
	}

	/**
	 * capture_context() - capture the stack that a signal interrupted
	 * @ucontext: the third argument of the handler. Entry 0 is the interrupted instruction.
	 *
	 * The other arguments are those of capture().
	 *
	 * Context: async-signal-safe.
	 */
	static trace capture_context(const void *ucontext, std::uint32_t skip = 0,
				     std::uint32_t sources = 0, std::uint32_t flags = 0) noexcept
	{
		trace taken;
		const shstk_opts opts = taken.options(skip, sources, flags);

		taken.finish(
			shstk_capture_context(ucontext, taken.pcs_, Capacity, &opts, &taken.info_));
		return taken;
	}

	const_iterator begin() const noexcept
	{
		return pcs_;
	}

	const_iterator end() const noexcept
	{
		return pcs_ + size_;
	}

	const std::uint64_t *data() const noexcept
	{
		return pcs_;
	}

	size_type size() const noexcept
	{
		return size_;
	}

	bool empty() const noexcept
	{
		return size_ == 0;
	}

	static constexpr size_type capacity() noexcept
	{
		return Capacity;
	}

	const_reference operator[](size_type i) const noexcept
	{
		return pcs_[i];
	}

	/** The bits SHSTK_MARK_* of entry i. */
	std::uint8_t mark(size_type i) const noexcept
	{
		return marks_[i];
	}

	/** How the capture went: its source, how it ended. */
	const shstk_info &info() const noexcept
	{
		return info_;
	}

	/** Whether the outermost frame was reached. */
	bool complete() const noexcept
	{
		return size_ != 0 && info_.end == SHSTK_END_COMPLETE;
	}

	/** 0, or the negative errno of the capture, which then is empty. */
	int error() const noexcept
	{
		return error_;
	}

	/** What shstk_capture_id() says of the same trace: equal traces have equal identities. */
	std::uint64_t id() const noexcept
	{
		return shstk_trace_id(pcs_, static_cast<unsigned int>(size_));
	}

    private:
	shstk_opts options(std::uint32_t skip, std::uint32_t sources, std::uint32_t flags) noexcept
	{
		shstk_opts opts = shstk_opts();

		opts.size = sizeof(opts);
		opts.sources = sources;
		opts.skip = skip;
		opts.flags = flags;
		opts.marks = marks_;
		return opts;
	}

	void finish(int result) noexcept
	{
		size_ = result < 0 ? 0 : static_cast<size_type>(result);
		error_ = result < 0 ? result : 0;
	}

	shstk_info info_ = shstk_info();
	size_type size_ = 0;
	int error_ = 0;
	std::uint64_t pcs_[Capacity];
	std::uint8_t marks_[Capacity];
};

/** Whether two traces have the same addresses. */
template <std::size_t A, std::size_t B>
bool operator==(const trace<A> &a, const trace<B> &b) noexcept
{
	if (a.size() != b.size())
		return false;
	for (std::size_t i = 0; i < a.size(); i++)
		if (a[i] != b[i])
			return false;
	return true;
}

template <std::size_t A, std::size_t B>
bool operator!=(const trace<A> &a, const trace<B> &b) noexcept
{
	return !(a == b);
}

/** An address as text: "0x55d0c0de". */
inline std::string to_hex(std::uint64_t address)
{
	char text[2 + 16 + 1];

	std::snprintf(text, sizeof(text), "0x%" PRIx64, address);
	return text;
}

/** The addresses of a trace, innermost first, with spaces between them. */
template <std::size_t Capacity> std::string to_string(const trace<Capacity> &trace)
{
	std::string text;

	for (std::uint64_t address : trace) {
		if (!text.empty())
			text += ' ';
		text += to_hex(address);
	}
	return text;
}

/**
 * struct frame - a function at an entry of a trace; its members are those of struct shstk_name
 * @address: the entry of the trace.
 * @offset: bytes from the start of the function to @address; 0 if the start is not known.
 * @line: line in @file, or 0.
 * @inlined: whether the function was inlined into the frame behind this one.
 * @function: readable name, never empty.
 * @linkage: the name in the symbol table or the debug information.
 * @file: source file, or empty.
 * @module: name of the file that is mapped at the address.
 */
struct frame {
	std::uint64_t address;
	std::uint64_t offset;
	std::uint32_t line;
	bool inlined;
	std::string function;
	std::string linkage;
	std::string file;
	std::string module;
};

/** A frame as text: "main+0x1f (example.cc:12)", as much of it as is known. */
inline std::string to_string(const frame &frame)
{
	std::string text = frame.function;

	/* Piece by piece: g++ 12 warns of the sum of a literal and a string where there is nothing. */
	if (frame.offset) {
		text += '+';
		text += to_hex(frame.offset);
	}
	if (!frame.file.empty()) {
		text += " (";
		text += frame.file;
		text += ':';
		text += std::to_string(frame.line);
		text += ')';
	}
	return text;
}

/**
 * class symbolizer - names for the addresses of a process
 *
 * Not for signal handlers. Several threads may use one at once.
 */
class symbolizer {
    public:
	/** For the process @pid; 0: this one. error() says whether that failed. */
	explicit symbolizer(int pid = 0) noexcept
	{
		error_ = shstk_symbolizer_create(pid, &symbolizer_);
		if (error_)
			symbolizer_ = nullptr;
	}

	symbolizer(symbolizer &&other) noexcept : symbolizer_(other.symbolizer_),
						  error_(other.error_)
	{
		other.symbolizer_ = nullptr;
	}

	symbolizer &operator=(symbolizer &&other) noexcept
	{
		struct shstk_symbolizer *mine = symbolizer_;
		int error = error_;

		symbolizer_ = other.symbolizer_;
		error_ = other.error_;
		other.symbolizer_ = mine;
		other.error_ = error;
		return *this;
	}

	symbolizer(const symbolizer &) = delete;
	symbolizer &operator=(const symbolizer &) = delete;

	~symbolizer()
	{
		shstk_symbolizer_destroy(symbolizer_);
	}

	/** 0, or the negative errno of shstk_symbolizer_create(): frames then have no names. */
	int error() const noexcept
	{
		return error_;
	}

	/** The functions at one entry: those that were inlined first, the one called last. */
	std::vector<frame> frames(std::uint64_t address, std::uint8_t mark = 0) const
	{
		std::vector<frame> found;

		add(found, address, mark);
		return found;
	}

	/** The functions at all entries of a trace, innermost first. */
	template <std::size_t Capacity>
	std::vector<frame> frames(const trace<Capacity> &trace) const
	{
		std::vector<frame> found;

		for (std::size_t i = 0; i < trace.size(); i++)
			add(found, trace[i], trace.mark(i));
		return found;
	}

    private:
	void add(std::vector<frame> &found, std::uint64_t address, std::uint8_t mark) const
	{
		std::vector<shstk_name> names(8);
		std::size_t count = look_up(names, address, mark);

		/* More functions were inlined here than there was room for. */
		if (count > names.size()) {
			names.resize(count);
			count = look_up(names, address, mark);
		}
		for (std::size_t i = 0; i < count && i < names.size(); i++)
			found.push_back({ address, names[i].offset, names[i].line,
					  names[i].inlined != 0, text(names[i].function),
					  text(names[i].linkage), text(names[i].file),
					  text(names[i].module) });
		if (!count)
			found.push_back({ address, 0, 0, false, to_hex(address), "", "", "" });
	}

	std::size_t look_up(std::vector<shstk_name> &names, std::uint64_t address,
			    std::uint8_t mark) const
	{
		int count = symbolizer_ ? shstk_symbolize(symbolizer_, address, mark, names.data(),
							  static_cast<unsigned int>(names.size()),
							  sizeof(shstk_name)) :
					  0;

		return count < 0 ? 0 : static_cast<std::size_t>(count);
	}

	static std::string text(const char *string)
	{
		return string ? string : "";
	}

	struct shstk_symbolizer *symbolizer_ = nullptr;
	int error_ = 0;
};

} // namespace shstk

#ifdef __cpp_lib_format
/* std::format("{}", trace) and ("{:>40}", frame): the texts of to_string(), as strings are. */
template <std::size_t Capacity>
struct std::formatter<shstk::trace<Capacity> > : std::formatter<std::string_view> {
	template <class Context>
	auto format(const shstk::trace<Capacity> &trace, Context &out) const
	{
		return std::formatter<std::string_view>::format(shstk::to_string(trace), out);
	}
};

template <> struct std::formatter<shstk::frame> : std::formatter<std::string_view> {
	template <class Context> auto format(const shstk::frame &frame, Context &out) const
	{
		return std::formatter<std::string_view>::format(shstk::to_string(frame), out);
	}
};
#endif

#endif /* SHSTK_HPP */
