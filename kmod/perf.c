// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf.c - shstk_perf.ko: makes the user callchains of perf and BPF from shadow stacks and unwind
 * rules.
 *
 * perf record -g, bpf_get_stack(), bpf_get_stackid() and everything built on them take a user stack
 * in perf_callchain_user(), and deferred callchains (7.2 and newer) take it in unwind_user(). Both
 * functions follow frame pointers, so code without frame pointers gives cut or wrong chains. This
 * module takes the chain of a task that runs with a shadow stack from that stack, and the chain of
 * any other task from the unwind rules of its code, if these were uploaded. In every case where
 * neither source can give a chain at the moment of the call, the original function runs.
 *
 * All work is done in the ftrace handler. If the handler succeeds, an empty function runs instead
 * of the original one; otherwise the original runs as usual. So the module never needs to call the
 * kernel's function. Nothing in this module sleeps except one function: unwind_user() is called
 * where pages can be brought in, and where that is needed unwind_faulting() runs in its place.
 * unwind_faulting() waits only for the kernel, so it waits for a bounded time.
 *
 * A chain comes from a source. When the module is loaded, a source says whether this machine has
 * what it needs. For each chain, it either gives the entries behind the program counter or says why
 * it has none. ask_sources() asks the sources in turn: first the shadow stack, if the task has one,
 * then the uploaded unwind rules (rules.c, walk.c). The hooks do not know the sources.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/ftrace.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/shmem_fs.h>
#include <linux/sysfs.h>
#include <linux/trace_recursion.h>
#include <linux/userfaultfd_k.h>

#include "hook.h"
#include "return_probe.h"
#include "read.h"
#include "rules.h"
#include "walk.h"

#ifdef CONFIG_UNWIND_USER
#include <linux/unwind_user_types.h>
#endif

/*
 * What happened in a call of a hooked function. Each outcome has a counter of the same name in
 * /sys/module/shstk_perf/chains/. This module served the call for the first five outcomes, and the
 * original function served it for the others.
 */
enum call_outcome {
	SERVED, /* from the shadow stack that the kernel made for the thread */
	SERVED_SWITCHED, /* from another shadow stack: see read.h */
	SERVED_RULES, /* from unwind rules */
	SERVED_DEFERRED, /* from any of the sources, for unwind_user() */
	NO_REGISTERS, /* empty chain: the kernel has not saved the program's registers yet */
	NO_SHADOW_STACK, /* the task runs without a shadow stack */
	OTHER_CGROUP, /* the task is not below the cgroup given as a parameter */
	OTHER_MODE, /* virtual machine, worker, exiting task, or not 64-bit */
	NO_POINTER, /* the shadow stack pointer does not point into a shadow stack */
	NOT_PRESENT, /* a page of the shadow stack is not in memory */
	NR_OUTCOMES,
};

struct counters {
	u64 count[NR_OUTCOMES];
};

static DEFINE_PER_CPU(struct counters, counters);

static char *cgroup;
module_param(cgroup, charp, 0444);
MODULE_PARM_DESC(cgroup, "serve only tasks in or below this cgroup (v2), such as /user.slice");

static struct cgroup *only __ro_after_init;

static int cgroup_init_only(void)
{
	struct cgroup *cgrp;

	if (!cgroup)
		return 0;
	cgrp = cgroup_get_from_path(cgroup);
	if (IS_ERR(cgrp)) {
		pr_err("cgroup=%s: no such cgroup (%ld)\n", cgroup, PTR_ERR(cgrp));
		return PTR_ERR(cgrp);
	}
	only = cgrp;
	return 0;
}

static void cgroup_exit_only(void)
{
	if (only)
		cgroup_put(only);
}

/* Returns whether current is in the cgroup given as a parameter, if one is given. */
static __always_inline bool in_cgroup(void)
{
	bool ret;

	if (likely(!only))
		return true;
	rcu_read_lock();
	ret = cgroup_is_descendant(task_dfl_cgroup(current), only);
	rcu_read_unlock();
	return ret;
}

static __always_inline void count(enum call_outcome outcome)
{
	ushstk_arch_count(counters.count[outcome]);
}

/* Runs instead of perf_callchain_user() or unwind_user() when the handler has served the call. */
static noinline notrace int served(void)
{
	return 0;
}

/*
 * Returns whether any source may describe the user code to which @regs belong, and counts the
 * reason if not. @regs is NULL if the registers are not known.
 */
