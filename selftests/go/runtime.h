/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime.h - a Go program that is made, for arm64, and for x86-64 as far as it calls a vdso, a
 * vdso, and memory in which the descriptions of a thread and a goroutine lie, and their stacks.
 */
#ifndef SELFTESTS_GO_RUNTIME_H
#define SELFTESTS_GO_RUNTIME_H

#include <stdbool.h>
#include <sys/mman.h>

#include "selftests/go/small_program.h"

#define PROGRAM 0x20000000ull
#define VDSO 0x20100000ull
#define MEMORY 0x20200000ull

/* Offsets in memory. */
enum {
	G = 0,
	G0 = 0x200,
	M = 0x400,
	G0_STACK = 0x1000,
	G_STACK = 0x2000,
	STACK_SIZE = 0x1000,
	MEMORY_SIZE = 0x3000,
};

/* Offsets in g and m. */
enum {
	G_LO = 0,
	G_HI = 8,
	G_M = 0x30,
	SCHED_SP = 0x38,
	SCHED_PC = 0x40,
	SCHED_G = 0x48,
	SCHED_LR = 0x58,
	M_G0 = 0,
	M_CURG = 184,
	M_VDSO_SP = 0x300,
	M_VDSO_PC = 0x308,
};

#define WORD(v) (uint8_t)(v), (uint8_t)((v) >> 8), (uint8_t)((v) >> 16), (uint8_t)((v) >> 24)
#define NOP WORD(0xd503201fu)
#define RET WORD(0xd65f03c0u)
#define BL(from, to) WORD(0x94000000u | (((to) - (from)) / 4 & 0x3ffffff))
#define BLR WORD(0xd63f0040u) /* blr x2 */
#define MOVE_LINK WORD(0xaa1e03e3u) /* mov x3, x30 */
#define PUSH_LINK WORD(0xf81e0ffeu) /* str x30, [sp, #-32]! */
#define POP_LINK WORD(0xf84207feu) /* ldr x30, [sp], #32 */
#define NOTE_LINK WORD(0xf90002beu | M_VDSO_PC / 8 << 10) /* str x30, [x21, #M_VDSO_PC] */

/* The functions, in the order of their places. */
enum {
	CLOCK,
	PARK,
	SCHEDULE,
	EXECUTE,
	NANOTIME,
	MCALL,
	GOGO,
	SAVE_G,
	GOEXIT,
	/* These functions exist on arm64 only. */
	RUN,
	WORK,
	SYSTEMSTACK,
	MORESTACK,
	ASMCGOCALL,
	CGOCALLBACK,
	GROW,
	NOCTXT,
};

/* The address of an instruction of a function, on arm64. */
#define AT(f, insn) (SMALL_FUNC_SIZE * (f) + 4 * (insn))
#define PC(f, insn) (PROGRAM + SMALL_CODE + AT(f, insn))
#define CALL(f, insn, to) BL(AT(f, insn), AT(to, 0))

static __attribute__((unused)) const struct small_func program_arm64[] = {
	{ "main.clock", { PUSH_LINK, CALL(CLOCK, 1, NANOTIME), POP_LINK, RET }, 32, 4 },
	{ "main.park", { PUSH_LINK, CALL(PARK, 1, MCALL), POP_LINK, RET }, 32, 4 },
	{ "runtime.schedule",
	  { PUSH_LINK, CALL(SCHEDULE, 1, NANOTIME), CALL(SCHEDULE, 2, EXECUTE), NOP },
	  32,
	  4 },
	{ "runtime.execute", { PUSH_LINK, CALL(EXECUTE, 1, GOGO), NOP }, 32, 4 },
	{ "runtime.nanotime1", { PUSH_LINK, NOTE_LINK, BLR, POP_LINK, RET }, 32, 4 },
	{ "runtime.mcall", { NOP, CALL(MCALL, 1, SAVE_G), NOP, NOP, BLR, NOP }, 0, 0 },
	{ "runtime.gogo", { CALL(GOGO, 0, SAVE_G), NOP, NOP, RET }, 0, 0 },
	{ "runtime.save_g", { NOP, RET }, 0, 0 },
	{ "runtime.goexit", { NOP, BLR, NOP }, 0, 0 },
	{ "main.run", { PUSH_LINK, BLR, BLR, POP_LINK, RET }, 32, 4 },
	{ "main.work", { PUSH_LINK, BLR, POP_LINK, RET }, 32, 4 },
	{ "runtime.systemstack", { PUSH_LINK, BLR, POP_LINK, RET }, 32, 4 },
	{ "runtime.morestack", { NOP, BLR, NOP }, 0, 0 },
	{ "runtime.asmcgocall", { PUSH_LINK, BLR, POP_LINK, RET }, 32, 4 },
	{ "runtime.cgocallback", { PUSH_LINK, BLR, POP_LINK, RET }, 32, 4 },
	{ "main.grow", { MOVE_LINK, CALL(GROW, 1, NOCTXT), RET }, 0, 0 },
	{ "runtime.morestack_noctxt", { NOP, NOP }, 0, 0 },
	{ NULL, { 0 }, 0, 0 },
};

