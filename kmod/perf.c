// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf.c - shstk_perf.ko: user callchains of perf and BPF from shadow stacks and unwind
 * rules.
 *
 * perf record -g, bpf_get_stack(), bpf_get_stackid() and everything built on
 * them take a user stack in perf_callchain_user(), and deferred callchains
 * (7.2 and newer) in unwind_user(). Both follow frame pointers: code without
 * them gives cut or wrong chains. This module serves a task that runs with a
 * shadow stack from there, and others by the unwind rules of their code where those
 * were uploaded; every case in which neither can be told where it is called takes the
 * original function.
 *
 * All the work is done in the ftrace handler. If it succeeds, an empty function
 * runs in place of the original one; if not, the original runs as ever. So no
 * call back into the kernel's function is needed. Nothing of this module sleeps,
 * but for one function: unwind_user() is called where pages can be brought in,
 * and where that is needed unwind_faulting() runs in its place. It waits for the kernel
 * only, and so for a bounded time.
 *
 * What serves a chain is a source. A source says whether this machine has what it
 * needs when the module is loaded, and then, for each chain, either gives the
 * entries behind the program counter or says why it has none; ask_sources() asks
 * them in turn: the shadow stack where the task has one, then the unwind rules that
 * were uploaded (rules.c, walk.c). The hooks know nothing of them.
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
#include "probed.h"
#include "read.h"
#include "rules.h"
#include "walk.h"

#ifdef CONFIG_UNWIND_USER
#include <linux/unwind_user_types.h>
#endif

/*
 * What became of a call of a hooked function; each has a counter of the same
 * name in /sys/module/shstk_perf/chains/. The first five were served here, the others
 * by the original function.
 */
enum outcome {
	SERVED, /* from the stack that the kernel made */
	SERVED_SWITCHED, /* from another one: see read.h */
	SERVED_RULES, /* by unwind rules */
	SERVED_DEFERRED, /* any of these, for unwind_user() */
	NO_REGISTERS, /* nothing: the kernel has not saved the program's registers yet */
	NO_SHADOW_STACK, /* the task runs without one */
	OTHER_CGROUP, /* not below the one that was asked for */
	OTHER_MODE, /* virtual machine, worker, exiting, not 64-bit */
	NO_POINTER, /* shadow stack pointer leads to none */
	NOT_PRESENT, /* page of the shadow stack not in memory */
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

static __always_inline void count(enum outcome outcome)
{
	ushstk_arch_count(counters.count[outcome]);
}

/* Runs in place of perf_callchain_user() and of unwind_user(). */
static noinline notrace int served(void)
{
	return 0;
}

/*
 * Whether any source may describe the user code to which these registers belong. @regs
 * may be NULL, where they are not known.
 */
static __always_inline bool usable(const struct pt_regs *regs)
{
	if (!in_cgroup()) {
		count(OTHER_CGROUP);
		return false;
	}
	/*
	 * The original says nothing about a task whose CPU runs a virtual
	 * machine. perf's guest callbacks are private to it; this flag is set
	 * whenever they could answer.
	 */
	if (unlikely(current->flags & (PF_VCPU | PF_KTHREAD | PF_USER_WORKER)) ||
	    unlikely(!current->mm || (regs && !ushstk_arch_regs_ok(regs)))) {
		count(OTHER_MODE);
		return false;
	}
	return true;
}

/* --- sources --- */

/**
 * struct chain - what a source gives
 * @nr: number of entries, the program counter not among them.
 * @outcome: SERVED, SERVED_SWITCHED, SERVED_RULES, NO_REGISTERS, or why there are none.
 */
struct chain {
	unsigned int nr;
	enum outcome outcome;
};

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

static __always_inline bool ask_rules(const struct pt_regs *regs, u64 *dst, unsigned int max,
				      u64 *missing, struct chain *chain)
{
	int nr;

	/* The original would begin with these, too. */
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
 * Most tasks have no shadow stack: where there are no rules either, nothing more is
 * looked at. @missing: see walk_user(). Return: whether there are entries; if not, why is
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

/* --- hooks --- */

/* Does what perf_callchain_store() does, for all entries at once. */
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

	/* Callers are right without it; a wrong program counter is worse than none. */
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
/* @missing: see walk_user(); if it says something, the trace is not counted yet. */
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

/* Whether nobody but the kernel gives its pages: memory, shared too, without a program behind. */
static bool is_kernels(struct vm_area_struct *vma)
{
	if (userfaultfd_armed(vma))
		return false;
	return vma_is_anonymous(vma) || (vma->vm_file && shmem_mapping(vma->vm_file->f_mapping));
}

/*
 * Bring in a page of current's, if nobody but the kernel gives it. Where a program answers for
 * pages (FUSE, userfaultfd) it may never do so, and this module would be in use for as long.
 * What lies there is looked at under the lock, which is not let go, and not waited for either:
 * who has it may wait for such a page.
 *
 * Return: 0; -EFAULT: it was not brought in.
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
 * Return: 0: the trace is there; 1: a page that was missing is there now; -EFAULT: it cannot
 * be brought in. If nothing serves any more, the trace stays as it was.
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

/* As often as a walk has steps: each time another page was missing, or another thread is at it. */
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
 * Runs in place of unwind_user() where a part of the stack is not present. While it sleeps
 * the module cannot be unloaded; if it is on its way out, what is present has to do.
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
	/* Whoever still holds it must not keep its files, whose functions go. */
	kobject_del(folder);
	kobject_put(folder);
}

static void counters_exit(void)
{
	counters_delete(chains);
	counters_delete(rules);
}

struct counter_attribute {
	struct kobj_attribute attr;
	enum outcome outcome;
};

static ssize_t counter_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	enum outcome outcome = container_of(attr, struct counter_attribute, attr)->outcome;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(counters.count[outcome], cpu);
	return sysfs_emit(buf, "%llu\n", sum);
}

