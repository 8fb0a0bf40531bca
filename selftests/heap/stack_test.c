// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack_test.c - tests that the BPF programs of `shstk record --heap -p` have a stack of their own.
 *
 * Since Linux 6.13 a BPF program may get one stack for each CPU. Programs that run at uprobes must
 * not have that: another thread that runs the same one may preempt them. The machine code shows
 * such a stack by the way its address is computed. A program that uses more than 64 bytes of stack
 * gets such a stack, and shows whether this kernel has them.
 *
 *	stack_test [OBJECT]
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/probes/probe_programs.h"

#define RING 65536

/* add %gs:..., %r9: the kernel's compiler uses that register for nothing else. */
static const uint8_t own_of_cpu[] = { 0x65, 0x4c, 0x03, 0x0c, 0x25 };

/* The bytes of union bpf_attr up to the end of a member; those behind may be anything. */
#define UP_TO(member) (offsetof(union bpf_attr, member) + sizeof(((union bpf_attr *)NULL)->member))

static int bpf(int cmd, union bpf_attr *attr, size_t size)
{
	return (int)syscall(SYS_bpf, cmd, attr, size);
}

/*
 * Returns 1 if a program's machine code has the instruction, 0 if not, -1 if the code cannot be
 * read.
 */
static int has_stack_of_cpu(int program)
{
	static uint8_t code[RING];
	struct bpf_prog_info info = {
		.jited_prog_insns = (uintptr_t)code,
		.jited_prog_len = sizeof(code),
	};
	union bpf_attr attr = {
		.info = { .bpf_fd = (uint32_t)program,
			  .info_len = sizeof(info),
			  .info = (uintptr_t)&info },
	};

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, UP_TO(info)) || !info.jited_prog_len ||
	    info.jited_prog_len > sizeof(code))
		return -1;
	return memmem(code, info.jited_prog_len, own_of_cpu, sizeof(own_of_cpu)) != NULL;
}

/*
 * Loads a program that stores far down on its stack, and does nothing else. Returns its descriptor.
 */
static int load_large(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -256 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t) "GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr, UP_TO(license));
}

static int skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 4;
}

int main(int argc, char **argv)
{
	static const char *const names[PROBE_PROGRAMS] = { "enter", "leave", "release", "begun",
							   "mapped" };
	struct programs programs;
	struct reason why;
	int failed = 0, large;

	puts("TAP version 13");
	large = load_large();
	if (large < 0)
		return skip(errno == EPERM ? "BPF programs are not permitted" :
					     "the kernel takes no BPF programs");
	if (has_stack_of_cpu(large) < 0)
		return skip("the machine code of BPF programs is not told");
	if (!has_stack_of_cpu(large))
		return skip("this kernel has no stacks of BPF programs that belong to a CPU");
	close(large);
	printf("1..%d\n", PROBE_PROGRAMS);
	if (programs_load(&heap_programs, argc > 1 ? argv[1] : OBJECT, RING, &programs, &why))
		printf("# %s\n", why.text);
	for (int i = 0; i < PROBE_PROGRAMS; i++) {
		bool good = programs.programs[i] > 0 && !has_stack_of_cpu(programs.programs[i]);

		printf("%sok %d %s(): the stack is the thread's\n", good ? "" : "not ", i + 1,
		       names[i]);
		failed |= !good;
	}
	programs_unload(&programs);
	return failed;
}