static __always_inline bool usable(const struct pt_regs *regs)
{
	if (!in_cgroup()) {
		count(OTHER_CGROUP);
		return false;
	}
	/*
	 * The original function says nothing about a task whose CPU runs a virtual machine. perf's
	 * guest callbacks, which decide that, are private to perf; PF_VCPU is set whenever they
	 * could answer.
	 */
	if (unlikely(current->flags & (PF_VCPU | PF_KTHREAD | PF_USER_WORKER)) ||
	    unlikely(!current->mm || (regs && !ushstk_arch_regs_ok(regs)))) {
		count(OTHER_MODE);
		return false;
	}
	return true;
}

/* ---- Sources ---- */

/**
 * struct chain - the answer of a source
 * @nr: number of entries, not counting the program counter.
 * @outcome: SERVED, SERVED_SWITCHED, SERVED_RULES or NO_REGISTERS, or the reason why there are no
 *	entries.
 */
struct chain {
	unsigned int nr;
	enum call_outcome outcome;
};

/*
 * Asks the shadow stack for a chain. Returns whether there is one; if not, @chain->outcome says
 * why.
 */
static __always_inline bool ask_shadow_stack(u64 *dst, unsigned int max, struct chain *chain)
{
	struct ushstk_span span;
	int ret;

	ret = ushstk_read_current(dst, max, &span);
	if (likely(!ret)) {
		if (unlikely(ushstk_own_utask()))
			ushstk_mend_returns(dst, span.nr);
		chain->nr = span.nr;
		chain->outcome = span.switched ? SERVED_SWITCHED : SERVED;
		return true;
	}
	chain->outcome = ret == -EBUSY ? OTHER_MODE : ret == -EFAULT ? NOT_PRESENT : NO_POINTER;
	return false;
}

/*
 * Asks the unwind rules for a chain. Returns whether there is one. @regs is NULL if they are not
 * known.
 */
static __always_inline bool ask_rules(const struct pt_regs *regs, u64 *dst, unsigned int max,
				      u64 *missing, struct chain *chain)
{
	int nr;

	/* The original function would also begin with the registers, so it cannot do better. */
	if (unlikely(!regs)) {
		chain->nr = 0;
		chain->outcome = NO_REGISTERS;
		return true;
	}
	nr = walk_user(regs, dst, max, missing);
	if (nr < 0)
		return false;
	chain->nr = nr;
	chain->outcome = SERVED_RULES;
	return true;
}

/*
 * Asks the sources for a chain and puts its entries at @dst, at most @max of them. Most tasks have
 * no shadow stack; if there are no rules either, nothing else is looked at. @missing has the same
 * meaning as in walk_user(). Returns whether there is a chain; if there is none, the reason is
 * counted.
 */
static __always_inline bool ask_sources(const struct pt_regs *regs, u64 *dst, unsigned int max,
					u64 *missing, struct chain *chain)
{
	bool shadow = ushstk_arch_active(current), rules = READ_ONCE(rules_wanted);

	chain->outcome = NO_SHADOW_STACK;
	if (shadow || rules) {
		if (!usable(regs))
			return false;
		if (shadow && likely(ask_shadow_stack(dst, max, chain)))
			return true;
		if (rules && likely(ask_rules(regs, dst, max, missing, chain)))
			return true;
	}
	count(chain->outcome);
	return false;
}

/* ---- Hooks ---- */

/* Does the same as perf_callchain_store(), but for all entries at once. */
static __always_inline bool serve_callchain(struct perf_callchain_entry_ctx *ctx,
					    struct pt_regs *regs)
{
	struct perf_callchain_entry *entry = ctx->entry;
	bool saved = ushstk_arch_regs_saved(regs);
	struct chain chain;
	unsigned int room;

	if (ctx->contexts_maxed || ctx->nr >= ctx->max_stack)
		return false;
	room = ctx->max_stack - ctx->nr - 1;
	if (!ask_sources(saved ? regs : NULL, entry->ip + entry->nr + saved, room, NULL, &chain))
		return false;

	/* The callers are right without the program counter. A wrong one is worse than none. */
	if (likely(saved))
		entry->ip[entry->nr] = ushstk_user_ip(regs);
	entry->nr += saved + chain.nr;
	ctx->nr += saved + chain.nr;
	count(chain.outcome);
	return true;
}

