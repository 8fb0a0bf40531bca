// SPDX-License-Identifier: GPL-2.0-only
/*
 * shstk_fault.c - makes allocations of the other modules fail, for tests
 *
 * /dev/shstk_fault: writing N makes the N-th allocation fail of those that the writer makes from
 * then on and that come from the code of a module shstk*, or from what that code calls; 0 means
 * none. Reading tells how many allocations are left until then, or 0 when it has failed. Only one
 * task at a time can use it.
 *
 * The kernel's own fault injection (fail-nth) is not in kernels of distributions. It also makes
 * allocations of all other code fail: then even the loader of modules complains.
 *
 * The kernel's functions that allocate are redirected in the same way as shstk_perf.ko redirects
 * others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/kallsyms.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "hook.h"

#define NO_FLAGS -1
#define FRAMES 48

/**
 * struct fault_hook - a function that allocates
 * @hook: redirection of the function.
 * @flags: index of the argument with the flags; NO_FLAGS if it differs between kernels.
 * @there: this kernel has the function.
 */
struct fault_hook {
	struct ushstk_hook hook;
	int flags;
	bool there;
};

static struct task_struct *victim;
static unsigned int left;

/* Runs instead of an allocation that is to fail. */
static noinline notrace void *nothing(void)
{
	return NULL;
}

/* Returns whether one of the modules is among the callers. Only the task under test comes here. */
static bool notrace is_theirs(void)
{
	static unsigned long frame[FRAMES];
	static char text[KSYM_SYMBOL_LEN];
	unsigned int nr = stack_trace_save(frame, FRAMES, 0), i;

	for (i = 0; i < nr; i++) {
		sprint_symbol(text, frame[i]);
		if (strstr(text, " [shstk") && !strstr(text, " [shstk_fault]"))
			return true;
	}
	return false;
}

static bool notrace may_fail(const struct fault_hook *h, struct ftrace_regs *fregs)
{
	if (READ_ONCE(victim) != current || !in_task() || !left)
		return false;
	if (h->flags != NO_FLAGS &&
	    ftrace_regs_get_argument(fregs, h->flags) & (__force u32)__GFP_NOFAIL)
		return false;
	return is_theirs();
}

static void notrace fault_handler(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *op,
				  struct ftrace_regs *fregs)
{
	if (may_fail(container_of(op, struct fault_hook, hook.ops), fregs) && !--left)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)nothing);
}

#define FAULT(_symbol, _flags)                                                  \
	{                                                                       \
		.hook = USHSTK_HOOK(_symbol, fault_handler), .flags = (_flags), \
	}

static struct fault_hook hooks[] = {
	FAULT("__kmalloc_noprof", 1),
	FAULT("__kmalloc_cache_noprof", 1),
	FAULT("__kvmalloc_node_noprof", NO_FLAGS),
	FAULT("kmem_cache_alloc_noprof", 1),
	FAULT("kmem_cache_alloc_node_noprof", 1),
	FAULT("__kmalloc_node_track_caller_noprof", NO_FLAGS),
};

/* The first three functions are those that the modules call themselves. */
#define NEEDED 3

static ssize_t fault_write(struct file *file, const char __user *text, size_t n, loff_t *pos)
{
	unsigned int value;
	int ret = kstrtouint_from_user(text, n, 0, &value);

	if (ret)
		return ret;
	left = value;
	WRITE_ONCE(victim, value ? current : NULL);
	return n;
}

static ssize_t fault_read(struct file *file, char __user *user, size_t n, loff_t *pos)
{
	char text[16];

	return simple_read_from_buffer(user, n, pos, text,
				       scnprintf(text, sizeof(text), "%u\n", left));
}

static const struct file_operations fault_fops = {
	.owner = THIS_MODULE,
	.write = fault_write,
	.read = fault_read,
};

static struct miscdevice fault_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "shstk_fault",
	.fops = &fault_fops,
	.mode = 0600,
};

static void remove_hooks(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (hooks[i].there)
			ushstk_hook_remove(&hooks[i].hook);
}

static int __init fault_init(void)
{
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		ret = ushstk_hook_install(&hooks[i].hook);
		hooks[i].there = !ret;
		if (ret && i < NEEDED)
			goto remove;
	}
	ret = misc_register(&fault_device);
	if (ret)
		goto remove;
	return 0;

remove:
	remove_hooks();
	return ret;
}

static void __exit fault_exit(void)
{
	misc_deregister(&fault_device);
	WRITE_ONCE(victim, NULL);
	remove_hooks();
}

module_init(fault_init);
module_exit(fault_exit);

MODULE_DESCRIPTION("Allocations fail, for tests");
MODULE_LICENSE("GPL");
