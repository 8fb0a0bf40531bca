/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * witness.h - what witness.c and the tests that use it share
 */
#ifndef WITNESS_H
#define WITNESS_H

#include <stdint.h>

#define WITNESS_PAGES 0x100000000000UL /* address at which the pages begin */
#define WITNESS_STEP 65536UL /* larger than any page */
#define WITNESS_MAX 1000
#define WITNESS_DEPTH 200

/* The stack at one moment. */
struct testimony {
	uint64_t addr; /* address of the touched page; 0: a sample by signal */
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint32_t nr;
	uint32_t pad;
	uint64_t pc[WITNESS_DEPTH]; /* from the caller of the touching function on */
};

#endif
