// SPDX-License-Identifier: GPL-2.0-only
/*
 * shstk_nmi.c - makes NMIs at any instruction, for tests in x86 guests
 *
 * The emulated CPUs have no performance counters that interrupt by NMI. The old timer (PIT) can do
 * that: its pin of the I/O APIC is programmed to deliver NMIs to all CPUs. The kernel has changed
 * to another timer long before. Each NMI passes the tracepoint nmi:nmi_handler, whose perf events
 * take callchains in NMI context.
 *
 * /sys/module/shstk_nmi/parameters/
 *	ticks	write: ticks of 0.84 us between two NMIs, at most 65535; 0: none (at the start)
 *	user	NMIs that hit user mode
 *	kernel	NMIs that hit the kernel
 *	places	different kernel instructions that were hit, at most 65536, roughly
 *	forge	write: Y: one more handler, for which an NMI that hits the kernel looks as if it
 *		had come before the kernel left the program's stack, as its entry code does;
 *		N (at the start): without that handler
 *	hitter	address of the handler that is always there
 *	forger	address of the other handler, which handles what it forges
 *
 * Do not use it on real machines: it takes the first I/O APIC at its usual address and pin 2.
 */
#include <linux/bitmap.h>
#include <linux/hash.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <asm/nmi.h>

#define IOAPIC_ADDRESS 0xfec00000
#define IOAPIC_WINDOW 0x10
#define PIN 2 /* where ACPI puts the timer */
#define PIN_LOW (0x10 + 2 * PIN)
#define PIN_HIGH (PIN_LOW + 1)
#define DELIVER_NMI (4 << 8)
#define ALL_CPUS (0xffU << 24)

#define PIT_COUNTER 0x40
#define PIT_MODE 0x43
#define PIT_PERIODIC 0x34 /* counter 0, both bytes, mode 2 */
#define PIT_STOPPED 0x30 /* mode 0: stopped until it is written */

#define PLACE_BITS 16

static void __iomem *ioapic;
static u32 old_low, old_high;
static atomic_long_t user_hits, kernel_hits;
static DECLARE_BITMAP(places, 1 << PLACE_BITS);
static unsigned int ticks;
static bool forge;
static DEFINE_PER_CPU(unsigned long, true_sp);

static u32 ioapic_get(u32 reg)
{
	writel(reg, ioapic);
	return readl(ioapic + IOAPIC_WINDOW);
}

static void ioapic_set(u32 reg, u32 value)
{
	writel(reg, ioapic);
	writel(value, ioapic + IOAPIC_WINDOW);
}

static void pit_start(unsigned int n)
{
	unsigned long flags;

	local_irq_save(flags);
	outb(n ? PIT_PERIODIC : PIT_STOPPED, PIT_MODE);
	outb(n & 0xff, PIT_COUNTER);
	outb(n >> 8, PIT_COUNTER);
	local_irq_restore(flags);
}

/* Handles an NMI. The timer is the only source of NMIs in a guest, so each NMI is ours. */
static int nmi_hit(unsigned int type, struct pt_regs *regs)
{
	if (user_mode(regs)) {
		atomic_long_inc(&user_hits);
	} else {
		atomic_long_inc(&kernel_hits);
		set_bit(hash_64(instruction_pointer(regs), PLACE_BITS), places);
	}
	return NMI_HANDLED;
}

/* Replaces the interrupted stack pointer by the program's. */
static int nmi_forge(unsigned int type, struct pt_regs *regs)
{
	if (user_mode(regs) || !current->mm)
		return NMI_DONE;
	this_cpu_write(true_sp, regs->sp);
	regs->sp = task_pt_regs(current)->sp;
	return NMI_HANDLED;
}

/* Restores the stack pointer. The tracepoint behind the previous handler has been passed. */
static int nmi_restore(unsigned int type, struct pt_regs *regs)
{
	unsigned long sp = this_cpu_read(true_sp);

	if (!sp)
		return NMI_DONE;
	regs->sp = sp;
	this_cpu_write(true_sp, 0);
	return NMI_HANDLED;
}

