/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source.h - the source of a test's NMIs, and what they hit in the kernel
 *
 * On x86 shstk_nmi.ko makes the NMIs, and the tracepoint nmi:nmi_handler takes a callchain in each.
 * On arm64, with irqchip.gicv3_pseudo_nmi=1 on the kernel's command line, the cycle counter
 * interrupts by pseudo-NMI, and its samples have their own callchains.
 */
#ifndef NMI_SOURCE_H
#define NMI_SOURCE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kselftest.h"
#include "number.h"
#include "sampler.h"

/* A part of the kernel's code, by names of kallsyms: from a name to the next one. */
struct nmi_code {
	const char *name, *last; /* its first and its last name; NULL: it has only one */
	uint64_t begin, end, from;
};

enum nmi_part {
	NMI_SCHEDULE, /* the function that switches tasks */
	NMI_CALLER, /* its callers; a chain may leave out the caller of a leaf */
	NMI_CALLER_PREEMPT,
	NMI_CALLER_IRQ,
	NMI_CALLER_NOTRACE,
	NMI_SWITCH, /* its part that no other interrupt can hit */
	NMI_ENTRY, /* the entries into the kernel */
	NMI_ENTRY_MORE,
	NMI_SELF, /* the entry of NMIs, if it is in their callchains */
	NMI_PARTS
};

#ifdef __x86_64__

/* Whether the kernel's own walk gives callers where the module serves none. */
#define NMI_FOLLOWS false
#define NMI_PROVE false /* the tracepoint is passed by NMIs only */
#define NMI_TICKS "/sys/module/shstk_nmi/parameters/ticks"
#define NMI_TRACEPOINT "/sys/kernel/tracing/events/nmi/nmi_handler/id"

static struct nmi_code nmi_code[NMI_PARTS] = {
	[NMI_SCHEDULE] = { .name = "__schedule" },
	[NMI_SWITCH] = { .name = "__switch_to" },
	[NMI_ENTRY] = { .name = "__entry_text_start", .last = "__entry_text_end" },
	[NMI_ENTRY_MORE] = { .name = "sync_regs" },
	[NMI_SELF] = { .name = "asm_exc_nmi", .last = "end_repeat_nmi" },
};

/* Opens the event. @ticks: time between two NMIs, in units of 0.84 us. */
static inline int nmi_open(struct sampler *sampler, const char *ticks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = read_number(NMI_TRACEPOINT),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
	};

	(void)ticks;
	if ((long)attr.config < 0)
		ksft_exit_skip("no tracepoint nmi:nmi_handler\n");
	return sampler_open_attr(sampler, -1, &attr);
}

static inline void nmi_set(const char *ticks)
{
	FILE *f = fopen(NMI_TICKS, "we");

	if (!f)
		ksft_exit_skip("shstk_nmi.ko is not loaded\n");
	if (fputs(ticks, f) < 0 || fclose(f))
		ksft_exit_fail_msg("ticks %s: %s\n", ticks, strerror(errno));
}

static inline void nmi_start(struct sampler *sampler, const char *ticks)
{
	(void)sampler;
	nmi_set(ticks);
}

static inline void nmi_stop(struct sampler *sampler)
{
	(void)sampler;
	nmi_set("0");
}

#else

#define NMI_FOLLOWS true
#define NMI_PROVE true /* the test must prove that they are no ordinary interrupts */
#define NMI_COMMAND_LINE "/proc/cmdline"
#define NMI_LIMIT "/proc/sys/kernel/perf_cpu_time_max_percent"
#define NMI_ASKED "irqchip.gicv3_pseudo_nmi=1"
#define NMI_TICK 1000 /* cycles; QEMU's CPUs count them by a clock of 1 GHz */

static struct nmi_code nmi_code[NMI_PARTS] = {
	[NMI_SCHEDULE] = { .name = "__schedule" },
	[NMI_CALLER] = { .name = "schedule" },
	[NMI_CALLER_PREEMPT] = { .name = "preempt_schedule" },
	[NMI_CALLER_IRQ] = { .name = "preempt_schedule_irq" },
	[NMI_CALLER_NOTRACE] = { .name = "preempt_schedule_notrace" },
	[NMI_SWITCH] = { .name = "__switch_to" },
	[NMI_ENTRY] = { .name = "__entry_text_start", .last = "__entry_text_end" },
};

