/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * status.h - what became of callchains by unwind rules.
 */
#ifndef TOOLS_RULES_STATUS_H
#define TOOLS_RULES_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * rules_module_number() - read a number that shstk_perf.ko shows in sysfs
 * @name: below /sys/module/shstk_perf/.
 * @value: receives it; 0 if it is not there.
 *
 * Return: whether it was read.
 */
bool rules_module_number(const char *name, uint64_t *value);

/**
 * rules_totals() - how many chains were walked, and how many of them to their end
 * @all: receives the chains.
 * @whole: receives those that ended in the outermost frame.
 *
 * Return: whether the module is loaded.
 */
bool rules_totals(uint64_t *all, uint64_t *whole);

/* What is said then. */
#define RULES_HOOKS_OFF                                                    \
	"kernel.ftrace_enabled is 0: no callchain is taken by the module " \
	"(sysctl kernel.ftrace_enabled=1)"

/* Return: whether the kernel's ftrace is switched off, by which the module gets callchains. */
bool rules_hooks_off(void);

/**
 * rules_print_status() - print memory, totals and where chains ended
 * @device: of rules_device().
 *
 * Return: 0 or a negative errno.
 */
int rules_print_status(int device);

#endif
