/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hook.h - redirects a kernel function with ftrace, and undoes that safely.
 *
 * The handler runs at the entry of the function, with preemption disabled, and sees its arguments.
 * The handler either just returns, and the function runs as usual, or it names another function
 * with the same prototype that runs instead. ftrace lets only one owner at a time do this for a
 * function (FTRACE_OPS_FL_IPMODIFY): if a live patch already redirects the function, registering
 * fails and never overrides it. The redirection ends in a return instruction, so IBT does not apply
 * to it.
 *
 * FTRACE_OPS_FL_PERMANENT is left out on purpose. Without the hook the kernel merely behaves as
 * before, so an administrator who switches ftrace off (kernel.ftrace_enabled=0) is obeyed and not
 * refused.
 *
 * Removing a hook: unregister_ftrace_function() returns when no CPU and no task is left in a
 * handler, in its trampoline, or in a replacement function that does not sleep. ftrace first
 * patches the function, then it waits until each CPU has switched and each task has slept or was in
 * user mode (RCU-tasks). A task does neither between the handler and the end of a replacement that
 * does not sleep. A replacement that can sleep may still run, so it takes a reference to its module
 * before it sleeps for the first time and gives it back after the last time. That keeps the module
 * loaded meanwhile.
 */
#ifndef USHSTK_HOOK_H
#define USHSTK_HOOK_H

#include <linux/ftrace.h>
#include <linux/printk.h>
#include <linux/sched.h>

#include "resolve.h"

/**
 * struct ushstk_hook - a kernel function, and the handler that is called at its entry
 * @symbol: name of the function.
 * @ops: the ftrace operations with the handler.
 */
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
 * ushstk_hook_install() - start calling the handler of a hook
 * @hook: the hook; its memory must stay valid until ushstk_hook_remove().
 *
 * Context: process context, sleeps.
 *
 * Return: 0; -EBUSY if a live patch or another module already redirects the function; -EOPNOTSUPP
 * if this kernel has no such function or cannot trace it; -ENOMEM.
 */
static inline int ushstk_hook_install(struct ushstk_hook *hook)
{
	/*
	 * The filter is set by address, because a filter by name compares the name of every
	 * function.
	 */
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
 * ushstk_hook_remove() - stop calling the handler of a hook
 * @hook: an installed hook.
 *
 * When this function returns, no handler runs, and no replacement that does not sleep runs. It
 * waits for a grace period of RCU-tasks, which takes a tenth of a second or more.
 *
 * ftrace refuses to unregister only if it has found itself broken and is switched off. Then the
 * function stays patched to call the handler, so the handler must stay in memory. Unloading can no
 * longer fail at this point, so this function never returns then.
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
