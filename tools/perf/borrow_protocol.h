/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * borrow_protocol.h - how a recorder (borrow.h) asks the broker (tools/broker/) for a perf event.
 *
 * A Unix socket of packets (SOCK_SEQPACKET). Each packet to the broker is one struct
 * broker_request, or one struct broker_process if its kind is BROKER_PROCESS. The broker answers each
 * with one struct broker_reply, and sends the descriptor of the event, or of a lease (SCM_RIGHTS), if
 * its @error is 0 and it has not BROKER_DONE. Any other packet ends the connection.
 */
#ifndef TOOLS_PERF_BORROW_PROTOCOL_H
#define TOOLS_PERF_BORROW_PROTOCOL_H

#include <stdint.h>

#include "bpf/lend.h"

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
 * @BROKER_LEASE: nothing: the request is for a lease, see below.
 * @BROKER_OUTPUT: nothing: the request is for the event that receives the chains of a lease on a CPU.
 * @BROKER_PROCESS: nothing: the request says how the frames of an interpreter, or threads' trace contexts,
 *	are found in a process.
 *
 * Where the broker lends walks of stacks in the kernel, a recorder first asks for a lease, then for
 * events of threads with the lease's number, whose stacks are walked, and for the output of each CPU. A
 * sample of these events that was walked to the end of its stack is not taken; instead the output
 * has a record with the chain (PERF_SAMPLE_RAW: struct walk_chain of bpf/walk.h).
 *
 * Of processes that have an interpreter the recorder can say so. Their samples are taken from then on,
 * and before each of them the output has records with the interpreter's frames (bpf/language.h). Where
 * threads publish trace contexts, it has records with these (bpf/context.h) before samples and chains. A broker
 * that cannot read frames, or does not know such requests, answers EOPNOTSUPP or ends the connection.
 */
enum broker_kind {
	BROKER_CPU_CLOCK,
	BROKER_TASK_CLOCK,
	BROKER_SWITCHES,
	BROKER_LEASE,
	BROKER_OUTPUT,
	BROKER_PROCESS,
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
/* Flag of a request for a lease: walks follow frame records in code of no file. */
#define BROKER_GUESSES 8u
/* Flag of a request for a lease: all chains are written, and all samples taken, to be compared. */
#define BROKER_BOTH 16u

/* The flags that belong to a kind of requests. */
#define BROKER_EVENT_FLAGS (BROKER_ON_EXEC | BROKER_TELLS | BROKER_NO_KERNEL)
#define BROKER_LEASE_FLAGS (BROKER_GUESSES | BROKER_BOTH)

/**
 * struct broker_request - asks for one event of a thread and all threads that it starts, on one CPU
 * @version: BROKER_VERSION.
 * @kind: enum broker_kind.
 * @flags: BROKER_ON_EXEC, BROKER_TELLS, BROKER_NO_KERNEL; of a lease: BROKER_GUESSES, BROKER_BOTH.
 * @tid: the thread.
 * @proof: number of a descriptor in the process that asks, which has /proc/TID/mem open; it is not
 *	sent along. The kernel opens that file only for processes that may trace the thread.
 * @cpu: number of the CPU.
 * @freq: samples a second of a clock.
 * @copy: bytes of the stack to copy with each sample; 0: neither stack nor registers are copied.
 * @max_stack: most entries of a callchain, also of one that is walked.
 * @lease: number of the lease by which stacks are walked, or 0.
 *
 * A request for a lease has only @version, @kind, @flags and @max_stack; one for an output only
 * @version, @kind, @cpu and @lease; one about a process only @version, @kind, @tid and @lease. All others
 * are 0 there.
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
	uint32_t lease;
};

/**
 * struct broker_process - says what is found in a process, and how
 * @request: its @tid is the process, and it counts for events with its @lease.
 * @layout: LANGUAGE_LAYOUT.
 * @reserved: 0.
 * @process: what and how. It takes the place of what was said of the process before.
 */
struct broker_process {
	struct broker_request request;
	uint32_t layout;
	uint32_t reserved;
	struct lent_process process;
};

/* Any request. */
union broker_packet {
	struct broker_request request;
	struct broker_process process;
};

/* Flag of a reply: the event takes no samples in the kernel. */
#define BROKER_USER_ONLY 1u
/* Flag of a reply: what was asked for is done, and no descriptor is sent. */
#define BROKER_DONE 2u

/**
 * struct broker_reply - the answer to a request
 * @version: BROKER_VERSION.
 * @error: 0, or an errno. EPERM: the thread may not be traced, or is of another namespace. ESRCH:
 *	the thread does not exist any more. EDQUOT: the user has as many events as are permitted.
 *	EBUSY: another process of the user is being answered. EPROTO: another version. Others are
 *	those of perf_event_open(2). Of a lease: EOPNOTSUPP: no walks are lent; EDQUOT: the user has as
 *	many leases as are permitted now. Of an output: EPERM: there is no such lease of the user's;
 *	EEXIST: it was given before. About a process: EOPNOTSUPP: no frames are read, or none on the native
 *	stack; EPERM: there is no such lease of the user's; EPROTO: another layout; EINVAL: a reserved field is
 *	not 0.
 * @flags: BROKER_USER_ONLY, BROKER_DONE.
 * @lease: number of the lease that was asked for, which lasts until the descriptor that came with it
 *	is closed by all who have it; or 0.
 */
struct broker_reply {
	uint32_t version;
	int32_t error;
	uint32_t flags;
	uint32_t lease;
};

_Static_assert(sizeof(struct broker_request) == 40, "no holes");
_Static_assert(sizeof(struct broker_reply) == 16, "no holes");
_Static_assert(sizeof(struct broker_process) == 48 + sizeof(struct lent_process), "no holes");

#endif
