// SPDX-License-Identifier: GPL-2.0-only
/*
 * prctl.c - shstk_prctl.ko: the generic shadow stack interface, on x86.
 *
 * prctl(PR_{GET,SET,LOCK}_SHADOW_STACK_STATUS) and the SHADOW_STACK_SET_MARKER flag of
 * map_shadow_stack() exist on arm64. x86 kernels up to 7.3 have arch_prctl() and no marker instead.
 * This module gives x86 the generic calls, with the meaning and the errors that they have on arm64.
 *
 * This module does not set up shadow stacks itself: every change is made by the kernel's own
 * arch_prctl() and map_shadow_stack() system calls, with all their checks. The module only
 * translates the calls. The ftrace handler lets calls with other options or flags pass, so they
 * keep their usual path.
 *
 * The module calls the system calls by static calls, not through pointers; resolve.h says why. They
 * may sleep until a page of the caller is there, which can take any time, so each call holds a
 * reference to the module, and unloading it meanwhile fails at once.
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

/*
 * Asks the security modules, including BPF programs. Returns their answer, or -ENOSYS if they have
 * none.
 */
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

/* Set at the end of a successful load. Calls are redirected only while it is true. */
static bool ready;

/* Calls arch_prctl() for current. x86 wants one feature per call. */
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
 * Changes the status of current to @status. The caller has already ruled out what arch_prctl()
 * reports as "locked" or "not supported", so the errors that are left (no memory) are passed on.
 */
static long change_status(unsigned long status)
{
	unsigned long on = current->thread.features & STATUS_BITS;
	long ret;

	/* Disabling the stack also disables writing. */
	if (!(status & PR_SHADOW_STACK_ENABLE))
		return on ? arch_prctl(ARCH_SHSTK_DISABLE, ARCH_SHSTK_SHSTK) : 0;

	if (!(on & PR_SHADOW_STACK_ENABLE)) {
		ret = arch_prctl(ARCH_SHSTK_ENABLE, ARCH_SHSTK_SHSTK);
		if (ret)
			return ret;
	}

	/*
	 * This cannot fail once the stack is on. If it ever did, the caller would have a shadow
	 * stack without writing, and PR_GET_SHADOW_STACK_STATUS would say so. The stack is not
	 * disabled again, because entries may already be on it.
	 */
	if ((on ^ status) & PR_SHADOW_STACK_WRITE)
		return arch_prctl(status & PR_SHADOW_STACK_WRITE ? ARCH_SHSTK_ENABLE :
								   ARCH_SHSTK_DISABLE,
				  ARCH_SHSTK_WRSS);
	return 0;
}

/* Does PR_SET_SHADOW_STACK_STATUS. Returns 0 or a negative errno, as on arm64. */
static long set_status(unsigned long status)
{
	unsigned long on = current->thread.features;

	if (status & ~STATUS_BITS)
		return -EINVAL;
	/* x86 cannot enable writing for a shadow stack that is off. */
	if (status == PR_SHADOW_STACK_WRITE)
		return -EINVAL;
	if ((status ^ on) & current->thread.features_locked & STATUS_BITS)
		return -EBUSY;
	return change_status(status);
}

/* Answers one of the generic prctls. @regs are the registers of the system call. */
static long shadow_stack_prctl(const struct pt_regs *regs)
{
	unsigned long arg = regs->si;
	int ret;

	/* Security modules are asked first, as in the original system call. */
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
		/* Unknown bits may be locked, too: they lock features that do not exist yet. */
		return arch_prctl(ARCH_SHSTK_LOCK, arg);
	}
	return -EINVAL;
}

/*
 * Runs instead of __x64_sys_prctl(). If the module is being unloaded, it returns what the kernel
 * would return.
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
 * Makes a stack with an end marker. The last word stays zero, as it is on a fresh page, and the
 * token moves one word down. x86 places its token itself, so the stack is first made without a
 * token.
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

	/* A token holds the address behind itself; bit 0 says that it is for 64-bit mode. */
	token = ret + size - 16;
	if (write_user_shstk_64((u64 __user *)token, (token + 8) | BIT(0))) {
		vm_munmap(ret, PAGE_ALIGN(size));
		return -EFAULT;
	}
	return ret;
}

/*
 * Runs instead of __x64_sys_map_shadow_stack(). If the module is being unloaded, it returns
 * -EINVAL.
 */
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
 * Returns whether the kernel answers the generic prctls itself. From 6.13 on, kernel/sys.c has weak
 * functions for architectures that do not implement them, which only return -EINVAL. An
 * architecture that implements them puts its own functions in their place, so any function but the
 * empty one counts as native.
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

/* Binds the static calls to the functions of the kernel. Returns 0 or -EOPNOTSUPP. */
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
 * Unloads the module. Nobody holds a reference to it any more. A task that has given its reference
 * back may still be in the last instructions of a replacement, where it does not sleep;
 * ushstk_hook_remove() waits for it.
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
