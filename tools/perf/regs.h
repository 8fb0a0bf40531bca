/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/perf/regs.h - the registers in samples of perf events.
 */
#ifndef TOOLS_PERF_REGS_H
#define TOOLS_PERF_REGS_H

#include <stdint.h>

#include "libshstk/shstk.h"

#define PERF_MAX_REGS 64

/* Returns the value for perf_event_attr.sample_regs_user on this machine. */
uint64_t perf_regs_wanted(void);

/* Returns this machine's enum shstk_arch. */
int perf_regs_arch(void);

/**
 * perf_regs_set() - take a register of a sample
 * @arch: enum shstk_arch of the sample.
 * @n: perf's number of the register, a bit of sample_regs_user.
 * @value: its value.
 * @regs: receives the value, if an unwinder has use for the register.
 */
void perf_regs_set(int arch, unsigned int n, uint64_t value, struct shstk_regs *regs);

#endif
