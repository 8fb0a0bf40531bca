/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk.h - the interface to user callchains by unwind rules.
 */
#ifndef USHSTK_WALK_H
#define USHSTK_WALK_H

#include <linux/ptrace.h>
#include <linux/sysfs.h>
#include <linux/types.h>

#include "walk_end.h"

/**
 * walk_user() - get the callers of the user code of current
 * @regs: its registers, of 64-bit user mode; current->mm is not NULL.
 * @dst: receives the return addresses, innermost first, without the program counter.
 * @max: room in @dst.
 * @missing: points to 0, or is NULL. If a page that is not present ends the walk, it receives an
 *	address in that page; such a walk is not counted, and is to be repeated with the page
 *	present. NULL means that the caller does not bring in pages.
 *
 * The function counts how the walk ended.
 *
 * Context: any, including NMI; preemption is disabled.
 *
 * Return: number of entries; -1 if nothing can be said about the innermost frame.
 */
int walk_user(const struct pt_regs *regs, u64 *dst, unsigned int max, u64 *missing);

/* The counters in /sys/module/shstk_perf/rules/. */
extern const struct attribute_group walk_group;

/* Puts the counters into walk_group. Called once, before the group is created. */
void walk_count_init(void);

/**
 * walk_remember() - allocate the memory in which walks remember rules and mappings, if necessary
 *
 * The memory takes 70 KiB for each CPU. Walks go without it while no table was ever loaded.
 *
 * Context: process context, sleeps; one caller at a time.
 *
 * Return: 0 or -ENOMEM.
 */
int walk_remember(void);

/* Returns the number of bytes of that memory on all CPUs. */
size_t walk_memory(void);
void walk_exit(void);

#endif /* USHSTK_WALK_H */
