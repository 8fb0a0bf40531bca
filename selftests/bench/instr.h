/* SPDX-License-Identifier: GPL-2.0-or-later */
/* instr.h - see instr.c */
#ifndef BENCH_INSTR_H
#define BENCH_INSTR_H

/* So many runs of a job are counted together. */
#define INSTR_RUNS 16

/* Run every job under callgrind; @arg points to the depth. */
void instr_run(void *arg);

#endif
