/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * machine.h - what the unwinder must know about an instruction set.
 *
 * All machines are compiled into every build, so a trace of an arm64 process can be unwound on x86.
 * To add a machine, write arch/NAME/machine.c with a const table (register numbers are DWARF's),
 * add the table to machine_by_arch() and machine_by_elf(), and write arch/NAME/native.h to let
 * processes of that machine capture their own threads.
 */
#ifndef SHSTK_MACHINE_H
#define SHSTK_MACHINE_H

#include "internal.h"

#ifdef __riscv
#include <sys/ucontext.h> /* defines a REG_PC of its own */
#undef REG_PC
#endif

/*
 * The number of columns of the register file: registers by DWARF number, and the program counter.
 */
#define NREGS 33
#define REG_PC 32

struct effect;

/* A word below this address is no return address on a shadow stack: the first page has no code. */
#define SHADOW_LEAST 4096

/* The kinds of words on a shadow stack. */
enum shadow_entry {
	SHADOW_RETURN_ADDRESS,
	SHADOW_SIGNAL, /* token in front of the entries of code that a signal interrupted */
	SHADOW_TOKEN, /* any other token, for switching stacks */
	SHADOW_END, /* end marker, or a place where nothing was ever pushed */
	SHADOW_FOREIGN, /* no address of user code: written by the program, not pushed by a call */
};

/* What the code behind a system call does with the result of the call. */
enum clone_code {
	CLONE_NONE, /* the system call is not clone() */
	/* Tests it: 0 is the new thread, whose first frame this is; else its creator. */
	CLONE_TESTS,
	/* Tests it too; the creator then returns to the address that lies at its sp. */
	CLONE_RETURNS,
};

struct machine {
	uint8_t arch; /* enum shstk_arch */
	uint16_t elf_machine; /* EM_* */
	uint8_t sp; /* DWARF number of the stack pointer */
	uint8_t fp;
	uint8_t ra; /* DWARF number of the usual return address column */
	uint8_t insn_align; /* smallest distance between two instructions, in bytes */
	bool ra_in_reg; /* calls leave the return address in register @ra */
	/* The call pushes the return address on the shadow stack, not the callee. */
	bool calls_push;
	int8_t ra_off; /* usual place of a return address on the stack, in words from the CFA */
	int8_t record_off; /* bytes from fp to the frame record (saved fp, return address) */
	bool record_low; /* the frame record lies at the lower end of the frame */
	bool fp_ends; /* fp is 0 too where a return address of 0 says that there is no caller */
	uint64_t addr_max; /* user addresses are below this address */
	uint64_t callee_saved; /* registers that a call preserves, bit n for register n */
	/*
	 * Returns true if the code at @code (up to @len bytes) is the kernel's signal return
	 * trampoline.
	 */
	bool (*is_sigtramp)(const uint8_t *code, size_t len);
	/* Possible offsets of the system call in the trampoline; 0: none. */
	uint8_t sigtramp_call[2];
	uint8_t syscall_len; /* bytes of a system call instruction */
	/*
	 * Returns where the interrupted value of register @reg (or REG_PC) lies, as an offset from
	 * the sp that the trampoline has, or -1.
	 */
	int (*sigframe_offset)(unsigned int reg);
	/*
	 * Returns true if the @len bytes at @code, which lie in front of a return address, may end
	 * in a call instruction.
	 */
	bool (*after_call)(const uint8_t *code, size_t len);
	/*
	 * Decodes the instruction at @code (up to @len bytes), whose address is @pc, into its
	 * effect on what an epilogue consists of. Returns false if the instruction is not known.
	 */
	bool (*decode)(const uint8_t *code, size_t len, uint64_t pc, struct effect *e);
	/*
	 * Returns the rule at @code if no unwind information describes it and it is a stub of the
	 * linker, else RULE_NONE. @before bytes of code lie in front of @code, and @len from there
	 * on. NULL if the machine has no such stubs.
	 */
	uint64_t (*stub_rule)(const uint8_t *code, size_t before, size_t len);
	/*
	 * What make_fcontext() of Boost.Context puts behind the outermost function of a new stack, up to the
	 * four bytes that end a call of _exit(). That function would return to byte @context_at. Nothing calls this
	 * code, and nothing describes it. @context_size is 0 if it is not known.
	 */
	uint8_t context_end[8];
	uint8_t context_size, context_at;
	/*
	 * Returns whether the code at @code finds out which side of a clone() it is on. @before
	 * bytes of code lie in front of @code, and @len from there on. NULL if C libraries describe
	 * this code.
	 */
	enum clone_code (*clone_code)(const uint8_t *code, size_t before, size_t len);
	/* Returns the kind of the word @v, which lies at address @addr of a shadow stack. */
	enum shadow_entry (*shadow_entry)(uint64_t v, uint64_t addr);
};

/* Tells whether the @len bytes at @code begin with @m->context_end and the rest of its call. */
static inline bool machine_ends_context(const struct machine *m, const uint8_t *code, size_t len)
{
	const size_t size = m->context_size;

	return size && len >= size + 4 && !memcmp(code, m->context_end, size) &&
	       m->after_call(code, size + 4);
}

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