/* The same functions for x86-64, as far as tests use them. */
#define CALL_X86(from, to) 0xe8, WORD((SMALL_FUNC_SIZE * (to)) - (SMALL_FUNC_SIZE * (from) + 9))

static __attribute__((unused)) const struct small_func program_x86[] = {
	{ "main.clock", { 0x48, 0x83, 0xec, 24, CALL_X86(CLOCK, NANOTIME), 0xc3 }, 24, 4 },
	{ "main.park", { 0xc3 }, 0, 0 },
	{ "runtime.schedule", { 0xc3 }, 0, 0 },
	{ "runtime.execute", { 0xc3 }, 0, 0 },
	{ "runtime.nanotime1", { 0x48, 0x83, 0xec, 24, 0xff, 0xd0, 0xc3 }, 24, 4 }, /* call *%rax */
	{ "runtime.mcall", { 0xc3 }, 0, 0 },
	{ "runtime.gogo", { 0xc3 }, 0, 0 },
	{ "runtime.save_g", { 0xc3 }, 0, 0 },
	{ "runtime.goexit", { 0x90, 0xff, 0xd0, 0x90 }, 0, 0 },
	{ NULL, { 0 }, 0, 0 },
};

#define PC_X86(f, at) (PROGRAM + SMALL_CODE + SMALL_FUNC_SIZE * (f) + (at))

/*
 * The functions of the vdso, which has no table: only their code tells what they do to the stack.
 */
static __attribute__((unused)) const struct small_func vdso[] = {
	{ "clock",
	  { WORD(0xa9be7bfdu), /* stp x29, x30, [sp, #-32]! */
	    NOP, WORD(0xa8c27bfdu), /* ldp x29, x30, [sp], #32 */
	    RET },
	  0,
	  0 },
	{ NULL, { 0 }, 0, 0 },
};

#define IN_VDSO (VDSO + SMALL_CODE + 4)

static inline void *map_at(uint64_t at, size_t size, int prot, int fd)
{
	int flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *p = mmap((void *)(uintptr_t)at, size, prot, flags, fd, 0);

	return p == (void *)(uintptr_t)at ? p : NULL;
}

static inline void put(uint64_t at, uint64_t v)
{
	memcpy((void *)(uintptr_t)at, &v, sizeof(v));
}

static inline void put_stack(uint64_t g, uint64_t lo)
{
	put(g + G_LO, lo);
	put(g + G_HI, lo + STACK_SIZE);
	put(g + G_M, MEMORY + M);
	put(g + SCHED_G, g);
}

/*
 * Makes a thread on whose own stack something is done for a goroutine. Returns false if the memory
 * is not to be had.
 */
static inline bool make_thread(void)
{
	if (!map_at(MEMORY, MEMORY_SIZE, PROT_READ | PROT_WRITE, -1))
		return false;
	put_stack(MEMORY + G, MEMORY + G_STACK);
	put_stack(MEMORY + G0, MEMORY + G0_STACK);
	put(MEMORY + M + M_G0, MEMORY + G0);
	put(MEMORY + M + M_CURG, MEMORY + G);
	return true;
}

#endif
