// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lsm_test.c - tests that security modules, including BPF programs, are asked about the shadow
 * stack prctls
 *
 *	lsm_test lsm.bpf.o
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "linux/shstk.h"

static volatile struct {
	int process;
	int option;
	int seen;
} * state;

static long status(void)
{
	unsigned long bits;

	return prctl(PR_GET_SHADOW_STACK_STATUS, &bits, 0, 0, 0) ? -errno : 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	struct bpf_program *prog;
	struct bpf_link *link = NULL;
	struct bpf_map *bss;
	long ret;

	if (argc != 2) {
		fprintf(stderr, "usage: %s lsm.bpf.o\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	ksft_print_header();
	ksft_set_plan(4);
	ksft_test_result(!status(), "the call works\n");

	obj = bpf_object__open_file(argv[1], NULL);
	prog = obj ? bpf_object__find_program_by_name(obj, "on_prctl") : NULL;
	if (prog && !bpf_object__load(obj))
		link = bpf_program__attach(prog);
	if (!link)
		ksft_exit_fail_msg("cannot load and attach %s\n", argv[1]);
	bss = bpf_object__find_map_by_name(obj, ".bss");
	state = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(bss), 0);
	if (state == MAP_FAILED)
		ksft_exit_fail_msg("no map\n");
	state->option = PR_GET_SHADOW_STACK_STATUS;
	state->process = getpid();

	ret = status();
	ksft_test_result(ret == -EPERM && state->seen == 1,
			 "not if a security module says no: %ld\n", ret);
	ret = prctl(PR_LOCK_SHADOW_STACK_STATUS, 0, 0, 0, 0) ? -errno : 0;
	ksft_test_result(!ret, "others do: %ld\n", ret);
	bpf_link__destroy(link);
	bpf_object__close(obj);
	ret = status();
	ksft_test_result(!ret, "and it does again when that is gone: %ld\n", ret);
	ksft_finished();
}
