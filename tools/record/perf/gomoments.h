/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gomoments.h - the goroutine's stack for samples that were taken while its thread was on another
 * stack.
 *
 * A sample has a copy of one stack. If a Go thread is on its own stack, or on the one for signals,
 * a BPF program at the same perf event copies the goroutine's stack too, at the same moment
 * (tools/probes/bpf/goroutine.bpf.c). Only users who may load such programs have this.
 */
#ifndef TOOLS_RECORD_PERF_GOMOMENTS_H
#define TOOLS_RECORD_PERF_GOMOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/convert/mappings.h"
#include "tools/perf/rings.h"
#include "tools/perf/sample.h"
#include "tools/probes/bpf/goroutine.h"

struct gomoments;

/*
 * Loads the BPF program, for @freq samples per second. Returns NULL if that is not permitted or the
 * kernel cannot do it.
 */
struct gomoments *gomoments_create(unsigned int freq);
void gomoments_destroy(struct gomoments *all);

/* Returns the file descriptor of the BPF program, for struct perf_opts; 0 if @all is NULL. */
int gomoments_program(const struct gomoments *all);

#define GOMOMENTS_PIECES (GO_PIECES + 1) /* the stack is one more piece */

/**
 * gomoments_find() - find what was copied beside a sample
 * @all: the copies, or NULL.
 * @record: the record of the sample.
 * @sample: the content of that record.
 * @ret: receives pieces of memory, which are valid until the next call.
 *
 * Samples must be asked for in the order of their times, since copies much older than the sample
 * are freed. The pieces say which goroutine the thread runs, or that it runs none.
 *
 * Return: the number of pieces; 0 if nothing was copied.
 */
size_t gomoments_find(struct gomoments *all, const struct perf_record *record,
		      const struct perf_sample *sample, struct memory_piece ret[GOMOMENTS_PIECES]);

#endif
