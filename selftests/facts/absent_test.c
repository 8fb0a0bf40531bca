// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * absent_test.c - what is answered where there are no shadow stacks
 *
 * Runs on the machine that builds. A kernel may know nothing of them, or know
 * them on a CPU that has none: both are told apart by map_shadow_stack(), and
 * each answers in its own way. Where shadow stacks work, all is skipped.
 */
#include <sys/auxv.h>

#include "facts.h"
#include "kselftest_harness.h"

static bool kernel_knows;

TEST(map_shadow_stack_is_enosys_or_eopnotsupp)
{
	EXPECT_EQ(kernel_knows ? -EOPNOTSUPP : -ENOSYS, ss_map(0, getpagesize(), 0));
}

TEST(map_shadow_stack_tells_nothing_of_its_arguments)
{
	long answer = ss_map(0, getpagesize(), 0);

	EXPECT_EQ(answer, ss_map(1, 0, ~0UL));
	EXPECT_EQ(answer, ss_map(0, 8, SS_SET_TOKEN));
}

TEST(enabling_fails)
{
	EXPECT_EQ(kernel_knows ? SS_ABSENT : -EINVAL, ss_enable(SS_ENABLE));
}

TEST(disabling_fails)
{
	EXPECT_EQ(kernel_knows ? SS_ABSENT : -EINVAL, ss_disable(SS_ENABLE));
}

TEST(the_status_call)
{
	unsigned long bits = 0x5555;
	long answer = ss_status(&bits);

	EXPECT_EQ(kernel_knows ? SS_ABSENT_STATUS : -EINVAL, answer);
	EXPECT_EQ(answer ? 0x5555 : 0, bits);
}

TEST(the_lock_call)
{
	EXPECT_EQ(kernel_knows ? SS_ABSENT_STATUS : -EINVAL, ss_lock(0));
}

TEST(the_generic_prctl_calls_are_einval)
{
	unsigned long bits = 0x5555;

	if (!access("/sys/module/shstk_prctl", F_OK))
		SKIP(return, "not with the module shstk_prctl");
	EXPECT_EQ(-EINVAL, ss_syscall(__NR_prctl, 74, (unsigned long)&bits, 0, 0, 0));
	EXPECT_EQ(-EINVAL, ss_syscall(__NR_prctl, 75, 0, 0, 0, 0));
	EXPECT_EQ(-EINVAL, ss_syscall(__NR_prctl, 75, SS_ENABLE, 0, 0, 0));
	EXPECT_EQ(-EINVAL, ss_syscall(__NR_prctl, 76, 0, 0, 0, 0));
	EXPECT_EQ(0x5555, bits);
}

TEST(reading_the_pointer_does_no_harm_and_gives_0)
{
#ifdef __riscv
	SKIP(return, "may-be-operations are illegal on CPUs without Zimop");
#endif
	EXPECT_EQ(0, ss_pointer());
}

TEST(no_mapping_is_marked_ss)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	char line[512];

	ASSERT_NE(NULL, smaps);
	while (fgets(line, sizeof(line), smaps))
		if (!strncmp(line, "VmFlags:", 8))
			EXPECT_EQ(NULL, strstr(line, " ss"));
	fclose(smaps);
}

TEST(the_cpu_features_do_not_name_it)
{
#if defined(__x86_64__)
	FILE *cpuinfo = fopen("/proc/cpuinfo", "re");
	char line[8192];

	ASSERT_NE(NULL, cpuinfo);
	while (fgets(line, sizeof(line), cpuinfo))
		if (!strncmp(line, "flags", 5))
			EXPECT_EQ(NULL, strstr(line, "user_shstk"));
	fclose(cpuinfo);
#elif defined(__aarch64__)
	EXPECT_EQ(0, getauxval(AT_HWCAP) & (1UL << 32)); /* HWCAP_GCS */
#else
	SKIP(return, "no auxiliary vector entry for it");
#endif
}

TEST(the_regset_is_refused)
{
	struct ss_regset set;
	struct iovec iov = { &set, sizeof(set) };
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(-1, ptrace(PTRACE_GETREGSET, pid, (void *)SS_REGSET, &iov));
	TH_LOG("%s", strerror(errno));
	EXPECT_TRUE(errno == EINVAL || errno == ENODEV);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	long answer = ss_map(0, getpagesize(), 0);

	if (answer > 0) {
		printf("TAP version 13\n1..0 # SKIP this machine has shadow stacks\n");
		return KSFT_SKIP;
	}
	kernel_knows = answer != -ENOSYS;
	return test_harness_run(argc, argv);
}
