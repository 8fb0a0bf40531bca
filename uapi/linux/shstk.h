/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The kernel interface of shstk: /dev/shstk, and the generic shadow stack
 * prctls and map_shadow_stack() flags where the system's own headers are older
 * (with upstream's values).
 *
 * Structures grow at their end. The size that the caller knows is part of the
 * ioctl number: a newer kernel takes missing fields as 0, an older one refuses
 * fields it does not know with E2BIG unless they are 0. All have the same layout
 * for 32-bit callers. Unknown flags and padding that is not 0 give EINVAL.
 */
#ifndef _UAPI_LINUX_SHSTK_H
#define _UAPI_LINUX_SHSTK_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Status of the calling thread's shadow stack: prctl(PR_GET_SHADOW_STACK_STATUS,
 * unsigned long *mask), prctl(PR_SET_SHADOW_STACK_STATUS, mask) and
 * prctl(PR_LOCK_SHADOW_STACK_STATUS, mask); linux/prctl.h since 6.13.
 */
#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS 74
#define PR_SET_SHADOW_STACK_STATUS 75
/* Calls and returns use the shadow stack. */
#define PR_SHADOW_STACK_ENABLE (1UL << 0)
/* Instructions may write arbitrary words to it. */
#define PR_SHADOW_STACK_WRITE (1UL << 1)
/* Instructions may push arbitrary words (arm64 only). */
#define PR_SHADOW_STACK_PUSH (1UL << 2)
#define PR_LOCK_SHADOW_STACK_STATUS 76
#endif

/* Flags of map_shadow_stack(); asm-generic/mman.h since 6.13, x86 since 6.6. */
#ifndef SHADOW_STACK_SET_TOKEN
/* Put a token on the stack with which a thread can switch to it. */
#define SHADOW_STACK_SET_TOKEN (1ULL << 0)
#endif
#ifndef SHADOW_STACK_SET_MARKER
/* Leave a zero word above the token: the outermost end, for unwinders. */
#define SHADOW_STACK_SET_MARKER (1ULL << 1)
#endif

#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453
#endif

#define SHSTK_ABI_VERSION 2

/* &struct shstk_ioc_info.arch */
#define SHSTK_IOC_ARCH_X86 1
#define SHSTK_IOC_ARCH_ARM64 2

/**
 * DOC: features
 *
 * Bits of &struct shstk_ioc_info.features.
 *
 * SHSTK_FEATURE_NATIVE_PRCTL: this kernel answers the generic shadow stack
 *	prctls by itself; elsewhere shstk_prctl.ko does.
 * SHSTK_FEATURE_PTRACE_CHECK: access to other processes is decided by the
 *	kernel's own ptrace rules, security modules included. Without it the
 *	caller needs CAP_SYS_PTRACE and CAP_PERFMON in the initial user
 *	namespace.
 * SHSTK_FEATURE_VIOLATIONS: violations are counted and traced.
 * SHSTK_FEATURE_KFUNC: BPF programs can call bpf_shstk_get_user_stack(). They
 *	cannot where the kernel or the module was built without BTF.
 */
#define SHSTK_FEATURE_NATIVE_PRCTL (1ULL << 0)
#define SHSTK_FEATURE_PTRACE_CHECK (1ULL << 1)
#define SHSTK_FEATURE_VIOLATIONS (1ULL << 2)
#define SHSTK_FEATURE_KFUNC (1ULL << 3)

/*
 * Besides a pidfd every call takes -1 for the caller, and these values, which
 * linux/fcntl.h has since 6.14 (PIDFD_SELF, PIDFD_SELF_PROCESS), on any kernel:
 * the calling thread, and the leader of its process.
 */
#define SHSTK_PIDFD_SELF (-10000)
#define SHSTK_PIDFD_SELF_PROCESS (-10001)

/* Limits of SHSTK_IOC_TRACE. */
#define SHSTK_MAX_ENTRIES 1024
#define SHSTK_MAX_THREADS 65536

/**
 * struct shstk_ioc_info - what there is (SHSTK_IOC_INFO)
 * @abi: SHSTK_ABI_VERSION of the module.
 * @arch: SHSTK_IOC_ARCH_*.
 * @features: SHSTK_FEATURE_*.
 * @status_mask: bits that a status can have on this machine.
 */
struct shstk_ioc_info {
	__u32 abi;
	__u32 arch;
	__u64 features;
	__u64 status_mask;
};

