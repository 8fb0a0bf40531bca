// SPDX-License-Identifier: GPL-2.0-only
/*
 * prctl.c - shstk_prctl.ko: one interface to shadow stacks on x86.
 *
 * prctl(PR_{GET,SET,LOCK}_SHADOW_STACK_STATUS) and the SHADOW_STACK_SET_MARKER
 * flag of map_shadow_stack() exist on arm64; x86 kernels up to 7.3 have
 * arch_prctl() and no marker instead. This module gives x86 the generic calls,
 * with the meaning and the errors that they have on arm64.
 *
 * No shadow stack is set up here: every change is made by the kernel's own
 * arch_prctl() and map_shadow_stack() system calls, with all their checks. What
 * is added is the translation. Calls with other options or flags do not even
 * leave their path: the ftrace handler lets them pass.
 *
 * The system calls are called by static calls, not through pointers: see
 * resolve.h. They may sleep for as long as a page of the caller's takes to come,
 * so each call holds the module: unloading it meanwhile fails at once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/ptrace.h>
#include <linux/trace_recursion.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/prctl.h>
#include <asm/special_insns.h>
#include <asm/text-patching.h>
#include <uapi/linux/prctl.h>
#include <linux/shstk.h>

#include "hook.h"
#include "resolve.h"

static_assert(PR_SHADOW_STACK_ENABLE == ARCH_SHSTK_SHSTK);
static_assert(PR_SHADOW_STACK_WRITE == ARCH_SHSTK_WRSS);

#define STATUS_BITS (PR_SHADOW_STACK_ENABLE | PR_SHADOW_STACK_WRITE)
#define MAP_FLAGS (SHADOW_STACK_SET_TOKEN | SHADOW_STACK_SET_MARKER)

static long no_syscall(const struct pt_regs *regs)
{
	return -ENOSYS;
}

DEFINE_STATIC_CALL(ushstk_sys_arch_prctl, no_syscall);
DEFINE_STATIC_CALL(ushstk_sys_map_shadow_stack, no_syscall);

#ifdef CONFIG_SECURITY
static int no_security(int option, unsigned long arg2, unsigned long arg3, unsigned long arg4,
		       unsigned long arg5)
{
	return -EPERM;
}

DEFINE_STATIC_CALL(ushstk_security_task_prctl, no_security);

/* What security modules say, BPF programs among them; -ENOSYS: nothing. */
static int ask_security(const struct pt_regs *regs)
{
	return static_call(ushstk_security_task_prctl)(regs->di, regs->si, regs->dx, regs->r10,
						       regs->r8);
}

static bool __init bind_security(void)
{
	void *func = ushstk_resolve_text("security_task_prctl");

	if (func)
		static_call_update(ushstk_security_task_prctl, func);
	return func;
}
#else
static int ask_security(const struct pt_regs *regs)
{
	return -ENOSYS;
}

static bool __init bind_security(void)
{
	return true;
}
#endif

/* Set at the end of a load that succeeded: calls are redirected from then on. */
static bool ready;

/* One arch_prctl() of current: one feature at a time, as x86 wants it. */
static long arch_prctl(unsigned long option, unsigned long arg)
{
	struct pt_regs regs = { .di = option, .si = arg };

	return static_call(ushstk_sys_arch_prctl)(&regs);
}

static long get_status(unsigned long __user *status)
{
	return put_user(current->thread.features & STATUS_BITS, status);
}

/*
 * Change to @status. What arch_prctl() reports as "locked" or "not supported"
 * has been ruled out before, so its errors that are left (no memory) pass.
 */
