// SPDX-License-Identifier: GPL-2.0-or-later
/* libbpf.c - load libbpf at run time. See libbpf.h. */
#if __has_include(<bpf/libbpf.h>)
#include <dlfcn.h>
#include <stdbool.h>

#include "tools/bpf/libbpf.h"

#define NAME "libbpf.so.1"

static bool find_all(void *handle, struct libbpf *lib)
{
	bool all = true;

#define FIND(member, name) all &= !!(lib->member = (typeof(lib->member))dlsym(handle, name))
	FIND(set_print, "libbpf_set_print");
	FIND(object__open_file, "bpf_object__open_file");
	FIND(object__load, "bpf_object__load");
	FIND(object__close, "bpf_object__close");
	FIND(object__next_map, "bpf_object__next_map");
	FIND(object__find_map_by_name, "bpf_object__find_map_by_name");
	FIND(object__find_program_by_name, "bpf_object__find_program_by_name");
	FIND(map__name, "bpf_map__name");
	FIND(map__fd, "bpf_map__fd");
	FIND(map__reuse_fd, "bpf_map__reuse_fd");
	FIND(map__value_size, "bpf_map__value_size");
	FIND(program__fd, "bpf_program__fd");
	FIND(map_create, "bpf_map_create");
	FIND(map_update_elem, "bpf_map_update_elem");
	FIND(map_update_batch, "bpf_map_update_batch");
	FIND(map_lookup_elem, "bpf_map_lookup_elem");
	FIND(map_delete_elem, "bpf_map_delete_elem");
	FIND(map_get_next_key, "bpf_map_get_next_key");
#undef FIND
	return all;
}

const struct libbpf *libbpf_load(void)
{
	static struct libbpf lib;
	static bool asked, found;
	void *handle;

	if (!asked) {
		asked = true;
		handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
		found = handle && find_all(handle, &lib);
	}
	return found ? &lib : NULL;
}
#endif
