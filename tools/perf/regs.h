/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/regs.h - the registers in samples of perf events.
 */
#ifndef TOOLS_PERF_REGS_H
#define TOOLS_PERF_REGS_H

#include <stdint.h>

#include "libshstk/shstk.h"

#define PERF_MAX_REGS 64

/* What to ask for in perf_event_attr.sample_regs_user on this machine. */
uint64_t perf_regs_wanted(void);

/* This machine's enum shstk_arch. */
int perf_regs_arch(void);

/**
 * perf_regs_set() - take a register
 * @arch: enum shstk_arch of the sample.
 * @n: its number as perf has it, a bit of sample_regs_user.
 * @value: its value.
 * @regs: receives it, if an unwinder has use for it.
 */
void perf_regs_set(int arch, unsigned int n, uint64_t value, struct shstk_regs *regs);

#endif
