// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shadow_control.c - status, mapping and switching of shadow stacks, and switching
 * them on in the middle of a running program.
 *
 * Switching them on late works because a shadow stack can be written before it is
 * needed: the return addresses of all active frames are known from unwinding, and
 * they are put on the new shadow stack, outermost first, as if the calls had been
 * made with it. On x86 a restore token is written below the room for the entries;
 * the SSP is moved to the token, which is then dropped, and the entries are written
 * above. On arm64 GCSPUSHM pushes the entries. Between switching on and the last
 * entry there is no call, no return and no signal handler.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#ifndef PT_GNU_PROPERTY /* since glibc 2.32 */
#define PT_GNU_PROPERTY 0x6474e553
#endif
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#define MAX_FRAMES 2048

/* Options of prctl() for the calling thread, from linux/prctl.h; X86_*: of arch_prctl(). */
enum {
	GET_STATUS = 74, /* PR_GET_SHADOW_STACK_STATUS */
	LOCK_STATUS = 76, /* PR_LOCK_SHADOW_STACK_STATUS */
	X86_LOCK = 0x5003, /* ARCH_SHSTK_LOCK */
	X86_STATUS = 0x5005, /* ARCH_SHSTK_STATUS */
};

/*
 * Functions with this attribute are neither inlined nor cloned, so that they have their own frame
 * with a return address.
 */
#ifdef __clang__
#define noinline_noclone __attribute__((noinline))
#else
#define noinline_noclone __attribute__((noipa))
#endif

static long control(long option, long arg)
{
#ifdef SHSTK_NR_PRCTL
	return shstk_inline_call(SHSTK_NR_PRCTL, option, arg);
#else
	(void)option;
	(void)arg;
	return -EINVAL;
#endif
}

SHSTK_API int shstk_status_get(uint64_t *status)
{
	uint64_t now = 0;

	if (!control(GET_STATUS, (long)&now)) {
		*status = now & SHSTK_STATUS_ALL;
		return 0;
	}
#ifdef SHSTK_NR_ARCH_PRCTL
	if (!shstk_inline_call(SHSTK_NR_ARCH_PRCTL, X86_STATUS, (long)&now)) {
		*status = now & SHSTK_STATUS_ALL;
		return 0;
	}
#endif
	return -EOPNOTSUPP;
}

SHSTK_API int shstk_status_lock(uint64_t mask)
{
	uint64_t now;
	int err;

	if (mask & ~SHSTK_STATUS_ALL)
		return -EINVAL;
	err = shstk_status_get(&now);
	if (err || !mask)
		return err;
#ifdef SHSTK_NR_ARCH_PRCTL
	if (mask & SHSTK_STATUS_PUSH)
		return -EOPNOTSUPP;
	/* This call is also used where prctl() exists: it does not disturb that one. */
	return shstk_inline_call(SHSTK_NR_ARCH_PRCTL, X86_LOCK, (long)mask) ? -EOPNOTSUPP : 0;
#elif defined(__riscv)
	if (mask != SHSTK_STATUS_ENABLE)
		return -EOPNOTSUPP;
	return control(LOCK_STATUS, 0) ? -EOPNOTSUPP : 0;
#else
	return control(LOCK_STATUS, (long)mask) ? -EOPNOTSUPP : 0;
#endif
}

SHSTK_API int shstk_stack_map(size_t size, unsigned int flags, struct shstk_stack *ret)
{
	uint64_t bytes = ALIGN_UP((uint64_t)size, (uint64_t)sysconf(_SC_PAGESIZE));
	unsigned int marker = flags & SHSTK_STACK_MARKER ? 8 : 0;
	long base;
	int saved = errno;

	if (!size || bytes < size || flags & ~(SHSTK_STACK_TOKEN | SHSTK_STACK_MARKER))
		return -EINVAL;
#ifndef __aarch64__
	if (marker)
		return -EOPNOTSUPP;
#endif
	base = syscall(SYS_map_shadow_stack, 0ul, (unsigned long)bytes, (unsigned long)flags);
	if (base < 0) {
		base = errno == ENOMEM || errno == EOVERFLOW ? -ENOMEM : -EOPNOTSUPP;
		errno = saved;
		return (int)base;
	}
	ret->base = (uint64_t)base;
	ret->size = bytes;
	ret->token = flags & SHSTK_STACK_TOKEN ? ret->base + bytes - 8 - marker : 0;
	return 0;
}

SHSTK_API int shstk_stack_call(uint64_t token, void (*fn)(void *arg), void *arg)
{
	uint64_t back;

	if (!native_ssp())
		return -EOPNOTSUPP;
	back = shstk_stack_switch(token);
	fn(arg);
	shstk_stack_switch(back);
	return 0;
}

