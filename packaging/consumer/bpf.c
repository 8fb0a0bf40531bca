// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The smallest program that uses libshstk-bpf: it has tables made for BPF programs, and says whether that
 * works here. An argument is the path of the command shstk, for one that is not installed.
 */
#include <stdio.h>

#include <shstk_bpf.h>

int main(int argc, char **argv)
{
	struct shstk_bpf_opts opts = { .size = sizeof(opts) };
	struct shstk_bpf *tables;
	char why[256];
	int err;

	if (argc > 1)
		opts.command = argv[1];
	err = shstk_bpf_open(&opts, &tables, why, sizeof(why));
	printf("%s\n", err ? why : "tables are made");
	shstk_bpf_close(&tables);
	return !!err;
}
