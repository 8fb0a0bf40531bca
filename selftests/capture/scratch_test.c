// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scratch_test.c - the library's functions write to no more scratch memory than they ask for.
 *
 * The linker has scratch_call() pass by here, which gives each function memory that a pattern
 * follows.
 */
#include <string.h>
#include <sys/mman.h>

#include "scratch.h"
#include "shstk.h"

#include "kselftest_harness.h"

#define STACK_BYTES (256 << 10)
#define BEHIND 1024 /* bytes of the pattern */
#define PATTERN 0xa5
#define ENTRIES 64
#define CAPTURES 4 /* the first makes the thread's state, later ones know the trace before */

int __real_scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg);
int __wrap_scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg);

static unsigned int calls, exceeded;

int __wrap_scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg)
{
	_Alignas(16) uint8_t mem[SCRATCH_BYTES + BEHIND];
	int ret;

	if (size > SCRATCH_BYTES)
		return __real_scratch_call(size, fn, arg);
	memset(mem + size, PATTERN, BEHIND);
	ret = fn(mem, arg);
	calls++;
	for (size_t i = size; i < size + BEHIND; i++) {
		if (mem[i] != PATTERN) {
			exceeded++;
			break;
		}
	}
	return ret;
}

/* Calls @fn on the stack that ends at @top; the frame pointer keeps the stack pointer meanwhile. */
void call_on(void (*fn)(void), void *top);
#if defined(__x86_64__)
__asm__(".text\n"
	".globl call_on\n"
	".type call_on, @function\n"
	"call_on:\n"
	".cfi_startproc\n"
	"endbr64\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 6, -16\n"
	"mov %rsp, %rbp\n"
	".cfi_def_cfa_register 6\n"
	"mov %rsi, %rsp\n"
	"call *%rdi\n"
	"leave\n"
	".cfi_def_cfa 7, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_on, . - call_on\n");
#else
__asm__(".text\n"
	".globl call_on\n"
	".type call_on, %function\n"
	"call_on:\n"
	".cfi_startproc\n"
	"hint #34\n"
	"stp x29, x30, [sp, #-16]!\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 29, -16\n"
	".cfi_offset 30, -8\n"
	"mov x29, sp\n"
	".cfi_def_cfa_register 29\n"
	"mov sp, x1\n"
	"blr x0\n"
	"mov sp, x29\n"
	"ldp x29, x30, [sp], #16\n"
	".cfi_def_cfa 31, 0\n"
	".cfi_restore 29\n"
	".cfi_restore 30\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_on, . - call_on\n");
#endif

static struct shstk_info info;
static uint32_t sources;

static void capture(void)
{
	struct shstk_opts opts = { .size = sizeof(opts), .sources = sources };
	uint64_t pcs[ENTRIES];

	for (int i = 0; i < CAPTURES; i++) {
		info = (struct shstk_info){ .size = sizeof(info) };
		shstk_capture(pcs, ENTRIES, &opts, &info);
	}
}

/* Captures on another stack, of which only the frame pointer of call_on() leads back. */
static void capture_on_other_stack(void)
{
	uint8_t *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		return;
	call_on(capture, stack + STACK_BYTES);
	munmap(stack, STACK_BYTES);
}

TEST(a_step_to_another_stack_keeps_to_its_memory)
{
	sources = SHSTK_USE_WALK;
	capture_on_other_stack();
	EXPECT_EQ(info.end, SHSTK_END_COMPLETE);
	sources = SHSTK_USE_WALK | SHSTK_USE_MEMO;
	capture_on_other_stack();
	EXPECT_EQ(info.end, SHSTK_END_COMPLETE);
	EXPECT_GT(calls, 0);
	EXPECT_EQ(exceeded, 0);
}

TEST_HARNESS_MAIN
