/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.h - tables for the files that walks meet.
 */
#ifndef TOOLS_BPF_SERVE_H
#define TOOLS_BPF_SERVE_H

#include "bpf/walk.h"
#include "tools/bpf/libbpf.h"
#include "tools/probes/ring.h"

#define SERVE_WAITING 512

/* A file that is open and waits for its table. */
struct waiting {
	struct walk_file file;
	int fd;
};

/* Such files: @nr of them from @first on, which is counted modulo their number. */
struct queue {
	struct waiting waiting[SERVE_WAITING];
	unsigned int first;
	unsigned int nr;
};

/**
 * struct served - the maps of the program that are filled
 * @lib: by these functions.
 * @tables: map of the tables by slot.
 * @files: map of the slots by file.
 * @config: map of what the program is told, which now is
 * @told: this.
 * @asked: ring of the files that are asked for, which is mapped as
 * @ring: this.
 * @cache: folder of tables (cache_open()), or negative: none are kept.
 * @next: slot of the next table.
 * @missed: files that walks met,
 * @ahead: and others of the same processes, which come after all of these.
 * @nr_waiting: files in both; in memory that the server and its parent share.
 */
struct served {
	const struct libbpf *lib;
	int tables;
	int files;
	int config;
	struct walk_config told;
	int asked;
	struct ring ring;
	int cache;
	unsigned int next;
	struct queue missed;
	struct queue ahead;
	unsigned int *nr_waiting;
};

/* Tells the program what is in @told. Returns 0 or a negative errno. */
int serve_config(struct served *s);

/* The table of the vdso, which all processes have. Returns 0 or a negative errno. */
int serve_vdso(struct served *s);

/**
 * serve_asked() - give all files that are asked for their tables, for ever
 * @s: the maps.
 *
 * Return: a negative errno.
 */
int serve_asked(struct served *s);

#endif
