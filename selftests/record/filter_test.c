// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * filter_test.c - what the agent takes a filter of system calls to permit is what the kernel permits.
 *
 * Random filters are installed in children, which then make the calls.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tools/inject/agent/filter.h"

#include "kselftest_harness.h"

#define REFUSED 117 /* an errno that no call has here */
#define MOST 24
#define FILTERS 3000

/* Calls without arguments, which filters are about. A filter lets all others through. */
static const uint32_t calls[] = { SYS_getppid, SYS_getuid, SYS_getgid, SYS_geteuid };

static uint32_t state = 1;

/* Each call has a statement of its own: two in an expression come in any order, and compilers would draw other filters. */
static uint32_t draw(uint32_t n)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

static struct sock_filter random_load(void)
{
	static const uint16_t codes[] = { BPF_LD | BPF_IMM,	    BPF_LDX | BPF_IMM,
					  BPF_LD | BPF_MEM,	    BPF_LDX | BPF_MEM,
					  BPF_LD | BPF_W | BPF_LEN, BPF_LDX | BPF_W | BPF_LEN };
	uint32_t which = draw(2 * ARRAY_SIZE(codes)), k = draw(4);

	if (which >= ARRAY_SIZE(codes))
		return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    k ? 0 : offsetof(struct seccomp_data, arch));
	return (struct sock_filter)BPF_STMT(codes[which], which < 2 ? calls[k] : k);
}

/* A division by 0 would end the child, and what shifts by more than 31 bits do is not known: X is for others. */
static struct sock_filter random_calculation(void)
{
	static const uint16_t by_any[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_AND, BPF_OR, BPF_XOR };
	static const uint16_t by_number[] = { BPF_DIV, BPF_LSH, BPF_RSH };
	uint32_t which = draw(8), k = draw(300);
	uint16_t op;

	if (!which)
		return (struct sock_filter)BPF_STMT(BPF_ALU | BPF_NEG, 0);
	if (which < 4) {
		op = by_number[draw(ARRAY_SIZE(by_number))];
		return (struct sock_filter)BPF_STMT(BPF_ALU | op, 1 + k % 8);
	}
	op = by_any[draw(ARRAY_SIZE(by_any))];
	op |= draw(3) ? BPF_K : BPF_X;
	return (struct sock_filter)BPF_STMT(BPF_ALU | op, k);
}

static struct sock_filter random_jump(uint32_t left)
{
	static const uint16_t ops[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	uint32_t yes = draw(left), no = draw(left), k = calls[draw(4)];
	uint16_t op;

	if (!draw(8))
		return (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, yes);
	op = ops[draw(4)];
	op |= draw(4) ? BPF_K : BPF_X;
	return (struct sock_filter)BPF_JUMP(BPF_JMP | op, k, yes, no);
}

static struct sock_filter random_result(void)
{
	return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, draw(2) ? SECCOMP_RET_ALLOW :
								       SECCOMP_RET_ERRNO | REFUSED);
}

/* Returns a random instruction with @left behind it. */
static struct sock_filter random_instruction(uint32_t left)
{
	uint32_t which = draw(12), k = draw(4);

	switch (which) {
	case 0:
	case 1:
		return random_load();
	case 2:
		return random_calculation();
	case 3:
		return (struct sock_filter)BPF_STMT(draw(2) ? BPF_ST : BPF_STX, k);
	case 4:
		return (struct sock_filter)BPF_STMT(BPF_MISC | (draw(2) ? BPF_TAX : BPF_TXA), 0);
	case 5:
	case 6:
		return random_result();
	default:
		return random_jump(left);
	}
}

/* Makes a filter that decides on the calls at random. Returns the number of its instructions. */
static uint32_t make_filter(struct sock_filter *code)
{
	uint32_t n = 0, end = ARRAY_SIZE(calls) + 2 + 3 + draw(MOST - ARRAY_SIZE(calls) - 6);

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++, n++)
		code[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
						       ARRAY_SIZE(calls) - i, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (uint32_t i = 0; i < 4; i++)
		code[n++] = (struct sock_filter)BPF_STMT(BPF_ST,
							 i); /* the kernel wants it written first */
	for (end += 4; n < end - 1; n++)
		code[n] = random_instruction(end - 1 - n);
	code[n++] = random_result();
	return n;
}

/* Returns which of the calls a filter permits, as a set; -1 if the kernel refuses the filter. */
static int by_kernel(struct sock_filter *code, uint32_t n)
{
	struct sock_fprog prog = { .len = n, .filter = code };
	int status, set = 0;
	pid_t pid = fork();

	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
			_exit(255);
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
			if (syscall(calls[i]) >= 0 || errno != REFUSED)
				set |= 1 << i;
		_exit(set);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -2;
	return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

static int by_agent(const struct sock_filter *code, uint32_t n)
{
	int set = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		set |= filter_permits(code, n, calls[i]) << i;
	return set;
}

TEST(random_filters)
{
	struct sock_filter code[MOST + 8];
	int taken = 0, mixed = 0;

	for (int i = 0; i < FILTERS; i++) {
		uint32_t n = make_filter(code);
		int kernel = by_kernel(code, n), agent = by_agent(code, n);

		ASSERT_NE(kernel, -2);
		if (kernel < 0)
			continue;
		taken++;
		mixed += kernel && kernel != 15;
		if (agent != kernel)
			TH_LOG("filter %d: %x by the kernel, %x by the agent", i, kernel, agent);
		EXPECT_EQ(agent, kernel);
	}
	if (!taken)
		SKIP(return, "no filters of system calls here");
	EXPECT_GT(taken, FILTERS / 2);
	EXPECT_GT(mixed, 50);
}

/* One of the calls is permitted on one architecture only. */
TEST(architecture)
{
	static const uint32_t archs[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_I386,
					  AUDIT_ARCH_ARM };

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		struct sock_filter code[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[0], 0, 3),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, archs[i], 1, 0),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | REFUSED),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		int kernel = by_kernel(code, ARRAY_SIZE(code));

		if (kernel == -1)
			SKIP(return, "no filters of system calls here");
		EXPECT_EQ(by_agent(code, ARRAY_SIZE(code)), kernel);
	}
}

TEST(what_is_not_known_is_forbidden)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	EXPECT_FALSE(filter_permits(code, 2, SYS_getpid));
	code[0].k = offsetof(struct seccomp_data, instruction_pointer);
	EXPECT_FALSE(filter_permits(code, 2, SYS_getpid));
	code[0].k = offsetof(struct seccomp_data, nr);
	EXPECT_TRUE(filter_permits(code, 2, SYS_getpid));
	EXPECT_FALSE(filter_permits(code, 1, SYS_getpid)); /* it has no end */
	EXPECT_FALSE(filter_permits(code, BPF_MAXINSNS + 1, SYS_getpid));
	code[0] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff);
	EXPECT_FALSE(filter_permits(code, 2, SYS_getpid));
	code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255);
	EXPECT_FALSE(filter_permits(code, 2, SYS_getpid));
	code[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG);
	EXPECT_FALSE(filter_permits(code, 2, SYS_getpid));
}

TEST_HARNESS_MAIN
