// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sandbox.c - programs that give up system calls.
 *
 * A seccomp filter may end the process for a call that its author did not
 * think of. Before it installs one, a program without privileges has to call
 * prctl(PR_SET_NO_NEW_PRIVS); libseccomp always does. From then on the agent
 * makes no system call of its own: timers that exist go on, the handler needs
 * none, and new threads and processes are counted but not sampled.
 *
 * The capture library opens each module's file when it meets it first. That
 * is done here for all that are loaded, while it is still allowed.
 */
#include <linux/seccomp.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "agent.h"
#include "shstk.h"

static int (*next_prctl)(int option, unsigned long, unsigned long, unsigned long, unsigned long);

void sandbox_resolve(void)
{
	*(void **)&next_prctl = next_symbol("prctl");
}

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
	ucontext_t context;

	if (t)
		maps_send_if_changed();
	if (!getcontext(&context))
		dl_iterate_phdr(meet_module, &context);
	agent.sandboxed = true;
}

HOOK_API int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (agent.on && !agent.sandboxed &&
	    (option == PR_SET_SECCOMP || (option == PR_SET_NO_NEW_PRIVS && arg[0])))
		prepare();
	if (!next_prctl)
		sandbox_resolve();
	return next_prctl(option, arg[0], arg[1], arg[2], arg[3]);
}
