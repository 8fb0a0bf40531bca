// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox.c - programs that give up system calls.
 *
 * A seccomp filter may end the process for a call that its author did not
 * think of. Before it installs one, a program without privileges has to call
 * prctl(PR_SET_NO_NEW_PRIVS); libseccomp always does. From then on, or from the
 * filter on, the agent makes no system call of its own: timers that exist go on,
 * the handler needs none, and new threads and processes are counted but not sampled.
 * What is executed in the sandbox is followed only if there is no filter (common/join.h).
 *
 * The capture library opens each module's file when it meets it first. That
 * is done here for all that are loaded, while it is still allowed.
 */
#include <link.h>
#include <ucontext.h>

#include "../common/env.h"
#include "../common/join.h"
#include "../common/sandbox.h"
#include "agent.h"
#include "seal.h"
#include "shstk.h"

#define OWN_FRAMES 8 /* with more of this object than the loader's among them */

/* Captures as if a thread were interrupted in the module's first code. */
static void meet(ucontext_t *context, uintptr_t pc)
{
	uint64_t pcs[2];

#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RIP] = pc;
#elif defined(__aarch64__)
	context->uc_mcontext.pc = pc;
#else
	(void)pc;
#endif
	shstk_capture_context(context, pcs, 2, NULL, NULL);
}

static int meet_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X)
			meet(arg, info->dlpi_addr + ph->p_vaddr + ph->p_memsz / 2);
	}
	return 0;
}

static void prepare(void)
{
	struct thread *t = agent_self();
	uint64_t pcs[OWN_FRAMES];
	ucontext_t context;

	if (t)
		maps_send_if_changed();
	if (!getcontext(&context))
		dl_iterate_phdr(meet_module, &context);
	/* This object itself, by return addresses: its hooks are in stacks. */
	shstk_capture(pcs, OWN_FRAMES, NULL, NULL);
	if (!agent.sandboxed)
		env_expect_filters(seccomp_filters());
	agent.sandboxed = true;
}

/* Twice: much may be loaded before there is a filter. Behind one nothing may be asked for. */
void sandbox_begins(bool filter)
{
	if (agent.on && !agent.filtered)
		prepare();
	if (filter && agent.on)
		shstk_seal();
	agent.filtered |= filter;
}
