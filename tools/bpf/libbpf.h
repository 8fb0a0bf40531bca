/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libbpf.h - libbpf, loaded when it is needed: the command does everything else without it. */
#ifndef TOOLS_BPF_LIBBPF_H
#define TOOLS_BPF_LIBBPF_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/**
 * struct libbpf - functions of libbpf; a member's name follows after "bpf_"
 * @set_print: libbpf_set_print().
 */
struct libbpf {
	typeof(libbpf_set_print) *set_print;
	typeof(bpf_object__open_file) *object__open_file;
	typeof(bpf_object__load) *object__load;
	typeof(bpf_object__close) *object__close;
	typeof(bpf_object__next_map) *object__next_map;
	typeof(bpf_object__find_map_by_name) *object__find_map_by_name;
	typeof(bpf_object__find_program_by_name) *object__find_program_by_name;
	typeof(bpf_map__name) *map__name;
	typeof(bpf_map__fd) *map__fd;
	typeof(bpf_map__reuse_fd) *map__reuse_fd;
	typeof(bpf_map__value_size) *map__value_size;
	typeof(bpf_program__fd) *program__fd;
	typeof(bpf_map_create) *map_create;
	typeof(bpf_map_update_elem) *map_update_elem;
	typeof(bpf_map_update_batch) *map_update_batch;
	typeof(bpf_map_lookup_elem) *map_lookup_elem;
	typeof(bpf_map_delete_elem) *map_delete_elem;
	typeof(bpf_map_get_next_key) *map_get_next_key;
};

/*
 * Returns the functions of libbpf, the same at each call; NULL if it is not installed or too old.
 */
const struct libbpf *libbpf_load(void);

#endif