/**
 * struct shstk_ioc_status - the shadow stack of one thread (SHSTK_IOC_STATUS)
 * @pidfd: process, or -1 for that of the caller.
 * @tid: one of its threads, as the caller's PID namespace numbers it; 0 for the
 *	calling thread (@pidfd -1) or the one that @pidfd refers to.
 * @enabled: out: PR_SHADOW_STACK_* that are on. Without PR_SHADOW_STACK_ENABLE
 *	there is no shadow stack, and @pointer, @base and @size are 0.
 * @locked: out: PR_SHADOW_STACK_* that are locked, also while they are off.
 * @pointer: out: shadow stack pointer, whatever value the thread gave it.
 * @base: out: lowest address of the stack that the kernel made for the thread,
 *	0 if it has no record of one.
 * @size: out: its size in bytes, or 0.
 */
struct shstk_ioc_status {
	__s32 pidfd;
	__u32 tid;
	__u64 enabled;
	__u64 locked;
	__u64 pointer;
	__u64 base;
	__u64 size;
};

/**
 * struct shstk_ioc_map - the shadow stack at an address (SHSTK_IOC_MAP)
 * @pidfd: process, or -1 for that of the caller.
 * @pad: must be 0.
 * @addr: any address in the stack.
 * @start: out: its lowest address.
 * @end: out: the first address behind it.
 *
 * The mapping is verified to be one of a shadow stack.
 */
struct shstk_ioc_map {
	__s32 pidfd;
	__u32 pad;
	__u64 addr;
	__u64 start;
	__u64 end;
};

/**
 * DOC: thread flags
 *
 * Bits of &struct shstk_ioc_thread.flags.
 *
 * SHSTK_THREAD_CUT: the thread has more entries than fitted.
 * SHSTK_THREAD_SWITCHED: it is on another stack than the kernel made for it.
 * SHSTK_THREAD_RUNNING: it ran, and was interrupted for the trace.
 * SHSTK_THREAD_SIGNAL: it handles a signal: the program counter that this
 *	interrupted is on no shadow stack, so it is missing.
 */
#define SHSTK_THREAD_CUT (1U << 0)
#define SHSTK_THREAD_SWITCHED (1U << 1)
#define SHSTK_THREAD_RUNNING (1U << 2)
#define SHSTK_THREAD_SIGNAL (1U << 3)

/**
 * struct shstk_ioc_thread - the trace of one thread
 * @tid: thread ID in the caller's PID namespace.
 * @error: 0, or why there is no trace: -ENODATA (no shadow stack, or a pointer
 *	that is not into one or no multiple of 8), -EAGAIN (it started and
 *	stopped running each time it was looked at), -EFAULT (its shadow stack
 *	is not in memory), -EBUSY (it runs a virtual machine), -ESRCH (it has
 *	exited).
 * @nr: number of entries.
 * @flags: SHSTK_THREAD_*.
 */
struct shstk_ioc_thread {
	__u32 tid;
	__s32 error;
	__u32 nr;
	__u32 flags;
};

/**
 * struct shstk_ioc_trace - trace threads without stopping them (SHSTK_IOC_TRACE)
 * @pidfd: process, or -1 for that of the caller.
 * @tid: one of its threads as the caller's PID namespace numbers it, or 0 for
 *	all of them.
 * @flags: must be 0.
 * @max_entries: entries per thread, 1 to SHSTK_MAX_ENTRIES.
 * @max_threads: threads that fit, 1 to SHSTK_MAX_THREADS.
 * @nr_threads: out: threads there were; the first @max_threads are described.
 * @threads: address of @max_threads struct shstk_ioc_thread.
 * @entries: address of @max_threads times @max_entries words of 64 bits.
 *	Thread number i has its entries from word i times @max_entries on: the
 *	program counter, then return addresses, innermost first.
 *
 * Each trace is of one moment. Different threads have different moments.
 */
struct shstk_ioc_trace {
	__s32 pidfd;
	__u32 tid;
	__u32 flags;
	__u32 max_entries;
	__u32 max_threads;
	__u32 nr_threads;
	__u64 threads;
	__u64 entries;
};

#define SHSTK_IOC_MAGIC 0xbf
#define SHSTK_IOC_INFO _IOR(SHSTK_IOC_MAGIC, 0, struct shstk_ioc_info)
#define SHSTK_IOC_STATUS _IOWR(SHSTK_IOC_MAGIC, 1, struct shstk_ioc_status)
#define SHSTK_IOC_MAP _IOWR(SHSTK_IOC_MAGIC, 2, struct shstk_ioc_map)
#define SHSTK_IOC_TRACE _IOWR(SHSTK_IOC_MAGIC, 3, struct shstk_ioc_trace)

#endif /* _UAPI_LINUX_SHSTK_H */
