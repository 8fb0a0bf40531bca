// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * switch_own_test.c - from one stack of a Go program to the next in captures of own threads, as
 * the agent of `shstk record` takes them in signal handlers: of a program that is made here and
 * lies in this process, with a goroutine where Go keeps it.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "shstk.h"
#include "selftests/go/runtime.h"

#include "kselftest_harness.h"

#define MAX 16

/* The goroutine's address, kept where Go's runtime has it in programs with C in them. */
static __thread volatile uint64_t tls_g;

/* Maps the program. Returns false if this machine lets no such memory be executed. */
static bool map_program(const struct small_func *f, int machine, uint64_t base,
			enum small_table table)
{
	static uint8_t file[SMALL_SIZE];
	int fd = syscall(SYS_memfd_create, "made", 0);
	bool ok;

	memset(file, 0, sizeof(file));
	make_program(file, f, machine, base, table);
	ok = fd >= 0 && write(fd, file, sizeof(file)) == sizeof(file) &&
	     map_at(base, SMALL_SIZE, PROT_READ | PROT_EXEC, fd);
	if (fd >= 0)
		close(fd);
	return ok;
}

/*
 * The context of a signal in the vdso, and the trace that it must give: a goroutine in main.clock()
 * called runtime.nanotime1(), which called the vdso on g0.
 */
#if defined(__x86_64__)

static const uint64_t want[] = { PC_X86(NANOTIME, 6), PC_X86(CLOCK, 9), PC_X86(GOEXIT, 3) };

static bool map_all(void)
{
	return map_program(program_x86, EM_X86_64, PROGRAM, SMALL_READ_ONLY);
}

static void in_vdso(ucontext_t *uc)
{
	uint64_t sp = MEMORY + G_STACK + STACK_SIZE - 128;

	put(sp + 24, PC_X86(CLOCK, 9));
	put(sp + 32 + 24, PC_X86(GOEXIT, 3));
	uc->uc_mcontext.gregs[REG_RIP] = PC_X86(NANOTIME, 6);
	uc->uc_mcontext.gregs[REG_RSP] = MEMORY + G0_STACK + STACK_SIZE - 128;
	uc->uc_mcontext.gregs[REG_R12] = sp;
}

#elif defined(__aarch64__)

static const uint64_t want[] = { IN_VDSO, PC(NANOTIME, 3), PC(CLOCK, 2), PC(GOEXIT, 1) };

static bool map_all(void)
{
	return map_program(program_arm64, EM_AARCH64, PROGRAM, SMALL_READ_ONLY) &&
	       map_program(vdso, EM_AARCH64, VDSO, SMALL_WITHOUT);
}

static void in_vdso(ucontext_t *uc)
{
	uint64_t sp = MEMORY + G_STACK + STACK_SIZE - 128;
	uint64_t g0_sp = MEMORY + G0_STACK + STACK_SIZE - 128;

	put(sp, PC(CLOCK, 2));
	put(sp + 32, PC(GOEXIT, 1));
	put(MEMORY + M + M_VDSO_SP, sp + 32);
	put(MEMORY + M + M_VDSO_PC, PC(CLOCK, 2));
	put(g0_sp + 8, PC(NANOTIME, 3));
	uc->uc_mcontext.pc = IN_VDSO;
	uc->uc_mcontext.sp = g0_sp;
}

#endif

TEST(a_signal_while_go_calls_the_vdso_sees_the_goroutine)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint8_t marks[MAX] = { 0 };
	struct shstk_opts opts = { .size = sizeof(opts),
				   .sources = SHSTK_USE_WALK,
				   .marks = marks };
	static ucontext_t uc;
	uint64_t pcs[MAX];
	unsigned int i;
	int n;

	ASSERT_TRUE(make_thread());
	if (!map_all())
		SKIP(return, "no code in memory that no file of this machine has: %s",
			   strerror(errno));
	tls_g = MEMORY + G;
	in_vdso(&uc);
	n = shstk_capture_context(&uc, pcs, MAX, &opts, &info);
	ASSERT_EQ(n, (int)(sizeof(want) / sizeof(*want)));
	for (i = 0; i < sizeof(want) / sizeof(*want); i++)
		EXPECT_EQ(pcs[i], want[i]);
	EXPECT_EQ(info.end, SHSTK_END_COMPLETE);
	EXPECT_EQ(marks[1], 0);
}

TEST_HARNESS_MAIN
