/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain_status.h - reads and prints how callchains by unwind rules ended.
 */
#ifndef TOOLS_RULES_CHAIN_STATUS_H
#define TOOLS_RULES_CHAIN_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * rules_module_number() - read a number that shstk_perf.ko shows in sysfs
 * @name: name of the file below /sys/module/shstk_perf/.
 * @value: receives the number; 0 if it is not there.
 *
 * Return: true if it was read.
 */
bool rules_module_number(const char *name, uint64_t *value);

/**
 * rules_totals() - tell how many chains were walked, and how many of them to their end
 * @all: receives the number of chains.
 * @whole: receives the number of chains that ended in the outermost frame.
 *
 * Return: true if the module is loaded.
 */
bool rules_totals(uint64_t *all, uint64_t *whole);

/* The message for the case that rules_hooks_off() returns true. */
#define RULES_HOOKS_OFF                                                    \
	"kernel.ftrace_enabled is 0: no callchain is taken by the module " \
	"(sysctl kernel.ftrace_enabled=1)"

/*
 * Returns whether the kernel's ftrace is switched off, which takes callchains away from the module.
 */
bool rules_hooks_off(void);

/**
 * rules_print_status() - print memory, totals and where chains ended
 * @device: descriptor from rules_device().
 *
 * Return: 0 or a negative errno.
 */
int rules_print_status(int device);

#endif
