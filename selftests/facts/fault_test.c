// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fault_test.c - which signal answers a violation, with which si_code
 *
 * Each violation happens in a child; see run_child() for how it is watched.
 */
#include "facts.h"
#include "kselftest_harness.h"

#define SIZE 4096UL

/* QEMU (11.1 at least) lets the instructions of riscv work on any page. */
#if defined(__riscv)
#define PAGE_TYPE_UNCHECKED 1
#else
#define PAGE_TYPE_UNCHECKED 0
#endif

/* Maps a shadow stack between two pages of the given protection; 0: unmapped. */
static unsigned long fenced_stack(unsigned long size, int below, int above)
{
	unsigned long page = getpagesize();
	unsigned long room, ss;

	room = (unsigned long)mmap(NULL, 6 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap((void *)room, 6 * page);
	ss = room + 3 * page;
	if (ss_map(ss, size, SS_SET_TOKEN) != (long)ss)
		return 0;
	if (below)
		mmap((void *)(ss - page), page, below,
		     MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (above)
		mmap((void *)(ss + page), page, above,
		     MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return ss;
}

/* ---- Return addresses that differ ---- */

static uint64_t elsewhere;

static void landing(void)
{
	_exit(55);
}

/* Changes the return address on the ordinary stack only. */
static void noinline spoil_return(void *arg)
{
	(void)arg;
#if defined(__x86_64__)
	/* A frame of known form: the return address is at %rsp. */
	asm volatile("call	1f\n\t"
		     "jmp	2f\n"
		     "1:	mov	%0, (%%rsp)\n"
		     ".globl fault_here\n"
		     "fault_here: ret\n"
		     "2:"
		     :
		     : "r"(elsewhere)
		     : "memory");
#elif defined(__aarch64__)
	asm volatile("bl	1f\n\t"
		     "b		2f\n"
		     "1:	mov	x30, %0\n"
		     ".globl fault_here\n"
		     "fault_here: ret\n"
		     "2:"
		     :
		     : "r"(elsewhere)
		     : "x30", "memory");
#else
	asm volatile("la	x1, 2f\n\t"
		     ".word	0xce104073\n\t" /* sspush x1 */
		     "mv	x1, %0\n"
		     ".globl fault_here\n"
		     "fault_here: .word	0xcdc0c073\n" /* sspopchk x1 */
		     "2:"
		     :
		     : "r"(elsewhere)
		     : "x1", "memory");
#endif
}

extern char fault_here[];

TEST(a_changed_return_address_is_sigsegv_with_segv_cperr)
{
	struct ending end;

	elsewhere = (uint64_t)landing;
	end = run_child(spoil_return, NULL);
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_CPERR, end.code);
}

TEST(si_addr_of_segv_cperr)
{
	struct ending end;

	elsewhere = (uint64_t)landing;
	end = run_child(spoil_return, NULL);
	EXPECT_EQ(SS_CPERR_ADDR_PC ? (unsigned long)fault_here : 0, end.addr);
}

static void spoil_without(void *arg)
{
	ss_disable(SS_ENABLE);
	spoil_return(arg);
	ss_syscall(__NR_exit_group, 56, 0, 0, 0, 0);
}

#ifndef __riscv
TEST(without_a_shadow_stack_a_changed_return_address_is_followed)
{
	elsewhere = (uint64_t)landing;
	EXPECT_EQ(55, run_child(spoil_without, NULL).status);
}
#else
TEST(without_a_shadow_stack_the_check_does_nothing)
{
	elsewhere = (uint64_t)landing;
	EXPECT_EQ(56, run_child(spoil_without, NULL).status);
}
#endif

/* Changes the entry on the shadow stack only. */
static void noinline spoil_entry(void)
{
	uint64_t ra = RETURN_ADDRESS();

	ss_enter(ra);
	ss_write(ss_pointer(), (uint64_t)landing);
	ss_leave(ra);
}

static void spoil_with_permission(void *arg)
{
	(void)arg;
	if (!permit_write())
		_exit(99);
	spoil_entry();
	_exit(0);
}

TEST(a_changed_entry_is_sigsegv_with_segv_cperr)
{
	struct ending end = run_child(spoil_with_permission, NULL);

	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_CPERR, end.code);
}

static void on_cperr(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)uc;
	_exit(info->si_code == SEGV_CPERR ? 77 : 78);
}

