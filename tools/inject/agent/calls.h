/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls.h - shares a thread's time in the kernel between system calls and the rest.
 *
 * An event that excludes the kernel does not report the periods that end in the kernel: they are
 * silent. A timer, at the kernel's ticks, finds the thread in a system call or elsewhere. The number
 * of silent periods is exact, and the timer decides how they are shared.
 */
#ifndef AGENT_CALLS_H
#define AGENT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct calls - how much of a thread's time is in system calls, as its timer finds it
 * @since: the thread's CPU clock when its timer was armed, in ns.
 * @last: the thread's CPU clock at the timer's last signal, in ns.
 * @ticks: number of signals of the timer.
 * @found: number of signals that came at the end of a system call.
 * @time: sum of the CPU time before each signal in @found, since the signal before it, in ns.
 * @taken: number of periods in samples of system calls.
 * @left: number of silent periods that the timer's last signal left without a sample.
 */
struct calls {
	uint64_t since;
	uint64_t last;
	uint64_t ticks;
	uint64_t found;
	uint64_t time;
	uint64_t taken;
	uint64_t left;
};

/* Notes a signal of the timer, which came @in_call or not. @at is the thread's CPU clock. */
void calls_count(struct calls *c, bool in_call, uint64_t at);
/*
 * Returns how many of @silent periods were spent where the timer's last signal, which came @in_call
 * or not, found the thread: in that call, or in none. @period is in ns.
 */
uint64_t calls_share(const struct calls *c, uint64_t silent, bool in_call, uint64_t period);

#endif
