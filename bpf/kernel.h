/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h - the members of the kernel's structures that the walk reads. The loader puts in their
 * offsets in the running kernel (CO-RE).
 */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct uprobe;

struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	_Bool chained;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	struct uprobe *active_uprobe;
	unsigned long xol_vaddr;
	unsigned long vaddr;
};

struct maple_tree {
	void *ma_root;
};

struct mm_struct {
	struct maple_tree mm_mt;
	struct {
		void *vdso;
		__u64 ctx_id; /* x86: identifies the address space and is never reused */
	} context;
	unsigned long task_size;
	int mm_lock_seq;
	unsigned long flags;
};

/* Since 6.18. */
struct mm_struct___6_18 {
	struct {
		unsigned long __mm_flags[1];
	} flags;
};

/* Since 6.13, and in longterm kernels that have this change, too. */
struct mm_struct___6_13 {
	struct {
		unsigned int sequence;
	} mm_lock_seq;
};

struct super_block {
	__u32 s_dev;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	/* Since 6.11. */
	__s64 i_ctime_sec;
	__u32 i_ctime_nsec;
};

/* From 6.6 to 6.10. */
struct inode___6_6 {
	struct timespec64 __i_ctime;
};

/* Before 6.6. */
struct inode___6_1 {
	struct timespec64 i_ctime;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct mm_struct *vm_mm;
	struct file *vm_file;
};

/* x86 */
struct thread_struct {
	unsigned long fsbase;
};

struct thread_struct___arm64 {
	struct {
		unsigned long tp_value;
	} uw;
};

struct mm_struct___arm64 {
	struct {
		struct {
			__s64 counter;
		} id;
	} context;
};

struct task_struct___arm64 {
	struct thread_struct___arm64 thread;
	struct mm_struct___arm64 *mm;
};

/* Since 7.2: before, the flags of the address space had it. */
enum task_dumpable {
	TASK_DUMPABLE_OFF,
	TASK_DUMPABLE_OWNER,
	TASK_DUMPABLE_ROOT,
};

struct task_exec_state {
	enum task_dumpable dumpable;
};

struct task_struct___7_2 {
	struct task_exec_state *exec_state;
};

struct perf_event_attr___kernel {
	__u64 config1;
};

struct perf_event {
	struct perf_event *parent;
	struct perf_event_attr___kernel attr;
	__u64 id;
};

typedef struct {
	__u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
	kuid_t suid;
	kuid_t euid;
};

/* The context of programs at perf events, as the kernel knows it. */
struct bpf_perf_event_data_kern {
	struct perf_event *event;
};

struct task_struct {
	struct mm_struct *mm;
	unsigned int flags;
	struct uprobe_task *utask;
	struct thread_struct thread;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	const struct cred *cred;
	int pid; /* of the thread */
	int tgid;
};

#pragma clang attribute pop

#define VM_EXEC 4
#define PF_FORKNOEXEC 0x00000040 /* the process of that leader executed no program yet */
#define PF_KTHREAD 0x00200000

#endif /* BPF_KERNEL_H */
