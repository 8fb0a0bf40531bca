/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * contexts.h - the trace contexts that threads publish for readers outside (OpenTelemetry's OTEP
 * 4947), as labels of their samples.
 *
 *	a process is sampled               contexts_watch()   where its threads publish, to the BPF
 *	                                                      program
 *	the program wrote what it read     contexts_take()
 *	records were lost                  contexts_lost()    forgets what has no sample yet
 *	a stack was made                   contexts_label()   the labels of its sample
 *
 * The BPF program is the one that reads the frames of interpreters (tools/language/languages.h).
 */
#ifndef TOOLS_CONVERT_CONTEXTS_H
#define TOOLS_CONVERT_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/convert/context_labels.h"

struct contexts;
struct context_watch;
struct languages;
struct mappings_files;

/* Begins with no process. Returns NULL if there is no memory. @languages must outlive it. */
struct contexts *contexts_create(struct languages *languages);
void contexts_destroy(struct contexts *all);

/**
 * contexts_watch() - look whether a process publishes contexts, if that is due
 * @all: the contexts.
 * @watch: what is known of the process; NULL at first. To be released by context_watch_free(), also
 *	when the process executes another program.
 * @pid: the process, which lives.
 * @files: where its files and its memory are found. They must outlive @watch.
 * @time: CLOCK_MONOTONIC in ns.
 *
 * A program may begin to publish at any time, so it is looked at again and again, the more seldom the
 * older it is.
 */
void contexts_watch(struct contexts *all, struct context_watch **watch, pid_t pid,
		    const struct mappings_files *files, uint64_t time);
/* Has contexts_watch() look soon: the process mapped another file. @watch may be NULL. */
void context_watch_moved(struct context_watch *watch);
void context_watch_free(struct context_watch *watch);

/*
 * Takes a record that the BPF program wrote at @time, in ns, if it is of a context. Returns 1, or 0
 * if it is another one, or -ENOMEM.
 */
int contexts_take(struct contexts *all, int tid, uint64_t time, const void *record, size_t size);

/* Returns whether a context of the thread was taken, and no sample yet. */
bool contexts_have(const struct contexts *all, int tid);

/* Tells that records were lost: the sample of a context that was taken may be one of them. */
void contexts_lost(struct contexts *all);

/**
 * struct context_sample - a sample
 * @tid: thread ID.
 * @time: time in ns.
 * @pc: program counter in user space.
 */
struct context_sample {
	int tid;
	uint64_t time;
	uint64_t pc;
};

/**
 * contexts_label() - make the labels of a sample
 * @all: the contexts.
 * @watch: what is known of its process, or NULL.
 * @sample: the sample, whose context is forgotten after this.
 * @buf: receives keys and values, each followed by a 0; CONTEXT_LABELS bytes.
 *
 * Return: bytes in @buf.
 */
size_t contexts_label(struct contexts *all, struct context_watch *watch,
		      const struct context_sample *sample, char *buf);

#endif
