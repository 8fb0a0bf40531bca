/* SPDX-License-Identifier: GPL-2.0-or-later */
/* serve_tables.h - make tables of unwind rules for the files that the BPF walk meets. */
#ifndef TOOLS_BPF_SERVE_TABLES_H
#define TOOLS_BPF_SERVE_TABLES_H

#include "bpf/walk.h"
#include "tools/bpf/libbpf.h"
#include "tools/probes/bpf_ring.h"

#define SERVE_WAITING 512

/* A file that is open and waits for its table. */
struct waiting {
	struct walk_file file;
	int fd;
};

/* A queue of @nr files, which begins at index @first modulo SERVE_WAITING. */
struct queue {
	struct waiting waiting[SERVE_WAITING];
	unsigned int first;
	unsigned int nr;
};

/**
 * struct served - the maps of the BPF program that are filled here
 * @lib: functions of libbpf.
 * @tables: map of the tables by slot.
 * @files: map of the slots by file.
 * @config: map of the program's settings.
 * @told: the settings that are now in @config.
 * @asked: map of the ring buffer of files that are asked for.
 * @ring: the ring buffer, mapped.
 * @leaves_go: programs of Go get no table.
 * @cache: folder in which tables are kept (cache_open()), or negative: none are kept.
 * @next: slot of the next table.
 * @missed: files that walks met.
 * @ahead: other files of the same processes; they wait until @missed is empty.
 * @nr_waiting: number of files in both queues, in memory that the server and its parent share.
 */
struct served {
	const struct libbpf *lib;
	int tables;
	int files;
	int config;
	struct walk_config told;
	int asked;
	struct ring ring;
	bool leaves_go;
	int cache;
	unsigned int next;
	struct queue missed;
	struct queue ahead;
	unsigned int *nr_waiting;
};

/* Tells the program the settings in @told. Returns 0 or a negative errno. */
int serve_config(struct served *s);

/* Makes the table of the vDSO, which all processes have. Returns 0 or a negative errno. */
int serve_vdso(struct served *s);

/**
 * serve_asked() - give a table to each file that is asked for, and never return without an error
 * @s: the maps.
 *
 * Return: a negative errno.
 */
int serve_asked(struct served *s);

#endif
