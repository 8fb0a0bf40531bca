// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fault_arm64.c - violations on arm64. The kernel ends the signal frame on the shadow stack with a
 * cap: the address of its own word with the low twelve bits clear. sigreturn takes the cap from the
 * top and goes on above it. A program cannot write a cap. So to go on further up, the handler pops
 * all entries down to the wanted one and sends itself a second signal. That signal has its cap in
 * the right place, and its handler takes over the registers of the first signal.
 */
#include <sys/syscall.h>
#include <ucontext.h>
#include <asm/sigcontext.h>

#include "fault.h"

#define RESUME_MAGIC 0x656d757365726873ull

/* The value that the second signal carries. */
struct resume {
	uint64_t magic;
	const ucontext_t *uc;
};

static uint64_t strip(uint64_t addr)
{
	register uint64_t x30 __asm__("x30") = addr;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri */
	return x30;
}

bool fault_describe(const void *ucontext, struct violation *v)
{
	const ucontext_t *uc = ucontext;
	const mcontext_t *m = &uc->uc_mcontext;
	uint64_t ssp = read_ssp(), lo, hi, at;
	uint32_t insn = *(const uint32_t *)(uintptr_t)m->pc;

	v->pc = m->pc;
	v->shadow = 0;
	v->is_return = true;
	if ((insn & 0xfffffc1f) == 0xd65f0000) /* RET Xn */
		v->to = m->regs[insn >> 5 & 31];
	else if (insn == 0xd65f0bff || insn == 0xd65f0fff) /* RETAA, RETAB */
		v->to = strip(m->regs[30]);
	else
		v->is_return = false;
	if (!v->is_return)
		v->to = 0;
	for (unsigned int i = 0; i < 64; i++) {
		at = ssp + i * 8;
		if (load_word(at) != (at & ~0xfffull))
			continue;
		v->slot = at;
		v->ssp = at + 8;
		if (start_bounds(at, &lo, &hi) && v->ssp < hi)
			v->shadow = load_word(v->ssp);
		return true;
	}
	return false;
}

bool fault_can_unwind(void)
{
	return true;
}

/* Pops entries up to @entry and raises the second signal, whose handler does not come back here. */
__attribute__((noinline, noreturn)) static void pop_and_raise(uint64_t entry, long pid, long tid,
							      siginfo_t *info)
{
	register long x0 __asm__("x0") = pid;
	register long x1 __asm__("x1") = tid;
	register long x2 __asm__("x2") = SIGSEGV;
	register long x3 __asm__("x3") = (long)info;
	register long x8 __asm__("x8") = SYS_rt_tgsigqueueinfo;

	__asm__ volatile("1:\n\t"
			 "mrs x9, s3_3_c2_c5_1\n\t" /* GCSPR_EL0 */
			 "cmp x9, %5\n\t"
			 "b.hs 2f\n\t"
			 "sysl x9, #3, c7, c7, #1\n\t" /* GCSPOPM */
			 "b 1b\n"
			 "2:\n\t"
			 "svc #0\n\t"
			 "brk #1"
			 :
			 : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x8), "r"(entry)
			 : "x9", "memory", "cc");
	__builtin_unreachable();
}

void fault_unwind(void *uc, const struct violation *v, uint64_t entry)
{
	long pid = sys0(SYS_getpid);
	struct resume resume = { RESUME_MAGIC, uc };
	uint64_t mask = 1ull << (SIGSEGV - 1);
	siginfo_t info = { .si_signo = SIGSEGV, .si_code = SI_QUEUE };

	(void)v;
	info.si_pid = (pid_t)pid;
	info.si_value.sival_ptr = &resume;
	sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, 8);
	pop_and_raise(entry, pid, sys0(SYS_gettid), &info);
}

bool fault_jump(void *ucontext, uint64_t to)
{
	ucontext_t *uc = ucontext;

	uc->uc_mcontext.pc = to;
	return true;
}

static struct fpsimd_context *fp_state(const ucontext_t *uc)
{
	char *p = (char *)uc->uc_mcontext.__reserved;
	char *end = p + sizeof(uc->uc_mcontext.__reserved);

	while (end - p >= (long)sizeof(struct _aarch64_ctx)) {
		struct _aarch64_ctx *head = (void *)p;

		if (head->magic == FPSIMD_MAGIC)
			return (void *)p;
		if (!head->magic || !head->size || head->size > end - p)
			break;
		p += head->size;
	}
	return NULL;
}

bool fault_resume(const siginfo_t *info, void *ucontext)
{
	const struct resume *r = info->si_value.sival_ptr;
	struct fpsimd_context *from, *to;
	ucontext_t *uc = ucontext;

	if (info->si_code != SI_QUEUE || info->si_pid != sys0(SYS_getpid) || !r ||
	    r->magic != RESUME_MAGIC)
		return false;
	for (unsigned int i = 0; i < 31; i++)
		uc->uc_mcontext.regs[i] = r->uc->uc_mcontext.regs[i];
	uc->uc_mcontext.sp = r->uc->uc_mcontext.sp;
	uc->uc_mcontext.pc = r->uc->uc_mcontext.pc;
	uc->uc_mcontext.pstate = r->uc->uc_mcontext.pstate;
	uc->uc_sigmask = r->uc->uc_sigmask;
	from = fp_state(r->uc);
	to = fp_state(uc);
	if (from && to)
		*to = *from;
	return true;
}
