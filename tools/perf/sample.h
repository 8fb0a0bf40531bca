/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/sample.h - what is in a sample of the events of rings.h.
 */
#ifndef TOOLS_PERF_SAMPLE_H
#define TOOLS_PERF_SAMPLE_H

#include <stdbool.h>

#include "libshstk/shstk.h"
#include "tools/perf/rings.h"

/**
 * struct perf_sample - a sample
 * @period: events that it stands for.
 * @user_mode: it was taken in user mode.
 * @chain: callchain, of the kernel and of user space, each behind a PERF_CONTEXT_*.
 * @nr: entries of @chain.
 * @abi: enum perf_sample_regs_abi: 0: no registers of user space (a thread of the
 *	kernel, or no copy was asked for); 1: of 32-bit code; 2: of 64-bit code.
 * @regs: registers, if @abi is 2.
 * @stack: copy of the stack from the stack pointer on.
 * @stack_size: bytes of @stack that were copied.
 */
struct perf_sample {
	uint64_t period;
	bool user_mode;
	const uint64_t *chain;
	uint64_t nr;
	uint64_t abi;
	struct shstk_regs regs;
	const uint8_t *stack;
	size_t stack_size;
};

/**
 * perf_sample_parse() - take a sample apart
 * @record: the record.
 * @copy: registers and stacks are copied with samples (&struct perf_opts.copy).
 * @ret: receives it; points into the record.
 *
 * Return: false: it makes no sense.
 */
bool perf_sample_parse(const struct perf_record *record, bool copy, struct perf_sample *ret);

#endif
