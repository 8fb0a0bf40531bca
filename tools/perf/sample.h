/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/sample.h - what is in a sample, from the events of rings.h or from a file (data.h).
 */
#ifndef TOOLS_PERF_SAMPLE_H
#define TOOLS_PERF_SAMPLE_H

#include <stdbool.h>

#include "libshstk/shstk.h"
#include "tools/perf/rings.h"

/**
 * struct perf_sample - a sample
 * @pid: process ID.
 * @tid: thread ID.
 * @time: time in ns, by the clock that was used for recording; 0 if it is not known.
 * @cpu: number of the CPU, from 1; 0: not known.
 * @period: events that the sample stands for.
 * @counted: what the thread's event had counted, if @tells_count of the record.
 * @walked: @chain was walked by a walker, by rules to the end of the stack; nothing was copied.
 * @guesses: if @walked, number of entries that were found by a frame record.
 * @end: if @walked, enum walk_end.
 * @user_mode: the sample was taken in user mode.
 * @chain: callchain of the kernel and of user space, each after a PERF_CONTEXT_*.
 * @nr: entries of @chain.
 * @max_chain: most entries that @chain may have, not counting PERF_CONTEXT_*; 0: not known.
 * @abi: enum perf_sample_regs_abi: 0 without registers of user space (for a thread of the kernel,
 *	or if no copy was asked for), 1 for 32-bit code, 2 for 64-bit code.
 * @regs: registers, if @abi is 2.
 * @stack: copy of the stack from the stack pointer on.
 * @stack_size: bytes of @stack that were copied.
 * @stack_ends: fewer bytes were copied than were asked for, as there is no memory behind them.
 */
struct perf_sample {
	int pid;
	int tid;
	uint64_t time;
	unsigned int cpu;
	uint64_t period;
	uint64_t counted;
	bool walked;
	unsigned int guesses;
	unsigned int end;
	bool user_mode;
	const uint64_t *chain;
	uint64_t nr;
	size_t max_chain;
	uint64_t abi;
	struct shstk_regs regs;
	const uint8_t *stack;
	size_t stack_size;
	bool stack_ends;
};

/**
 * struct callchain - what the kernel found of a stack of user space
 * @ips: the entries, the program counter first.
 * @nr: number of entries.
 * @max: most entries that there may be; 0: not known, or there was room for none.
 */
struct callchain {
	const uint64_t *ips;
	size_t nr;
	size_t max;
};

/*
 * Returns the part of the callchain that is of user space, where it lies. The kernel's part comes
 * first, and may leave no room for it.
 */
struct callchain perf_sample_user(const struct perf_sample *sample);

/**
 * perf_sample_parse() - take the record of a sample apart
 * @record: the record.
 * @copy: registers and stacks are copied with samples (&struct perf_opts.copy).
 * @max_chain: most entries of a callchain (&struct perf_opts.max_stack).
 * @ret: receives the sample, which points into the record.
 *
 * Return: false if the record is invalid.
 */
bool perf_sample_parse(const struct perf_record *record, bool copy, size_t max_chain,
		       struct perf_sample *ret);

#endif