#define COUNTER(_name, _outcome)                                 \
	static struct counter_attribute _name##_attr = {         \
		.attr = __ATTR(_name, 0444, counter_show, NULL), \
		.outcome = (_outcome),                           \
	}

COUNTER(served, SERVED);
COUNTER(served_switched, SERVED_SWITCHED);
COUNTER(served_rules, SERVED_RULES);
COUNTER(served_deferred, SERVED_DEFERRED);
COUNTER(no_registers, NO_REGISTERS);
COUNTER(no_shadow_stack, NO_SHADOW_STACK);
COUNTER(other_cgroup, OTHER_CGROUP);
COUNTER(other_mode, OTHER_MODE);
COUNTER(no_pointer, NO_POINTER);
COUNTER(not_present, NOT_PRESENT);

static struct attribute *counter_attrs[] = {
	&served_attr.attr.attr,
	&served_switched_attr.attr.attr,
	&served_rules_attr.attr.attr,
	&served_deferred_attr.attr.attr,
	&no_registers_attr.attr.attr,
	&no_shadow_stack_attr.attr.attr,
	&other_cgroup_attr.attr.attr,
	&other_mode_attr.attr.attr,
	&no_pointer_attr.attr.attr,
	&not_present_attr.attr.attr,
	NULL,
};

static const struct attribute_group counter_group = {
	.attrs = counter_attrs,
};

/* A machine without shadow stacks has rules. */
static int __init sources_init(void)
{
	int ret = ushstk_arch_init();

	if (ret == -ENODEV)
		pr_info("callchains come from unwind rules only\n");
	else if (ret)
		return ret;
	return rules_init();
}

/* The hooks are out: nothing asks any more. */
static void sources_exit(void)
{
	rules_exit();
	walk_exit();
}

/* /sys/module/shstk_perf/chains/ and rules/ */
static int __init counters_init(void)
{
	int ret = -ENOMEM;

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