TEST(segv_cperr_can_be_handled)
{
	struct sigaction sa = { .sa_sigaction = on_cperr, .sa_flags = SA_SIGINFO };
	int status = -1;
	pid_t pid;

	elsewhere = (uint64_t)landing;
	pid = fork();
	if (!pid) {
		sigaction(SIGSEGV, &sa, NULL);
		spoil_return(NULL);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(77, WEXITSTATUS(status));
}

/* ---- Stores ---- */

static void store(void *arg)
{
	*(volatile uint64_t *)arg = 1;
}

TEST(an_ordinary_store_is_sigsegv_with_segv_accerr)
{
	unsigned long at = ss_map(0, SIZE, 0);
	struct ending end = run_child(store, (void *)at);

	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_ACCERR, end.code);
#ifdef __riscv
	/* This is an access fault, not a page fault: si_addr is the instruction. */
	at = (unsigned long)store;
	EXPECT_GT(64, end.addr - at);
#else
	EXPECT_EQ(at, end.addr);
#endif
}

static void store_to_untouched(void *arg)
{
	(void)arg;
	*(volatile uint64_t *)(ss_pointer() - 2048 * WORD) = 1;
}

TEST(so_is_one_to_a_page_that_was_never_touched)
{
	struct ending end = run_child(store_to_untouched, NULL);

	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_ACCERR, end.code);
}

static void write_entry(void *arg)
{
	ss_write((unsigned long)arg, 0x123450);
	_exit(peek((unsigned long)arg) == 0x123450 ? 33 : 34);
}

#if SS_WRITE
static void write_with_permission(void *arg)
{
	if (ss_enable(SS_WRITE))
		_exit(99);
	write_entry(arg);
}

TEST(the_store_instruction_without_permission_faults)
{
	unsigned long at = ss_map(0, SIZE, 0);
	struct ending end = run_child(write_entry, (void *)at);

	EXPECT_EQ(SS_REFUSED_SIGNAL, end.signo);
	EXPECT_EQ(SS_REFUSED_CODE, end.code);
}

TEST(the_store_instruction_with_permission_works)
{
	unsigned long at = ss_map(0, SIZE, 0);

	EXPECT_EQ(33, run_child(write_with_permission, (void *)at).status);
}

TEST(the_store_instruction_on_ordinary_memory_is_segv_accerr)
{
	static uint64_t ordinary[512] __attribute__((aligned(4096)));
	struct ending end;

	ordinary[1] = 1;
	end = run_child(write_with_permission, ordinary);
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_ACCERR, end.code);
}
#else
TEST(the_store_instruction_needs_no_permission)
{
	unsigned long at = ss_map(0, SIZE, 0);

	EXPECT_EQ(33, run_child(write_entry, (void *)at).status);
}
#endif

#ifdef __aarch64__
static void push_entry(void *arg)
{
	unsigned long before = ss_pointer();

	if (arg && ss_enable(SS_PUSH))
		_exit(99);
	ss_push(0x123450);
	ss_sync();
	_exit(ss_pointer() == before - WORD && peek(before - WORD) == 0x123450 ? 33 : 34);
}

TEST(the_push_instruction_without_permission_is_sigill)
{
	EXPECT_EQ(SIGILL, run_child(push_entry, NULL).signo);
}

TEST(the_push_instruction_with_permission_pushes_any_word)
{
	EXPECT_EQ(33, run_child(push_entry, "").status);
}
#endif