/* Registers the handlers; they are called in this order. */
static int start_forging(void)
{
	int ret = register_nmi_handler(NMI_LOCAL, nmi_forge, 0, "shstk_nmi_forge");

	if (ret)
		return ret;
	ret = register_nmi_handler(NMI_LOCAL, nmi_restore, 0, "shstk_nmi_restore");
	if (ret)
		unregister_nmi_handler(NMI_LOCAL, "shstk_nmi_forge");
	return ret;
}

static void stop_forging(void)
{
	unregister_nmi_handler(NMI_LOCAL, "shstk_nmi_forge");
	unregister_nmi_handler(NMI_LOCAL, "shstk_nmi_restore");
}

static int forge_set(const char *text, const struct kernel_param *param)
{
	bool wanted;
	int ret = kstrtobool(text, &wanted);

	if (ret || wanted == forge)
		return ret;
	if (wanted)
		ret = start_forging();
	else
		stop_forging();
	if (!ret)
		forge = wanted;
	return ret;
}

static const struct kernel_param_ops forge_ops = {
	.set = forge_set,
	.get = param_get_bool,
};
module_param_cb(forge, &forge_ops, &forge, 0644);

static unsigned long hitter = (unsigned long)nmi_hit, forger = (unsigned long)nmi_forge;
module_param(hitter, ulong, 0400);
module_param(forger, ulong, 0400);

static int ticks_set(const char *text, const struct kernel_param *param)
{
	unsigned int n;
	int ret = kstrtouint(text, 0, &n);

	if (ret)
		return ret;
	if (n > 0xffff || (n && n < 10))
		return -EINVAL;
	ticks = n;
	if (ioapic)
		pit_start(n);
	return 0;
}

static const struct kernel_param_ops ticks_ops = {
	.set = ticks_set,
	.get = param_get_uint,
};
module_param_cb(ticks, &ticks_ops, &ticks, 0644);

static int count_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%lu\n", atomic_long_read(param->arg));
}

static const struct kernel_param_ops count_ops = {
	.get = count_get,
};
module_param_cb(user, &count_ops, &user_hits, 0444);
module_param_cb(kernel, &count_ops, &kernel_hits, 0444);

static int places_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%u\n", bitmap_weight(places, 1 << PLACE_BITS));
}

static const struct kernel_param_ops places_ops = {
	.get = places_get,
};
module_param_cb(places, &places_ops, NULL, 0444);

static int __init nmi_init(void)
{
	unsigned long flags;
	int ret;

	ioapic = ioremap(IOAPIC_ADDRESS, PAGE_SIZE);
	if (!ioapic)
		return -ENOMEM;
	ret = register_nmi_handler(NMI_LOCAL, nmi_hit, 0, "shstk_nmi");
	if (ret) {
		iounmap(ioapic);
		return ret;
	}
	local_irq_save(flags);
	old_low = ioapic_get(PIN_LOW);
	old_high = ioapic_get(PIN_HIGH);
	ioapic_set(PIN_HIGH, ALL_CPUS);
	ioapic_set(PIN_LOW, DELIVER_NMI);
	local_irq_restore(flags);
	pit_start(ticks);
	return 0;
}

static void __exit nmi_exit(void)
{
	unsigned long flags;

	pit_start(0);
	local_irq_save(flags);
	ioapic_set(PIN_LOW, old_low);
	ioapic_set(PIN_HIGH, old_high);
	local_irq_restore(flags);
	/* An NMI that is on its way still needs its handler. */
	synchronize_rcu();
	if (forge)
		stop_forging();
	unregister_nmi_handler(NMI_LOCAL, "shstk_nmi");
	iounmap(ioapic);
}

module_init(nmi_init);
module_exit(nmi_exit);

MODULE_DESCRIPTION("NMIs at any instruction, for tests in x86 guests");
MODULE_LICENSE("GPL");
