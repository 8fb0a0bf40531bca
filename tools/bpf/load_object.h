/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load_object.h - load a BPF program with its maps. */
#ifndef TOOLS_BPF_LOAD_OBJECT_H
#define TOOLS_BPF_LOAD_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/reason.h"

struct libbpf;
struct perf_rings;

#define BPF_LOADED_MAPS 32
#define BPF_LOADED_NAME 32

/**
 * struct bpf_loaded_map - a map of a program
 * @name: its name in the object file.
 * @value_size: bytes of a value.
 */
struct bpf_loaded_map {
	char name[BPF_LOADED_NAME];
	uint32_t value_size;
};

/**
 * struct bpf_loaded - a program that was loaded
 * @what: name of the program in messages.
 * @lib: functions of libbpf.
 * @program: descriptor of the program, or -1.
 * @nr_maps: number of its maps.
 * @maps: the maps.
 * @fds: their descriptors.
 */
struct bpf_loaded {
	const char *what;
	const struct libbpf *lib;
	int program;
	unsigned int nr_maps;
	struct bpf_loaded_map maps[BPF_LOADED_MAPS];
	int fds[BPF_LOADED_MAPS];
};

/**
 * bpf_loaded_open() - load a program
 * @what: name of the program in messages; it must stay.
 * @file: name of the object file, which is beside the command or where it is installed.
 * @name: name of the program in that file; NULL: only its maps are wanted.
 * @ret: receives the program.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno; bpf_loaded_close() is to be called in both cases.
 */
int bpf_loaded_open(const char *what, const char *file, const char *name, struct bpf_loaded *ret,
		    struct reason *why);

/**
 * struct bpf_loaded_shared - a map that a program has together with another one
 * @name: its name in the object file.
 * @fd: descriptor of the map, which exists already.
 */
struct bpf_loaded_shared {
	const char *name;
	int fd;
};

/* The same of a program that shares @nr maps with others. */
int bpf_loaded_open_sharing(const char *what, const char *file, const char *name,
			    const struct bpf_loaded_shared *shared, unsigned int nr,
			    struct bpf_loaded *ret, struct reason *why);

/*
 * Returns whether bpf_loaded_open() can succeed, as far as that is known before the program is
 * loaded. @file is the name of the object file.
 */
bool bpf_loaded_possible(const char *file);

/* Returns whether this process has a capability (CAP_*). */
bool bpf_has_capability(int number);

void bpf_loaded_close(struct bpf_loaded *l);

/* Returns the descriptor of a map, or -1. */
int bpf_loaded_map(const struct bpf_loaded *l, const char *name);

/* Returns how many bytes a value of a map has, 0: there is no such map. */
uint32_t bpf_loaded_value_size(const struct bpf_loaded *l, const char *name);

/*
 * Sets the element of a map; @value NULL: removes it. Returns 0, or a negative errno, and sets
 * errno as well.
 */
int bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key, const void *value);

/* Gets the element of a map to @value. Returns 0, or a negative errno if there is none. */
int bpf_loaded_get(const struct bpf_loaded *l, const char *map, const void *key, void *value);

/*
 * Has another program run behind this one, which has bpf/next.h. Returns 0, or a negative errno, and sets
 * errno as well.
 */
int bpf_loaded_set_next(const struct bpf_loaded *l, int program);

/* The same as bpf_loaded_set() of a map that bpf_loaded_create() made. */
int bpf_loaded_set_in(const struct bpf_loaded *l, int map, const void *key, const void *value);

/**
 * struct bpf_loaded_shape - what the maps in a map of maps are like
 * @key_size: bytes of a key.
 * @value_size: bytes of a value.
 * @entries: number of entries.
 */
struct bpf_loaded_shape {
	uint32_t key_size;
	uint32_t value_size;
	uint32_t entries;
};

/*
 * Makes a map for the map of maps @name: one that forgets what was not looked up for the longest time.
 * Returns its descriptor or a negative errno.
 */
int bpf_loaded_create(const struct bpf_loaded *l, const char *name,
		      const struct bpf_loaded_shape *shape);

/*
 * Runs the program at the samples of PERF_MAIN, or of @all events, in @rings from now on, see
 * perf_rings_walk(). It writes only to these rings from now on. Returns 0, or a negative errno if
 * it does not run.
 */
int bpf_loaded_begin(const struct bpf_loaded *l, struct perf_rings *rings, bool all);

/*
 * The same for a program that another one calls: it only gets to know the rings. Returns 0 or a negative
 * errno.
 */
int bpf_loaded_connect(const struct bpf_loaded *l, struct perf_rings *rings);

/*
 * Sets @dev and @ino to the PID namespace of this process, which the programs need to know
 * processes by the numbers that this process knows; to 0 if it is the first one, where these are
 * the kernel's own.
 */
void bpf_own_namespace(uint64_t *dev, uint64_t *ino);

#endif
