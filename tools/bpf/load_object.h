/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load_object.h - load a BPF program that runs at perf events, with its maps. */
#ifndef TOOLS_BPF_LOAD_OBJECT_H
#define TOOLS_BPF_LOAD_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/reason.h"

struct bpf_object;
struct libbpf;
struct perf_rings;

/**
 * struct bpf_loaded - a program that was loaded
 * @what: name of the program in messages.
 * @lib: functions of libbpf.
 * @object: the object file of the program.
 * @program: descriptor of the program.
 * @output: descriptor of the map of the events to which it writes.
 */
struct bpf_loaded {
	const char *what;
	const struct libbpf *lib;
	struct bpf_object *object;
	int program;
	int output;
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
/*
 * Returns whether bpf_loaded_open() can succeed, as far as that is known before the program is
 * loaded. @file is the name of the object file.
 */
bool bpf_loaded_possible(const char *file);

void bpf_loaded_close(struct bpf_loaded *l);

/* Returns the descriptor of a map, or -1. */
int bpf_loaded_map(const struct bpf_loaded *l, const char *name);

/*
 * Sets the element of a map; @value NULL: removes it. Returns 0, or a negative errno, and sets
 * errno as well.
 */
int bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key, const void *value);

/*
 * Runs the program at the samples of PERF_MAIN, or of @all events, in @rings from now on, see
 * perf_rings_walk(). It writes only to these rings from now on. Returns 0, or a negative errno if
 * it does not run.
 */
int bpf_loaded_begin(const struct bpf_loaded *l, struct perf_rings *rings, bool all);

/*
 * Sets @dev and @ino to the PID namespace of this process, which the programs need to know
 * processes by the numbers that this process knows; to 0 if it is the first one, where these are
 * the kernel's own.
 */
void bpf_own_namespace(uint64_t *dev, uint64_t *ino);

#endif
