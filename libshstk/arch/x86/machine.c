// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * machine.c - describes x86-64 for the unwinder: System V ABI register numbers, the signal
 * frame of arch/x86/include/uapi/asm/sigcontext.h, and how to recognise calls.
 */
#include <elf.h>

#include "shadow.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R15 = 15, RIP };

/* Recognises mov $__NR_rt_sigreturn, %rax or %eax; syscall. */
static bool is_sigtramp(const uint8_t *code, size_t len)
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return (len >= sizeof(rax) && !memcmp(code, rax, sizeof(rax))) ||
	       (len >= sizeof(eax) && !memcmp(code, eax, sizeof(eax)));
}

/*
 * Returns where register @reg lies from sp on in the signal frame, or -1. The handler has
 * popped pretcode, so sp points to struct ucontext. Its gregs start at offset 40, in the
 * order r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
 */
static int sigframe_offset(unsigned int reg)
{
	static const int16_t offset[] = {
		[RAX] = 144, [RDX] = 136, [RCX] = 152, [RBX] = 128,
		[RSI] = 112, [RDI] = 104, [RBP] = 120, [RSP] = 160,
	};

	if (reg >= R8 && reg <= R15)
		return 40 + 8 * (reg - R8);
	if (reg == RIP || reg == REG_PC)
		return 168;
	return reg < ARRAY_SIZE(offset) ? offset[reg] : -1;
}

/* Tells whether the code ends with a call instruction. */
static bool after_call(const uint8_t *code, size_t len)
{
	size_t n;

	if (len >= 5 && code[len - 5] == 0xe8)
		return true;
	/* ff /2: call *reg (2), *disp8(reg) (3), SIB (3, 4), disp32 (6, 7) */
	for (n = 2; n <= 7 && n <= len; n++) {
		const uint8_t *p = code + len - n;
		unsigned int mod, rm, size;

		if (p[0] != 0xff || (p[1] & 0x38) != 0x10)
			continue;
		mod = p[1] >> 6;
		rm = p[1] & 7;
		size = 2;
		if (mod != 3 && rm == 4)
			size++;
		if (mod == 1)
			size++;
		else if (mod == 2 || (mod == 0 && rm == 5))
			size += 4;
		else if (mod == 0 && rm == 4 && n == 7 && (p[2] & 7) == 5)
			size += 4;
		if (size == n)
			return true;
	}
	return false;
}

/*
 * Returns the length of the conditional jump at @code, or 0 if there is none. *@target receives
 * where it leads, relative to its own start.
 */
static size_t jump_if(uint8_t condition, const uint8_t *code, size_t len, int32_t *target)
{
	if (len >= 2 && code[0] == (0x70 | condition)) {
		*target = 2 + (int8_t)code[1];
		return 2;
	}
	if (len >= 6 && code[0] == 0x0f && code[1] == (0x80 | condition)) {
		memcpy(target, code + 2, 4);
		return __builtin_add_overflow(*target, 6, target) ? 0 : 6;
	}
	return 0;
}

static bool has_byte(const uint8_t *code, size_t len, int64_t at, uint8_t byte)
{
	return at >= 0 && (uint64_t)at < len && code[at] == byte;
}

/*
 * Recognises the code of clone() behind its system call. @code: test %rax, %rax; jl error;
 * je thread; ret (glibc), or test %eax, %eax; jne return (musl). @pc: where in @code the
 * program is. A new thread first clears the frame pointer, as the ABI requires for the
 * outermost frame; this tells these system calls from others.
 */
static enum clone_code clone_code_at(const uint8_t *code, size_t len, size_t pc)
{
	enum { E = 4, NE = 5, L = 12 };
	int32_t target = 0, error;
	size_t at = len > 0 && code[0] == 0x48, n;
	int64_t thread, creator;

	if (len < at + 2 || code[at] != 0x85 || code[at + 1] != 0xc0)
		return CLONE_NONE;
	at += 2;
	at += jump_if(L, code + at, len - at, &error);
	n = jump_if(E, code + at, len - at, &target);
	thread = (int64_t)at + target;
	creator = at + n;
	if (!n) {
		n = jump_if(NE, code + at, len - at, &target);
		thread = at + n;
		creator = (int64_t)at + target;
	}
	/* xor %ebp, %ebp */
	if (!n || pc > at || !has_byte(code, len, thread, 0x31) ||
	    !has_byte(code, len, thread + 1, 0xed))
		return CLONE_NONE;
	return has_byte(code, len, creator, 0xc3) ? CLONE_RETURNS : CLONE_TESTS;
}

/* Looks for the system call of clone() shortly before @code. */
static enum clone_code clone_code(const uint8_t *code, size_t before, size_t len)
{
	enum { MAX = 9 }; /* most bytes from the system call to the last jump */
	enum clone_code kind = CLONE_NONE;
	size_t pc;

	for (pc = 0; pc <= MAX && pc + 2 <= before && kind == CLONE_NONE; pc++)
		if (code[-(ptrdiff_t)pc - 2] == 0x0f && code[-(ptrdiff_t)pc - 1] == 0x05)
			kind = clone_code_at(code - pc, len + pc, pc);
	return kind;
}

const struct machine machine_x86 = {
	.arch = SHSTK_ARCH_X86,
	.elf_machine = EM_X86_64,
	.sp = RSP,
	.fp = RBP,
	.ra = RIP,
	.insn_align = 1,
	.ra_in_reg = false,
	.calls_push = true,
	.ra_off = -1,
	.record_off = 0,
	.record_low = false,
	.addr_max = 1ull << 56,
	.callee_saved = 1u << RBX | 1u << RBP | 1u << RSP | 0xfu << 12,
	.is_sigtramp = is_sigtramp,
	.sigtramp_call = { 7, 5 },
	.syscall_len = 2,
	.sigframe_offset = sigframe_offset,
	.after_call = after_call,
	/* push %rbp; jmp *%rbx; xor %rdi, %rdi; call */
	.context_end = { 0x55, 0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8 },
	.context_size = 7,
	.context_at = 3,
	.decode = x86_decode,
	.clone_code = clone_code,
	.shadow_entry = x86_shadow_entry,
};