static long change_status(unsigned long status)
{
	unsigned long on = current->thread.features & STATUS_BITS;
	long ret;

	/* Turns writing off as well. */
	if (!(status & PR_SHADOW_STACK_ENABLE))
		return on ? arch_prctl(ARCH_SHSTK_DISABLE, ARCH_SHSTK_SHSTK) : 0;

	if (!(on & PR_SHADOW_STACK_ENABLE)) {
		ret = arch_prctl(ARCH_SHSTK_ENABLE, ARCH_SHSTK_SHSTK);
		if (ret)
			return ret;
	}

	/*
	 * This cannot fail once the stack is on. If it ever did, the caller
	 * would have its stack on without writing, and reads so with
	 * PR_GET_SHADOW_STACK_STATUS: the stack is not taken away again, since
	 * entries may be on it.
	 */
	if ((on ^ status) & PR_SHADOW_STACK_WRITE)
		return arch_prctl(status & PR_SHADOW_STACK_WRITE ? ARCH_SHSTK_ENABLE :
								   ARCH_SHSTK_DISABLE,
				  ARCH_SHSTK_WRSS);
	return 0;
}

static long set_status(unsigned long status)
{
	unsigned long on = current->thread.features;

	if (status & ~STATUS_BITS)
		return -EINVAL;
	/* x86 has no writing to a shadow stack that is off. */
	if (status == PR_SHADOW_STACK_WRITE)
		return -EINVAL;
	if ((status ^ on) & current->thread.features_locked & STATUS_BITS)
		return -EBUSY;
	return change_status(status);
}

static long shadow_stack_prctl(const struct pt_regs *regs)
{
	unsigned long arg = regs->si;
	int ret;

	/* As the first thing, as in the original. */
	ret = ask_security(regs);
	if (ret != -ENOSYS)
		return ret;

	if (regs->dx || regs->r10 || regs->r8)
		return -EINVAL;

	switch ((int)regs->di) {
	case PR_GET_SHADOW_STACK_STATUS:
		return get_status((unsigned long __user *)arg);
	case PR_SET_SHADOW_STACK_STATUS:
		return set_status(arg);
	case PR_LOCK_SHADOW_STACK_STATUS:
		/* Unknown bits too: they lock what is yet to come. */
		return arch_prctl(ARCH_SHSTK_LOCK, arg);
	}
	return -EINVAL;
}

/*
 * Runs in place of __x64_sys_prctl(). If the module is on its way out, the answer
 * is the kernel's own.
 */
static long replace_prctl(const struct pt_regs *regs)
{
	long ret = -EINVAL;

	if (try_module_get(THIS_MODULE)) {
		ret = shadow_stack_prctl(regs);
		module_put(THIS_MODULE);
	}
	return ret;
}

/*
 * A stack with an end marker: the last word stays zero, as it is on a fresh
 * page, and the token moves one word down. x86 places its token itself, so the
 * stack is made without one first.
 */
static long map_with_marker(unsigned long addr, unsigned long size, bool set_token)
{
	struct pt_regs regs = { .di = addr, .si = size };
	unsigned long token;
	long ret;

	if (!PAGE_ALIGNED(addr) || size == 8 || !IS_ALIGNED(size, 8))
		return -EINVAL;

	ret = static_call(ushstk_sys_map_shadow_stack)(&regs);
	if (IS_ERR_VALUE(ret) || !set_token)
		return ret;

	/* It holds the address behind itself, bit 0 says 64-bit mode. */
	token = ret + size - 16;
	if (write_user_shstk_64((u64 __user *)token, (token + 8) | BIT(0))) {
		vm_munmap(ret, PAGE_ALIGN(size));
		return -EFAULT;
	}
	return ret;
}

/* Runs in place of __x64_sys_map_shadow_stack(); likewise. */
static long replace_map_shadow_stack(const struct pt_regs *regs)
{
	long ret = -EINVAL;

	if (try_module_get(THIS_MODULE)) {
		ret = map_with_marker(regs->di, regs->si, regs->dx & SHADOW_STACK_SET_TOKEN);
		module_put(THIS_MODULE);
	}
	return ret;
}

static void redirect(struct ftrace_regs *fregs, long (*replacement)(const struct pt_regs *regs))
{
	if (READ_ONCE(ready))
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)replacement);
}

