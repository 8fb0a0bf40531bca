/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger.h - the CPU time of processes against what was sampled of it.
 *
 * Agents tell when a process is forked, executes something, ends, and which children it
 * has waited for, with their CPU time. What a process used after its agent had left is
 * the time of its exit. What it used without an agent is missing: it is kept by program.
 * An account lasts until the process was waited for, however often it executes; so it is no
 * entry of tools/convert/population.h, which the kernel tells of other events, or none.
 *
 * The numbers come from the targets and may be wrong; they are bounded, not trusted.
 */
#ifndef TOOLS_RECORD_AGENT_LEDGER_H
#define TOOLS_RECORD_AGENT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct ledger;

/**
 * struct ledger_gap - CPU time without an agent
 * @program: its path, or a description.
 * @reason: why no agent entered it.
 * @processes: number of processes.
 * @ns: their CPU time.
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

/* An agent entered process @pid, a child of @parent, after fork or exec: image @instance. */
void ledger_started(struct ledger *l, int pid, int parent, uint32_t instance);
/*
 * Process @pid, which had used @cpu ns, executes @path: its image @instance, or that of
 * its parent if it has none. It may be told late or early: later images have larger
 * numbers.
 */
void ledger_executes(struct ledger *l, int pid, uint64_t cpu, const char *path, uint32_t instance);
/* The agent leaves @pid, which had used @self ns, and its children @children ns. */
void ledger_ended(struct ledger *l, int pid, uint64_t self, uint64_t children);
/* @pid was waited for, by a process named @by; it and its children used @cpu ns. */
void ledger_reaped(struct ledger *l, int pid, uint64_t cpu, const char *by);

/*
 * After a whole pass over the rings: @exited is called for processes that were known to
 * have been waited for before the pass began, with the CPU time of their exit.
 */
void ledger_settle(struct ledger *l, void (*exited)(void *arg, uint32_t instance, uint64_t ns),
		   void *arg);

/* Looks how much the processes without an agent have used; now and then. */
void ledger_watch(struct ledger *l);

/* Calls @fn for each gap, the largest first. @foreign: some are in another PID namespace. */
void ledger_gaps(struct ledger *l, bool foreign,
		 void (*fn)(void *arg, const struct ledger_gap *gap), void *arg);

#endif
