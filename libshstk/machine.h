/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * machine.h - what the unwinder must know of an instruction set.
 *
 * All machines are compiled into every build: a trace of an arm64 process can
 * be unwound on x86. To add one: write arch/NAME/machine.c with a const table
 * (register numbers are DWARF's), add it to machine_by_arch() and
 * machine_by_elf(), and, for capture of its own threads, arch/NAME/native.h.
 */
#ifndef SHSTK_MACHINE_H
#define SHSTK_MACHINE_H

#include "internal.h"

#ifdef __riscv
#include <sys/ucontext.h> /* has a REG_PC of its own */
#undef REG_PC
#endif

/* Columns of the register file: DWARF numbers, and the program counter. */
#define NREGS 33
#define REG_PC 32

struct effect;

/* No code lies in the first page: such a word was never pushed. */
#define SHADOW_LEAST 4096

/* What a word of a shadow stack is. */
enum shadow_entry {
	SHADOW_RETURN_ADDRESS,
	SHADOW_SIGNAL, /* token in front of the interrupted code's entries */
	SHADOW_TOKEN, /* any other: for switching stacks */
	SHADOW_END, /* end marker, or nothing was ever pushed here */
	SHADOW_FOREIGN, /* no address of user code; written, not pushed */
};

/* What code behind a system call makes of its result. */
enum clone_code {
	CLONE_NONE, /* no clone() */
	CLONE_TESTS, /* 0: a new thread, whose first frame this is; not 0: its creator */
	CLONE_RETURNS, /* the same, and the creator returns to what lies at its sp */
};

struct machine {
	uint8_t arch; /* enum shstk_arch */
	uint16_t elf_machine; /* EM_* */
	uint8_t sp; /* DWARF numbers */
	uint8_t fp;
	uint8_t ra; /* usual return address column */
	uint8_t insn_align; /* smallest distance of two instructions */
	bool ra_in_reg; /* calls leave the return address in @ra */
	bool calls_push; /* ... and on the shadow stack, not the callee */
	int8_t ra_off; /* usual place, in words from CFA (if on stack) */
	int8_t record_off; /* frame record (fp, return address), from fp */
	bool record_low; /* ... at the frame's lower end */
	bool fp_ends; /* fp is 0 where a return address of 0 says that there is no caller */
	uint64_t addr_max; /* user addresses are below */
	uint64_t callee_saved; /* registers that a call preserves, bit per number */
	/*
	 * Is the code at @code (up to @len bytes) the kernel's signal return
	 * trampoline?
	 */
	bool (*is_sigtramp)(const uint8_t *code, size_t len);
	uint8_t sigtramp_call[2]; /* how far into it its system call lies */
	uint8_t syscall_len; /* bytes of that instruction */
	/*
	 * Where the interrupted registers lie when sp is that of the
	 * trampoline: offset from sp of register @reg (or REG_PC), or -1.
	 */
	int (*sigframe_offset)(unsigned int reg);
	/*
	 * Could @code end in a call instruction (@len bytes before a return
	 * address)?
	 */
	bool (*after_call)(const uint8_t *code, size_t len);
	/*
	 * What the instruction at @code (up to @len bytes, lying at @pc) does
	 * to what an epilogue is made of. False: it is none that is known.
	 */
	bool (*decode)(const uint8_t *code, size_t len, uint64_t pc, struct effect *e);
	/*
	 * The rule at @code, where nothing describes it, if it is a stub of
	 * the linker, of which @before bytes lie in front and @len from there
	 * on; RULE_NONE if not. NULL: there are none.
	 */
	uint64_t (*stub_rule)(const uint8_t *code, size_t before, size_t len);
	/*
	 * Does the code at @code, of which @before bytes lie in front and @len from there
	 * on, find out which side of a clone() it is on? NULL: libcs describe it.
	 */
	enum clone_code (*clone_code)(const uint8_t *code, size_t before, size_t len);
	/* What is the word @v at @addr of a shadow stack? */
	enum shadow_entry (*shadow_entry)(uint64_t v, uint64_t addr);
};

extern const struct machine machine_x86;
extern const struct machine machine_arm64;
extern const struct machine machine_riscv;

bool x86_decode(const uint8_t *code, size_t len, uint64_t pc, struct effect *e);
bool arm64_decode(const uint8_t *code, size_t len, uint64_t pc, struct effect *e);

static inline const struct machine *machine_by_arch(int arch)
{
	switch (arch) {
	case SHSTK_ARCH_X86:
		return &machine_x86;
	case SHSTK_ARCH_ARM64:
		return &machine_arm64;
	case SHSTK_ARCH_RISCV:
		return &machine_riscv;
	default:
		return NULL;
	}
}

static inline const struct machine *machine_by_elf(unsigned int e_machine)
{
	if (e_machine == machine_x86.elf_machine)
		return &machine_x86;
	if (e_machine == machine_arm64.elf_machine)
		return &machine_arm64;
	if (e_machine == machine_riscv.elf_machine)
		return &machine_riscv;
	return NULL;
}

#endif
