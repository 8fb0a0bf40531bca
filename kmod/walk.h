/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk.h - user callchains by unwind rules.
 */
#ifndef USHSTK_WALK_H
#define USHSTK_WALK_H

#include <linux/ptrace.h>
#include <linux/sysfs.h>
#include <linux/types.h>

#include "walk_end.h"

/**
 * walk_user() - the callers of current's user code
 * @regs: its registers, of 64-bit user mode; current->mm is not NULL.
 * @dst: receives return addresses, innermost first; the program counter is not among
 *	them.
 * @max: room in @dst.
 * @missing: is 0, and receives an address that is not present, if that ended the walk, which is
 *	not counted then: it is to be made again, with that page. NULL: that is not asked for.
 *
 * Context: any, NMI as well; preemption is disabled.
 *
 * Return: number of entries; -1 if nothing can be said about the innermost frame. How it
 * ended is counted.
 */
int walk_user(const struct pt_regs *regs, u64 *dst, unsigned int max, u64 *missing);

/* Counters: /sys/module/shstk_perf/rules/ */
extern const struct attribute_group walk_group;

/**
 * walk_remember() - take the memory in which walks remember rules and mappings, if not yet done
 *
 * 70 KiB for each CPU: walks go without where there is no table.
 *
 * Context: process context, sleeps; one caller at a time.
 *
 * Return: 0 or -ENOMEM.
 */
int walk_remember(void);

/* Bytes of that memory, on all CPUs. */
size_t walk_memory(void);
void walk_exit(void);

#endif /* USHSTK_WALK_H */
