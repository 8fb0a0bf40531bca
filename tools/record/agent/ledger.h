/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger.h - compares the CPU time of processes with the part of it that was sampled.
 *
 * Agents tell when a process is forked, executes a program or ends, and which children it has
 * waited for, with their CPU time. CPU time that a process used after its agent had left is the
 * time of its exit. CPU time that it used without an agent is missing from the profile: the ledger
 * sums it up by program. An account lasts until the process was waited for, however often it
 * executes a program. Therefore the accounts are not in tools/convert/population.h, which learns of
 * other events, from the kernel.
 *
 * The numbers come from the recorded programs and may be wrong; they are bounded, not trusted.
 */
#ifndef TOOLS_RECORD_AGENT_LEDGER_H
#define TOOLS_RECORD_AGENT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct ledger;

/**
 * struct ledger_gap - CPU time without an agent
 * @program: path of the program, or a description.
 * @reason: why no agent entered it.
 * @processes: number of processes.
 * @ns: CPU time of these processes.
 */
struct ledger_gap {
	const char *program;
	const char *reason;
	unsigned int processes;
	uint64_t ns;
};

/* Returns NULL if there is no memory. */
struct ledger *ledger_create(void);
void ledger_destroy(struct ledger *l);

/*
 * Tells that an agent entered process @pid, a child of @parent, after a fork or exec, as image
 * @instance.
 */
void ledger_started(struct ledger *l, int pid, int parent, uint32_t instance);
/*
 * Tells that process @pid, which had used @cpu ns, executes @path. @instance is its image, or that
 * of its parent if it has none. The call may come late or early: later images have larger numbers.
 */
void ledger_executes(struct ledger *l, int pid, uint64_t cpu, const char *path, uint32_t instance);
/*
 * Tells that the agent leaves process @pid, which had used @self ns of CPU time, and its children
 * @children ns.
 */
void ledger_ended(struct ledger *l, int pid, uint64_t self, uint64_t children);
/*
 * Tells that process @pid was waited for by a process named @by; it and its children used @cpu ns.
 */
void ledger_reaped(struct ledger *l, int pid, uint64_t cpu, const char *by);

/*
 * Settles accounts after a whole pass over the rings: calls @exited, with the CPU time of their
 * exit, for processes that were known to be reaped before the pass began.
 */
void ledger_settle(struct ledger *l, void (*exited)(void *arg, uint32_t instance, uint64_t ns),
		   void *arg);

/* Looks how much CPU time the processes without an agent have used. Called now and then. */
void ledger_watch(struct ledger *l);

/*
 * Calls @fn for each gap, the largest first. @foreign: some processes are in another PID namespace.
 */
void ledger_gaps(struct ledger *l, bool foreign,
		 void (*fn)(void *arg, const struct ledger_gap *gap), void *arg);

#endif
