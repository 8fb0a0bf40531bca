/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The user interface of shstk: /dev/shstk, and the generic shadow stack prctls and
 * map_shadow_stack() flags (with upstream's values), for systems whose own headers are older.
 *
 * Structures grow at their end. The ioctl number contains the size that the caller knows: a newer
 * kernel takes missing fields as 0, and an older kernel refuses fields that it does not know with
 * E2BIG unless they are 0. All structures have the same layout for 32-bit callers. Unknown flags
 * and padding that is not 0 give EINVAL.
 */
#ifndef _UAPI_LINUX_SHSTK_H
#define _UAPI_LINUX_SHSTK_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * The status of the calling thread's shadow stack: prctl(PR_GET_SHADOW_STACK_STATUS, unsigned long
 * *mask), prctl(PR_SET_SHADOW_STACK_STATUS, mask) and prctl(PR_LOCK_SHADOW_STACK_STATUS, mask).
 * linux/prctl.h has these since 6.13.
 */
#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS 74
#define PR_SET_SHADOW_STACK_STATUS 75
/* Calls and returns use the shadow stack. */
#define PR_SHADOW_STACK_ENABLE (1UL << 0)
/* Instructions may write arbitrary words to the shadow stack. */
#define PR_SHADOW_STACK_WRITE (1UL << 1)
/* Instructions may push arbitrary words to the shadow stack (arm64 only). */
#define PR_SHADOW_STACK_PUSH (1UL << 2)
#define PR_LOCK_SHADOW_STACK_STATUS 76
#endif

/* Flags of map_shadow_stack(). asm-generic/mman.h has them since 6.13, x86 since 6.6. */
#ifndef SHADOW_STACK_SET_TOKEN
/* Puts a token on the stack, with which a thread can switch to the stack. */
#define SHADOW_STACK_SET_TOKEN (1ULL << 0)
#endif
#ifndef SHADOW_STACK_SET_MARKER
/* Leaves a zero word above the token, which marks the outermost end for unwinders. */
#define SHADOW_STACK_SET_MARKER (1ULL << 1)
#endif

#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453
#endif

#define SHSTK_ABI_VERSION 2

/* Values of &struct shstk_ioc_info.arch. */
#define SHSTK_IOC_ARCH_X86 1
#define SHSTK_IOC_ARCH_ARM64 2

/**
 * DOC: features
 *
 * Bits of &struct shstk_ioc_info.features.
 *
 * SHSTK_FEATURE_NATIVE_PRCTL: this kernel answers the generic shadow stack prctls itself. On other
 *	kernels shstk_prctl.ko answers them.
 * SHSTK_FEATURE_PTRACE_CHECK: the kernel's own ptrace rules, including security modules, decide
 *	about access to other processes. Without this feature the caller needs CAP_SYS_PTRACE and
 *	CAP_PERFMON in the initial user namespace.
 * SHSTK_FEATURE_VIOLATIONS: violations are counted and traced.
 * SHSTK_FEATURE_KFUNC: BPF programs can call bpf_shstk_get_user_stack(). They cannot if the kernel
 *	or the module was built without BTF.
 */
#define SHSTK_FEATURE_NATIVE_PRCTL (1ULL << 0)
#define SHSTK_FEATURE_PTRACE_CHECK (1ULL << 1)
#define SHSTK_FEATURE_VIOLATIONS (1ULL << 2)
#define SHSTK_FEATURE_KFUNC (1ULL << 3)

/*
 * Every call takes a pidfd. Instead of a pidfd it also takes -1 for the caller, and the two values
 * below on any kernel; linux/fcntl.h has them since 6.14 (PIDFD_SELF, PIDFD_SELF_PROCESS). They
 * mean the calling thread, and the leader of its process.
 */
#define SHSTK_PIDFD_SELF (-10000)
#define SHSTK_PIDFD_SELF_PROCESS (-10001)

/* Limits of SHSTK_IOC_TRACE. */
#define SHSTK_MAX_ENTRIES 1024
#define SHSTK_MAX_THREADS 65536

/**
 * struct shstk_ioc_info - what the module and this machine offer (SHSTK_IOC_INFO)
 * @abi: SHSTK_ABI_VERSION of the module.
 * @arch: SHSTK_IOC_ARCH_*.
 * @features: SHSTK_FEATURE_* bits.
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
 * @pidfd: process, or -1 for the process of the caller.
 * @tid: thread ID of one of its threads in the caller's PID namespace; 0 for the calling thread (if
 *	@pidfd is -1) or for the thread that @pidfd refers to.
 * @enabled: out: PR_SHADOW_STACK_* bits that are on. Without PR_SHADOW_STACK_ENABLE there is no
 *	shadow stack, and @pointer, @base and @size are 0.
 * @locked: out: PR_SHADOW_STACK_* bits that are locked, including bits that are off.
 * @pointer: out: shadow stack pointer; it may have any value that the thread gave it.
 * @base: out: lowest address of the stack that the kernel made for the thread, or 0 if the kernel
 *	has no record of one.
 * @size: out: size of that stack in bytes, or 0.
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
 * @pidfd: process, or -1 for the process of the caller.
 * @pad: must be 0.
 * @addr: any address in the stack.
 * @start: out: lowest address of the stack.
 * @end: out: first address behind the stack.
 *
 * The call checks that the mapping is one of a shadow stack.
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
 * SHSTK_THREAD_CUT: the thread has more entries than there was room for.
 * SHSTK_THREAD_SWITCHED: the thread is on another stack than the one that the kernel made for it.
 * SHSTK_THREAD_RUNNING: the thread was running, and was interrupted for the trace.
 * SHSTK_THREAD_SIGNAL: the thread handles a signal. The program counter that the signal interrupted
 *	is on no shadow stack, so it is missing in the trace.
 */
#define SHSTK_THREAD_CUT (1U << 0)
#define SHSTK_THREAD_SWITCHED (1U << 1)
#define SHSTK_THREAD_RUNNING (1U << 2)
#define SHSTK_THREAD_SIGNAL (1U << 3)

/**
 * struct shstk_ioc_thread - the trace of one thread
 * @tid: thread ID in the caller's PID namespace.
 * @error: 0, or the reason why there is no trace: -ENODATA (there is no shadow stack, or the
 *	pointer does not point into one or is no multiple of 8), -EAGAIN (the thread started and
 *	stopped running each time it was looked at), -EFAULT (its shadow stack is not in memory),
 *	-EBUSY (it runs a virtual machine), -ESRCH (it has exited).
 * @nr: number of entries.
 * @flags: SHSTK_THREAD_* bits.
 */
struct shstk_ioc_thread {
	__u32 tid;
	__s32 error;
	__u32 nr;
	__u32 flags;
};

/**
 * struct shstk_ioc_trace - trace threads without stopping them (SHSTK_IOC_TRACE)
 * @pidfd: process, or -1 for the process of the caller.
 * @tid: thread ID of one of its threads in the caller's PID namespace, or 0 for all threads.
 * @flags: must be 0.
 * @max_entries: most entries per thread, 1 to SHSTK_MAX_ENTRIES.
 * @max_threads: most threads, 1 to SHSTK_MAX_THREADS.
 * @nr_threads: out: number of threads that there were; only the first @max_threads are described.
 * @threads: address of an array of @max_threads struct shstk_ioc_thread.
 * @entries: address of @max_threads times @max_entries words of 64 bits. The entries of thread
 *	number i begin at word i times @max_entries: first the program counter, then the return
 *	addresses, innermost first.
 *
 * Each trace shows one moment. Traces of different threads show different moments.
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
