// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * returned.c - prints what shstk_walk() returns of this process.
 *
 *	returned OBJECT [VERSION]
 *
 * The object is returned.bpf.c, linked with the walk. With VERSION that is what the pinned maps tell from
 * then on.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>

#include "bpf/walk.h"

#define CONFIG "/sys/fs/bpf/shstk_config"

static int set_version(unsigned long version)
{
	struct walk_config config;
	int fd = bpf_obj_get(CONFIG);
	__u32 zero = 0;

	if (fd < 0 || bpf_map_lookup_elem(fd, &zero, &config))
		return -1;
	config.version = version;
	return bpf_map_update_elem(fd, &zero, &config, BPF_ANY);
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct bpf_object *object = argc > 1 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *program;

	if (!object || bpf_object__load(object))
		return 1;
	if (argc > 2 && set_version(strtoul(argv[2], NULL, 10))) {
		perror(CONFIG);
		return 1;
	}
	program = bpf_object__find_program_by_name(object, "returned");
	if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts)) {
		perror("the program");
		return 1;
	}
	printf("%d\n", (int)opts.retval);
	bpf_object__close(object);
	return 0;
}
