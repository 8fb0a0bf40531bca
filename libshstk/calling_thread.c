// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * calling_thread.c - the calling thread as a program to unwind; see calling_thread.h.
 */
#include <errno.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "modmap.h"
#include "native.h"
#include "calling_thread.h"
#include "return_probes.h"
#include "rulecache.h"
#include "sys.h"
#include "vma.h"

/* Kernels map nothing else within this distance below the end of the first thread's stack. */
#define MAIN_STACK_GAP (64ull << 20)

/*
 * Returns the bounds of the stack at @sp where there is no /proc, or no descriptor left. Only the
 * page of @sp is certain. The first thread's stack goes on up to the AT_RANDOM bytes that the
 * kernel put there, if that can be read. @ask: the kernel may be asked whether it can be read;
 * false where system calls may be forbidden.
 */
static struct range stack_by_itself(const struct thread *t, uint64_t sp, bool ask)
{
	uint64_t page = sp & -getauxval(AT_PAGESZ), outermost = getauxval(AT_RANDOM);
	uint64_t end = (outermost | 4095) + 1;

	if (load_relaxed(&t->tid) == load_relaxed(&t->pid) && sp < outermost &&
	    outermost - sp < MAIN_STACK_GAP && !(ask && sys_populate_read(page, end - page)))
		return (struct range){ sp, end };
	return (struct range){ sp, (sp | 4095) + 1 };
}

__attribute__((noinline)) bool calling_thread_look_up_stack(struct calling_thread *o, uint64_t sp)
{
	uint64_t tp = native_thread_pointer();
	struct thread *t = o->t;
	int saved = errno;
	struct vma vma;
	int err;

	err = vma_query(sp, &vma, NULL, 0);
	errno = saved;
	if (err == -ENOENT)
		return false;
	if (err) {
		o->stack = stack_by_itself(t, sp, err != -ECANCELED);
		return err == -ECANCELED || modmap_readable(sp);
	}
	if (!(vma.prot & VMA_READ))
		return false;
	o->stack = vma.range; /* whole pages, so both ends are aligned */
	/* The main thread's TLS is not looked at: it may lie anywhere, say in .data's mapping. */
	if (load_relaxed(&t->tid) != load_relaxed(&t->pid) && range_has(&vma.range, tp) && tp > sp)
		o->stack.hi = tp & ~7ull; /* C libraries put the TLS above the stack */
	else if (!range_has(&vma.range, getauxval(AT_RANDOM)))
		return true;
	/*
	 * If this capture interrupts another one, that one relies on the known end of the stack
	 * and on the memo, so they stay.
	 */
	if (t->native_known) {
		if (t->native.hi == o->stack.hi) {
			t->native.lo = o->stack.lo; /* the stack has grown */
			return true;
		}
		if (!o->outermost)
			return true;
		memo_hide(&t->memo);
	}
	t->native_known = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->native = o->stack;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->native_known = true;
	return true;
}

__attribute__((noinline)) void calling_thread_check_stack(struct thread *t, uint64_t sp)
{
	uint64_t page = sp & -getauxval(AT_PAGESZ);

	if (t->native_known && range_has(&t->native, sp) &&
	    sys_populate_read(page, t->native.hi - page))
		t->native_known = false;
}

/* Adds the word @val at @addr to what was read. */
static void note_word(struct step_reads *r, uint64_t addr, uint64_t val)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->word[i].addr == addr)
			return;
	if (r->n == STEP_READS || addr < r->lowest) {
		r->unknown = true;
		return;
	}
	r->word[r->n].addr = addr;
	r->word[r->n++].val = val;
}

static no_sanitize int read_stack(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct calling_thread *o = arg;
	const volatile uint8_t *p = (const volatile uint8_t *)(uintptr_t)addr;
	uint8_t *to = buf;
	size_t i;

	if (!range_has(&o->stack, addr) || len > o->stack.hi - addr)
		return -EFAULT;
	if (len == 8 && !(addr & 7)) {
		*(uint64_t *)buf = *(const volatile uint64_t *)p;
		if (o->reads)
			note_word(o->reads, addr, *(uint64_t *)buf);
		return 0;
	}
	if (o->reads)
		o->reads->unknown = true;
	for (i = 0; i < len; i++)
		to[i] = p[i];
	return 0;
}

/* Reads memory of the program outside of the stack that is walked; it may be unmapped. */
static int read_other(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };
	const struct calling_thread *o = arg;

	if (o->reads)
		o->reads->unknown = true;
	if (vma_sealed())
		return read_stack(arg, addr, buf, len);
	return sys6(SYS_process_vm_readv, sys0(SYS_getpid), (long)&to, 1, (long)&from, 1, 0) ==
			       (long)len ?
		       0 :
		       -EFAULT;
}

static struct module *find_module(void *arg, uint64_t pc)
{
	(void)arg;
	return modmap_find(pc);
}

bool calling_thread_is_code(uint64_t pc)
{
	struct module *m = modmap_find(pc);

	return m && module_is_code(m, pc);
}

/* Address of the trampoline; 0 until a stack has it. Children of fork() have it there, too. */
static uint64_t probe_return;

bool calling_thread_is_probe_return(struct calling_thread *o, uint64_t pc)
{
	int saved = errno;
	char name[16];
	struct vma vma;

	/* It is where its page begins. */
	if (!pc || pc & (PROBED_PAGE_SIZE - 1))
		return false;
	if (pc != load_relaxed(&probe_return)) {
		int err = vma_query(pc, &vma, name, sizeof(name));

		errno = saved;
		if (err || vma.range.lo != pc || strcmp(name, "[uprobes]"))
			return false;
		store_relaxed(&probe_return, pc);
	}
	o->view.probe_return = pc;
	return true;
}

static bool is_code(void *arg, uint64_t pc)
{
	(void)arg;
	return calling_thread_is_code(pc);
}

const struct view *calling_thread_view(struct calling_thread *o, bool full)
{
	static uint64_t mask;
	static bool mask_known;
	static int32_t go_tls;

	if (!load_relaxed(&mask_known)) {
		store_relaxed(&mask, native_pac_mask());
		store_relaxed(&mask_known, true);
	}
	o->reads = NULL;
	o->view = (struct view){
		.m = &NATIVE_MACHINE,
		.pac_mask = load_relaxed(&mask),
		.full = full,
		.thread_pointer = native_thread_pointer(),
		.mem = { read_stack, o },
		.other = { read_other, o },
		.go_tls = &go_tls,
		.remembers = true,
		.gen = rulecache_gen(),
		.find = find_module,
		.is_code = is_code,
		.arg = o,
		.probe_return = load_relaxed(&probe_return),
	};
	return &o->view;
}

void calling_thread_cursor(struct cursor *cur, uint64_t pc, uint64_t sp, uint64_t fp)
{
	const struct machine *m = &NATIVE_MACHINE;

	memset(cur, 0, sizeof(*cur));
	cur->regs.r[REG_PC] = pc;
	cur->regs.r[m->sp] = sp;
	cur->regs.r[m->fp] = fp;
	cur->regs.known = 1ull << REG_PC | 1ull << m->sp | 1ull << m->fp;
	if (!m->ra_in_reg) {
		cur->regs.r[m->ra] = pc;
		cur->regs.known |= 1ull << m->ra;
	}
}
