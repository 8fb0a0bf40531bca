/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * start.h - the start-up object of `shstk run`. x86-64: preloaded into a
 * program that knows nothing of shadow stacks, it switches them on before
 * main() and makes right what such a program and its C library do to the
 * stack behind the processor's back.
 *
 *   start.c    settings, the table of real functions
 *   enable.c   switching on
 *   jump.S     setjmp and longjmp, context switches, vfork: what must be
 *              instructions
 *   patch.c    the C library's own uses of setjmp, which no symbol reaches
 *   context.c  shadow stacks of makecontext() and make_fcontext()
 *   fault.c    violations: report and repair; SIGSEGV handlers of the program
 *   fault_x86.c, fault_arm64.c
 *              what of that depends on the architecture
 *   settings.c, maps.c
 *              the environment, /proc/self/maps
 *
 * Where the C library handles shadow stacks, which is so on arm64, and on x86 if it was
 * built for CET, another object needs no more than the last parts (start_ready.c).
 *
 * The object uses no C library but what it finds in the process (glibc or
 * musl), takes no memory from malloc(), and works from the first instruction
 * after the dynamic linker. Register, jmp_buf and ucontext_t layouts are ABI.
 */
#ifndef PRELOAD_START_H
#define PRELOAD_START_H

/* Offset of the shadow stack pointer in a jmp_buf, in bytes: behind the signal
 * mask the kernel knows, inside the smaller buffer of pthread_cleanup_push(),
 * in a word that glibc and musl leave alone.
 */
#define JMP_SSP 96
#define JMP_SAVED 64
#define JMP_MASK 72

/* ucontext_t: general registers, floating-point pointer, spare words, mask. */
#define UC_R8 40
#define UC_R9 48
#define UC_R12 72
#define UC_R13 80
#define UC_R14 88
#define UC_R15 96
#define UC_RDI 104
#define UC_RSI 112
#define UC_RBP 120
#define UC_RBX 128
#define UC_RDX 136
#define UC_RCX 152
#define UC_RSP 160
#define UC_RIP 168
#define UC_FPREGS 224
#define UC_SPARE 232
#define UC_SIGMASK 296
#define UC_FPMEM 424

/* What UC_SPARE holds: this word, the shadow stack pointer, both xored. */
#define UC_MAGIC 0x6b63617473687321

/* A frame of jump_fcontext(): SSP at 8, return address at the end. */
#define FC_SSP 8
#define FC_SIZE 0x40
/* Bit of the SSP word: nothing was ever pushed, no return address to pop. */
#define FC_FRESH 2

#ifndef __ASSEMBLER__

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../libshstk/sys.h"
#include "ssp.h"

#ifdef __aarch64__
/*
 * Says that this file is ready for GCS, or the C library would not switch it
 * on. Compilers before gcc 15 do not write that mark.
 */
__asm__(".pushsection .note.gnu.property, \"a\"\n\t"
	".balign 8\n\t"
	".long 4, 16, 5\n\t"
	".asciz \"GNU\"\n\t"
	".long 0xc0000000, 4, 4, 0\n\t"
	".popsection");
#endif

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))

/**
 * struct start_settings - the SHSTK_START environment variable
 * @permissive: repair violations and go on.
 * @lock: lock the status once it is on.
 * @strict: do not start if something could not be made right.
 * @quiet: no line about what was done.
 * @first: process that was started by `shstk run`; others are its children.
 * @socket: abstract socket that takes reports, or "".
 * @say: NULL, or what to say once the C library has switched on.
 *
 * Written once before main().
 */
struct start_settings {
	bool permissive;
	bool lock;
	bool strict;
	bool quiet;
	long first;
	char socket[64];
	const char *say;
};

/**
 * struct pivot - how to reach a shadow stack pointer
 * @token: restore token to switch by, or 0 to stay on this shadow stack.
 * @target: pointer to go on to by popping, or 0 to pop nothing.
 */
struct pivot {
	uint64_t token;
	uint64_t target;
};

extern struct start_settings start_settings HIDDEN;
extern bool start_is_glibc HIDDEN;
extern bool start_jumps_patched HIDDEN;
extern void (*start_real_longjmp)(void *env, int value) HIDDEN;

/* jump.S */
int start_sigsetjmp(void *env, int save_mask) HIDDEN;
void start_longjmp(void *env, int value) HIDDEN __attribute__((noreturn));
void start_context_entry(void) HIDDEN;
void start_fcontext_entry(void) HIDDEN;
void start_restorer(void) HIDDEN;

/* patch.c: returns what could not be patched, or NULL. */
const char *start_patch(void) HIDDEN;

/* context.c */
struct pivot start_pivot(uint64_t target) HIDDEN;
struct pivot start_context_pivot(const void *ucontext) HIDDEN;
void start_context_finished(void) HIDDEN;
/* Bounds of the shadow stack that holds @addr; false if there is none. */
bool start_bounds(uint64_t addr, uint64_t *lo, uint64_t *hi) HIDDEN;

/* settings.c */
void start_read_settings(char **envp) HIDDEN;
void start_first_done(void) HIDDEN;
bool start_is_first(void) HIDDEN;
/* Says that there is no shadow stack; ends a program that must not run without. */
void start_give_up(const char *what, const char *why) HIDDEN;

/* fault.c: look up what is wrapped; install the handler. */
void start_find_signals(void) HIDDEN;
void start_faults(void) HIDDEN;
void start_say(const char *a, const char *b) HIDDEN;

/*
 * struct map_line - the mapping that holds an address, as /proc/self/maps
 * tells it.
 */
struct map_line {
	uint64_t start;
	uint64_t end;
	char text[256];
};

/* maps.c: false if no mapping holds @addr. Async-signal-safe. */
bool start_map_find(uint64_t addr, struct map_line *ret) HIDDEN;

static inline uint64_t load_word(uint64_t addr)
{
	return *(volatile uint64_t *)(uintptr_t)addr;
}

#endif /* __ASSEMBLER__ */
#endif