static void notrace prctl_handler(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *op,
				  struct ftrace_regs *fregs)
{
	const struct pt_regs *regs = (void *)ftrace_regs_get_argument(fregs, 0);
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);

	if (bit < 0)
		return;
	switch ((int)regs->di) {
	case PR_GET_SHADOW_STACK_STATUS:
	case PR_SET_SHADOW_STACK_STATUS:
	case PR_LOCK_SHADOW_STACK_STATUS:
		redirect(fregs, replace_prctl);
	}
	ftrace_test_recursion_unlock(bit);
}

static void notrace map_handler(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *op,
				struct ftrace_regs *fregs)
{
	const struct pt_regs *regs = (void *)ftrace_regs_get_argument(fregs, 0);
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);
	unsigned int flags = regs->dx;

	if (bit < 0)
		return;
	if (flags & SHADOW_STACK_SET_MARKER && !(flags & ~MAP_FLAGS))
		redirect(fregs, replace_map_shadow_stack);
	ftrace_test_recursion_unlock(bit);
}

static struct ushstk_hook prctl_hook = USHSTK_HOOK("__x64_sys_prctl", prctl_handler);
static struct ushstk_hook map_hook = USHSTK_HOOK("__x64_sys_map_shadow_stack", map_handler);

/*
 * Whether the kernel answers the generic prctls by itself. From 6.13 on,
 * kernel/sys.c has weak functions for architectures that do not, which only
 * return -EINVAL. An architecture that does would put its own in their place:
 * anything but the empty one counts as native.
 */
static bool __init native_prctl(void)
{
	static const u8 return_einval[] = { 0xb8, 0xea, 0xff, 0xff, 0xff };
	u8 text[24];
	void *func;
	int i;

	func = ushstk_resolve_text("arch_set_shadow_stack_status");
	if (!func)
		return false;
	if (copy_from_kernel_nofault(text, func, sizeof(text)))
		return true;
	for (i = 0; i <= (int)(sizeof(text) - sizeof(return_einval)); i++)
		if (!memcmp(text + i, return_einval, sizeof(return_einval)))
			return false;
	return true;
}

static int __init bind_syscalls(void)
{
	void *arch_prctl_call, *map_call;

	arch_prctl_call = ushstk_resolve_text("__x64_sys_arch_prctl");
	map_call = ushstk_resolve_text("__x64_sys_map_shadow_stack");
	if (!arch_prctl_call || !map_call) {
		pr_err("%s: not found in this kernel\n",
		       arch_prctl_call ? "__x64_sys_map_shadow_stack" : "__x64_sys_arch_prctl");
		return -EOPNOTSUPP;
	}
	static_call_update(ushstk_sys_arch_prctl, arch_prctl_call);
	static_call_update(ushstk_sys_map_shadow_stack, map_call);
	if (!bind_security()) {
		pr_err("security_task_prctl: not found in this kernel: security modules would not be asked\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int __init prctl_init(void)
{
	int ret;

	if (!cpu_feature_enabled(X86_FEATURE_USER_SHSTK)) {
		pr_err("this CPU or kernel has no user shadow stacks\n");
		return -ENODEV;
	}
	if (native_prctl()) {
		pr_err("this kernel has the shadow stack prctls already\n");
		return -EEXIST;
	}

	ret = bind_syscalls();
	if (ret)
		return ret;

	ret = ushstk_hook_install(&prctl_hook);
	if (ret)
		return ret;

	ret = ushstk_hook_install(&map_hook);
	if (ret) {
		ushstk_hook_remove(&prctl_hook);
		return ret;
	}

	WRITE_ONCE(ready, true);
	return 0;
}

/*
 * Nobody holds the module any more. Who has given it back is still in the last
 * instructions of a replacement, where it does not sleep: that is waited for.
 */
static void __exit prctl_exit(void)
{
	ushstk_hook_remove(&map_hook);
	ushstk_hook_remove(&prctl_hook);
}

module_init(prctl_init);
module_exit(prctl_exit);

MODULE_DESCRIPTION("Generic shadow stack prctl() and map_shadow_stack() on x86");
MODULE_LICENSE("GPL");
