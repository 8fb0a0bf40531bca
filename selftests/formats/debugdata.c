// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * debugdata.c - unwinds itself as if it were another process, and says if every
 * frame of this file was exact. Built without .eh_frame for its own functions:
 * what describes them is .debug_frame, wherever debug_test has put that.
 *
 * usage: debugdata [DEBUG-DIRS]
 *
 * Prints "exact"; "guessed" if a frame was; "short" if it ended before main(); or
 * "wrong".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "shstk.h"
#include "symbol/symbol.h"

#define NOINLINE __attribute__((noinline, noclone))
#define LEVELS 8
#define MAX 64

static const char *dirs;
static uint64_t truth[LEVELS];
static unsigned int ntruth;

static void set_regs(struct shstk_regs *regs, const ucontext_t *uc)
{
#ifdef __x86_64__
	static const int order[] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	for (unsigned int i = 0; i < 16; i++)
		regs->r[i] = uc->uc_mcontext.gregs[order[i]];
	regs->known = 0xffff;
	regs->pc = uc->uc_mcontext.gregs[REG_RIP];
#else
	memcpy(regs->r, uc->uc_mcontext.regs, sizeof(uc->uc_mcontext.regs));
	regs->r[31] = uc->uc_mcontext.sp;
	regs->known = UINT32_MAX;
	regs->pc = uc->uc_mcontext.pc;
#endif
}

static const char *compare(const ucontext_t *uc)
{
	struct shstk_regs regs = { .size = sizeof(regs) };
	pid_t pid = getpid();
	struct shstk_space *space;
	uint8_t marks[MAX] = { 0 };
	struct shstk_opts opts = { .size = sizeof(opts), .marks = marks };
	uint64_t pcs[MAX];
	int i, n, guessed = 0;

	set_regs(&regs, uc);
#ifdef __x86_64__
	if (shstk_space_create(SHSTK_ARCH_X86, &space))
		exit(1);
#else
	if (shstk_space_create(SHSTK_ARCH_ARM64, &space))
		exit(1);
#endif
	if (dirs)
		shstk_space_set_debug(space, shstk_debug_find, (void *)dirs);
	if (shstk_space_add_pid(space, pid) <= 0)
		exit(1);
	n = shstk_unwind(space, &regs, shstk_read_process, &pid, pcs, MAX, &opts, NULL);
	shstk_space_destroy(space);
	for (i = 0; i < (int)ntruth && i + 1 < n; i++) {
		guessed += !!(marks[i + 1] & SHSTK_MARK_GUESS);
		if (pcs[i + 1] != truth[ntruth - 1 - i])
			return "wrong";
	}
	return i < (int)ntruth ? "short" : guessed ? "guessed" : "exact";
}

static NOINLINE int leaf(const char **verdict)
{
	volatile char room[100];
	ucontext_t uc;

	room[ntruth] = 1;
	truth[ntruth++] = (uintptr_t)__builtin_return_address(0);
	getcontext(&uc);
	*verdict = compare(&uc);
	return room[ntruth - 1];
}

/* Recurses through frames of changing size, with registers in use over the calls. */
static NOINLINE int level(int n, int a, int b, const char **verdict)
{
	volatile long room[5 + n];
	int sum;

	room[n] = a;
	truth[ntruth++] = (uintptr_t)__builtin_return_address(0);
	sum = n ? level(n - 1, a * 3, b + n, verdict) : leaf(verdict);
	return sum * a + b + room[n];
}

int main(int argc, char **argv)
{
	const char *verdict = "wrong";

	dirs = argc > 1 ? argv[1] : NULL;
	if (level(3, argc, 2, &verdict) == 123456)
		return 1;
	puts(verdict);
	return 0;
}