/* ---- Late enabling ---- */

#if defined(__x86_64__) || defined(__aarch64__)

/*
 * The address of an object that find_mark() looks for, and whether the object has the mark for
 * shadow stacks.
 */
struct libc_mark {
	uint64_t addr;
	bool marked;
};

/* Tells whether the GNU property note @p of @size bytes has the mark for shadow stacks. */
static bool note_marks(const uint32_t *p, size_t size)
{
#ifdef __x86_64__
	const uint32_t type = 0xc0000002, bit = 2;
#else
	const uint32_t type = 0xc0000000, bit = 4;
#endif
	/* The first words are name size, descriptor size, NT_GNU_PROPERTY_TYPE_0, "GNU". */
	size_t left = size / 4;

	if (left < 4 || p[2] != 5)
		return false;
	for (p += 4, left -= 4; left >= 3;) {
		size_t words = 2 + (ALIGN_UP((uint64_t)p[1], 8) / 4);

		if (p[0] == type && p[1] == 4)
			return p[2] & bit;
		if (words > left)
			break;
		p += words;
		left -= words;
	}
	return false;
}

static int find_mark(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct libc_mark *m = arg;
	bool marked = false, here = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && m->addr - at < ph->p_memsz)
			here = true;
		if (ph->p_type == PT_GNU_PROPERTY)
			marked = note_marks((const uint32_t *)at, ph->p_memsz);
	}
	m->marked = marked;
	return here;
}

/*
 * Tells whether longjmp() adjusts the shadow stack pointer: the object that contains it has the
 * mark if it was built to do that.
 */
static bool libc_is_ready(void)
{
	struct libc_mark m = { .addr = (uintptr_t)longjmp };

	return dl_iterate_phdr(find_mark, &m) && m.marked;
}

/* This value stands for an entry that becomes the kernel's token of a signal frame. */
#define ENTRY_SIGNAL 0

/*
 * Turns a trace into the entries of a shadow stack, outermost first. The pc of code
 * that a signal interrupted is not a return address; on x86 a token takes its place.
 * Returns the number of entries, or -ENODATA if the trace has a guess, or a signal on
 * another architecture.
 */
static int entries_of(const uint64_t *pcs, const uint8_t *marks, int n, uint64_t *entries)
{
	int count = 0;

	for (int i = n - 1; i >= 0; i--) {
		if (marks[i] & SHSTK_MARK_GUESS)
			return -ENODATA;
		if (!(marks[i] & SHSTK_MARK_PC)) {
			entries[count++] = pcs[i];
			continue;
		}
#ifdef __x86_64__
		entries[count++] = ENTRY_SIGNAL;
#else
		return -ENODATA;
#endif
	}
	return count;
}

/*
 * Switches shadow stacks on and writes the @n entries. @entries has room for one more,
 * the return address of this function. This function may not call anything.
 * Returns 0 or a negative errno.
 *
 * x86: system call 158 is arch_prctl(), with 0x5001 ARCH_SHSTK_ENABLE and 0x5002
 * ARCH_SHSTK_DISABLE of 1, ARCH_SHSTK_SHSTK, or 2, ARCH_SHSTK_WRSS. arm64: 167 is prctl(),
 * with 75 PR_SET_SHADOW_STACK_STATUS.
 */
