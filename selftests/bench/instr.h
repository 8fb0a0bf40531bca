/* SPDX-License-Identifier: GPL-2.0-or-later */
/* instr.h - counts the instructions of captures; see instr.c. */
#ifndef BENCH_INSTR_H
#define BENCH_INSTR_H

/* The number of runs of a job that are counted together. */
#define INSTR_RUNS 16

/* Runs every job under callgrind. @arg points to the depth. */
void instr_run(void *arg);

#endif
