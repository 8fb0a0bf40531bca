/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gomoments.h - the goroutine's stack of samples that were taken on another one.
 *
 * A sample has a copy of one stack. Of a thread of Go that is on its own stack, or on that for
 * signals, a BPF program at the same perf event copies the goroutine's as well, at the same
 * moment (tools/probes/bpf/goroutine.bpf.c). Only who may load such programs has this.
 */
#ifndef TOOLS_RECORD_PERF_GOMOMENTS_H
#define TOOLS_RECORD_PERF_GOMOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/convert/layout.h"
#include "tools/perf/rings.h"
#include "tools/perf/sample.h"
#include "tools/probes/bpf/goroutine.h"

struct gomoments;

/*
 * Loads the program, for @freq samples per second. NULL: that is not permitted, or the kernel has
 * no such thing.
 */
struct gomoments *gomoments_create(unsigned int freq);
void gomoments_destroy(struct gomoments *all);

/* Descriptor of the program, for struct perf_opts. */
int gomoments_program(const struct gomoments *all);

#define GOMOMENTS_PIECES (GO_PIECES + 1) /* the stack is one more */

/**
 * gomoments_find() - what was copied beside a sample
 * @all: where from; or NULL.
 * @record: the sample, and
 * @sample: what is in it.
 * @ret: receives pieces of memory, until the next call.
 *
 * Samples are asked for in the order of time: what is older than one is gone then. The pieces
 * say which goroutine the thread runs, or that it runs none.
 *
 * Return: number of pieces; 0: nothing was.
 */
size_t gomoments_find(struct gomoments *all, const struct perf_record *record,
		      const struct perf_sample *sample, struct memory_piece ret[GOMOMENTS_PIECES]);

#endif
