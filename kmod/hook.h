/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hook.h - redirect a kernel function with ftrace, and undo it safely.
 *
 * The handler runs at the entry of the function, with preemption disabled, and
 * sees its arguments. It either returns, and the function runs as ever, or
 * gives another function of the same prototype to run in its place. ftrace
 * lets one owner at a time do this (FTRACE_OPS_FL_IPMODIFY): registering next
 * to a live patch of the same function fails, it never overrides. Redirection
 * ends in a return instruction, so IBT does not apply to it.
 *
 * FTRACE_OPS_FL_PERMANENT is left out on purpose: without the hook the kernel
 * is merely what it was, so an administrator who switches ftrace off
 * (kernel.ftrace_enabled=0) is obeyed instead of refused.
 *
 * Taking it out: unregister_ftrace_function() returns when no CPU and no task is
 * left in a handler, its trampoline, or a function given in place of the original
 * that does not sleep: the function is patched first, then the kernel waits for
 * each CPU to switch and for each task to sleep or to be in user mode (RCU-tasks),
 * and from the handler to the end of such a function a task does neither. A
 * function that can sleep may still run: it takes a reference to its module before
 * it sleeps for the first time and gives it back after the last, so that the
 * module cannot be unloaded meanwhile.
 */
#ifndef USHSTK_HOOK_H
#define USHSTK_HOOK_H

#include <linux/ftrace.h>
#include <linux/printk.h>
#include <linux/sched.h>

#include "resolve.h"

struct ushstk_hook {
	const char *symbol;
	struct ftrace_ops ops;
};

#define USHSTK_HOOK(_symbol, _handler)                   \
	{                                                \
		.symbol = (_symbol),                     \
		.ops = {                                 \
			.func = (_handler),              \
			.flags = FTRACE_OPS_FL_IPMODIFY, \
		},                                       \
	}

/**
 * ushstk_hook_install() - start calling a hook's handler
 * @hook: the hook; must stay until ushstk_hook_remove().
 *
 * Context: process context, sleeps.
 *
 * Return: 0; -EBUSY if the function is redirected already, by a live patch or
 * another module; -EOPNOTSUPP if this kernel has no such function or cannot
 * trace it; -ENOMEM.
 */
static inline int ushstk_hook_install(struct ushstk_hook *hook)
{
	/* By address: a filter by name compares that of every function. */
	void *addr = ushstk_resolve_text(hook->symbol);
	int ret;

	ret = addr ? ftrace_set_filter_ip(&hook->ops, (unsigned long)addr, 0, 1) : -ENOENT;
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		pr_err("%s: cannot be traced on this kernel\n", hook->symbol);
		ret = -EOPNOTSUPP;
		goto free_filter;
	}

	ret = register_ftrace_function(&hook->ops);
	if (ret) {
		pr_err("%s: %s (%d)\n", hook->symbol,
		       ret == -EBUSY ? "already redirected by a live patch or another module" :
				       "cannot be redirected",
		       ret);
		goto free_filter;
	}
	return 0;

free_filter:
	ftrace_free_filter(&hook->ops);
	return ret;
}

/**
 * ushstk_hook_remove() - stop calling a hook's handler
 * @hook: an installed hook.
 *
 * When it returns, no handler runs, and no replacement that does not sleep. This
 * takes a grace period of RCU-tasks, a tenth of a second and more.
 *
 * ftrace refuses only once it has found itself broken and switched off: then the
 * function stays patched to call the handler, which must not go. As unloading
 * cannot fail any more at this point, it never ends.
 *
 * Context: process context, sleeps.
 */
static inline void ushstk_hook_remove(struct ushstk_hook *hook)
{
	int ret = unregister_ftrace_function(&hook->ops);

	if (ret) {
		pr_emerg("%s: ftrace keeps it (%d): this module stays until the next boot\n",
			 hook->symbol, ret);
		for (;;)
			schedule_timeout_idle(MAX_SCHEDULE_TIMEOUT);
	}
	ftrace_free_filter(&hook->ops);
}

#endif /* USHSTK_HOOK_H */