/*
 * Turns off perf's limit: handlers take long on an emulated CPU, and perf would take fewer samples.
 */
static inline void nmi_unlimit(void)
{
	FILE *f = fopen(NMI_LIMIT, "we");

	if (!f || fputs("0", f) < 0 || fclose(f))
		ksft_exit_fail_msg(NMI_LIMIT ": %s\n", strerror(errno));
}

static inline bool nmi_asked(void)
{
	char line[4096] = "";
	FILE *f = fopen(NMI_COMMAND_LINE, "re");

	if (!f || !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return strstr(line, NMI_ASKED);
}

/* Opens the event. @ticks: time between two NMIs on a CPU, in units of NMI_TICK cycles. */
static inline int nmi_open(struct sampler *sampler, const char *ticks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = strtoul(ticks, NULL, 0) * NMI_TICK,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
	};

	if (!nmi_asked())
		ksft_exit_skip("the kernel was not started with " NMI_ASKED "\n");
	nmi_unlimit();
	return sampler_open_attr(sampler, -1, &attr);
}

static inline void nmi_control(struct sampler *sampler, unsigned long request)
{
	for (int i = 0; i < sampler->nr_cpus; i++)
		if (ioctl(sampler->fd[i], request, 0))
			ksft_exit_fail_msg("the counter of cycles: %s\n", strerror(errno));
}

static inline void nmi_start(struct sampler *sampler, const char *ticks)
{
	(void)ticks;
	nmi_control(sampler, PERF_EVENT_IOC_ENABLE);
}

static inline void nmi_stop(struct sampler *sampler)
{
	nmi_control(sampler, PERF_EVENT_IOC_DISABLE);
}

#endif

static inline void nmi_each_symbol(void (*fn)(const char *name, uint64_t at))
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char name[256], type;
	uint64_t at;

	while (f && fscanf(f, "%lx %c %255s%*[^\n]", &at, &type, name) == 3)
		fn(name, at);
	if (f)
		fclose(f);
}

static inline void nmi_find_named(const char *name, uint64_t at)
{
	for (struct nmi_code *c = nmi_code; c < nmi_code + NMI_PARTS; c++) {
		if (!c->name)
			continue;
		if (!strcmp(name, c->name))
			c->begin = at;
		if (!strcmp(name, c->last ? c->last : c->name))
			c->from = at;
	}
}

static inline void nmi_find_end(const char *name, uint64_t at)
{
	(void)name;
	for (struct nmi_code *c = nmi_code; c < nmi_code + NMI_PARTS; c++)
		if (at > c->from && (!c->end || at < c->end))
			c->end = at;
}

/* Finds where the parts of the kernel are. Must be called first. */
static inline void nmi_find_code(void)
{
	nmi_each_symbol(nmi_find_named);
	nmi_each_symbol(nmi_find_end);
	for (struct nmi_code *c = nmi_code; c < nmi_code + NMI_PARTS; c++)
		if (c->name && (!c->begin || !c->end))
			ksft_exit_fail_msg("/proc/kallsyms: no %s\n", c->name);
}

static inline bool nmi_in(enum nmi_part part, uint64_t ip)
{
	const struct nmi_code *c = &nmi_code[part];

	return c->name && ip >= c->begin && ip < c->end;
}

static inline bool nmi_in_schedule(uint64_t ip)
{
	for (int part = NMI_SCHEDULE; part <= NMI_CALLER_NOTRACE; part++)
		if (nmi_in(part, ip))
			return true;
	return false;
}

/*
 * Returns what the kernel was doing when it was hit: its entries, innermost first, without those of
 * the NMI itself. There are none if user mode was hit.
 */
static inline unsigned int nmi_hit(const struct sample *s, const uint64_t **ip)
{
	unsigned int end = 1, begin = 1;

	*ip = s->all + 1;
	if (!s->nr_all || s->all[0] != PERF_CONTEXT_KERNEL)
		return 0;
	while (end < s->nr_all && s->all[end] < PERF_CONTEXT_MAX)
		if (nmi_in(NMI_SELF, s->all[end++]))
			begin = end;
	*ip = s->all + begin;
	return end - begin;
}

#endif
