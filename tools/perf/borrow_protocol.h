/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * borrow_protocol.h - how a recorder (borrow.h) asks the broker (tools/broker/) for a perf event.
 *
 * A Unix socket of packets (SOCK_SEQPACKET). Each packet to the broker is one struct
 * broker_request. The broker answers each with one struct broker_reply, and sends the descriptor of
 * the event (SCM_RIGHTS) if its @error is 0. Any other packet ends the connection.
 */
#ifndef TOOLS_PERF_BORROW_PROTOCOL_H
#define TOOLS_PERF_BORROW_PROTOCOL_H

#include <stdint.h>

#define BROKER_SOCKET "/run/shstk/broker"
#define BROKER_VERSION 1

#define BROKER_MAX_FREQ 10000
#define BROKER_MAX_COPY 65528
#define BROKER_MAX_CPUS 4096

/**
 * enum broker_kind - what is sampled
 * @BROKER_CPU_CLOCK: PERF_COUNT_SW_CPU_CLOCK.
 * @BROKER_TASK_CLOCK: PERF_COUNT_SW_TASK_CLOCK.
 * @BROKER_SWITCHES: each switch away from the CPU.
 */
enum broker_kind {
	BROKER_CPU_CLOCK,
	BROKER_TASK_CLOCK,
	BROKER_SWITCHES,
	BROKER_KINDS,
};

/* Flag of a request: the event begins when the thread executes a program. */
#define BROKER_ON_EXEC 1u
/*
 * Flag of a request: an event of switches also reports mappings, names and threads, as those of
 * clocks do.
 */
#define BROKER_TELLS 2u
/*
 * Flag of a request: the clock takes no samples in the kernel, even if the broker would permit
 * them.
 */
#define BROKER_NO_KERNEL 4u

/**
 * struct broker_request - asks for one event of a thread and all threads that it starts, on one CPU
 * @version: BROKER_VERSION.
 * @kind: enum broker_kind.
 * @flags: BROKER_ON_EXEC, BROKER_TELLS, BROKER_NO_KERNEL.
 * @tid: the thread.
 * @proof: number of a descriptor in the process that asks, which has /proc/TID/mem open; it is not
 *	sent along. The kernel opens that file only for processes that may trace the thread.
 * @cpu: number of the CPU.
 * @freq: samples a second of a clock.
 * @copy: bytes of the stack to copy with each sample; 0: neither stack nor registers are copied.
 * @max_stack: most entries of a callchain.
 * @zero: 0.
 */
struct broker_request {
	uint32_t version;
	uint32_t kind;
	uint32_t flags;
	int32_t tid;
	int32_t proof;
	uint32_t cpu;
	uint32_t freq;
	uint32_t copy;
	uint32_t max_stack;
	uint32_t zero;
};

/* Flag of a reply: the event takes no samples in the kernel. */
#define BROKER_USER_ONLY 1u

/**
 * struct broker_reply - the answer to a request
 * @version: BROKER_VERSION.
 * @error: 0, or an errno. EPERM: the thread may not be traced, or is of another namespace. ESRCH:
 *	the thread does not exist any more. EDQUOT: the user has as many events as are permitted.
 *	EBUSY: another process of the user is being answered. EPROTO: another version. Others are
 *	those of perf_event_open(2).
 * @flags: BROKER_USER_ONLY.
 * @zero: 0.
 */
struct broker_reply {
	uint32_t version;
	int32_t error;
	uint32_t flags;
	uint32_t zero;
};

_Static_assert(sizeof(struct broker_request) == 40, "no holes");
_Static_assert(sizeof(struct broker_reply) == 16, "no holes");

#endif