#ifdef __x86_64__
noinline_noclone no_sanitize static long seed(uint64_t *entries, long n)
{
	register long count __asm__("r12");
	register uint64_t *from __asm__("r13") = entries;
	long ret;

	entries[n] = (uintptr_t)__builtin_return_address(0);
	count = n + 1;
	__asm__ volatile("mov $158, %%eax\n\t"
			 "mov $0x5001, %%edi\n\t"
			 "mov $1, %%esi\n\t"
			 "syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 9f\n\t"
			 "mov $158, %%eax\n\t"
			 "mov $0x5001, %%edi\n\t"
			 "mov $2, %%esi\n\t"
			 "syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jz 1f\n\t"
			 /* Writing is not allowed: switch off again, nothing was pushed. */
			 "mov %%rax, %%r14\n\t"
			 "mov $158, %%eax\n\t"
			 "mov $0x5002, %%edi\n\t"
			 "mov $1, %%esi\n\t"
			 "syscall\n\t"
			 "mov %%r14, %%rax\n\t"
			 "jmp 9f\n"
			 "1:\n\t"
			 /* Write a token below all entries, to move the pointer there. */
			 "rdsspq %%r14\n\t"
			 "lea 0(,%%r12,8), %%rdx\n\t"
			 "mov %%r14, %%rsi\n\t"
			 "sub %%rdx, %%rsi\n\t"
			 "lea 1(%%rsi), %%rdx\n\t"
			 "sub $8, %%rsi\n\t"
			 "wrssq %%rdx, (%%rsi)\n\t"
			 "rstorssp (%%rsi)\n\t"
			 "mov $1, %%eax\n\t"
			 "incsspq %%rax\n"
			 "2:\n\t"
			 "mov (%%r13), %%rdx\n\t"
			 "test %%rdx, %%rdx\n\t"
			 "jnz 3f\n\t"
			 "mov %%r14, %%rdx\n\t"
			 "bts $63, %%rdx\n"
			 "3:\n\t"
			 "sub $8, %%r14\n\t"
			 "wrssq %%rdx, (%%r14)\n\t"
			 "add $8, %%r13\n\t"
			 "dec %%r12\n\t"
			 "jnz 2b\n\t"
			 "mov $158, %%eax\n\t"
			 "mov $0x5002, %%edi\n\t"
			 "mov $2, %%esi\n\t"
			 "syscall\n"
			 "9:"
			 : "=&a"(ret), "+r"(count), "+r"(from)
			 :
			 : "rcx", "rdx", "rsi", "rdi", "r11", "r14", "memory", "cc");
	return ret;
}
#else
noinline_noclone no_sanitize static long seed(uint64_t *entries, long n)
{
	register long x0 __asm__("x0");
	register uint64_t x30 __asm__("x30") = (uintptr_t)__builtin_return_address(0);
	uint64_t *from = entries;
	long count = n + 1;

	__asm__ volatile("hint #7" : "+r"(x30)); /* xpaclri */
	entries[n] = x30;
	__asm__ volatile("mov x8, #167\n\t"
			 "mov x0, #75\n\t"
			 "mov x1, #5\n\t" /* ENABLE | PUSH */
			 "mov x2, #0\n\t"
			 "mov x3, #0\n\t"
			 "mov x4, #0\n\t"
			 "svc #0\n\t"
			 "cbnz x0, 9f\n"
			 "1:\n\t"
			 "ldr x1, [%1], #8\n\t"
			 "sys #3, c7, c7, #0, x1\n\t" /* GCSPUSHM x1 */
			 "subs %2, %2, #1\n\t"
			 "b.ne 1b\n\t"
			 "mov x0, #75\n\t"
			 "mov x1, #1\n\t"
			 "svc #0\n"
			 "9:"
			 : "=&r"(x0), "+r"(from), "+r"(count)
			 :
			 : "x1", "x2", "x3", "x4", "x8", "memory", "cc");
	return x0;
}
#endif

/* Returns why shstk_enable_here() has to refuse, as a negative errno, or 0. */
static int refuse_reason(unsigned int flags)
{
	uint64_t status;
	int err = shstk_status_get(&status);

	if (err)
		return err;
	if (status & SHSTK_STATUS_ENABLE)
		return -EALREADY;
	if (flags & SHSTK_HERE_UNAWARE)
		return 0;
	if (!libc_is_ready())
		return -EPERM;
#ifdef __aarch64__
	if (syscall(SYS_gettid) != getpid())
		return -EPERM;
#endif
	return 0;
}

/* Returns what shstk_enable_here() returns where seed() has returned @err. */
static int seed_error(long err)
{
	switch (err) {
	case -EPERM: /* x86: locked */
		return -EBUSY;
	case -EINVAL: /* arm64: they can't be switched on a second time; the rest was checked */
		return -EALREADY;
	default:
		return (int)err;
	}
}

noinline_noclone no_sanitize SHSTK_API int shstk_enable_here(unsigned int flags)
{
	uint64_t pcs[MAX_FRAMES], all = ~0ull, mask;
	uint8_t marks[MAX_FRAMES];
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.sources = SHSTK_USE_WALK,
		.marks = marks,
	};
	int n, err;
	long ret;

	if (flags & ~SHSTK_HERE_UNAWARE)
		return -EINVAL;
	err = refuse_reason(flags);
	if (err)
		return err;
	n = shstk_capture(pcs, MAX_FRAMES, &opts, &info);
	if (n < 1)
		return -ENODATA;
	if (info.end == SHSTK_END_CAPACITY)
		return -E2BIG;
	if (info.end != SHSTK_END_COMPLETE)
		return -ENODATA;
	/* The first entry lies in this function; seed() adds its own return address instead. */
	{
		uint64_t entries[n];

		n = entries_of(pcs + 1, marks + 1, n - 1, entries);
		if (n < 0)
			return n;
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, 8);
		ret = seed(entries, n);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	}
	return seed_error(ret);
}

#else

SHSTK_API int shstk_enable_here(unsigned int flags)
{
	return flags & ~SHSTK_HERE_UNAWARE ? -EINVAL : -EOPNOTSUPP;
}

#endif