static void notrace callchain_handler(unsigned long ip, unsigned long parent_ip,
				      struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);

	if (bit < 0)
		return;
	if (serve_callchain((void *)ftrace_regs_get_argument(fregs, 0),
			    (void *)ftrace_regs_get_argument(fregs, 1)))
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)served);
	ftrace_test_recursion_unlock(bit);
}

static struct ushstk_hook callchain_hook = USHSTK_HOOK("perf_callchain_user", callchain_handler);

#ifdef CONFIG_UNWIND_USER
/*
 * Fills @trace with at most @max entries. @missing has the same meaning as in walk_user(); if it
 * receives an address, the trace is not counted yet. Returns whether there is a trace.
 */
static __always_inline bool serve_unwind(struct unwind_stacktrace *trace, unsigned int max,
					 u64 *missing)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct chain chain;

	BUILD_BUG_ON(sizeof(*trace->entries) != sizeof(u64));

	if (!max || !user_mode(regs) ||
	    !ask_sources(regs, (u64 *)trace->entries + 1, max - 1, missing, &chain))
		return false;

	trace->entries[0] = ushstk_user_ip(regs);
	trace->nr = 1 + chain.nr;
	if (!missing || !*missing)
		count(SERVED_DEFERRED);
	return true;
}

/*
 * Returns whether only the kernel supplies the pages of @vma: memory, also shared memory, with no
 * program behind it.
 */
static bool is_kernels(struct vm_area_struct *vma)
{
	if (userfaultfd_armed(vma))
		return false;
	return vma_is_anonymous(vma) || (vma->vm_file && shmem_mapping(vma->vm_file->f_mapping));
}

/*
 * Brings in one page of current at @addr, if only the kernel supplies it. A program that supplies
 * pages (FUSE, userfaultfd) may never answer, and this module would be in use for as long. The
 * mapping is checked under the lock, which is kept until the page is there. The lock is not waited
 * for either, because its holder may wait for a page that a program supplies.
 *
 * Return: 0; -EFAULT if the page was not brought in.
 */
static int bring_in(unsigned long addr)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	struct page *page;
	long nr = 0;

	if (!mmap_read_trylock(mm))
		return -EFAULT;
	vma = vma_lookup(mm, addr);
	if (vma && is_kernels(vma))
		nr = get_user_pages_remote(mm, addr, 1, 0, &page, NULL);
	mmap_read_unlock(mm);
	if (nr != 1)
		return -EFAULT;
	put_page(page);
	return 0;
}

/*
 * Tries once to fill @trace, and brings in a page that is missing.
 *
 * Return: 0 if the attempt is finished; 1 if a page was missing and is there now; -EFAULT if the
 * missing page cannot be brought in. If no source serves the chain any more, the trace stays
 * unchanged and the result is 0.
 */
static int unwind_once(struct unwind_stacktrace *trace, unsigned int max)
{
	u64 missing = 0;

	preempt_disable();
	serve_unwind(trace, max, &missing);
	preempt_enable();
	if (!missing)
		return 0;
	return bring_in(missing) ? -EFAULT : 1;
}

/*
 * Repeats unwind_once(), at most as often as a walk has steps: another page may be missing each
 * time, or another thread may remove pages all the time.
 */
static int unwind_bringing_in(struct unwind_stacktrace *trace, unsigned int max)
{
	unsigned int left = WALK_MAX;
	int ret;

	do
		ret = unwind_once(trace, max);
	while (ret > 0 && --left);
	return ret;
}

/*
 * Runs instead of unwind_user() if a part of the stack is not present. While this function sleeps
 * the module cannot be unloaded. If the module is being unloaded already, only the pages that are
 * present are used.
 */
static noinline notrace int unwind_faulting(struct unwind_stacktrace *trace, unsigned int max)
{
	int ret = -EBUSY;

	if (try_module_get(THIS_MODULE)) {
		ret = unwind_bringing_in(trace, max);
		module_put(THIS_MODULE);
	}
	if (ret) {
		preempt_disable();
		serve_unwind(trace, max, NULL);
		preempt_enable();
	}
	return 0;
}

static void notrace unwind_handler(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *op,
				   struct ftrace_regs *fregs)
{
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);
	u64 missing = 0;
	bool done;

	if (bit < 0)
		return;
	done = serve_unwind((void *)ftrace_regs_get_argument(fregs, 0),
			    ftrace_regs_get_argument(fregs, 1), &missing);
	if (missing)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)unwind_faulting);
	else if (done)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)served);
	ftrace_test_recursion_unlock(bit);
}

