/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * start.h - the start-up object of `shstk run`. On x86-64 it is preloaded into a program that knows
 * nothing of shadow stacks. It enables them before main(), and corrects the shadow stack where such
 * a program and its C library change the ordinary stack without the processor's knowledge.
 *
 *   start.c    settings, the table of real functions
 *   enable.c   reports the result of enabling
 *   jump.S     setjmp and longjmp, context switches, vfork: code that must be
 *              instructions
 *   patch.c    the C library's own uses of setjmp, which no symbol reaches
 *   context.c  shadow stacks of makecontext() and make_fcontext()
 *   fault.c    violations: report and repair; SIGSEGV handlers of the program
 *   fault_x86.c, fault_arm64.c
 *              the parts of fault.c that depend on the architecture
 *   settings.c, find_mapping.c
 *              the environment, /proc/self/maps
 *
 * Where the C library handles shadow stacks, which is so on arm64, and on x86 if it was built for
 * CET, another object is used that needs only the last parts (start_ready.c).
 *
 * The object uses no C library but the one that it finds in the process (glibc or musl), takes no
 * memory from malloc(), and works from the first instruction after the dynamic linker. Layouts of
 * registers, jmp_buf and ucontext_t are ABI.
 */
#ifndef PRELOAD_START_H
#define PRELOAD_START_H

/*
 * Offset of the shadow stack pointer in a jmp_buf, in bytes. It lies behind the signal mask that
 * the kernel knows, inside the smaller buffer of pthread_cleanup_push(), in a word that glibc and
 * musl do not use.
 */
#define JMP_SSP 96
#define JMP_SAVED 64
#define JMP_MASK 72

/* Offsets in ucontext_t: general registers, floating-point pointer, spare words, mask. */
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

/* UC_SPARE holds this word, the shadow stack pointer, and the xor of both. */
#define UC_MAGIC 0x6b63617473687321

/* A frame of jump_fcontext() has the SSP at offset 8 and the return address at its end. */
#define FC_SSP 8
#define FC_SIZE 0x40
/* Bit of the SSP word: nothing was ever pushed, so there is no return address to pop. */
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
 * Marks this file as ready for GCS; otherwise the C library would not enable it. Compilers before
 * gcc 15 do not write that mark.
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
 * @permissive: violations are repaired and the program goes on.
 * @lock: the shadow stack's status is locked once it is enabled.
 * @strict: the program does not start if something could not be corrected.
 * @quiet: no line about the result is written.
 * @first: process that `shstk run` started; others are its children.
 * @socket: abstract socket that takes reports, or "".
 * @say: text to write once the C library has enabled shadow stacks, or NULL.
 *
 * It is written once, before main().
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
 * @token: restore token to switch by; 0: stay on this shadow stack.
 * @target: SSP to reach by popping entries; 0: pop nothing.
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
/* Finds the bounds of the shadow stack that holds @addr. Returns false if there is none. */
bool start_bounds(uint64_t addr, uint64_t *lo, uint64_t *hi) HIDDEN;

/* settings.c */
void start_read_settings(char **envp) HIDDEN;
void start_first_done(void) HIDDEN;
bool start_is_first(void) HIDDEN;
/* Reports that there is no shadow stack, and ends a program that must not run without one. */
void start_give_up(const char *what, const char *why) HIDDEN;

/* fault.c */
/* Looks up the functions that are hooked. */
void start_find_signals(void) HIDDEN;
/* Installs the handler of SIGSEGV. */
void start_faults(void) HIDDEN;
/* Writes a line with @a and @b to standard error. */
void start_say(const char *a, const char *b) HIDDEN;

/**
 * struct map_line - the mapping that holds an address, from /proc/self/maps
 * @start: first address of the mapping.
 * @end: address behind the mapping.
 * @text: the line.
 */
struct map_line {
	uint64_t start;
	uint64_t end;
	char text[256];
};

/*
 * find_mapping.c: finds the mapping that holds @addr. Returns false if there is none.
 * Async-signal-safe.
 */
bool start_map_find(uint64_t addr, struct map_line *ret) HIDDEN;

static inline uint64_t load_word(uint64_t addr)
{
	return *(volatile uint64_t *)(uintptr_t)addr;
}

#endif /* __ASSEMBLER__ */
#endif