/* ---- Behind the ends ---- */

static int noinline dive(int depth)
{
	uint64_t ra = RETURN_ADDRESS();
	int ret = 0;

	ss_enter(ra);
	if (depth)
		ret = dive(depth - 1) + 1;
	asm volatile("" : "+r"(ret));
	ss_leave(ra);
	return ret;
}

/* Overflows a shadow stack of one page, which holds 512 entries. */
static void overflow(void *arg)
{
	ss_switch((unsigned long)arg + SIZE - WORD);
	dive(600);
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

static void no_overflow(void *arg)
{
	ss_switch((unsigned long)arg + SIZE - WORD);
	dive(500);
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

TEST(five_hundred_calls_fit_in_a_page)
{
	unsigned long ss = fenced_stack(SIZE, 0, 0);

	ASSERT_NE(0, ss);
	EXPECT_EQ(0, run_child(no_overflow, (void *)ss).signo);
}

TEST(a_call_below_the_end_is_segv_maperr_at_the_next_word)
{
	unsigned long ss = fenced_stack(SIZE, 0, 0);
	struct ending end;

	ASSERT_NE(0, ss);
	end = run_child(overflow, (void *)ss);
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_MAPERR, end.code);
	EXPECT_EQ(ss - WORD, end.addr);
}

TEST(a_call_into_an_ordinary_mapping_below_is_segv_accerr)
{
	unsigned long ss = fenced_stack(SIZE, PROT_READ | PROT_WRITE, 0);
	struct ending end;

	ASSERT_NE(0, ss);
	end = run_child(overflow, (void *)ss);
	if (PAGE_TYPE_UNCHECKED && !end.signo)
		SKIP(return, "this machine pushes to ordinary pages");
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_ACCERR, end.code);
	EXPECT_EQ(ss - WORD, end.addr);
}

/* Returns once more than it was called: the pointer comes to the very end. */
static void underflow(void *arg)
{
	ss_switch((unsigned long)arg + SIZE - WORD);
#if defined(__x86_64__)
	asm volatile("lea 1f(%%rip), %%rax\n\tpush %%rax\n\tret\n1:" : : : "rax", "memory");
#elif defined(__aarch64__)
	asm volatile("adr x30, 1f\n\tret\n1:" : : : "x30", "memory");
#else
	asm volatile("la x1, 1f\n\t.word 0xcdc0c073\n1:" : : : "x1", "memory");
#endif
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

TEST(a_return_above_the_end_with_nothing_there_is_segv_maperr)
{
	unsigned long ss = fenced_stack(SIZE, 0, 0);
	struct ending end;

	ASSERT_NE(0, ss);
	end = run_child(underflow, (void *)ss);
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_MAPERR, end.code);
	EXPECT_EQ(ss + SIZE, end.addr);
}

TEST(a_return_above_the_end_into_an_ordinary_mapping_is_segv_accerr)
{
	unsigned long ss = fenced_stack(SIZE, 0, PROT_READ | PROT_WRITE);
	struct ending end;

	ASSERT_NE(0, ss);
	end = run_child(underflow, (void *)ss);
	if (PAGE_TYPE_UNCHECKED && end.code == SEGV_CPERR)
		SKIP(return, "this machine pops from ordinary pages");
	EXPECT_EQ(SIGSEGV, end.signo);
	EXPECT_EQ(SEGV_ACCERR, end.code);
	EXPECT_EQ(ss + SIZE, end.addr);
}

#ifndef __riscv /* on riscv the pointer is an ordinary register */
static void pop_all(void *arg)
{
	(void)arg;
	for (;;)
		ss_pop();
}

TEST(popping_beyond_the_end_faults)
{
	EXPECT_EQ(SIGSEGV, run_child(pop_all, NULL).signo);
}
#endif

int main(int argc, char **argv)
{
	START_SHADOW_STACK(0);
	exit(test_harness_run(argc, argv));
}
