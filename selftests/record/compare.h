/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compare.h - what compare.c, which starts programs, shares with compare_agent.c, which is preloaded
 * into them: a file that both map.
 */
#ifndef SELFTESTS_RECORD_COMPARE_H
#define SELFTESTS_RECORD_COMPARE_H

#include <stdatomic.h>
#include <stdint.h>

#define COMPARE_FILE "SHSTK_COMPARE" /* variable of the environment: the path of the file */
#define COMPARE_DEPTH 256 /* most entries of a stack */
#define COMPARE_MAPS 49152 /* most bytes that are kept of /proc/self/maps */
#define COMPARE_MOST 1000 /* differences that are kept */

/**
 * struct compare_stack - a stack as one source sees it
 * @nr: number of entries.
 * @end: enum shstk_end.
 * @end_pc: where it ends, if it is not complete.
 * @pcs: the entries, innermost first.
 * @marks: SHSTK_MARK_* of each entry.
 */
struct compare_stack {
	int nr;
	int end;
	uint64_t end_pc;
	uint64_t pcs[COMPARE_DEPTH];
	uint8_t marks[COMPARE_DEPTH];
};

/**
 * struct compare_difference - a moment at which both sources saw different stacks
 * @whole: all else is written.
 * @pid: the process.
 * @size: bytes in @maps.
 * @hardware: the stack by the shadow stack.
 * @software: the stack by unwinding.
 * @maps: the process's /proc/self/maps.
 */
struct compare_difference {
	atomic_bool whole;
	int pid;
	unsigned int size;
	struct compare_stack hardware, software;
	char maps[COMPARE_MAPS];
};

/**
 * struct compare_shared - the file
 * @wall: samples are taken by wall-clock time, not by CPU time.
 * @period: ns from one sample to the next.
 * @same: samples of which both stacks are the same.
 * @later: samples whose shadow stack was switched on further in than where the stack begins.
 * @begun: those of them that had called nothing since.
 * @unchecked: samples that were not taken from a shadow stack.
 * @differ: the other samples. The first COMPARE_MOST of them are in @list.
 * @list: what differs. The file has holes where there is nothing.
 */
struct compare_shared {
	uint32_t wall;
	uint32_t period;
	_Atomic uint32_t same;
	_Atomic uint32_t later;
	_Atomic uint32_t begun;
	_Atomic uint32_t unchecked;
	_Atomic uint32_t differ;
	struct compare_difference list[COMPARE_MOST];
};

#endif
