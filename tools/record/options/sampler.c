// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sampler.c - chooses who takes the samples, by the table of shstk-record(1), "Who samples".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bpf/walker.h"
#include "tools/proc/shadow.h"
#include "tools/record/backend.h"
#include "tools/record/perf_module.h"
#include "tools/record/options/sampler.h"
#include "tools/record/targets/target.h"
#include "tools/rules/helper.h"
#include "tools/run/tunables.h"
#include "tools/shstk.h"

/*
 * Returns whether the environment tells glibc to switch on shadow stacks in the programs it starts.
 */
static bool glibc_is_told(void)
{
	int len;
	const char *value = tunable_find("glibc.cpu.aarch64_gcs", &len);

	if (*value >= '1' && *value <= '3')
		return true;
	value = tunable_find("glibc.cpu.hwcaps", &len);
	return memmem(value, len, "SHSTK", 5);
}

/* Returns whether the command will run with a shadow stack when started in our environment. */
static bool will_have_shadow_stack(char *const command[])
{
	const char *base = strrchr(command[0], '/');
	const char *preload = getenv("LD_PRELOAD");

	base = base ? base + 1 : command[0];
	if (!strcmp(base, "shstk") && command[1])
		return !strcmp(command[1], "run");
	return glibc_is_told() || (preload && strstr(preload, "libshstk-start.so"));
}

/* Returns whether some of the kernel's callchains would follow frame pointers. */
static bool inexact(const struct record_opts *o)
{
	if (!module_loaded() || o->all || o->cgroup)
		return true;
	for (unsigned int i = 0; i < o->targets.nr_pids; i++)
		if (shadow_stacks_any(o->targets.pids[i]) <= 0)
			return true;
	/*
	 * Which process a thread belongs to is not looked up here, so its shadow stack is not
	 * known.
	 */
	if (o->targets.nr_tids)
		return true;
	return o->command && !will_have_shadow_stack(o->command);
}

/*
 * Returns whether the kernel will walk the stacks by unwind rules. Either the daemon must provide
 * the tables, or a helper, which would come too late for a command. Not with --perf-data, because a
 * perf.data file is to be unwound again from copies.
 */
static bool by_rules(const struct record_opts *o)
{
	struct rules_state state;
	bool user_only;
	struct reason why;

	if (o->perf_data)
		return false;
	rules_read_state(&state);
	return state.tables && (state.served || (state.may_load && !o->command)) &&
	       !backend_perf_probe(o, &user_only, &why);
}

/*
 * Returns whether stacks are to be copied once there is a process without a shadow stack. They are
 * not if the daemon loads unwind rules for it. Tables alone say nothing of the process: they stay when
 * the one who loaded them has ended.
 */
static bool may_copy(const struct record_opts *o)
{
	struct rules_state state;

	rules_read_state(&state);
	return !o->perf_data && !(state.tables && state.served);
}

/*
 * Returns why the kernel cannot copy the stacks of a command, or NULL if it can. Nothing is put
 * into a program that the kernel may sample, even if it may do so in user mode only.
 */
static const char *no_copies(const struct record_opts *o)
{
	static struct reason why;
	bool user_only;

	return backend_perf_probe(o, &user_only, &why) ? why.text : NULL;
}

/*
 * Chooses for a command: copies of stacks if they are permitted, otherwise the agent if it can
 * enter the program.
 */
static enum via choose_for_command(struct record_opts *o)
{
	const char *reason;

	o->via = VIA_COPIES;
	reason = no_copies(o);
	if (!reason || (target_reason(*o->command) && !target_gains(*o->command)))
		return VIA_COPIES;
	o->why = reason;
	return VIA_AGENT;
}

/*
 * Chooses who samples time and events: the kernel's callchains where these are exact, by shadow
 * stacks or, for what only the kernel can sample, by unwind rules; otherwise copies of stacks; the
 * agent where perf events are not permitted. See shstk-record(1), "Who samples".
 */
static enum via choose_sampler(struct record_opts *o)
{
	bool user_only;
	struct reason why;

	o->via = VIA_PERF;
	if (!inexact(o) && !backend_perf_probe(o, &user_only, &why)) {
		o->mixed = may_copy(o);
		return VIA_PERF;
	}
	if (!record_needs_kernel(o))
		return choose_for_command(o);
	return by_rules(o) ? VIA_RULES : VIA_COPIES;
}

/*
 * Returns whether this kernel shows the addresses of its functions. It does not if all addresses in
 * /proc/kallsyms are 0. Only functions count, as per-CPU variables may have small addresses anyway.
 */
static bool kernel_has_names(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long addr = 0;
	char type = 0;
	bool found = false;

	while (file && !found && fscanf(file, "%llx %c%*[^\n]", &addr, &type) == 2)
		found = type == 't' || type == 'T';
	if (file)
		fclose(file);
	return found && addr;
}

/*
 * Returns whether stacks are better walked by a BPF program, if there can be one: where nothing
 * ranks higher than copies, and the module takes no callchains from shadow stacks beside them. Not
 * with --perf-data, as above.
 */
static bool is_better_walked(const struct record_opts *o)
{
	return o->via == VIA_COPIES && !o->perf_data && !module_loaded();
}

void sampler_choose(struct record_opts *o, const struct backend **ret)
{
	*ret = targets_any(&o->targets) ? &backend_probes : &backend_heap;
	if (o->heap)
		return;
	if (o->via == VIA_AUTO) {
		o->via = choose_sampler(o);
		o->may_walk = is_better_walked(o) && walker_possible();
		o->lent = is_better_walked(o) && !o->may_walk && geteuid();
	} else {
		o->lent = o->walk && geteuid() && !walker_possible();
	}
	*ret = o->via == VIA_AGENT ? &backend_agent : &backend_perf;
	o->kernel_alone = o->via == VIA_COPIES && kernel_has_names();
}
