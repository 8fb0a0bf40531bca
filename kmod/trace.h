/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.h - defines the trace events of shstk.ko.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM shstk

#if !defined(USHSTK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define USHSTK_TRACE_H

#include <linux/sched.h>
#include <linux/tracepoint.h>

/*
 * shstk_violation is emitted for a return whose address on the ordinary stack differs from the one
 * on the shadow stack, or for another misuse of shadow stacks that the CPU caught. The task is
 * current; it gets SIGSEGV with si_code SEGV_CPERR.
 */
/* The format is the one the kernel uses for its trace events. */
/* clang-format off */
TRACE_EVENT(shstk_violation,
	TP_PROTO(unsigned long pc, u64 stack, u64 shadow),
	TP_ARGS(pc, stack, shadow),
	TP_STRUCT__entry(
		__array(char, comm, TASK_COMM_LEN)
		__field(pid_t, tgid)
		__field(unsigned long, pc)
		__field(u64, stack)
		__field(u64, shadow)
	),
	TP_fast_assign(
		memcpy(__entry->comm, current->comm, TASK_COMM_LEN);
		__entry->tgid = current->tgid;
		__entry->pc = pc;
		__entry->stack = stack;
		__entry->shadow = shadow;
	),
	TP_printk("comm=%s tgid=%d pc=0x%lx stack=0x%llx shadow=0x%llx",
		  __entry->comm, __entry->tgid, __entry->pc, __entry->stack,
		  __entry->shadow)
);
/* clang-format on */

#endif /* USHSTK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