static struct ushstk_hook unwind_hook = USHSTK_HOOK("unwind_user", unwind_handler);

static int unwind_init(void)
{
	return ushstk_hook_install(&unwind_hook);
}

static void unwind_exit(void)
{
	ushstk_hook_remove(&unwind_hook);
}
#else
static int unwind_init(void)
{
	return 0;
}

static void unwind_exit(void)
{
}
#endif

static struct kobject *chains, *rules;

static void counters_delete(struct kobject *folder)
{
	/*
	 * Somebody may still hold the directory, but its files must go now, because their functions
	 * go with the module.
	 */
	kobject_del(folder);
	kobject_put(folder);
}

static void counters_exit(void)
{
	counters_delete(chains);
	counters_delete(rules);
}

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf);

#define COUNTER(_name) __ATTR(_name, 0444, counter_show, NULL)

/* The file of each counter, by outcome. */
static struct kobj_attribute counter_files[NR_OUTCOMES] = {
	[SERVED] = COUNTER(served),
	[SERVED_SWITCHED] = COUNTER(served_switched),
	[SERVED_RULES] = COUNTER(served_rules),
	[SERVED_DEFERRED] = COUNTER(served_deferred),
	[NO_REGISTERS] = COUNTER(no_registers),
	[NO_SHADOW_STACK] = COUNTER(no_shadow_stack),
	[OTHER_CGROUP] = COUNTER(other_cgroup),
	[OTHER_MODE] = COUNTER(other_mode),
	[NO_POINTER] = COUNTER(no_pointer),
	[NOT_PRESENT] = COUNTER(not_present),
};

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	enum call_outcome outcome = attr - counter_files;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(counters.count[outcome], cpu);
	return sysfs_emit(buf, "%llu\n", sum);
}

/* What is in counter_files, as sysfs takes it: counters_init() fills it. NULL ends it. */
static struct attribute *counter_attrs[NR_OUTCOMES + 1];

static const struct attribute_group counter_group = {
	.attrs = counter_attrs,
};

/* Initializes the sources. A machine without shadow stacks still has unwind rules. */
static int __init sources_init(void)
{
	int ret = ushstk_arch_init();

	if (ret == -ENODEV)
		pr_info("callchains come from unwind rules only\n");
	else if (ret)
		return ret;
	return rules_init();
}

/* Ends the sources. The hooks are removed already, so nothing asks the sources any more. */
static void sources_exit(void)
{
	rules_exit();
	walk_exit();
}

/* Creates the counters in /sys/module/shstk_perf/chains/ and /sys/module/shstk_perf/rules/. */
static int __init counters_init(void)
{
	int i, ret = -ENOMEM;

	for (i = 0; i < NR_OUTCOMES; i++)
		counter_attrs[i] = &counter_files[i].attr;
	walk_count_init();
	chains = kobject_create_and_add("chains", &THIS_MODULE->mkobj.kobj);
	rules = kobject_create_and_add("rules", &THIS_MODULE->mkobj.kobj);
	if (chains && rules)
		ret = sysfs_create_group(chains, &counter_group);
	if (!ret)
		ret = sysfs_create_group(rules, &walk_group);
	if (ret)
		counters_exit();
	return ret;
}

static int __init perf_init(void)
{
	int ret;

	ret = sources_init();
	if (ret)
		return ret;

	ret = cgroup_init_only();
	if (ret)
		goto exit_sources;

	ret = counters_init();
	if (ret)
		goto exit_only;

	ret = ushstk_hook_install(&callchain_hook);
	if (ret)
		goto exit_counters;

	ret = unwind_init();
	if (ret)
		goto remove_callchain;

	return 0;

remove_callchain:
	ushstk_hook_remove(&callchain_hook);
exit_counters:
	counters_exit();
exit_only:
	cgroup_exit_only();
exit_sources:
	sources_exit();
	return ret;
}

static void __exit perf_exit(void)
{
	unwind_exit();
	ushstk_hook_remove(&callchain_hook);
	counters_exit();
	cgroup_exit_only();
	sources_exit();
}

module_init(perf_init);
module_exit(perf_exit);

MODULE_DESCRIPTION("User callchains of perf and BPF from shadow stacks and unwind rules");
MODULE_LICENSE("GPL");
