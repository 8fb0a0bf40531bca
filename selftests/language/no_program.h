/* SPDX-License-Identifier: GPL-2.0-or-later */
/* no_program.h - stand-ins for tools/bpf/load_object.c: no BPF program is loaded. */
#ifndef SELFTESTS_LANGUAGE_NO_PROGRAM_H
#define SELFTESTS_LANGUAGE_NO_PROGRAM_H

#include "tools/bpf/load_object.h"

int bpf_loaded_open(const char *what, const char *file, const char *name, struct bpf_loaded *ret,
		    struct reason *why)
{
	(void)what;
	(void)file;
	(void)name;
	(void)ret;
	because(why, "there is none");
	return -1;
}

void bpf_loaded_close(struct bpf_loaded *l)
{
	(void)l;
}

int bpf_loaded_map(const struct bpf_loaded *l, const char *name)
{
	(void)l;
	(void)name;
	return -1;
}

int bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key, const void *value)
{
	(void)l;
	(void)map;
	(void)key;
	(void)value;
	return -1;
}

int bpf_loaded_set_next(const struct bpf_loaded *l, int program)
{
	(void)l;
	(void)program;
	return -1;
}

int bpf_loaded_begin(const struct bpf_loaded *l, struct perf_rings *rings, bool all)
{
	(void)l;
	(void)rings;
	(void)all;
	return -1;
}

int bpf_loaded_connect(const struct bpf_loaded *l, struct perf_rings *rings)
{
	(void)l;
	(void)rings;
	return -1;
}

void bpf_own_namespace(uint64_t *dev, uint64_t *ino)
{
	*dev = *ino = 0;
}

#endif
